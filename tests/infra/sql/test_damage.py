"""Is damage of the store found, and is none of it served?"""

import asyncio
import contextlib
import random
import shutil
import sqlite3
import uuid

import pytest

from tests.storms import sized
from tests.support import raw, trajectory
from upswing.app.loop import now
from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.collect.worker_pool import make_redactor
from upswing.config import Settings
from upswing.errors import Damaged, UpswingError
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.inspection import Inspection
from upswing.infra.sql.store import open_store
from upswing.infra.sql.store_mark import (
    DATABASE,
    FILE,
    LEAST_FREE_BYTES,
    StoreMarkWriter,
    read_mark,
)

REDACTOR = make_redactor(Settings())
NOW = now()


def admitted(**changes):
    return admit(raw(trajectory(**changes)), REDACTOR, AdmissionLimits()).admitted


async def filled(folder, rows=30):
    """A store with rows in it, still open, and its mark up to date."""
    store = open_store(folder)
    await store.prepare()
    for _ in range(rows):
        row = admitted(metadata={"note": uuid.uuid4().hex * 40})
        await store.take(row, door="http", now=NOW, stream_seq=None, announce=True)
    await StoreMarkWriter(folder, store.database).update_mark()
    return store


async def read_all(store):
    return {row.admitted.trajectory_id: row for row in await store.trajectories_after(0)}


def flipped(body, chance):
    place = chance.randrange(len(body))
    return body[:place] + bytes([body[place] ^ (1 << chance.randrange(8))]) + body[place + 1 :]


def spoilt(body, chance):
    """A flip of one bit, or a cut."""
    return flipped(body, chance) if chance.random() < 0.8 else body[: chance.randrange(len(body))]


async def test_a_store_that_was_stopped_in_order_opens_again(tmp_path):
    store = await filled(tmp_path)
    before = await read_all(store)
    store.close()
    assert read_mark(tmp_path).seal
    store = open_store(tmp_path)
    assert read_mark(tmp_path).seal is None, "from now on it may change"
    await Inspection(tmp_path, store.database).begin()
    assert await read_all(store) == before
    store.close()


@pytest.mark.parametrize("way", ["missing", "empty"])
@pytest.mark.parametrize("killed", [True, False])
async def test_a_directory_that_had_a_store_does_not_begin_anew(tmp_path, way, killed):
    source, copy = tmp_path / "data", tmp_path / "copy"
    source.mkdir()
    store = await filled(source)
    if killed:
        shutil.copytree(source, copy)
        store.close()
    else:
        store.close()
        shutil.copytree(source, copy)
    (copy / DATABASE).unlink()
    if way == "empty":
        (copy / DATABASE).touch()
    with pytest.raises(Damaged, match=f"upswing.db is {way}.*upswing repair"):
        open_store(copy)
    assert not (copy / DATABASE).exists() or (copy / DATABASE).stat().st_size == 0
    with pytest.raises(Damaged):
        open_store(copy)


@pytest.mark.parametrize("beside", ["secrets.json", "nats/jetstream/$G/streams/x/msgs/1.blk"])
@pytest.mark.parametrize("way", ["missing", "empty", "without rows"])
async def test_a_directory_that_lost_its_mark_and_its_rows_does_not_begin_anew(
    tmp_path, way, beside
):
    other = tmp_path / "other"
    other.mkdir()
    fresh = open_store(other)
    await fresh.prepare()
    fresh.close()
    data = tmp_path / "data"
    (data / beside).parent.mkdir(parents=True)
    (data / beside).write_text("something")
    body = {"missing": None, "empty": b"", "without rows": (other / DATABASE).read_bytes()}[way]
    if body is not None:
        (data / DATABASE).write_bytes(body)
    for _ in range(2):
        with pytest.raises(
            Damaged, match=f"upswing.db is {way}, and this directory had a store.*upswing repair"
        ):
            open_store(data)
    assert not (data / FILE).exists()


async def test_a_store_with_rows_that_lost_its_mark_opens_with_an_alert(tmp_path, caplog):
    (await filled(tmp_path, rows=3)).close()
    (tmp_path / "secrets.json").touch()
    assert "upswing.mark" not in caplog.text
    (tmp_path / FILE).unlink()
    store = open_store(tmp_path)
    assert (
        "upswing.mark is missing: whether rows of the store were lost cannot be told" in caplog.text
    )
    assert len(await read_all(store)) == 3
    store.close()
    assert read_mark(tmp_path).sequences["trajectories"] == 3


