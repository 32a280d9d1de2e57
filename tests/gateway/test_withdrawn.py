"""A model that was rolled back, aborted or retired answers nobody, by whatever way it is asked for."""

import asyncio
import contextlib
import json

import msgspec
import pytest

from tests.gateway.bus import nats, published
from tests.gateway.conftest import assistant, lease, model, plan, started, user
from tests.gateway.process import Command
from tests.gateway.scripted import Misbehaving, Scripted, chunk, sse
from tests.gateway.talking import raw, request, streamed
from tests.support import on_bus, until
from upswing.contracts.traffic import read_plan, write_plan
from upswing.deploy.evidence_repository import _randomised_metadata
from upswing.errors import Rejected
from upswing.infra.nats.permissions import OPERATOR

pytestmark = pytest.mark.live
CHAT = {"model": "m", "messages": [user("hi")]}
ANONYMOUS = "http://127.0.0.1:1"
"""Nobody answers there."""


async def who(gateway, *headers, **fields):
    """(status, who answered)"""
    whole = await raw(gateway, request({**CHAT, **fields}, *headers))
    return int(whole[9:12]), whole.partition(b"x-model-id: ")[2].partition(b"\r\n")[0].decode()


def named(episode):
    return f"X-Episode-Id: {episode}"


def later(made, **changes):
    return msgspec.structs.replace(made, **{"version": made.version + 1, **changes})


def metadata(gateway, episode):
    (kept,) = [t for t in gateway.recorder.trajectories if t["metadata"]["episode_id"] == episode]
    return kept["metadata"]


def test_a_plan_whose_baseline_or_candidate_is_withdrawn_makes_no_sense():
    base, new = model("base", ANONYMOUS), model("new", ANONYMOUS)
    for gone in ("base", "new"):
        raw_plan = msgspec.json.encode(plan(base, (new, 0.5), withdrawn=(gone,)))
        with pytest.raises(Rejected, match=f"{gone} cannot answer and be withdrawn"):
            read_plan(raw_plan)
    assert read_plan(write_plan(plan(base, withdrawn=("old",)))).withdrawn == ("old",)


async def test_a_gateway_that_was_started_after_the_promotion_knows_a_way_back_from_the_plan():
    """For all it has seen, the model was the baseline from the beginning."""
    async with Scripted() as server:
        base, bad = model("base", server.url), model("bad", server.url)
        made = plan(bad)
        async with started(made) as gateway:
            assert await who(gateway, named("e1")) == (200, "bad")
            back = later(made, baseline=base, rollout="r2", salt="r2", withdrawn=("bad",))
            gateway.gateway.apply(back)
            assert await who(gateway, named("e1")) == (200, "base")
            assert await who(gateway, named("e2"), "X-Model-Id: bad") == (200, "base")
            assert await who(gateway, named("e3"), model="bad") == (200, "base")
            assert await who(gateway, named("e4")) == (200, "base")
            for episode in ("e1", "e2", "e3", "e4"):
                await gateway.close(episode)
            for episode in ("e1", "e2", "e3"):
                about = metadata(gateway, episode)
                assert about["withdrawn_model"] == "bad", episode
                assert _randomised_metadata(json.dumps({"metadata": about}).encode()) is None
            assert metadata(gateway, "e1")["mixed_models"] == ["bad", "base"]
            assert "withdrawn_model" not in metadata(gateway, "e4")
            assert (
                _randomised_metadata(
                    json.dumps({"metadata": metadata(gateway, "e4")}).encode()
                ).gateway.rollout
                == "r2"
            )
            told = msgspec.json.decode(gateway.gateway.counters.encode())
            assert told["r2"]["base"]["requests"] == 1, "who asked for another is nobody's evidence"


async def test_a_candidate_that_is_withdrawn_in_the_middle_of_an_episode_answers_no_more():
    async with Scripted() as server:
        base, new = model("base", server.url), model("new", server.url)
        made = plan(base, (new, 1.0), lease_until=lease(60))
        async with started(made) as gateway:
            assert await who(gateway, named("e1")) == (200, "new")
            assert await who(gateway, named("e2"), model="new") == (200, "new")
            other = model("other", server.url)
            gateway.gateway.apply(later(plan(base, (other, 1.0)), version=5, withdrawn=("new",)))
            for way in ([named("e1")], [named("e2")], [named("e3"), "X-Model-Id: new"]):
                assert await who(gateway, *way) == (200, "base"), "not another candidate either"
            assert await who(gateway, named("e1")) == (200, "base")
            for episode in ("e1", "e2", "e3"):
                await gateway.close(episode)
                assert metadata(gateway, episode)["withdrawn_model"] == "new"
            assert (await gateway.client("GET", "/v1/models"))[1]["data"][0]["id"] == "base"


