"""Where do trajectories lie after the stream forgot them? Hourly files, for ninety days."""

import asyncio
import contextlib
import gzip
import json
from datetime import UTC, datetime, timedelta

import obstore
import pytest
from obstore.store import from_url
from tests.conftest import running_loop
from tests.dataset.data_cases import request
from tests.support import Client, rows, small, until

from upswing.app.archive import Archive, archive_finished_hours
from upswing.config import Surroundings
from upswing.contracts import canonical
from upswing.infra.sql.datasets import DataSets
from upswing.train.core.recipe import build_recipe
from upswing.train.jobs.data import TrainingData

pytestmark = pytest.mark.live
NOON = datetime(2025, 12, 8, 12, 10, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now=NOON):
        self.now = now

    def __call__(self):
        return self.now


@contextlib.asynccontextmanager
async def archiving(data, place, clock):
    async with (
        running_loop(data, surroundings=Surroundings(storage_path=str(place)), clock=clock) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        yield loop, client


def lines(path):
    return gzip.decompress(path.read_bytes()).splitlines()


def tree(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*.gz"))


async def test_each_hour_gets_its_file_when_it_is_over(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        noon = [small(f"noon {n}") for n in range(3)]
        for each in noon:
            assert (await client.send(each))[0] == 202
        await loop.maintenance.run_once()
        assert tree(place) == [], "the hour is not over"

        clock.now += timedelta(hours=1)
        one = small("one o'clock")
        assert (await client.send(one))[0] == 202
        await loop.maintenance.run_once()
        assert tree(place) == ["2025/12/08/12/0000000001.jsonl.gz"]

        clock.now += timedelta(hours=2)
        await loop.maintenance.run_once()
        await loop.maintenance.run_once()
        assert tree(place) == [
            "2025/12/08/12/0000000001.jsonl.gz",
            "2025/12/08/13/0000000004.jsonl.gz",
        ]
    first, second = (place / name for name in tree(place))
    assert lines(first) == [canonical(each) for each in noon]
    assert lines(second) == [canonical(one)]
    assert first.read_bytes()[:2] == b"\x1f\x8b"


async def test_what_is_private_is_not_in_the_archive_either(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small("write to ann.example@example.org"))
        clock.now += timedelta(hours=2)
        await loop.maintenance.run_once()
    (text,) = lines(place / tree(place)[0])
    assert b"example.org" not in text
    assert b"<email-1>" in text


async def test_an_archive_goes_on_where_it_was_after_a_restart(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small())
        clock.now += timedelta(hours=2)
        await loop.maintenance.run_once()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small())
        clock.now += timedelta(hours=2)
        await loop.maintenance.run_once()
    assert tree(place) == ["2025/12/08/12/0000000001.jsonl.gz", "2025/12/08/14/0000000002.jsonl.gz"]


async def test_files_are_kept_for_ninety_days_and_no_longer(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    async with archiving(data, place, clock) as (loop, client):
        await client.send(small("old"))
        clock.now += timedelta(days=60)
        await client.send(small("newer"))
        clock.now += timedelta(days=30)
        await loop.maintenance.run_once()
        assert len(tree(place)) == 2, "ninety days to the day are still kept"
        clock.now += timedelta(days=1)
        await loop.maintenance.run_once()
        assert tree(place) == ["2026/02/06/12/0000000002.jsonl.gz"]
        clock.now += timedelta(days=60)
        await loop.maintenance.run_once()
        assert tree(place) == []


async def test_a_full_file_is_written_before_its_hour_is_over(data, tmp_path):
    place, clock = tmp_path / "archive", Clock()
    archive = Archive(str(place), rows_per_file=4)
    async with (
        running_loop(data, clock=clock) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for _ in range(10):
            await client.send(small())
        await archive_finished_hours(loop.store, archive, clock.now)
        assert [len(lines(place / name)) for name in tree(place)] == [4, 4]
        clock.now += timedelta(hours=1, minutes=5)
        await archive_finished_hours(loop.store, archive, clock.now)
        assert [len(lines(place / name)) for name in tree(place)] == [4, 4, 2]
    seen = [
        json.loads(line)["trajectory_id"] for name in tree(place) for line in lines(place / name)
    ]
    assert len(set(seen)) == 10


# ── S3 ───────────────────────────────────────────────────────────────────────────────────────────


async def test_an_archive_in_s3_is_written_cleaned_and_pruned_like_a_local_one(data, s3):
    clock = Clock()
    async with archiving(data, s3, clock) as (loop, client):
        kept, erased = small("kept"), small("erased", user_id="ann")
        for each in (kept, erased):
            assert (await client.send(each))[0] == 202
        clock.now += timedelta(hours=2)
        await loop.maintenance.run_once()
        store = from_url(s3)
        assert await paths(store) == ["2025/12/08/12/0000000001.jsonl.gz"]
        assert await content(store) == [canonical(kept), canonical(erased)]

        status, answer = await client("DELETE", "/v1/users/ann/data")
        assert (status, answer["pending_archive_copies"]) == (200, 0)
        assert await content(store) == [canonical(kept)]

        clock.now += timedelta(days=91)
        await loop.maintenance.run_once()
        assert await paths(store) == []


async def test_a_job_learns_from_an_archive_in_s3(data, s3):
    clock = Clock()
    async with archiving(data, s3, clock) as (loop, client):
        words = ("failed", "completed")
        sent = [
            small("done", scenario_id="s", outcome=words[n % 2]) | {"agent_id": f"agent-{n}"}
            for n in range(6)
        ]
        for each in sent:
            assert (await client.send(each))[0] == 202
        sql = "SELECT COUNT(*) FROM scored"
        await until(lambda: rows(data, sql)[0][0] == 6)
        clock.now += timedelta(hours=2)
        await loop.maintenance.run_once()
        later = small("not archived yet", scenario_id="s")
        assert (await client.send(later))[0] == 202

        source = TrainingData(DataSets(loop.store.database), archive=loop.archive)
        asked = request(source="s3")
        made = await source.gather(
            asked, build_recipe(asked, {}), ancestor_jobs=[], excluded_ids=[], now=clock.now
        )
        assert {s.trajectory_id for s in made.samples} == {each["trajectory_id"] for each in sent}
        assert made.snapshot.source == "s3"


async def paths(store):
    found = await asyncio.to_thread(lambda: list(obstore.list(store)))
    return sorted(item["path"] for batch in found for item in batch)


async def content(store):
    told = []
    for path in await paths(store):
        body = await (await obstore.get_async(store, path)).bytes_async()
        told += gzip.decompress(bytes(body)).splitlines()
    return told
