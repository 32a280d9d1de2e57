"""A client hangs up: had the model said anything? What counts as its answer is what can be recorded."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import model, plan, started, user
from tests.gateway.scripted import Server, chunk
from tests.gateway.talking import connect, request
from tests.support import until
from upswing.gateway.core.answers import read_choices
from upswing.gateway.core.generated import says_something
from upswing.gateway.core.native_answers import read_shaped_choices

ECHOED = {"tools": [{"type": "function", "name": "f"}], "metadata": {"delta": "x", "text": "y"}}
CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
SILENT = {
    "chat": [
        chunk({"role": "assistant", "content": ""}),
        chunk({}, None, usage={}),
        {"choices": []},
    ],
    "responses": [
        {"type": "response.created", "response": ECHOED},
        {"type": "response.in_progress", "response": ECHOED},
        {"type": "response.output_item.added", "item": {"id": "m", "type": "message"}},
        {"type": "response.output_text.delta", "item_id": "m", "delta": ""},
    ],
    "messages": [
        {"type": "message_start", "message": {"content": [], "model": "m", "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
    ],
}
SPEAKING = {
    "chat": [
        chunk({"content": "w"}),
        chunk({"reasoning_content": "w"}),
        chunk({"refusal": "w"}),
        chunk({"tool_calls": [CALL]}),
    ],
    "responses": [
        {"type": "response.output_text.delta", "item_id": "m", "delta": "w"},
        {"type": "response.refusal.delta", "item_id": "m", "delta": "w"},
        {"type": "response.reasoning_text.delta", "item_id": "r", "delta": "w"},
        {"type": "response.output_item.added", "item": {"id": "f", "type": "function_call"}},
    ],
    "messages": [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "w"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        },
    ],
}


def piece(*events):
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)


@pytest.mark.parametrize("shape", SILENT)
@settings(max_examples=60)
@given(data=st.data())
def test_a_model_has_answered_if_and_only_if_it_has_said_something(shape, data):
    before = data.draw(st.lists(st.sampled_from(SILENT[shape]), max_size=6))
    speaks = data.draw(st.none() | st.sampled_from(SPEAKING[shape]))
    start = SILENT[shape][:2] if shape == "messages" else []
    pieces = [piece(each) for each in [*start, *before, *([speaks] if speaks else [])]]
    assert says_something(pieces, shape) == (speaks is not None)
    if speaks:
        (answer,) = read_shaped_choices(pieces, stream=True, shape=shape)
        assert answer.content or answer.reasoning or answer.tool_calls, "it can be recorded"


def test_a_native_stream_may_end_as_chat_does():
    done = {"type": "response.completed", "response": {"output": [], "usage": {}}}
    assert read_shaped_choices([piece(done), b"data: [DONE]\n\n"], stream=True, shape="responses")


@pytest.mark.parametrize("depth", [10, 900, 990, 994, 1000, 5000])
@pytest.mark.parametrize("shape", SILENT)
def test_an_answer_of_any_depth_is_read_or_is_none(shape, depth):
    body = b'{"choices":[{"message":{"content":"x"},"z":%s}]}' % (b"[" * depth + b"]" * depth)
    for stream in (False, True):
        read_shaped_choices(
            [b"data: %s\n\n" % body if stream else body], stream=stream, shape=shape
        )
        says_something([b"data: %s\n\n" % body], shape)
    assert isinstance(read_choices([body], stream=False), list)


class OnlyBegins(Server):
    """A labelled double: speaks Responses, repeats the request as servers do, and says nothing more."""

    async def answer(self, asked, reader, writer):
        event = {"type": "response.created", "response": {"tools": asked["body"]["tools"]}}
        await self.stream(writer, [piece(event)], end=False)
        await reader.read(1)
        self.gone.set()
        return False


@pytest.mark.live
async def test_a_canary_that_only_repeats_the_request_has_not_answered_it():
    async with OnlyBegins() as server:
        canary = model("new", server.url, shapes=("responses",))
        async with started(plan(model("base", server.url), (canary, 1.0))) as gateway:
            body = {"model": "m", "input": [user("hi")], "stream": True, "tools": ECHOED["tools"]}
            reader, writer = await connect(gateway)
            writer.write(request(body, "X-Episode-Id: e1", path="/v1/responses"))
            assert b"response.created" in await asyncio.wait_for(reader.readuntil(b"\n\n"), 60)
            writer.close()
            await until(lambda: gateway.gateway.health()["under_way"] == 0, 60)
            assert json.loads(gateway.gateway.counters.encode()) == {}, "no evidence for it"
            status, told = await gateway.close("e1")
            assert (status, told["recorded"]) == (200, False)
