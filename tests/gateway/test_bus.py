"""With a real bus: does a plan arrive, and is an episode durable when its end is acknowledged?"""

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from uuid import uuid4

import pytest

from tests.gateway.bus import GATEWAY, nats, published
from tests.gateway.conftest import Handle, gateway_options, lease, model, now, plan, user
from tests.gateway.scripted import Scripted
from tests.support import family, files_with, on_bus, until
from upswing.contracts.topics import FEEDBACKS
from upswing.contracts.traffic import Switches, write_plan
from upswing.deploy.plan_board import PlanBoard
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.wiring import GatewayIntervals, GatewayProcess
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.traffic import (
    GATEWAY_SECONDS,
    TALLY_SECONDS,
    TrafficBoard,
    make_buckets,
)
from upswing.infra.tasks import cancel_all

pytestmark = pytest.mark.live
SECRET = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1cD3fG5hJ7k"


@contextlib.asynccontextmanager
async def running(
    url,
    made=None,
    instance="one",
    *,
    clock=now,
    spool=None,
    intervals=GatewayIntervals(),  # noqa: B008 - it is frozen
    **options,
):
    process = GatewayProcess(
        nats_url=url,
        instance=instance,
        clock=clock,
        new_id=uuid4,
        spool=spool,
        options=gateway_options(made, **options),
        intervals=intervals,
    )
    at = await process.start(port=0)
    handle = Handle(process.gateway, at, None, made)
    handle.process = process
    try:
        async with handle.client:
            yield handle
    finally:
        await process.stop()


@contextlib.asynccontextmanager
async def bucket(url, name):
    async with on_bus(url) as client:
        js = client.jetstream()
        yield await js.key_value(name)


