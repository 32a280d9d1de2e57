"""The plan changes while requests come: who answers, and is anything dropped?"""

import asyncio
import random

import msgspec
import pytest

from tests.gateway.conftest import lease, model, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted, chunk, sse
from tests.gateway.talking import raw, request, streamed
from tests.support import until
from upswing.contracts.traffic import Candidate
from upswing.gateway.core.serving_policy import ServingPolicy

pytestmark = pytest.mark.live
CHAT = {"model": "m", "messages": [user("hi")]}


async def who(gateway, episode, **fields):
    whole = await raw(gateway, request({**CHAT, **fields}, f"X-Episode-Id: {episode}"))
    return whole.partition(b"x-model-id: ")[2].partition(b"\r\n")[0].decode()


async def answered(gateway, episodes):
    return {episode: await who(gateway, episode) for episode in episodes}


def changed(made, **changes):
    return msgspec.structs.replace(made, **{"version": made.version + 1, **changes})


EPISODES = [f"e{n}" for n in range(30)]


async def test_raising_a_share_moves_only_new_episodes():
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        small = plan(base, (new, 0.2))
        async with started(small) as gateway:
            before = await answered(gateway, EPISODES)
            assert {"base", "new"} == set(before.values())
            gateway.gateway.apply(changed(plan(base, (new, 0.9)), version=9))
            assert await answered(gateway, EPISODES) == before
            later = await answered(gateway, [f"later-{n}" for n in range(30)])
            assert list(later.values()).count("new") > 20


async def test_a_rollback_takes_everybody_back_and_marks_them():
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        made = plan(base, (new, 1.0))
        async with started(made) as gateway:
            assert await who(gateway, "e1") == "new"
            gateway.gateway.apply(changed(made, candidates=()))
            assert await who(gateway, "e1") == "base"
            await gateway.close("e1")
            (kept,) = gateway.recorder.trajectories
            assert kept["metadata"]["mixed_models"] == ["new", "base"]
            assert kept["metadata"]["infra_error"] is True
            told = msgspec.json.decode(gateway.gateway.counters.encode())
            assert told == {"rollout-1": {"new": told["rollout-1"]["new"]}}
            assert told["rollout-1"]["new"]["requests"] == 1


async def test_a_promotion_leaves_open_episodes_where_they_are():
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        made = plan(base, (new, 0.5))
        async with started(made) as gateway:
            before = await answered(gateway, EPISODES)
            gateway.gateway.apply(changed(made, baseline=new, candidates=()))
            assert await answered(gateway, EPISODES) == before
            assert await who(gateway, "fresh") == "new"


async def test_when_the_lease_is_over_the_baseline_answers_alone():
    async with Scripted() as server:
        made = plan(
            model("base", server.url), (model("new", server.url), 1.0), lease_until=lease(0.5)
        )
        async with started(made) as gateway:
            assert await who(gateway, "e1") == "new"
            await until(lambda: gateway.gateway.traffic.shares() == {"base": 1.0}, 60)
            assert await who(gateway, "e1") == "base"
            assert await who(gateway, "e2") == "base"


async def test_a_renewed_lease_goes_on_and_an_operators_plan_has_none():
    async with Scripted() as server:
        made = plan(
            model("base", server.url), (model("new", server.url), 1.0), lease_until=lease(0.2)
        )
        async with started(made) as gateway:
            gateway.gateway.apply(changed(made, lease_until=lease(60)))
            assert gateway.gateway.health()["lease_seconds"] > 50
            gateway.gateway.apply(changed(made, lease_until=None, operator=True, version=5))
            assert gateway.gateway.health()["lease_seconds"] is None
            assert await who(gateway, "e1") == "new"


async def test_a_plan_whose_lease_is_over_already_gives_the_candidate_nothing():
    async with Scripted() as server:
        made = plan(
            model("base", server.url), (model("new", server.url), 1.0), lease_until=lease(-1)
        )
        async with started(made) as gateway:
            assert await who(gateway, "e1") == "base"


