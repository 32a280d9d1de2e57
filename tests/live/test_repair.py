"""Does `upswing repair` bring back what is left, and say what is lost?"""

import json
import random
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.conftest import running_loop
from tests.deploy.scoring import REDACTOR
from tests.infra.sql.test_damage import NOW, admitted, filled, read_all
from tests.support import Client, raw, small, until

from upswing.app.archive import Archive
from upswing.cli import main
from upswing.cli.repair import REPAIR_SOURCE, RepairReport, _Refill, _report_lines
from upswing.collect.core.admit import AdmissionLimits
from upswing.contracts.topics import FEEDBACK, GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY, TRAJECTORY
from upswing.errors import Damaged, Misuse
from upswing.infra.sql.keys import Keys, digest_of_key
from upswing.infra.sql.revoked import FILE as REVOKED
from upswing.infra.sql.revoked import Revoked
from upswing.infra.sql.store import open_store
from upswing.infra.sql.store_mark import DATABASE, FILE, StoreMark, read_mark, write_mark

pytestmark = pytest.mark.live


def repaired(data, capsys, *, code):
    assert main(["repair", "--json", "--data", str(data)]) == code
    return json.loads(capsys.readouterr().out)


async def reopened(folder):
    store = open_store(folder)
    await store.prepare()
    return store


async def rows_of(folder):
    store = await reopened(folder)
    try:
        return await read_all(store)
    finally:
        store.close()


def in_thread(function, *arguments, **options):
    import asyncio

    return asyncio.to_thread(function, *arguments, **options)


async def test_spoilt_rows_come_back_from_the_archive_and_the_others_are_named(
    tmp_path, capsys, monkeypatch
):
    data, shelf = tmp_path / "data", tmp_path / "archive"
    data.mkdir()
    store = await filled(data, rows=5)
    before = await read_all(store)
    archived, gone, *_ = before.values()
    await Archive(str(shelf)).write([archived])
    store.close()
    body = (data / DATABASE).read_bytes()
    for row in (archived, gone):
        place = body.index(row.admitted.body[-600:-500])
        body = body[:place] + b"#" + body[place + 1 :]
    (data / DATABASE).write_bytes(body)
    with pytest.raises(Damaged, match="upswing repair"):
        open_store(data)
    monkeypatch.setenv("TRAJECTORY_STORAGE_PATH", str(shelf))
    told = await in_thread(repaired, data, capsys, code=1)
    assert told["lost"] == {"trajectories": 2}
    assert told["lost_ids"] == [gone.admitted.trajectory_id]
    assert told["from_archive"] == {"stored": 1}
    after = await rows_of(data)
    assert set(before) - set(after) == {gone.admitted.trajectory_id}
    assert after[archived.admitted.trajectory_id].admitted == replace(
        archived.admitted, key_id=REPAIR_SOURCE, many=False
    ), "an archive does not say whose key it was"
    del after[archived.admitted.trajectory_id]
    assert all(before[key].admitted == row.admitted for key, row in after.items())
    assert (data / f"{DATABASE}.damaged-1").read_bytes() == body


async def test_a_page_of_rubbish_costs_the_rows_on_it_and_no_others(tmp_path, capsys):
    store = await filled(tmp_path, rows=60)
    before = await read_all(store)
    store.close()
    body = (tmp_path / DATABASE).read_bytes()
    victim = list(before.values())[30].admitted.body[:200]
    page = body.index(victim) // 4096
    (tmp_path / DATABASE).write_bytes(
        body[: page * 4096] + b"\xff" * 4096 + body[(page + 1) * 4096 :]
    )
    told = await in_thread(repaired, tmp_path, capsys, code=1)
    after = await rows_of(tmp_path)
    assert len(after) >= 50
    assert all(before[key] == row for key, row in after.items())
    assert told["lost"] or told["unreadable_tables"]


async def test_a_damaged_mark_and_lost_numbers_are_mended_and_numbers_are_not_given_twice(
    tmp_path, capsys
):
    (await filled(tmp_path, rows=4)).close()
    mark = read_mark(tmp_path)
    write_mark(tmp_path, StoreMark({**mark.sequences, "trajectories": 40}))
    with pytest.raises(Damaged, match="trajectories end at 4 of 40"):
        open_store(tmp_path)
    told = await in_thread(repaired, tmp_path, capsys, code=1)
    assert told["missing_numbers"] == {"trajectories": [4, 40]}
    store = await reopened(tmp_path)
    row = admitted()
    await store.take(row, door="http", now=NOW, stream_seq=None, announce=False)
    assert (await store.trajectory(row.trajectory_id)).seq == 41
    store.close()
    (tmp_path / FILE).write_bytes(b"junk")
    await in_thread(repaired, tmp_path, capsys, code=0)
    assert len(await rows_of(tmp_path)) == 5


