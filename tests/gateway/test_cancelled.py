"""A client stops reading: is what was generated recorded, is the episode sound, and is nobody blamed?"""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import REDACTOR, assistant, model, plan, started, user
from tests.gateway.scripted import Misbehaving, Server, chunk, sse
from tests.gateway.talking import connect, request
from tests.support import until
from upswing.contracts import Trajectory, from_builtins
from upswing.gateway.core.episode_redaction import redact_episode
from upswing.gateway.core.faults import PATIENCE_SECONDS, gave_up_waiting
from upswing.gateway.core.frames import ConversationFrame, EpisodeFrame, ExchangeFrame
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.gateway.core.trajectory import build_trajectory
from upswing.reward.core.implicit import implicit_signals

pytestmark = pytest.mark.live
HI = {"model": "m", "messages": [user("hi")], "stream": True}


class Flowing(Server):
    """A labelled double: sends these events of a stream, then waits until its client hangs up."""

    def __init__(self, *events):
        super().__init__()
        self.events = events

    async def answer(self, request, reader, writer):
        if not request["body"].get("stream"):
            return await self.send(writer, {"choices": [{"message": {"content": "whole"}}]})
        pieces = [sse(event, done=False) for event in self.events]
        await self.stream(writer, pieces, end=False)
        await reader.read(1)
        self.gone.set()
        return False


async def read_and_leave(gateway, body, until_seen, *headers, path="/v1/chat/completions"):
    """Ask, read until this is seen, and hang up."""
    reader, writer = await connect(gateway)
    writer.write(request(body, *headers, path=path))
    seen = b""
    while until_seen not in seen:
        seen += await asyncio.wait_for(reader.read(4096), 60)
    writer.close()
    await until(lambda: gateway.gateway.health()["under_way"] == 0, 60)
    return seen


async def recorded(gateway, episode="e1"):
    assert (await gateway.close(episode))[0] == 200
    (made,) = gateway.recorder.trajectories
    return made


TEXT = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "one "}),
    chunk({"content": "two"}),
]


async def test_what_was_generated_is_a_turn_with_finish_cancelled_and_the_episode_is_sound():
    async with Flowing(*TEXT) as server, started(plan(model("base", server.url))) as gateway:
        await read_and_leave(gateway, HI, b"two", "X-Episode-Id: e1")
        made = await recorded(gateway)
        await asyncio.wait_for(server.gone.wait(), 60)
    (turn,) = made["turns"]
    assert turn["action"] == {"type": "response", "raw_response": "one two"}
    assert turn["result"]["success"] is True
    about = made["metadata"]
    assert about["finish_reasons"] == ["cancelled"]
    assert about["total_tokens"] == 2, "of a stream that was left, its pieces are counted"
    assert "infra_error" not in about
    assert "cancelled" not in about["gateway"], "whoever read the answer has abandoned nothing"
    assert about["gateway"]["failures"] == 0
    assert implicit_signals(from_builtins(Trajectory, made)).found == ()


async def test_a_conversation_goes_on_behind_an_answer_that_was_left():
    async with Flowing(*TEXT) as server, started(plan(model("base", server.url))) as gateway:
        await read_and_leave(gateway, HI, b"two")
        then = [user("hi"), assistant("one two"), user("And then?")]
        assert (await gateway.chat(*then))[0] == 200
        await gateway.gateway.recorder.flush(60)
        (made,) = gateway.recorder.trajectories
    assert made["metadata"]["finish_reasons"] == ["cancelled", ""]
    assert len(made["turns"]) == 2
    assert "rewritten" not in made["metadata"]["gateway"]


async def test_the_same_request_again_is_of_the_same_episode():
    async with Flowing(*TEXT) as server, started(plan(model("base", server.url))) as gateway:
        await read_and_leave(gateway, HI, b"two")
        assert (await gateway.chat(user("hi")))[0] == 200
        await gateway.gateway.recorder.flush(60)
        (made,) = gateway.recorder.trajectories
    assert [turn["action"]["raw_response"] for turn in made["turns"]] == ["one two", "whole"]
    assert "infra_error" not in made["metadata"]


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "buy", "arguments": '{"n'}}


async def test_a_call_that_was_left_half_way_is_recorded_as_far_as_it_came():
    events = [TEXT[0], chunk({"tool_calls": [CALL]})]
    async with Flowing(*events) as server, started(plan(model("base", server.url))) as gateway:
        await read_and_leave(gateway, HI, b"buy", "X-Episode-Id: e1")
        made = await recorded(gateway)
    (turn,) = made["turns"]
    assert turn["action"]["tool_name"] == "buy"
    assert turn["action"]["tool_args"] == {"arguments": '{"n'}
    assert made["metadata"]["finish_reasons"] == ["cancelled"]


async def test_who_leaves_before_a_word_came_leaves_nothing_to_record():
    async with Flowing(TEXT[0]) as server, started(plan(model("base", server.url))) as gateway:
        await read_and_leave(gateway, HI, b"assistant", "X-Episode-Id: e1")
        status, told = await gateway.close("e1")
        assert (status, told["recorded"]) == (200, False)
        assert gateway.recorder.dead_letters == []


