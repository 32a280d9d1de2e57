"""Are damaged files of a training job told from sound ones?"""

import random

import msgspec
import pytest
from tests.store.test_damage import spoilt

from upswing.dataset.snapshot import Snapshot, sealed
from upswing.train.attempt_service import _lay_out, _snapshot_in
from upswing.train.data_service import Gathered
from upswing.training.session import _read_done

SAMPLES = [{"trajectory_id": str(number), "text": "x" * 200} for number in range(20)]
"""Labelled stand-ins: `_lay_out` only writes them down."""


@pytest.fixture
def home(tmp_path, snapshot):
    home = tmp_path / "job"
    _lay_out(home, Gathered(SAMPLES, snapshot))
    return home


@pytest.fixture
def snapshot():
    fields = {field.name: field for field in msgspec.structs.fields(Snapshot)}
    made = {name: _example(field.type) for name, field in fields.items() if field.required}
    return sealed(msgspec.convert(made, Snapshot))


def _example(kind):
    plain = {str: "2025-12-08T13:00:00Z", int: 0, float: 0.0, bool: False}
    origin = getattr(kind, "__origin__", kind)
    return {list: [], tuple: [], dict: {}}.get(origin, plain.get(kind, "2025-12-08T13:00:00Z"))


def test_sound_data_are_gone_on_with(home, snapshot):
    assert _snapshot_in(home, snapshot.sha256) == snapshot
    assert _snapshot_in(home, "other") is None


def test_a_snapshot_that_was_changed_is_gathered_anew(home, snapshot):
    path = home / "artifacts" / "snapshot.json"
    path.write_bytes(path.read_bytes().replace(b'"seed":0', b'"seed":1'))
    assert _snapshot_in(home, snapshot.sha256) is None


@pytest.mark.parametrize("seed", range(30))
def test_damaged_samples_are_gathered_anew(home, snapshot, seed):
    chance = random.Random(seed)
    path = chance.choice([home / "samples.jsonl", home / "samples.sha256"])
    path.write_bytes(spoilt(path.read_bytes(), chance))
    assert _snapshot_in(home, snapshot.sha256) is None


@pytest.mark.parametrize("junk", [b"", b"\xff", b"[" * 100_000, b"{}", b"null"])
def test_a_damaged_end_is_no_end(tmp_path, junk):
    path = tmp_path / "done.json"
    assert _read_done(path) is None
    path.write_bytes(junk)
    assert _read_done(path) is None
