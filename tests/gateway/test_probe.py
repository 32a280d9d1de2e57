"""A probe only asks whether an answer comes: it is nobody's episode and nobody's evidence."""

import asyncio

import pytest

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Scripted
from upswing.errors import Denied, Misuse, Transient
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.serve.readiness import gateway_status, list_models, probe_one_token

PROBE = ["x-upswing-probe: 1"]


async def test_a_probe_is_answered_and_leaves_no_trace():
    async with Scripted() as server:
        made = plan(model("base", server.url), (model("new", server.url), 0.99))
        async with started(made) as gateway:
            for _ in range(20):
                status, _ = await gateway.chat(headers=[*PROBE, "x-episode-id: e"], max_tokens=1)
                assert status == 200
            assert (await gateway.close("e"))[0] == 404
            assert gateway.gateway.health()["episodes"] == 0
            counters = gateway.gateway.counters
            assert (counters.encode(), dict(counters.models)) == (b"{}", {})
            assert counters.outcomes == {"probe": 20}
        assert gateway.recorder.trajectories == []
        assert {asked["body"]["model"] for asked in server.requests} == {"base"}


async def test_what_comes_after_a_probe_is_an_episode_of_its_own():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        await gateway.chat(headers=[*PROBE, "x-episode-id: e"], max_tokens=1)
        await gateway.chat(headers=["x-episode-id: e"])
        await gateway.close("e")
        (kept,) = gateway.recorder.trajectories
        assert len(kept["turns"]) == 1


async def test_one_token_comes_through_a_gateway_with_its_key():
    async with Scripted() as server:
        made = plan(model("base", server.url))
        async with started(made, client_keys={"gw_key": "agent"}) as gateway:
            url = f"{gateway.url}/v1"
            assert await asyncio.to_thread(gateway_status, gateway.url) == "ok"
            probed = await asyncio.to_thread(probe_one_token, url, "gw_key", is_gateway=True)
            assert probed.model == "base"
            assert server.requests[-1]["body"]["max_tokens"] == 1
            with pytest.raises(Denied, match="answers 401: Send a key"):
                await asyncio.to_thread(probe_one_token, url, "other", is_gateway=True)
            assert await asyncio.to_thread(list_models, url, "gw_key") == ["base", "upswing"]
        assert gateway.recorder.trajectories == []


async def test_a_client_cannot_ask_past_the_record_by_calling_it_a_probe():
    keys = {"gw_key": "agent", "op_key": "operator", "ann_key": "ann"}
    async with (
        Scripted() as server,
        started(plan(model("base", server.url)), client_keys=keys) as gateway,
    ):
        for key, status in (("gw_key", 200), ("op_key", 200), ("ann_key", 403)):
            assert (await gateway.chat(headers=PROBE, key=key, max_tokens=1))[0] == status
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ("0", {"max_tokens": 1}),
        ("true", {"max_tokens": 1}),
        ("1", {}),
        ("1", {"max_tokens": 2}),
        ("1", {"max_tokens": 0}),
        ("1", {"max_tokens": [1]}),
        ("1", {"max_tokens": 1, "max_completion_tokens": 900}),
        ("1", {"max_tokens": 1, "n": 50}),
        ("1", {"max_tokens": 1, "n": [50]}),
    ],
)
async def test_a_probe_asks_for_one_token_and_no_more(header, fields):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        status, _ = await gateway.chat(headers=[f"x-upswing-probe: {header}"], **fields)
        assert (status, server.requests) == (400, [])


async def test_a_probe_takes_nothing_of_a_cap():
    async with Scripted() as server:
        made = plan(model("new", server.url), trained=True, base=model("base", server.url))
        async with started(made, policy=ServingPolicy(max_share=0.5)) as gateway:
            for _ in range(10):
                await gateway.chat(headers=PROBE, max_tokens=1)
        assert {asked["body"]["model"] for asked in server.requests} == {"base"}


async def test_what_is_no_answer_says_what_to_do_next():
    async with started(None) as gateway:
        assert await asyncio.to_thread(gateway_status, gateway.url) == "starting"
        with pytest.raises(Transient, match="503: There is no traffic plan yet"):
            await asyncio.to_thread(probe_one_token, f"{gateway.url}/v1", None, is_gateway=True)
        with pytest.raises(Misuse, match="answers 404"):
            await asyncio.to_thread(probe_one_token, f"{gateway.url}/v9", None)
    with pytest.raises(Transient, match="Nothing answers at"):
        await asyncio.to_thread(probe_one_token, f"{gateway.url}/v1", None)