def tallied(gateway):
    return json.loads(gateway.gateway.counters.encode()).get("rollout-1", {}).get("new", {})


async def test_answers_that_clients_leave_count_as_answers_so_errors_keep_their_proportion():
    """An agent that closes each stream as soon as it has its JSON would else show its failures alone."""
    async with Flowing(*TEXT) as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made) as gateway:
            for number in range(3):
                await read_and_leave(gateway, HI, b"two", f"X-Episode-Id: e{number}")
            assert tallied(gateway)["requests"] == 3
            assert tallied(gateway)["errors"] == 0
            metrics = await gateway.metrics()
    assert metrics["upswing_gateway_requests_total", (("outcome", "cancelled"),)] == 3


async def test_who_gives_up_before_anything_came_is_nobodys_evidence():
    async with Flowing() as server:
        made = plan(model("base", server.url), (model("new", server.url), 1.0))
        async with started(made) as gateway:
            _, writer = await connect(gateway)
            writer.write(request(HI))
            await until(lambda: server.requests, 60)
            writer.close()
            await until(lambda: gateway.gateway.health()["under_way"] == 0, 60)
            assert tallied(gateway) == {}


async def test_who_gives_up_waiting_after_a_candidate_failed_does_not_hide_that():
    async with Misbehaving("error_500") as bad, Misbehaving("silent") as slow:
        made = plan(model("base", slow.url), (model("new", bad.url), 1.0))
        async with started(made, policy=ServingPolicy(fallback=True)) as gateway:
            _, writer = await connect(gateway)
            writer.write(request(HI))
            await until(lambda: slow.requests, 60)
            writer.close()
            await until(lambda: gateway.gateway.health()["under_way"] == 0, 60)
            assert (tallied(gateway)["errors"], tallied(gateway)["fallbacks"]) == (1, 1)


@pytest.mark.parametrize("generated", [True, False])
@pytest.mark.parametrize("silent", [0.0, PATIENCE_SECONDS, float("nan")])
def test_only_who_leaves_in_the_middle_of_a_flow_has_what_it_wanted(generated, silent):
    told = gave_up_waiting(generated=generated, silent_seconds=silent)
    assert told is not (generated and silent == 0.0)


def frame(events, *, cancelled=True, shape="chat"):
    body = json.dumps({"model": "m", "messages": [user("hi")], "stream": True}).encode()
    exchange = ExchangeFrame(
        0.0,
        1.0,
        len(json.dumps([user("hi")])),
        events,
        stream=True,
        model_id="base",
        inference_id="t.1",
        cancelled=cancelled,
        shape=shape,
    )
    return EpisodeFrame(
        trajectory_id="018f0000-0000-4000-8000-000000000000",
        episode_id="e",
        agent_id="a",
        session_id="s",
        source="given",
        ended_by="close",
        model_id="base",
        candidate=False,
        rollout="",
        conversations=[ConversationFrame(body, [exchange])],
        models=["base"],
    )


def token_events(shown, tokens):
    """Chunks whose tokens may run ahead of their text, as where a server still holds words back."""
    first = chunk({"role": "assistant", "content": ""}, prompt_token_ids=[1, 2])
    yield sse(first, done=False)
    for number, text in enumerate(tokens):
        event = chunk({"content": text if number < shown else ""})
        logprobs = {"content": [{"token": text, "logprob": -0.5}]}
        event["choices"][0] |= {"token_ids": [10 + number], "logprobs": logprobs}
        yield sse(event, done=False)


@given(st.lists(st.text("abc \n", min_size=1, max_size=4), min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_tokens_of_an_answer_that_was_left_are_those_whose_text_was_sent(tokens, data):
    shown = data.draw(st.integers(1, len(tokens)))
    tree = build_trajectory(frame([*token_events(shown, tokens)]))
    (kept,) = tree["metadata"]["tokens"]
    assert kept["ids"] == [1, 2, *range(10, 10 + shown)]
    assert kept["logprobs"] == [-0.5] * shown
    assert tree["turns"][0]["action"]["raw_response"] == "".join(tokens[:shown])


def test_a_secret_in_tokens_that_were_never_shown_is_not_stored_as_ids():
    """The words of a call are held back until it is whole: redaction cannot read what nobody sent."""
    words = ["Sure", ". ", "<tool_call>", "ann@example.com"]
    made = json.loads(redact_episode(frame([*token_events(2, words)]), REDACTOR).body)
    (kept,) = made["metadata"]["tokens"]
    assert kept["ids"] == [1, 2, 10, 11]


def test_ids_without_their_texts_are_not_kept_of_an_answer_that_was_left():
    events = [chunk({"content": "a"}, prompt_token_ids=[1])]
    events[0]["choices"][0]["token_ids"] = [7]
    tree = build_trajectory(frame([sse(each, done=False) for each in events]))
    assert "tokens" not in tree["metadata"]
    whole = build_trajectory(frame([sse(each, done=False) for each in events], cancelled=False))
    assert whole["metadata"]["tokens"] == [{"turn_id": 1, "ids": [1, 7]}]
