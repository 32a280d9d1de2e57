"""Is a folder that is made once made again when it is damaged?"""

import random

import pytest

from tests.infra.sql.test_damage import spoilt
from upswing.infra.once import make_folder_once


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_folder_is_made_again(tmp_path, seed):
    made = []

    def make(folder):
        made.append(folder)
        (folder / "weights").write_bytes(random.Random(0).randbytes(5000))
        (folder / "config.json").write_text('{"a": 1}')

    place = make_folder_once(tmp_path / "base", make)
    assert make_folder_once(tmp_path / "base", make) == place
    (place / "more").write_text("what somebody else put there is none of ours")
    make_folder_once(tmp_path / "base", make)
    assert len(made) == 1
    chance = random.Random(seed)
    path = chance.choice([place / "weights", place / "config.json", place / ".sha256"])
    path.write_bytes(spoilt(path.read_bytes(), chance))
    make_folder_once(tmp_path / "base", make)
    assert len(made) == 2
    assert (place / "weights").read_bytes() == random.Random(0).randbytes(5000)


def test_a_folder_of_an_older_version_is_taken_as_it_is(tmp_path):
    (tmp_path / "base").mkdir()
    assert (
        make_folder_once(tmp_path / "base", lambda _: pytest.fail("it is there"))
        == tmp_path / "base"
    )