async def test_a_lost_database_is_refused_and_comes_back_from_the_streams(data, capsys):
    documents = [small() for _ in range(5)]
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for document in documents:
            assert (await client.send(document))[0] == 202

        async def told():
            return (await loop.store.counts())["outbox"] == 0

        await until(told)
    (data / DATABASE).unlink()
    with pytest.raises(Damaged, match=r"upswing\.db is missing"):
        async with running_loop(data):
            pass
    report = await in_thread(repaired, data, capsys, code=1)
    assert report["missing_numbers"]["trajectories"] == [0, 5]
    assert report["from_streams"]["stored"] == report["restored"]["trajectories"] == 5
    assert "trajectories" not in report["missing"], "all are back"
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for document in documents:
            status, _ = await client("GET", f"/v1/trajectories/{document['trajectory_id']}")
            assert status == 200


@pytest.mark.parametrize(
    ("kept", "lost", "gap", "restored", "line"),
    [
        (5, 0, 0, 0, "trajectories: 5 kept, 0 restored, none missing."),
        (0, 0, 7, 7, "trajectories: 0 kept, 7 restored, none missing."),
        (3, 2, 0, 1, "trajectories: 3 kept, 1 restored, 1 missing (2 could not be read)."),
        (3, 0, 4, 1, "trajectories: 3 kept, 1 restored, 3 missing (of the numbers 4 to 7)."),
    ],
)
def test_each_table_says_how_many_rows_are_kept_restored_and_missing(
    kept, lost, gap, restored, line
):
    table = "trajectories"
    gaps = {table: (kept, kept + gap)} if gap else {}
    report = RepairReport({table: kept}, {table: lost} if lost else {}, [], set(), "", gaps)
    report.restored[table] = restored
    lines = _report_lines(report)
    assert lines[0] == line
    assert ("Nothing is missing." in lines) is (lost + gap <= restored)


@pytest.mark.parametrize("waiting", [0, 1])
def test_of_a_sound_store_it_is_said_that_nothing_was_wrong(waiting):
    report = RepairReport({"trajectories": 5}, {}, [], set(), "", {}, sound=True)
    report.restored["trajectories"] = waiting
    lines = _report_lines(report)
    assert lines[0] == "Nothing was wrong with the store: it is as it was."
    assert "restored" not in " ".join(lines)
    assert any("1 more lay in the streams" in line for line in lines) is bool(waiting)


async def test_a_sound_store_is_told_apart_from_a_damaged_one(tmp_path, capsys):
    (await filled(tmp_path, rows=4)).close()
    assert (await in_thread(repaired, tmp_path, capsys, code=0))["sound"] is True
    (tmp_path / FILE).write_bytes(b"junk")
    assert (await in_thread(repaired, tmp_path, capsys, code=0))["sound"] is False


