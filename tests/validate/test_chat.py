"""Asking a model over real HTTP; the endpoint is a double on the loopback."""

import asyncio
import contextlib
import json
import re
from datetime import timedelta

import pytest

from tests.serving import Listening
from upswing.contracts.validation import TaskAnswer, ToolCall
from upswing.errors import Denied, Misuse, Rejected, Transient
from upswing.validate.chat_client import ChatClient, ModelEndpoint

pytestmark = pytest.mark.live
ASKED = [{"role": "user", "content": "Hello?"}]
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


class Endpoint:
    """A double: plays its script, an answer (status, body) for each request."""

    def __init__(self, *script):
        self.script, self.requests = list(script), []

    async def __aenter__(self):
        self._listening = await Listening(self._serve).__aenter__()
        self.url = f"http://127.0.0.1:{self._listening.port}/v1"
        return self

    async def __aexit__(self, *error):
        await self._listening.__aexit__(*error)

    async def _serve(self, reader, writer):
        try:
            await self._exchange(reader, writer)
        finally:
            writer.close()

    async def _exchange(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(re.search(r"content-length: (\d+)", head, re.IGNORECASE)[1])
            self.requests.append((head, json.loads(await reader.readexactly(length))))
            status, body = self.script.pop(0)
            if status is None:
                await reader.read()  # says nothing until the other side hangs up
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw
            )
            await writer.drain()


def said(content="Hi.", **more):
    return 200, {"choices": [{"message": {"role": "assistant", "content": content, **more}}]}


async def ask(endpoint, tools=(), **options):
    chat = ChatClient(
        lambda name: ModelEndpoint(endpoint.url, f"{name}-at-home", "sk-right"), **options
    )
    return await chat("m1", ASKED, seed=5, max_tokens=77, tools=tools)


async def test_the_question_goes_out_in_the_shape_of_chat_completions():
    async with Endpoint(said()) as endpoint:
        assert await ask(endpoint, [TOOL]) == TaskAnswer("Hi.")
    head, body = endpoint.requests[0]
    assert head.startswith("POST /v1/chat/completions ")
    assert "Authorization: Bearer sk-right" in head
    assert body == {
        "model": "m1-at-home",
        "messages": ASKED,
        "seed": 5,
        "temperature": 0.0,
        "max_tokens": 77,
        "tools": [TOOL],
    }


@pytest.mark.parametrize("arguments", ['{"a": 1}', {"a": 1}])
async def test_tool_calls_come_back(arguments):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": arguments}}
    async with Endpoint(said(None, tool_calls=[call])) as endpoint:
        answer = await ask(endpoint)
    assert answer.text == ""
    assert [
        (each.name, json.loads(each.arguments), each.call_id) for each in answer.tool_calls
    ] == [("look", {"a": 1}, "c1")]
    assert isinstance(answer.tool_calls[0], ToolCall)


async def test_content_in_parts_is_one_text():
    parts = [{"type": "text", "text": "He"}, {"type": "text", "text": "llo"}]
    async with Endpoint(said(parts)) as endpoint:
        assert (await ask(endpoint)).text == "Hello"


async def test_a_parameter_that_is_refused_is_left_out_from_then_on():
    refusals = [
        (400, {"error": {"message": f"{name} is not supported"}}) for name in ("seed", "max_tokens")
    ]
    async with Endpoint(*refusals, said(), said()) as endpoint:
        chat = ChatClient(lambda name: ModelEndpoint(endpoint.url, name))
        for _ in range(2):
            await chat("m1", ASKED, seed=5, max_tokens=77)
    last = endpoint.requests[-1][1]
    assert len(endpoint.requests) == 4
    assert "seed" not in last
    assert (last.get("max_tokens"), last["max_completion_tokens"]) == (None, 77)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, {"error": {"message": "overloaded"}}), Transient),
        ((200, b"<html>"), Transient),
        ((200, b"[" * 100_000), Transient),
        ((200, {"choices": []}), Transient),
        ((429, {}), Transient),
        ((503, b""), Transient),
        ((401, {}), Denied),
        ((404, {}), Misuse),
        ((302, {}), Misuse),
        ((400, {"error": {"message": "too long"}}), Rejected),
    ],
)
async def test_every_bad_answer_has_its_error(reply, error):
    async with Endpoint(reply) as endpoint:
        with pytest.raises(error) as raised:
            await ask(endpoint)
    assert "sk-right" not in str(raised.value)


LONG = (400, {"error": {"message": "max_tokens", "code": "context_length_exceeded"}})


async def test_where_the_context_is_short_fewer_tokens_are_asked_for():
    async with Endpoint(LONG, said()) as endpoint:
        assert await ask(endpoint) == TaskAnswer("Hi.")
    assert [body["max_tokens"] for _, body in endpoint.requests] == [77, 19]


async def test_what_is_longer_than_the_context_is_too_large_and_not_trouble():
    async with Endpoint(LONG, LONG, LONG) as endpoint:
        with pytest.raises(Rejected, match="too long for m1-at-home") as raised:
            await ask(endpoint)
    assert raised.value.reason == "too_large"


async def test_a_server_that_says_nothing_is_not_waited_for():
    async with Endpoint((None, b"")) as endpoint:
        with pytest.raises(Transient, match=r"did not answer|not reachable"):
            await ask(endpoint, timeout=timedelta(milliseconds=100))


async def test_nobody_there_is_transient():
    async with Endpoint() as endpoint:
        pass
    with pytest.raises(Transient, match="cannot be reached"):
        await ask(endpoint)


async def test_an_address_that_is_none_is_a_sentence():
    chat = ChatClient(lambda name: ModelEndpoint("ftp://x", name))
    with pytest.raises(Misuse, match="no address"):
        await chat("m", ASKED, seed=0, max_tokens=1)
