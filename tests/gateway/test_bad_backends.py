"""A server misbehaves: is the error clear, counted, and everybody else unharmed?"""

import asyncio
import json

import msgspec
import pytest

from tests.gateway.conftest import model, on_both_loops, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted
from tests.gateway.talking import raw, request, streamed
from tests.support import until
from upswing.config import FallbackConfig
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.gateway.limits import GatewayLimits

pytestmark = pytest.mark.live


def seconds_for(how):
    """A backend is waited for shortly where its silence is the case, and long where it has to answer."""
    return 1.0 if how in {"silent", "stalls"} else 60.0


def limits_for(how):
    return GatewayLimits(stall_seconds=seconds_for(how))


PLAIN = {
    "garbage": (502, "garbage"),
    "html": (502, "garbage"),
    "half": (502, "cut_short"),
    "error_in_200": (502, "error_body"),
    "silent": (504, "slow"),
    "error_500": (500, None),
    "header_injection": (502, "garbage"),
}
STREAMS = {
    "garbage_stream": (502, "garbage"),
    "error_in_stream": (502, "error_body"),
    "error_in_200": (502, "error_body"),
    "html": (502, "garbage"),
    "silent": (504, "slow"),
}
CUT = {
    "garbage_later": "garbage",
    "half_stream": "cut_short",
    "undone_stream": "cut_short",
    "stalls": "stalled",
}


def fallback(allowed):
    return ServingPolicy(fallback=allowed)


@pytest.mark.parametrize("how", sorted(PLAIN))
@on_both_loops
async def test_a_bad_answer_is_a_clear_error_in_the_words_of_openai(how):
    status, word = PLAIN[how]
    async with Misbehaving(how) as server:
        made = plan(model("base", server.url, timeout_seconds=seconds_for(how)))
        async with started(made, limits=limits_for(how)) as gateway:
            got, answer = await gateway.chat(user("hi"), headers=("X-Episode-Id: e1",))
            assert got == status
            assert answer["error"]["message"]
            if word:
                assert answer["error"]["code"] == word
                counted = await gateway.metrics()
                labels = (("fault", word), ("model_version", "base"))
                assert counted["upswing_gateway_faults_total", labels] == 1
            server.how = "well"
            assert (await gateway.chat(user("hi")))[0] == 200


@pytest.mark.parametrize("how", sorted(STREAMS))
@on_both_loops
async def test_a_stream_that_begins_badly_is_an_error_and_no_stream(how):
    status, word = STREAMS[how]
    async with Misbehaving(how) as server:
        made = plan(model("base", server.url, timeout_seconds=seconds_for(how)))
        async with started(made, limits=limits_for(how)) as gateway:
            got, headers, body = await streamed(gateway, {"model": "m", "messages": [user("hi")]})
            assert got == status
            assert headers["content-type"] == "application/json"
            assert json.loads(body)["error"]["code"] == word


@pytest.mark.parametrize("how", sorted(CUT))
@on_both_loops
async def test_a_stream_that_goes_wrong_half_way_ends_with_an_error_event(how):
    async with Misbehaving(how) as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made, limits=limits_for(how)) as gateway:
            got, _, events = await streamed(gateway, {"model": "m", "messages": [user("hi")]})
            assert got == 200
            assert json.loads(events[0])["choices"][0]["delta"]["content"] in {"fine", "one"}
            assert json.loads(events[-2])["error"]["code"] == CUT[how]
            assert events[-1] == "[DONE]"
            counts = gateway.gateway.counters.models["new"]
            assert (counts.requests, counts.errors, counts.fallbacks) == (1, 1, 0)


@pytest.mark.parametrize("how", sorted({*PLAIN, *STREAMS}))
@pytest.mark.parametrize("stream", [False, True])
async def test_a_failing_candidate_is_answered_by_the_baseline_and_counted(how, stream):
    async with Misbehaving(how) as bad, Misbehaving("well") as good:
        candidate = model("new", bad.url, timeout_seconds=seconds_for(how))
        made = plan(model("base", good.url), (candidate, 1.0))
        async with started(made, limits=limits_for(how)) as gateway:
            headers = ("X-Episode-Id: e1",)
            if stream:
                got, named, _ = await streamed(
                    gateway, {"model": "m", "messages": [user("hi")]}, *headers
                )
                assert named["x-model-id"] == "base"
            else:
                got, _ = await gateway.chat(user("hi"), headers=headers)
            assert got == 200
            counts = gateway.gateway.counters.models
            assert (counts["new"].errors, counts["new"].fallbacks) == (1, 1)
            assert "base" not in counts
            _, closed = await gateway.close("e1")
            assert closed["recorded"]
            (made,) = gateway.recorder.trajectories
            assert made["metadata"]["mixed_models"] == ["new", "base"]
            assert made["metadata"]["infra_error"] is True
            assert made["metadata"]["model"] == "new"