def test_a_start_that_ended_before_it_made_a_store_is_no_store(tmp_path):
    from upswing.infra.sql.store_mark import StoreMark, write_mark

    write_mark(tmp_path, StoreMark())
    open_store(tmp_path).close()


@sized("tries", 150, 1000)
async def test_every_flip_and_every_cut_of_a_store_at_rest_is_found(tmp_path, tries, trials):
    (await filled(tmp_path)).close()
    chance = random.Random(tries)
    whole = {name: (tmp_path / name).read_bytes() for name in (DATABASE, FILE)}
    for number in range(tries):
        name = FILE if number % 10 == 0 else DATABASE
        (tmp_path / name).write_bytes(spoilt(whole[name], chance))
        with pytest.raises(UpswingError):
            open_store(tmp_path).close()
        for each, body in whole.items():
            (tmp_path / each).write_bytes(body)
        trials.add()
    open_store(tmp_path).close()


@sized("tries", 60, 1000)
async def test_no_flip_in_a_killed_store_changes_what_is_served(tmp_path, tries, trials):
    """Nothing was sealed: the file's own structure, the counters and the hashes of rows are left."""
    source, copy = tmp_path / "data", tmp_path / "copy"
    source.mkdir()
    store = await filled(source)
    before = {key: row.admitted.body for key, row in (await read_all(store)).items()}
    await store.database.scrub()  # all in the database, as after a checkpoint
    shutil.copytree(source, copy)
    store.close()
    whole, mark = (copy / DATABASE).read_bytes(), (copy / FILE).read_bytes()
    chance = random.Random(tries)
    for _ in range(tries):
        for left in copy.glob(f"{DATABASE}-*"):
            left.unlink()
        (copy / DATABASE).write_bytes(spoilt(whole, chance))
        (copy / FILE).write_bytes(mark)
        trials.add()
        try:
            store = open_store(copy)
        except UpswingError:
            continue
        try:
            await Inspection(copy, store.database).begin()
            served = await read_all(store)
            bodies = {}
            async for some in DataSets(store.database).bodies(list(before)):
                bodies |= dict(some)
        except UpswingError:
            continue
        finally:
            store.close()
        assert all(before.get(key) == row.admitted.body for key, row in served.items())
        assert all(body in {before[key], b""} for key, body in bodies.items())


async def test_the_log_that_is_lost_or_cut_is_noticed(tmp_path):
    source, copy = tmp_path / "data", tmp_path / "copy"
    source.mkdir()
    first = await filled(source, rows=3)
    await first.database.scrub()
    for _ in range(10):
        await first.take(admitted(), door="http", now=NOW, stream_seq=None, announce=True)
    await StoreMarkWriter(source, first.database).update_mark()
    wal = (source / f"{DATABASE}-wal").read_bytes()
    chance = random.Random(1)
    for cut in (
        b"",
        *(wal[: chance.randrange(len(wal))] for _ in range(10)),
        *(flipped(wal, chance) for _ in range(10)),
    ):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
        (copy / f"{DATABASE}-shm").unlink()
        (copy / f"{DATABASE}-wal").write_bytes(cut)
        with pytest.raises(Damaged, match=r"Rows are lost|is damaged|changed"):
            open_store(copy)
    shutil.rmtree(copy)
    shutil.copytree(source, copy)
    (copy / f"{DATABASE}-shm").unlink()
    again = open_store(copy)
    assert len(await read_all(again)) == 13
    again.close()
    first.close()


async def test_an_older_copy_of_the_database_is_noticed(tmp_path):
    (await filled(tmp_path)).close()
    older = (tmp_path / DATABASE).read_bytes()
    (await filled(tmp_path)).close()
    (tmp_path / DATABASE).write_bytes(older)
    with pytest.raises(Damaged):
        open_store(tmp_path)