async def test_a_plan_in_the_bucket_is_followed_and_changed_without_a_restart(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        base, new = model("base", backend.url), model("new", backend.url)
        async with bucket(url, "rl_traffic") as traffic, running(own) as gateway:
            first = await traffic.put("plan", write_plan(plan(base)))
            await until(lambda: gateway.gateway.traffic.shares() == {"base": 1.0}, 60)
            canary = plan(base, (new, 0.25), version=2, lease_until=lease(45))
            await traffic.update("plan", write_plan(canary), first)
            await until(lambda: gateway.gateway.traffic.shares().get("new") == 0.25, 60)
            assert (await gateway.chat(user("hi")))[0] == 200


async def test_a_write_that_the_bucket_refuses_is_not_followed(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        base, new = model("base", backend.url), model("new", backend.url)
        async with bucket(url, "rl_traffic") as traffic, running(own) as gateway:
            first = await traffic.put("plan", write_plan(plan(base)))
            second = await traffic.update("plan", write_plan(plan(base, version=2)), first)
            late = write_plan(plan(base, (new, 1.0), version=3))
            with pytest.raises(Exception, match="wrong last sequence"):
                await traffic.update("plan", late, first)
            held = write_plan(plan(base, (new, 0.1), version=4))
            await traffic.update("plan", held, second)
            await until(lambda: gateway.gateway.traffic.shares().get("new") == 0.1, 60)
            assert gateway.gateway.traffic.plan.version == 4


async def test_a_plan_that_makes_no_sense_changes_nothing(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        async with bucket(url, "rl_traffic") as traffic:
            async with running(own, plan(model("base", backend.url))) as gateway:
                await traffic.put("plan", b'{"fence": "high"}')
                refused = gateway.gateway.counters.refused
                await until(lambda: refused.get("bad_plan"), 60)
                assert (await gateway.chat(user("hi")))[0] == 200


async def test_an_episode_is_on_the_bus_redacted_when_its_end_is_acknowledged(tmp_path):
    async with nats(tmp_path / "nats") as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        async with running(
            own, plan(model("base", backend.url)), spool=tmp_path / "spool"
        ) as gateway:
            await gateway.chat(user(f"my key is {SECRET}"), headers=("X-Episode-Id: e1",))
            status, closed = await gateway.close("e1")
            assert (status, closed["state"]) == (200, "published")
            (kept,) = await published(url)
            assert kept["trajectory_id"] == closed["trajectory_id"]
            assert kept["metadata"]["episode_id"] == "e1"
            word = {"metric_name": "ok", "value": True, "episode_id": "e1", "tags": {"k": SECRET}}
            assert (await gateway.client("POST", "/feedback", word))[0] == 200
            (said,) = await published(url, FEEDBACKS)
            assert said["type"] == "thumbs_up"
        assert files_with(tmp_path, SECRET) == []


async def test_counts_are_told_to_the_controller(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        async with bucket(url, "rl_tally") as counters:
            async with running(own, plan(model("base", backend.url)), "gw-7") as gateway:
                for _ in range(3):
                    await gateway.chat(user("hi"))

                async def told():
                    with contextlib.suppress(Exception):
                        entry = json.loads((await counters.get("gw-7")).value)
                        return entry["rollout-1"]["base"]["requests"] == 3

                await until(told, 60)


async def test_the_counts_of_a_dead_gateway_are_forgotten_and_those_of_a_silent_one_are_not(
    tmp_path,
):
    async with nats(tmp_path, tally_seconds=2.0) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        made, bus = plan(model("base", backend.url)), await Bus.connect(url)
        board = PlanBoard(bus, tally_seconds=0.0)
        try:
            async with running(
                own, made, "silent", intervals=GatewayIntervals(counts=0.05, republish=0.2)
            ) as gateway:
                await gateway.chat(user("hi"))
                await TrafficBoard(bus, "dead").put_tally(gateway.gateway.counters.encode())

                async def counted():
                    return set(await board.tallies())

                async def both():
                    return await counted() == {"silent", "dead"}

                async def one():
                    return await counted() == {"silent"}

                await until(both, 60)
                await until(one, 60)
                (stored,) = await (await bus.js.key_value("rl_tally")).keys()
                assert stored == "silent"
        finally:
            await bus.close()


async def test_a_gateway_says_what_it_may_serve_while_it_lives(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        made, bus = plan(model("base", backend.url)), await Bus.connect(server.url(OPERATOR))
        board, woken = PlanBoard(bus), asyncio.Event()
        following = asyncio.create_task(board.follow(woken.set))
        try:
            assert await board.gateways() == {}
            off = ServingPolicy(enabled=False, pinned_version="v3", max_share=0.25)
            async with running(server.url(GATEWAY), made, "off", policy=off):

                async def told():
                    return await board.gateways() == {"off": Switches(False, "v3", 25.0)}

                await until(told, 60)
                assert woken.is_set()

            async def gone():
                return await board.gateways() == {}

            await until(gone, 60)
            ages = (await bus.js.stream_info("KV_rl_gateways")).config.max_age
            assert ages == GATEWAY_SECONDS
        finally:
            following.cancel()
            await bus.close()


async def test_a_gateway_that_came_before_anyone_listened_is_seen_at_once(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        made, bus = plan(model("base", backend.url)), await Bus.connect(server.url(OPERATOR))
        board, woken = PlanBoard(bus), asyncio.Event()
        assert await board.gateways() == {}
        try:
            async with running(server.url(GATEWAY), made, "early"):

                async def came():
                    return (await bus.js.stream_info("KV_rl_gateways")).state.messages

                await until(came)
                following = asyncio.create_task(board.follow(woken.set))
                await woken.wait()
                assert set(await board.gateways()) == {"early"}
                following.cancel()
        finally:
            await bus.close()


async def test_a_bucket_of_an_older_version_learns_to_forget(tmp_path):
    async with nats(tmp_path) as server:
        bus = await Bus.connect(server.url(OPERATOR))
        try:
            await bus.js.delete_key_value("rl_tally")
            old = await bus.js.create_key_value(bucket="rl_tally", history=1)
            await old.put("young", b"{}")
            for _ in range(2):
                await make_buckets(bus)
            assert (await bus.js.stream_info("KV_rl_tally")).config.max_age == TALLY_SECONDS
            assert (await old.get("young")).value == b"{}"
        finally:
            await bus.close()


async def test_while_the_bus_is_away_answers_go_on_and_episodes_wait_on_disk(tmp_path):
    async with Scripted() as backend:
        made, spool = plan(model("base", backend.url)), tmp_path / "spool"
        async with nats(tmp_path / "nats") as server:
            url, own, port = server.url(OPERATOR), server.url(GATEWAY), server.port
            async with running(own, made, spool=spool) as gateway:
                await gateway.chat(user("first"), headers=("X-Episode-Id: e0",))
                assert (await gateway.close("e0"))[1]["state"] == "published"
                await server.stop()
                assert (await gateway.chat(user(SECRET), headers=("X-Episode-Id: e1",)))[0] == 200
                status, closed = await gateway.close("e1")
                assert (status, closed["state"]) == (200, "spooled")
        assert files_with(spool, b"trajectory_id")
        assert files_with(spool, SECRET) == []
        async with nats(tmp_path / "nats", port) as server:
            async with running(own, made, spool=spool):

                async def there():
                    return len(await published(url)) == 2

                await until(there, 60)
        assert files_with(spool, b"trajectory_id") == []


async def test_without_a_spool_an_end_waits_for_the_bus(tmp_path):
    async with Scripted() as backend, nats(tmp_path) as server:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        limits = GatewayLimits(close_seconds=0.3)
        async with running(own, plan(model("base", backend.url)), limits=limits) as gateway:

            async def kept(episode):
                return (await gateway.close(episode))[0] == 200

            await gateway.chat(user("first"), headers=("X-Episode-Id: e0",))
            await until(lambda: kept("e0"), 60)
            await server.stop()
            await gateway.chat(user("second"), headers=("X-Episode-Id: e1",))
            assert (await gateway.close("e1"))[0] == 503
            async with nats(tmp_path, server.port):
                await until(lambda: kept("e1"), 60)
                assert len(await published(url)) == 2


async def test_a_keeper_that_is_killed_loses_nothing(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        before = set(family(os.getpid()))
        async with running(own, plan(model("base", backend.url))) as gateway:
            recorders = [pid for pid in set(family(os.getpid())) - before if _is_keeper(pid)]
            assert len(recorders) == 1
            for number in range(20):
                await gateway.chat(user("hi"), headers=(f"X-Episode-Id: e{number}",))
            closing = [asyncio.create_task(gateway.close(f"e{n}")) for n in range(20)]
            os.kill(recorders[0], signal.SIGKILL)
            answers = await asyncio.gather(*closing)
            assert {status for status, _ in answers} == {200}
            wanted = {answer["trajectory_id"] for _, answer in answers}
            assert {each["trajectory_id"] for each in await published(url)} == wanted


def _is_keeper(pid):
    with contextlib.suppress(OSError):
        return b"gateway.recorder.child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


async def test_several_gateways_share_their_assignments(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        own = server.url(GATEWAY)
        base, new = model("base", backend.url), model("new", backend.url)
        nobody, all_of_it = plan(base, (new, 0.0)), plan(base, (new, 1.0))

        async def asked(gateway, episode):
            await gateway.chat(user("hi"), headers=(f"X-Episode-Id: {episode}",))
            return backend.requests[-1]["body"]["model"]

        async with running(own, nobody, "one") as one:
            assert await asked(one, "early") == "base"
            async with running(own, all_of_it, "two") as two:
                pins = two.gateway.traffic._pins
                await until(lambda: len(pins._known) == 1, 60, "the past was not heard of")
                assert await asked(one, "late") == "base"
                await until(lambda: len(pins._known) == 2, 60, "the present was not heard of")
                assert await asked(two, "early") == "base"
                assert await asked(two, "late") == "base"
                assert await asked(two, "own") == "new"


async def test_a_gateway_answers_before_its_bus_is_there(tmp_path):
    async with Scripted() as backend:
        async with nats(tmp_path) as server:
            own, port = server.url(GATEWAY), server.port
        async with running(own, plan(model("base", backend.url))) as gateway:
            assert (await gateway.chat(user("hi"), headers=("X-Episode-Id: e1",)))[0] == 200
            async with nats(tmp_path, port):

                async def kept():
                    return (await gateway.close("e1"))[0] == 200

                await until(kept, 60)


async def test_a_gateway_can_be_stopped_while_plans_arrive(tmp_path):
    async with nats(tmp_path) as server, Scripted() as backend:
        url, own = server.url(OPERATOR), server.url(GATEWAY)
        async with bucket(url, "rl_traffic") as traffic:
            process = GatewayProcess(nats_url=own, instance="one", clock=now, new_id=uuid4)
            await process.start(port=0)
            await traffic.put("plan", write_plan(plan(model("base", backend.url))))
            await until(lambda: process.gateway.traffic.plan, 60)
            plans = iter(range(2, 10_000))

            async def write():
                for version in plans:
                    made = plan(model("base", backend.url), version=version)
                    await traffic.put("plan", write_plan(made))

            writing = asyncio.create_task(write())
            await until(lambda: process.gateway.traffic.plan.version > 5, 60)
            async with asyncio.timeout(60):
                await process.stop()
            writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writing


async def test_an_end_that_meets_a_nudge_is_not_lost():
    class Silent:
        """Stands for a bus that has nothing to say."""

        client = None

        async def subscribe(self, *_, **__):
            pass

    bus = Silent()
    bus.client = bus

    class Unchanged(TrafficBoard):
        async def _read_plan(self, known, _):
            self._nudged.clear()
            return known

    board = Unchanged(bus, "one")
    for _ in range(10):
        following = asyncio.create_task(board.follow(lambda *_: None))
        await asyncio.sleep(0.001)
        board._nudged.set()
        await asyncio.sleep(0)
        following.cancel()
        _, left = await asyncio.wait({following}, timeout=60)
        assert not left


async def test_a_task_that_misses_its_end_is_told_again():
    async def stubborn():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        await asyncio.sleep(3600)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await cancel_all([task])
    assert task.cancelled()