async def test_without_fallback_the_candidates_error_reaches_the_client():
    async with Misbehaving("error_in_200") as bad, Misbehaving("well") as good:
        made = plan(model("base", good.url), (model("new", bad.url), 1.0))
        async with started(made, policy=fallback(allowed=False)) as gateway:
            got, answer = await gateway.chat(user("hi"))
            assert (got, answer["error"]["message"]) == (502, "CUDA out of memory")
            assert not good.requests


async def test_a_request_that_both_refuse_is_the_clients_own_error():
    async with Misbehaving("refuses") as bad, Misbehaving("refuses") as worse:
        made = plan(model("base", worse.url), (model("new", bad.url), 1.0))
        async with started(made) as gateway:
            got, answer = await gateway.chat(user("hi"))
            assert (got, answer["error"]["code"]) == (400, "context_length_exceeded")
            counts = gateway.gateway.counters.models["new"]
            assert (counts.requests, counts.errors) == (1, 0)


async def test_a_request_that_only_the_candidate_refuses_is_the_candidates_error():
    async with Misbehaving("refuses") as bad, Misbehaving("well") as good:
        made = plan(model("base", good.url), (model("new", bad.url), 1.0))
        async with started(made) as gateway:
            assert (await gateway.chat(user("hi")))[0] == 200
            assert gateway.gateway.counters.models["new"].errors == 1


async def test_a_server_that_is_not_there_is_said_so():
    made = plan(model("base", "http://127.0.0.1:1"))
    async with started(made) as gateway:
        got, answer = await gateway.chat(user("hi"))
        assert (got, answer["error"]["code"]) == (503, "unreachable")


async def test_while_a_server_is_away_its_clients_are_told_when_to_try_again():
    made = plan(model("base", "http://127.0.0.1:1"))
    async with started(made) as gateway:
        for stream in (False, True):
            body = {"model": "m", "messages": [user("hi")], "stream": stream}
            head = (await raw(gateway, request(body))).partition(b"\r\n\r\n")[0].lower()
            assert head.startswith(b"http/1.1 503 ")
            assert b"\r\nretry-after: " in head