def test_a_directory_in_use_or_missing_is_one_sentence(tmp_path, capsys):
    assert main(["repair", "--data", str(tmp_path / "none")]) == 1
    store = open_store(tmp_path)
    assert main(["repair", "--data", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 2
    assert "is in use by process" in said
    store.close()


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_key_that_was_revoked_works_in_no_older_copy_of_the_store(store, tmp_path):
    keys = Keys(store.database, Revoked(tmp_path))
    for name in ("a", "b"):
        await keys.add(name, name, "agent", f"key-{name}", NOW)
    assert await keys.revoke("a", NOW)
    for sql in ("UPDATE api_keys SET revoked_us = NULL", "DELETE FROM api_keys"):
        await store.database.write(lambda tx, sql=sql: tx.execute(sql))
        again = Keys(store.database, Revoked(tmp_path))
        await again.load()
        await again.add("a", "a", "agent", "key-a", NOW)
        await again.add("b", "b", "agent", "key-b", NOW)
        assert again.find("key-a").revoked
        assert again.was_revoked("key-a")
        assert again.find("key-b").revoked is None
        with pytest.raises(Misuse, match="was revoked"):
            await again.set_operator_key("env-1", "made", "key-a", NOW)


async def test_of_store_and_file_either_remembers_what_was_revoked(store, tmp_path):
    keys = Keys(store.database, Revoked(tmp_path))
    await keys.add("a", "a", "agent", "key-a", NOW)
    await keys.revoke("a", NOW)
    (tmp_path / REVOKED).unlink()
    assert Revoked(tmp_path).repair_file(keys.revoked_by_hand())
    assert Revoked(tmp_path).known_keys() == {digest_of_key("key-a"): NOW}


@pytest.mark.parametrize("fails", ["file", "table", "both"])
async def test_a_revocation_that_failed_is_completed_by_the_next(tmp_path, fails):
    store = await reopened(tmp_path)
    keys, obstacle = (
        Keys(store.database, Revoked(tmp_path)),
        (tmp_path / REVOKED).with_suffix(".new"),
    )
    for name in ("a", "b"):
        await keys.add(name, name, "agent", f"key-{name}", NOW)
    if fails != "table":
        obstacle.mkdir()
    if fails != "file":
        refuse = (
            "CREATE TRIGGER full BEFORE UPDATE ON api_keys BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
        await store.database.write(lambda tx: tx.execute(refuse))
    with pytest.raises((OSError, sqlite3.DatabaseError)):
        await keys.revoke("a", NOW)
    assert (keys.find("key-a").revoked is not None) == (fails == "table"), "as it is written"
    if fails != "table":
        obstacle.rmdir()
    if fails != "file":
        await store.database.write(lambda tx: tx.execute("DROP TRIGGER full"))
    assert await keys.revoke("a", NOW)
    assert Revoked(tmp_path).known_keys() == {digest_of_key("key-a"): NOW}
    assert keys.find("key-a").revoked
    assert keys.find("key-b").revoked is None
    store.close()


async def test_a_start_writes_down_what_was_revoked_in_the_table_alone(data):
    async with running_loop(data) as loop:
        for name in ("a", "b"):
            await loop.keys.add(name, name, "agent", f"key-{name}", NOW)
        await loop.keys.revoke("a", NOW)
    (data / REVOKED).unlink()
    async with running_loop(data):
        assert Revoked(data).known_keys() == {digest_of_key("key-a"): NOW}


def test_revocations_of_several_threads_are_all_written(tmp_path):
    revoked, hashes = Revoked(tmp_path), [bytes([each]) * 32 for each in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: revoked.add({each: NOW}), hashes))
    assert set(Revoked(tmp_path).known_keys()) == set(hashes)


def test_every_flipped_bit_and_every_cut_of_the_revoked_keys_is_found(tmp_path):
    chance, path = random.Random(2), tmp_path / REVOKED
    Revoked(tmp_path).add({chance.randbytes(32): NOW for _ in range(3)})
    whole, sound = path.read_bytes(), Revoked(tmp_path).known_keys()
    for place in range(len(whole)):
        flipped = bytes([whole[place] ^ (1 << place % 8)])
        for spoilt in (whole[:place], whole[:place] + flipped + whole[place + 1 :]):
            path.write_bytes(spoilt)
            with pytest.raises(Misuse, match="upswing repair"):
                Revoked(tmp_path).known_keys()
    path.write_bytes(b"#" + whole[1:])
    assert not Revoked(tmp_path).repair_file({b"more": NOW})
    assert dict(Revoked(tmp_path).known_keys()) == {**sound, b"more": NOW}, "its lines were sound"


async def test_what_is_restored_belongs_to_the_key_that_a_gateway_named_or_is_nobodys(store):
    refill = _Refill(store, REDACTOR, AdmissionLimits(), RepairReport({}, {}, [], set(), "", {}))
    for subject, whose in (
        (GATEWAY_TRAJECTORY, ("k1", True)),
        (TRAJECTORY, (REPAIR_SOURCE, False)),
        ("", (REPAIR_SOURCE, False)),
    ):
        told = small(gateway={"key": "k1", "many": True}, user_id="ann")
        await refill._trajectory(subject, raw(told), Counter())
        row = await store.trajectory(told["trajectory_id"])
        assert (row.admitted.key_id, row.admitted.many, row.door) == (*whose, REPAIR_SOURCE)


@pytest.mark.parametrize(
    ("subject", "key", "taken"),
    [
        (GATEWAY_FEEDBACK, "k1", "stored"),
        (GATEWAY_FEEDBACK, "k2", "not_yours"),
        (FEEDBACK, "k1", "not_yours"),
    ],
)
async def test_a_word_that_was_refused_is_not_taken_by_a_repair(store, subject, key, taken):
    refill = _Refill(store, REDACTOR, AdmissionLimits(), RepairReport({}, {}, [], set(), "", {}))
    told = small(gateway={"key": "k1"}, user_id="ann")
    await refill._trajectory(GATEWAY_TRAJECTORY, raw(told), Counter())
    word = {
        "feedback_id": "f1",
        "timestamp": NOW.isoformat(),
        "type": "thumbs_down",
        "trajectory_id": told["trajectory_id"],
        "metadata": {"gateway": {"key": key}},
    }
    counts = Counter()
    await refill._feedback(subject, raw(word), counts)
    assert counts == {taken: 1}