async def test_a_controller_that_lost_its_fence_is_not_heard():
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        async with started(plan(base, fence=3)) as gateway:
            assert not gateway.gateway.apply(plan(base, (new, 1.0), fence=2, version=99))
            assert await who(gateway, "e1") == "base"
            counted = await gateway.metrics()
            assert counted["upswing_gateway_refused_total", (("reason", "stale_plan"),)] == 1


async def test_a_stream_under_way_ends_where_it_began():
    class Slow(Misbehaving):
        def __init__(self):
            super().__init__("slowly")
            self.go = asyncio.Event()

        async def slowly(self, request, reader, writer):
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            for event in (
                sse(chunk({"content": "one"}), done=False),
                sse(chunk({"content": "two"}, "stop")),
            ):
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                await writer.drain()
                await self.go.wait()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True

    async with Slow() as slow, Scripted() as other:
        base, new = model("base", other.url), model("new", slow.url)
        made = plan(base, (new, 1.0))
        async with started(made) as gateway:
            streaming = asyncio.create_task(streamed(gateway, CHAT, "X-Episode-Id: e1"))
            await until(lambda: slow.requests, 60)
            gateway.gateway.apply(changed(made, candidates=()))
            slow.go.set()
            status, headers, events = await streaming
            assert (status, headers["x-model-id"], events[-1]) == (200, "new", "[DONE]")
            assert '"two"' in events[1]
            assert await who(gateway, "e1") == "base"


async def test_switched_off_the_baseline_answers_alone():
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made, policy=ServingPolicy(enabled=False)) as gateway:
            assert set((await answered(gateway, EPISODES)).values()) == {"base"}


async def test_a_candidate_can_be_asked_for_by_name_and_is_then_no_evidence():
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        async with started(plan(base, (new, 0.0))) as gateway:
            assert await who(gateway, "e1", model="new") == "new"
            assert await who(gateway, "e2", model="base") == "base"
            whole = await raw(gateway, request(CHAT, "X-Model-Id: nobody"))
            assert whole.startswith(b"HTTP/1.1 404")
            told = msgspec.json.decode(gateway.gateway.counters.encode())
            assert set(told["rollout-1"]) == {"base"}
            await gateway.close("e1")
            assert gateway.recorder.trajectories[0]["metadata"]["gateway"]["named"] is True


@pytest.mark.parametrize("wish", ["base", "new", "old"])
@pytest.mark.parametrize("place", [0.1, 0.9])
@pytest.mark.parametrize("by_header", [True, False])
async def test_a_wish_that_comes_after_the_draw_changes_neither_model_nor_evidence(
    wish, place, by_header
):
    """Whoever sees how an episode goes cannot choose whether it counts; `old` is withdrawn."""
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        made = changed(plan(base, (new, 0.5)), withdrawn=("old",))
        async with started(made, draw=lambda: place) as gateway:
            drawn = await who(gateway, "e1")
            assert drawn == ("new" if place < 0.5 else "base")
            for _ in range(2):
                headers = [f"X-Model-Id: {wish}"] if by_header else []
                body = CHAT if by_header else {**CHAT, "model": wish}
                whole = await raw(gateway, request(body, *headers, "X-Episode-Id: e1"))
                assert whole.startswith(b"HTTP/1.1 200")
                assert f"x-model-id: {drawn}".encode() in whole
            whole = await raw(gateway, request(CHAT, "X-Model-Id: nobody", "X-Episode-Id: e1"))
            assert whole.startswith(b"HTTP/1.1 404")
            await gateway.close("e1")
            about = gateway.recorder.trajectories[0]["metadata"]
            assert (about["model"], about["gateway"]["named"]) == (drawn, False)
            assert "mixed_models" not in about
            assert "withdrawn_model" not in about
            told = msgspec.json.decode(gateway.gateway.counters.encode())["rollout-1"]
            assert (set(told), told[drawn]["requests"]) == ({drawn}, 1)


