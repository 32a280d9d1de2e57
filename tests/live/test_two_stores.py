"""Two controllers with stores of their own on one real bus: the first one leads, the second one says why not."""

import asyncio
import contextlib
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.deploy.controlling import BASE, report
from tests.gateway.bus import nats
from tests.support import until

from upswing.app.loop import now
from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.controller import Controller
from upswing.deploy.core.policy import DeployPolicy
from upswing.deploy.core.rows import LEASE, ForeignPlan
from upswing.deploy.environment import DeployEnvironment
from upswing.deploy.in_memory import MemoryServing
from upswing.deploy.plan_board import PlanBoard
from upswing.deploy.repository import RolloutRepository
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.sql.store import open_store

pytestmark = pytest.mark.live


async def prove(candidate, current):
    return report(candidate, current)


@contextlib.asynccontextmanager
async def loop(folder, server, wall=now, lease=LEASE):
    """A controller on a data directory of its own, and its view of the bus."""
    folder.mkdir()
    store = open_store(folder)
    await store.prepare()
    bus = await Bus.connect(server.url(OPERATOR))
    board = PlanBoard(bus, lease)
    env = DeployEnvironment(
        RolloutRepository(store.database), board, MemoryServing(), now, wall, uuid4
    )
    try:
        yield (
            Controller(env, CandidateChecks(prove), DeployPolicy(), base=BASE, holder=str(folder)),
            board,
        )
    finally:
        await bus.close()
        store.close()


def alerts(caplog):
    return [each for each in caplog.records if getattr(each, "action", "") == "alert"]


async def test_the_first_keeps_the_bus_and_the_second_calls_a_person(tmp_path, caplog):
    async with (
        nats(tmp_path / "nats") as server,
        loop(tmp_path / "one", server) as (first, board),
        loop(tmp_path / "two", server) as (second, _),
    ):
        leads = asyncio.create_task(first.run())
        await until(lambda: first.leading, 60)
        tries = asyncio.create_task(second.run())
        try:
            await until(lambda: alerts(caplog), 60)
            origin = (await board.read()).origin
            await first.renew()
            with pytest.raises(ForeignPlan, match=origin):
                await second.start()
            assert (first.leading, second.leading) == (True, False)
            assert (await board.read()).origin == origin
            assert len(alerts(caplog)) == 1
        finally:
            for task in (leads, tries):
                task.cancel()
            await asyncio.gather(leads, tries, return_exceptions=True)


@pytest.mark.parametrize("skew", [timedelta(days=1), -timedelta(days=1)])
async def test_a_loop_whose_clock_is_a_day_off_takes_no_bus_from_another(tmp_path, skew):
    async with (
        nats(tmp_path / "nats") as server,
        loop(tmp_path / "one", server) as (first, board),
        loop(tmp_path / "two", server, lambda: now() + skew) as (second, _),
    ):
        await first.start()
        origin = (await board.read()).origin
        with pytest.raises(ForeignPlan, match=origin):
            await second.start()
        assert (await board.read()).origin == origin


async def test_a_bus_whose_loop_is_gone_is_anybodys(tmp_path):
    """After a lease by the bus's clock: a short one here, and the heir's own clock stands still."""
    then = now()
    async with (
        nats(tmp_path / "nats") as server,
        loop(tmp_path / "one", server) as (gone, _),
        loop(tmp_path / "two", server, lambda: then, timedelta(seconds=1)) as (heir, board),
    ):
        await gone.start()
        before = await board.read()

        async def leads():
            with contextlib.suppress(ForeignPlan):
                await heir.start()
            return heir.leading

        await until(leads, 60)
        after = await board.read()
        assert after.origin != before.origin
        assert after.fence > before.fence