async def test_a_row_whose_content_is_not_what_was_stored_is_set_aside_by_whoever_reads_it(store):
    good, bad = admitted(), admitted()
    for row in (good, bad):
        await store.take(row, door="http", now=NOW, stream_seq=None, announce=True)
    sql = "UPDATE trajectories SET body = ? WHERE trajectory_id = ?"
    body = bad.body.replace(b"a", b"b", 1)  # still JSON, still a trajectory
    await store.database.write(lambda tx: tx.execute(sql, (body, bad.trajectory_id)))
    assert await store.trajectory(bad.trajectory_id) is None
    assert list(await read_all(store)) == [good.trajectory_id]
    assert [entry.payload for entry in await store.outbox()] == [good.body]
    (some,) = [
        x async for x in DataSets(store.database).bodies([good.trajectory_id, bad.trajectory_id])
    ]
    assert dict(some) == {good.trajectory_id: good.body, bad.trajectory_id: b""}
    told = [row.error.detail for row in store.database.bad_rows.pending()]
    assert any("the hash differs" in each for each in told)


async def test_a_large_store_is_looked_through_beside_the_loop(tmp_path):
    store = await filled(tmp_path, rows=5)
    inspection = Inspection(tmp_path, store.database)
    await inspection.begin(seconds=-1)
    assert not inspection.done
    sql = "UPDATE trajectories SET content_hash = ? WHERE seq = 2"
    await store.database.write(lambda tx: tx.execute(sql, (b"0" * 32,)))
    await asyncio.wait_for(inspection.run(), 300)
    assert inspection.done
    assert [row.location for row in store.database.bad_rows.pending()] == ["trajectories/2"]
    store.close()


async def test_a_damaged_page_is_found_by_the_check(tmp_path):
    store = await filled(tmp_path)
    await store.database.scrub()
    path = tmp_path / DATABASE
    with contextlib.closing(sqlite3.connect(path)) as connection:
        page, size = (
            connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'trajectories'"
            ).fetchone()[0],
            connection.execute("PRAGMA page_size").fetchone()[0],
        )
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 64)
    with pytest.raises(Damaged, match="upswing repair"):
        await Inspection(tmp_path, store.database).begin()
    store.close()


async def test_a_full_disk_is_one_line_when_it_begins_and_one_when_it_is_over(tmp_path, caplog):
    store = await filled(tmp_path, rows=1)
    free = LEAST_FREE_BYTES
    marker = StoreMarkWriter(tmp_path, store.database, free=lambda _: free)
    for room, troubled in ((10**9, False), (40_000, True), (0, True), (LEAST_FREE_BYTES, False)):
        free = room
        for _ in range(3):
            await marker.update_mark()
        assert bool(marker.trouble) is troubled
    assert caplog.text.count("is full or nearly so: make room there") == 1
    assert caplog.text.count("there is room on the disk again") == 1
    store.close()


async def test_a_mark_that_cannot_be_written_is_one_line_and_no_traceback(tmp_path, caplog):
    store = await filled(tmp_path, rows=1)
    marker = StoreMarkWriter(tmp_path, store.database)
    (tmp_path / f"{FILE}.new").mkdir()  # nobody can write there, not even root
    for _ in range(3):
        await marker.update_mark()
    assert caplog.text.count("upswing.mark cannot be written") == 1
    assert "Traceback" not in caplog.text
    (tmp_path / f"{FILE}.new").rmdir()
    await marker.update_mark()
    assert marker.trouble is None
    store.close()


def gone(path, _chance):
    path.unlink()


def cut(path, chance):
    path.write_bytes(path.read_bytes()[: chance.randrange(1, 10)])


def one_bit(path, chance):
    path.write_bytes(flipped(path.read_bytes(), chance))


@pytest.mark.parametrize("damage", [gone, cut, one_bit])
@pytest.mark.parametrize("file", ["upswing.db", "upswing.mark"])
@pytest.mark.parametrize("seed", range(5))
def test_the_doctor_refuses_every_store_that_a_start_refuses(tmp_path, file, damage, seed):
    from upswing.cli.doctor import CHECKS, run_check
    from upswing.cli.doctor_checks import DoctorCase

    asyncio.run(filled(tmp_path)).close()
    damage(tmp_path / file, random.Random(f"{file}/{seed}"))
    try:
        open_store(tmp_path).close()
        starts = True
    except Damaged:
        starts = False
    found = run_check("store", CHECKS["store"], DoctorCase(tmp_path))
    assert found.ok == starts
    if not starts:
        assert (found.state, "upswing repair" in found.sentence) == ("wrong", True)
    assert starts == (file == "upswing.mark" and damage is gone), "only a lost mark is no reason"