@pytest.mark.parametrize("candidate", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_while_a_server_is_away_the_named_fallback_answers(candidate, stream):
    nowhere = model("base", "http://127.0.0.1:1")
    made = plan(nowhere, (model("new", nowhere.backend), 1.0)) if candidate else plan(nowhere)
    chosen = "new" if candidate else "base"
    async with Scripted() as other:
        told = FallbackConfig(f"{other.url}/v1", "foreign")
        async with started(made, fallback=told) as gateway:
            body = {"model": "m", "messages": [user("hi")], "stream": stream}
            head, _, rest = (await raw(gateway, request(body))).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            assert b"x-model-id: fallback:foreign" in head
            assert rest
            assert other.requests[0]["body"]["model"] == "foreign"
            assert told_of(gateway, chosen) is None  # nothing was learned of it
            counts = gateway.gateway.counters.models[chosen]
            assert (counts.errors, counts.fallbacks) == (1, 1)


async def test_a_fallback_answers_only_for_a_server_that_is_away_and_may_be_away_itself():
    async with Misbehaving("error_500") as bad, Scripted() as other:
        told = FallbackConfig(other.url, "foreign")
        async with started(plan(model("base", bad.url)), fallback=told) as gateway:
            assert (await gateway.chat(user("hi")))[0] == 500
            assert not other.requests
    away = FallbackConfig("http://127.0.0.1:1", "foreign")
    async with started(plan(model("base", "http://127.0.0.1:1")), fallback=away) as gateway:
        got, answer = await gateway.chat(user("hi"))
        assert (got, answer["error"]["code"]) == (503, "unreachable")


def told_of(gateway, name):
    """(requests, errors) of a model, as the controller reads them."""
    told = msgspec.json.decode(gateway.gateway.counters.encode()).get("rollout-1", {}).get(name)
    return (told["requests"], told["errors"]) if told else None


async def test_a_baseline_that_cannot_be_reached_is_counted_and_is_no_evidence_against_it():
    away = model("base", "http://127.0.0.1:1")
    async with Scripted() as server, started(plan(away)) as gateway:
        assert (await gateway.chat(user("hi")))[0] == 503
        assert told_of(gateway, "base") is None
        counts = gateway.gateway.counters.models["base"]
        assert (counts.requests, counts.errors) == (1, 1)
        counted = await gateway.metrics()
        labels = (("fault", "unreachable"), ("model_version", "base"))
        assert counted["upswing_gateway_faults_total", labels] == 1
        gateway.gateway.apply(plan(model("base", server.url), version=2))
        assert (await gateway.chat(user("hi")))[0] == 200
        assert told_of(gateway, "base") == (1, 0)


async def test_a_promoted_model_that_cannot_be_reached_is_spared_and_a_candidate_is_not():
    away = model("new", "http://127.0.0.1:1")
    async with Scripted() as server:
        made = plan(model("base", server.url), (away, 1.0))
        async with started(made) as gateway:
            here = ("X-Episode-Id: e1",)
            assert (await gateway.chat(user("hi"), headers=here))[0] == 200
            assert told_of(gateway, "new") == (1, 1)
            gateway.gateway.apply(plan(away, version=2))
            assert (await gateway.chat(user("hi"), headers=here))[0] == 503
            assert told_of(gateway, "new") == (1, 1)


async def test_a_candidate_beside_the_baseline_is_spared_when_their_server_is_away():
    nowhere = "http://127.0.0.1:1"
    async with started(plan(model("base", nowhere), (model("new", nowhere), 1.0))) as gateway:
        assert (await gateway.chat(user("hi")))[0] == 503
        assert told_of(gateway, "new") is None
        assert gateway.gateway.counters.models["new"].errors == 1


@pytest.mark.parametrize("how", ["error_500", "error_in_200", "half", "never_answers"])
async def test_what_the_baselines_server_does_once_it_is_reached_is_evidence(how):
    async with Misbehaving(how) as server, started(plan(model("base", server.url))) as gateway:
        assert (await gateway.chat(user("hi")))[0] >= 500
        assert told_of(gateway, "base") == (1, 1)


@on_both_loops
async def test_a_kept_connection_that_the_server_lets_go_is_no_error():
    async with (
        Misbehaving("closes_kept") as server,
        started(plan(model("base", server.url))) as gateway,
    ):
        for _ in range(3):
            assert (await gateway.chat(user("hi")))[0] == 200
        assert gateway.gateway.counters.models["base"].errors == 0


@on_both_loops
async def test_an_answer_without_end_is_cut_off_and_does_not_fill_the_memory():
    async with Misbehaving("endless") as server:
        limits = GatewayLimits(held_bytes=100_000, answer_bytes=1_000_000)
        async with started(plan(model("base", server.url)), limits=limits) as gateway:
            whole = await raw(gateway, request({"model": "m", "messages": [user("hi")]}))
            assert not whole.endswith(b"0\r\n\r\n")
            assert len(whole) < 2_000_000
            await until(lambda: server.open == 0, 60, "the gateway still listens to it")


@pytest.mark.parametrize("how", ["silent", "stalls"])
@on_both_loops
async def test_a_client_that_hangs_up_stops_the_server(how):
    async with Misbehaving(how) as server, started(plan(model("base", server.url))) as gateway:
        asking = asyncio.create_task(streamed(gateway, {"model": "m", "messages": [user("hi")]}))
        await until(lambda: server.requests, 60)
        asking.cancel()
        await asyncio.wait_for(server.gone.wait(), 300)
        await until(lambda: gateway.gateway.health()["under_way"] == 0, 60)
        assert gateway.gateway.counters.outcomes == {"cancelled": 1}


async def test_traffic_to_a_good_server_goes_on_beside_a_bad_one():
    async with Misbehaving("silent") as bad, Scripted() as good:
        candidate = model("new", bad.url, timeout_seconds=0.2)
        made = plan(model("base", good.url), (candidate, 0.5))
        async with started(made) as gateway:
            asked = [gateway.chat(user("hi"), headers=(f"X-Episode-Id: e{n}",)) for n in range(40)]
            assert {status for status, _ in await asyncio.gather(*asked)} == {200}
            counts = gateway.gateway.counters.models
            assert counts["new"].errors == counts["new"].requests > 5
            assert counts["base"].errors == 0
