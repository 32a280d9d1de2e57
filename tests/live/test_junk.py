"""Junk in any file of a data directory: is it found, is it one sentence, and is nothing wrong served?"""

import json
import random
import shutil
from pathlib import Path

import pytest
from tests.conftest import running_loop
from tests.infra.sql.test_damage import flipped, spoilt
from tests.storms import sized
from tests.support import Client, small, until

from upswing.cli import main
from upswing.errors import UpswingError
from upswing.infra.instance import find_running_instance, read_instance, read_secrets
from upswing.infra.sql.inspection import Inspection
from upswing.infra.sql.store import open_store

pytestmark = pytest.mark.live
JUNK = (
    b"",
    b"\0" * 64,
    b"\xff\xfe{",
    b"[" * 100_000,
    b"null",
    b'{"pid": 1e999}',
    b'"' + b"9" * 5000,
)
HARMLESS = ("lock", "nats/nats.conf", "nats/nats.log", "nats/port", ".ports")
"""Made anew at every start, or only written to."""


async def lived(data, documents=6):
    """A data directory in which a loop has worked, with what it had stored."""
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for _ in range(documents):
            assert (await client.send(small()))[0] == 202

        async def settled():
            counts = await loop.store.counts()
            return counts["outbox"] == 0 and counts["rewards"] == documents

        await until(settled)
        return {row.admitted.trajectory_id: row for row in await loop.store.trajectories_after(0)}


def files_of(data):
    return sorted(
        str(path.relative_to(data))
        for path in data.rglob("*")
        if path.is_file() and path.stat().st_size
    )


async def outcome(data, before, caplog):
    """`refused` in one sentence, `told` in the log, or nothing; what is served is what was stored."""
    caplog.clear()
    try:
        async with running_loop(data) as loop:
            served = {
                row.admitted.trajectory_id: row for row in await loop.store.trajectories_after(0)
            }
    except UpswingError as error:
        return "refused" if "\n" not in str(error) else "refused at length"
    assert served == before
    alerts = [each for each in caplog.records if getattr(each, "action", "") == "alert"]
    return "told" if alerts else "nothing"


async def examined(data, before, caplog):
    """The same as a start does with its files before anything runs: the keys, the mark, the store, the bus's files."""
    caplog.clear()
    try:
        read_secrets(data)
        store = open_store(data)
        try:
            await Inspection(data, store.database).begin()
            await store.prepare()
            served = {row.admitted.trajectory_id: row for row in await store.trajectories_after(0)}
        finally:
            store.close()
    except UpswingError as error:
        return "refused" if "\n" not in str(error) else "refused at length"
    assert served == before
    alerts = [each for each in caplog.records if getattr(each, "action", "") == "alert"]
    return "told" if alerts else "nothing"


@pytest.mark.long
@sized("tries", 60, 1000)
async def test_no_flip_and_no_cut_of_any_file_goes_unnoticed_or_is_served(
    data, tmp_path, caplog, tries, trials
):
    """Every fiftieth, but the first, is shown to a whole loop: a damaged file of the bus costs it a long start."""
    before = await lived(data)
    sound, chance = tmp_path / "sound", random.Random(7)
    data.rename(sound)
    names = [name for name in files_of(sound) if not name.endswith(HARMLESS)]
    assert {"upswing.db", "upswing.mark", "secrets.json"} <= set(names)
    found = {"refused": 0, "told": 0, "nothing": []}
    for number in range(tries):
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(sound, data)
        name = names[number % len(names)]
        whole = (data / name).read_bytes()
        (data / name).write_bytes(spoilt(whole, chance))
        changed = (data / name).read_bytes()
        word = await (outcome if number % 50 == 49 else examined)(data, before, caplog)
        if word == "nothing" and _means_the_same(name, whole, changed):
            continue
        if word == "nothing":
            found["nothing"].append(name)
        else:
            found[word] += 1
        trials.add(lost=word == "nothing")
    print(found)
    assert found["nothing"] == []


def _means_the_same(name, whole, spoilt):
    """A flip in the white space of JSON changes nothing."""
    if not name.endswith((".json", ".mark")):
        return False
    try:
        return json.loads(whole) == json.loads(spoilt)
    except ValueError:
        return False


async def test_junk_in_files_that_are_made_anew_hinders_nobody(data, caplog):
    before = await lived(data)
    for name in ("lock", "nats/nats.conf", "nats/nats.log", "nats/port", "running.json"):
        (data / name).write_bytes(b"\xff\0[junk")
    assert await outcome(data, before, caplog) in {"told", "nothing"}


@pytest.mark.parametrize("junk", JUNK)
def test_junk_in_running_json_is_one_sentence(tmp_path, junk, capsys, monkeypatch):
    (tmp_path / "running.json").write_bytes(junk)
    assert read_instance(tmp_path) is None
    assert find_running_instance(tmp_path) is None
    for command in (["info"], ["keys"], ["jobs", "cancel", "x"], ["traffic"]):
        assert main([*command, "--data", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert "No loop is running" in said or "holds no loop yet" in said


def test_a_running_file_with_a_number_that_no_process_has_is_none(tmp_path):
    told = {
        "pid": 10**18,
        "http_url": "http://127.0.0.1:1",
        "gateway_url": None,
        "nats_url": "",
        "nats_urls": {},
        "key": "k",
        "data": "d",
    }
    for pid in (10**18, 0, -1, 2**31 - 1):
        (tmp_path / "running.json").write_text(json.dumps({**told, "pid": pid}))
        assert find_running_instance(tmp_path) is None


@pytest.mark.parametrize("junk", JUNK[:4])
@pytest.mark.parametrize(
    "command",
    [
        "status",
        "export",
        "dead",
        "jobs",
        "models",
        "decisions",
        "windows check",
        "learn-report",
        "doctor",
        "repair",
    ],
)
def test_junk_for_a_database_is_one_sentence(tmp_path, junk, command, capsys):
    (tmp_path / "upswing.db").write_bytes(junk)
    assert main([*command.split(), "--data", str(tmp_path)]) in {0, 1}
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert said.err.count("\n") <= 1, said.err


async def test_flips_in_files_of_the_bus_are_told(data, caplog):
    before = await lived(data)
    blocks = sorted(
        (data / "nats" / "jetstream").rglob("*.blk"), key=lambda path: -path.stat().st_size
    )
    path = Path(blocks[0])
    path.write_bytes(flipped(path.read_bytes(), random.Random(3)))
    assert await outcome(data, before, caplog) == "told"
