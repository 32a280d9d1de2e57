"""Two processes on one PostgreSQL: a validation is done by one of them, and the other one leaves it alone."""

import asyncio
import contextlib
from datetime import timedelta

import pytest

from tests.support import until
from tests.validate.endpoint import Endpoint
from tests.validate.prover import SMALL, Prover
from upswing.errors import Transient
from upswing.infra.sql.store import open_store
from upswing.validate.leases import LEASE

pytestmark = pytest.mark.live
ALL = 2 * (24 + 16)
"""Questions of one validation."""


@pytest.fixture
async def make(tmp_path, postgres):
    """A prover with a folder and a connection of its own, as another machine has them."""
    async with contextlib.AsyncExitStack() as ends:

        async def made(name, models):
            folder = tmp_path / name
            folder.mkdir()
            store = open_store(folder, postgres)
            ends.callback(store.close)
            await store.prepare()
            return await ends.enter_async_context(Prover(folder, store, models.find))

        yield made


async def test_what_a_living_process_does_is_left_alone(make):
    hold = asyncio.Event()
    async with Endpoint() as models:
        models.hold = (20, hold)
        one, other = await make("one", models), await make("other", models)
        row = await one.runner.start("new", "old")
        await models.told.wait()
        assert await other.runner.resume() == []
        assert await other.runner.resume_orphaned() == []
        hold.set()
        report = await one.runner.validate("new", "old")
        assert (report.run_id, report.verdict) == (row.run_id, "pass")
        assert len(models.requests) == ALL
        assert [each.verdict for each in await other.rows.newest()] == ["pass"]
        assert len(await other.journal.list("validate")) == 1


async def test_who_asks_for_what_another_process_does_gets_its_report(make):
    hold = asyncio.Event()
    async with Endpoint() as models:
        models.hold = (20, hold)
        one, other = await make("one", models), await make("other", models)
        first = asyncio.create_task(one.runner.validate("new", "old"))
        await models.told.wait()
        second = asyncio.create_task(other.runner.validate("new", "old"))
        hold.set()
        assert await first == await second
        assert len(models.requests) == ALL


async def test_that_another_process_failed_is_told_to_who_waits(make):
    async with Endpoint() as models:
        other = await make("other", models)
        await other.rows.begin("r1", "new", "old", SMALL.suites, other.now)
        assert await other.rows.claim("r1", "living", other.wall, other.wall + LEASE)
        waits = asyncio.create_task(other.runner.validate("new", "old"))
        await until(lambda: other.runner._running)
        await other.rows.fail("r1", "There is no Docker.", other.now, "living")
        with pytest.raises(Transient, match="no Docker"):
            await waits
        assert models.requests == []


async def test_what_a_dead_process_left_goes_on_elsewhere_when_its_lease_is_over(make):
    async with Endpoint() as models:
        other = await make("other", models)
        row = await other.rows.begin("r1", "new", "old", SMALL.suites, other.now)
        assert await other.rows.claim("r1", "dead", other.wall, other.wall + LEASE)
        assert await other.runner.resume() == []
        other.wall += LEASE
        assert await other.runner.resume_orphaned() == [row.run_id]
        assert (await other.runner.validate("new", "old")).run_id == row.run_id


async def test_who_was_silent_for_too_long_takes_the_report_of_who_took_over(make):
    hold = asyncio.Event()
    async with Endpoint() as models:
        models.hold = (20, hold)
        one, other = await make("one", models), await make("other", models)
        first = asyncio.create_task(one.runner.validate("new", "old", run_id="r1"))
        await models.told.wait()
        other.wall += LEASE + timedelta(seconds=1)  # nothing was heard of the first meanwhile
        assert await other.runner.resume_orphaned() == ["r1"]
        hold.set()
        second = await other.runner.validate("new", "old", run_id="r1")
        assert await first == second
        assert len(await one.journal.list("validate")) == 1


async def test_a_failure_of_who_lost_it_spoils_nothing(make):
    hold = asyncio.Event()
    async with Endpoint() as models:
        models.hold = (20, hold)
        one, other = await make("one", models), await make("other", models)
        row = await one.runner.start("new", "old")
        await models.told.wait()
        other.wall += LEASE + timedelta(seconds=1)
        assert await other.runner.resume_orphaned() == [row.run_id]
        await one.runner._reports.save_failure(row.run_id, Transient("The disk is full."))
        hold.set()
        assert (await other.runner.validate("new", "old")).verdict == "pass"
        assert (await other.rows.get(row.run_id)).state == "done"


async def test_what_is_stopped_in_order_goes_on_elsewhere_at_once(make):
    async with Endpoint() as models:
        models.hold = (20, asyncio.Event())
        one, other = await make("one", models), await make("other", models)
        row = await one.runner.start("new", "old")
        await models.told.wait()
        await one.runner.close()
        models.hold = None
        assert await other.runner.resume_orphaned() == [row.run_id]
        assert (await other.runner.validate("new", "old")).verdict == "pass"