async def test_a_stream_under_way_ends_where_it_began_and_the_next_one_is_the_baselines():
    go_on = asyncio.Event()

    class Slow(Misbehaving):
        async def slow(self, request, reader, writer):
            await self.stream(writer, [sse(chunk({"content": "one"}), done=False)], end=False)
            await go_on.wait()
            for piece in (sse(chunk({"content": "two"}), done=False), sse(chunk({}, "stop"))):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True

    async with Slow("slow") as old, Scripted() as server:
        base, bad = model("base", server.url), model("bad", old.url)
        made = plan(bad)
        async with started(made) as gateway:
            asked = asyncio.create_task(streamed(gateway, CHAT, named("e1")))
            await until(lambda: old.requests)
            gateway.gateway.apply(later(made, baseline=base, withdrawn=("bad",)))
            go_on.set()
            status, headers, events = await asked
            assert (status, headers["x-model-id"], events[-1]) == (200, "bad", "[DONE]")
            status, headers, events = await streamed(gateway, CHAT, named("e1"))
            assert (status, headers["x-model-id"], events[-1]) == (200, "base", "[DONE]")
            await gateway.close("e1")
            assert metadata(gateway, "e1")["withdrawn_model"] == "bad"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_former_baseline_whose_server_is_gone_is_answered_for(stream):
    """It stands by, so its episodes may end there; where they cannot, the baseline answers."""
    async with Scripted() as server, contextlib.AsyncExitStack() as stack:
        old = await stack.enter_async_context(Scripted())
        before, after = model("before", old.url), model("after", server.url)
        made = plan(before)
        async with started(made) as gateway:
            assert await who(gateway, named("e1")) == (200, "before")
            gateway.gateway.apply(later(made, baseline=after))
            assert await who(gateway, named("e1")) == (200, "before")
            await stack.aclose()
            assert await who(gateway, named("e1"), stream=stream) == (200, "after")
            await gateway.close("e1")
            assert metadata(gateway, "e1")["mixed_models"] == ["before", "after"]


@pytest.mark.long
async def test_a_gateway_that_is_started_while_the_loop_is_away_knows_it_from_the_bucket(tmp_path):
    """What the bus keeps is the plan and, where several gateways answer, who had each episode."""
    async with nats(tmp_path / "nats") as server, Scripted() as backend:
        base, bad = model("base", backend.url), model("bad", backend.url)

        async def write(made):
            async with on_bus(server.url(OPERATOR)) as client:
                bucket = await client.jetstream().key_value("rl_traffic")
                await bucket.put("plan", write_plan(made))

        first = [user("a conversation without a name")]
        go_on = [*first, assistant("…"), user("go on")]
        await write(plan(bad))
        async with Command(tmp_path / "one", server) as gateway:
            assert (await gateway.chat(*first))[0] == 200
            assert (await gateway.chat(user("hi"), headers=(named("e1"),)))[0] == 200

            async def told():
                async with on_bus(server.url(OPERATOR)) as client:
                    pins = await client.jetstream().key_value("rl_pins")
                    return len(await pins.keys()) == 2

            await until(told, 60)
        await write(plan(base, version=2, withdrawn=("bad",)))
        async with Command(tmp_path / "two", server) as gateway:
            before = len(backend.requests)
            assert (await gateway.chat(*go_on))[0] == 200
            for headers, fields in (
                ((named("e1"),), {}),
                ((named("e2"), "X-Model-Id: bad"), {}),
                ((named("e3"),), {"model": "bad"}),
            ):
                assert (await gateway.chat(user("hi"), headers=headers, **fields))[0] == 200
            assert {r["body"]["model"] for r in backend.requests[before:]} == {"base"}
            for episode in ("e1", "e2", "e3"):
                assert (await gateway.close(episode))[0] == 200
            gateway.popen.terminate()
            assert await asyncio.to_thread(gateway.popen.wait, 300) == 0
        kept = [
            t for t in await published(server.url(OPERATOR)) if t["metadata"]["model"] == "base"
        ]
        assert [t["metadata"].get("withdrawn_model") for t in kept] == ["bad"] * 4