async def test_whom_only_chance_may_give_cannot_be_asked_for():
    """Neither the holdback, nor a former baseline; whoever has one keeps it, even by its name."""
    async with Scripted() as server:
        old, new, next_one = (model(name, server.url) for name in ("old", "new", "next"))
        held = plan(new, holdback=Candidate(old, 0.05))
        draws = iter((0.99, *[0.5] * 100))
        async with started(held, draw=lambda: next(draws)) as gateway:
            assert await who(gateway, "e1") == "old"
            named = "X-Model-Id: old"
            for episode, status in (("e1", b"200"), ("e2", b"404"), ("e3", b"404")):
                whole = await raw(gateway, request(CHAT, named, f"X-Episode-Id: {episode}"))
                assert whole[9:12] == status
            gateway.gateway.apply(changed(held, baseline=next_one, holdback=None))
            for episode, status in (("e4", b"404"),):
                whole = await raw(
                    gateway, request(CHAT, "X-Model-Id: new", f"X-Episode-Id: {episode}")
                )
                assert whole[9:12] == status


class _Slow(Scripted):
    """Answers what asks for little, and never what asks for much."""

    async def answer(self, request, reader, writer):
        if request["body"].get("max_tokens", 20) > 1000:
            await asyncio.Event().wait()
        return await super().answer(request, reader, writer)


@pytest.mark.parametrize(("key", "errors"), [("gw", 1), ("ann", 0)])
async def test_a_client_cannot_fail_the_model_that_it_knows_it_has(key, errors):
    async with _Slow() as server:
        made = plan(model("base", server.url, timeout_seconds=1.0))
        keys = {"gw": "agent", "ann": "ann"}
        async with started(made, client_keys=keys) as gateway:
            episode = ["X-Episode-Id: e1"]
            assert (await gateway.chat(headers=episode, key=key))[0] == 200
            for _ in range(5):
                status, _ = await gateway.chat(headers=episode, key=key, max_tokens=100_000)
                assert status == 504
            counts = msgspec.json.decode(gateway.gateway.counters.encode())["rollout-1"]["base"]
            assert (counts["requests"], counts["errors"]) == (1 + errors, errors)
            assert gateway.gateway.counters.models["base"].errors == 5


async def test_an_episode_counts_one_error_of_its_model():
    async with Misbehaving("garbage") as server:
        async with started(plan(model("base", server.url))) as gateway:
            for episode in ("e1", "e2", "e3"):
                for _ in range(10):
                    await gateway.chat(headers=[f"X-Episode-Id: {episode}"])
            counts = msgspec.json.decode(gateway.gateway.counters.encode())["rollout-1"]["base"]
            assert (counts["requests"], counts["errors"]) == (3, 3)


class _Moody(Misbehaving):
    """Fails whoever asks it to."""

    async def answer(self, request, reader, writer):
        bad = "fail" in request["body"]["messages"][-1]["content"]
        return await (self.error_500 if bad else self.well)(request, reader, writer)


@pytest.mark.parametrize("seed", range(3))
async def test_an_episode_counts_one_answer_and_one_error_however_often_it_asks(seed):
    chance = random.Random(seed)
    asked = [(chance.randrange(4), chance.random() < 0.3) for _ in range(40)]
    fared = {episode: [bad for each, bad in asked if each == episode] for episode, _ in asked}
    errors = sum(any(each) for each in fared.values())
    answers = sum(not each[0] for each in fared.values())
    async with _Moody("well") as server:
        async with started(plan(model("base", server.url))) as gateway:
            for episode, bad in asked:
                await gateway.chat(
                    user("fail" if bad else "go"), headers=[f"X-Episode-Id: {episode}"]
                )
            counts = msgspec.json.decode(gateway.gateway.counters.encode())["rollout-1"]["base"]
            assert (counts["requests"], counts["errors"]) == (answers + errors, errors)
            assert gateway.gateway.counters.models["base"].requests == len(asked)


async def test_other_gateways_assignments_are_kept():
    class Board(dict):
        def put(self, key, model_id):
            self[key] = model_id

    board = Board()
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        async with started(plan(base, (new, 0.0)), pins=board) as first:
            assert await who(first, "e1") == "base"
        async with started(plan(base, (new, 1.0)), pins=board) as second:
            assert await who(second, "e1") == "base"
            assert await who(second, "e2") == "new"


async def test_before_there_is_a_plan_clients_are_told_to_come_back():
    async with started() as gateway:
        status, answer = await gateway.chat(user("hi"))
        assert (status, answer["error"]["code"]) == (503, "no_plan")
        assert (await gateway.client("GET", "/health"))[1]["status"] == "starting"
