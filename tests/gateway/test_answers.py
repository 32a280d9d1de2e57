"""Does a request through the gateway read like one without it?"""

import json

import pytest

from tests.gateway.conftest import model, on_both_loops, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted
from tests.gateway.talking import raw, request, streamed

pytestmark = pytest.mark.live
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}},
}


@on_both_loops
async def test_a_plain_answer_comes_back_as_the_server_gave_it():
    async with Scripted(tokens=True) as server, started(plan(model("base", server.url))) as gateway:
        status, answer = await gateway.chat(user("hello"), logprobs=True, seed=7)
        assert status == 200
        assert answer["choices"][0]["message"]["content"].startswith("scripted says")
        assert answer["choices"][0]["logprobs"]["content"][0]["logprob"] == -0.1
        assert answer["choices"][0]["token_ids"] == [7, 8]
        asked = server.requests[0]["body"]
        assert asked == {"model": "base", "messages": [user("hello")], "logprobs": True, "seed": 7}


@on_both_loops
async def test_a_stream_comes_back_event_by_event():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        status, headers, events = await streamed(
            gateway, {"model": "m", "messages": [user("hi")]}, "X-Episode-Id: e1"
        )
        assert status == 200
        assert headers["content-type"].startswith("text/event-stream")
        assert headers["x-episode-id"] == "e1"
        assert headers["x-model-id"] == "base"
        assert events[-1] == "[DONE]"
        words = [json.loads(e)["choices"] for e in events[:-1]]
        text = "".join(c[0]["delta"].get("content") or "" for c in words if c)
        assert text == "scripted says: the tool returned nothing"


async def test_a_server_is_asked_under_the_name_it_knows_and_with_what_the_plan_adds():
    async with Scripted() as server:
        asked_for = model("base", server.url, called="org/base", extra={"return_token_ids": True})
        async with started(plan(asked_for), backend_keys={server.url: "sk-theirs"}) as gateway:
            await gateway.chat(user("hi"), episode_id="e-1", key="sk-ours")
    sent = server.requests[0]
    assert sent["body"] == {
        "model": "org/base",
        "messages": [user("hi")],
        "return_token_ids": True,
    }
    assert sent["headers"]["authorization"] == "Bearer sk-theirs"


@on_both_loops
async def test_an_episode_is_recorded_and_its_close_is_answered_when_it_is_durable():
    async with Scripted(tokens=True) as server:
        priced = model("base", server.url, prompt_price=1.0)
        async with started(plan(priced)) as gateway:
            episode = ("X-Episode-Id: run-1", "X-Agent-Id: agent-7")
            asked = user("weather? I am bob@example.org")
            _, first = await gateway.chat(asked, tools=[WEATHER], headers=episode)
            called = first["choices"][0]["message"]
            tool = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
            await gateway.chat(asked, called, tool, tools=[WEATHER], headers=episode)
            status, closed = await gateway.close("run-1", {"outcome": {"status": "completed"}})
            assert (status, closed["recorded"]) == (200, True)
            (made,) = gateway.recorder.trajectories
            assert made["trajectory_id"] == closed["trajectory_id"]
            assert [turn["action"]["type"] for turn in made["turns"]] == ["tool_call", "response"]
            assert made["turns"][0]["result"]["output"] == "sunny"
            assert made["turns"][0]["observation"]["content"] == "weather? I am <email-1>"
            assert made["turns"][1]["observation"] == {"type": "tool_result", "content": "sunny"}
            assert made["agent_id"] == "agent-7"
            assert made["metadata"]["outcome"] == {"status": "completed"}
            assert made["metadata"]["total_cost_usd"] == pytest.approx(40e-6)
            assert await gateway.close("run-1") == (status, closed)


async def test_later_turns_find_their_episode_without_any_id():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        _, first = await gateway.chat(user("one"))
        said = first["choices"][0]["message"]
        await gateway.chat(user("one"), said, user("two"))
        await gateway.chat(user("another"))
        await gateway.gateway.recorder.flush(60)
        assert sorted(len(t["turns"]) for t in gateway.recorder.trajectories) == [1, 2]


async def test_the_next_conversation_of_a_session_ends_the_one_before():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        session = ("X-Session-Id: s-1",)
        await gateway.chat(user("one"), headers=session)
        await gateway.chat(user("two"), headers=session)
        recorder = gateway.gateway.recorder
        assert len(recorder.episode_table) == 1
        await recorder.flush(60)
        kept = gateway.recorder.trajectories
        assert [t["metadata"]["gateway"]["ended_by"] for t in kept] == ["next", "stop"]
        assert {t["session_id"] for t in kept} == {"s-1"}


async def test_a_conversation_inside_a_tool_does_not_end_the_one_that_called_it():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        session = ("X-Session-Id: s-1",)
        _, first = await gateway.chat(user("outer"), tools=[WEATHER], headers=session)
        await gateway.chat(user("inner"), headers=session)
        called = first["choices"][0]["message"]
        tool = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
        await gateway.chat(user("outer"), called, tool, tools=[WEATHER], headers=session)
        await gateway.gateway.recorder.flush(60)
        assert sorted(len(t["turns"]) for t in gateway.recorder.trajectories) == [1, 2]


async def test_attempts_that_begin_alike_are_told_apart_by_their_answers():
    class Counting(Scripted):
        def reply(self, asked):
            return {"content": f"number {len(self.requests)}"}, "stop"

    async with Counting() as server, started(plan(model("base", server.url))) as gateway:
        firsts = [(await gateway.chat(user("same")))[1] for _ in range(3)]
        for first in firsts:
            said = first["choices"][0]["message"]
            await gateway.chat(user("same"), said, user(f"after {said['content']}"))
        await gateway.gateway.recorder.flush(60)
        told = [
            (t["turns"][0]["action"]["raw_response"], t["turns"][1]["observation"]["content"])
            for t in gateway.recorder.trajectories
        ]
        assert sorted(told) == [(f"number {n}", f"after number {n}") for n in (1, 2, 3)]


async def test_a_request_that_is_tried_again_after_a_failure_stays_in_its_episode():
    async with Misbehaving("error_500") as server:
        async with started(plan(model("base", server.url))) as gateway:
            assert (await gateway.chat(user("one")))[0] == 500
            server.how = "well"
            assert (await gateway.chat(user("one")))[0] == 200
            await gateway.gateway.recorder.flush(60)
            (made,) = gateway.recorder.trajectories
            assert made["metadata"]["gateway"]["failures"] == 1
            assert "infra_error" not in made["metadata"]


@on_both_loops
async def test_requests_sent_ahead_are_answered_in_order():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        ahead = [
            request(
                {"model": "m", "messages": [user(f"n{n}")]}, f"X-Episode-Id: e{n}", close=n == 2
            )
            for n in range(3)
        ]
        whole = await raw(gateway, b"".join(ahead))
        assert [part[:4].strip() for part in whole.split(b"x-episode-id: ")[1:]] == [
            b"e0",
            b"e1",
            b"e2",
        ]
        assert [r["body"]["messages"][0]["content"] for r in server.requests] == ["n0", "n1", "n2"]


async def test_models_and_health_are_told():
    async with Scripted() as server:
        both = plan(model("base", server.url), (model("new", server.url), 0.25))
        async with started(both) as gateway:
            status, listed = await gateway.client("GET", "/v1/models")
            assert (status, [m["id"] for m in listed["data"]]) == (200, ["base", "new", "upswing"])
            _, health = await gateway.client("GET", "/health")
            assert health["status"] == "ok"
            assert health["shares"] == {"base": 0.75, "new": 0.25}
