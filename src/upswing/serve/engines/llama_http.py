"""How is llama.cpp's server asked, and how does its answer come in, token by token?

One connection per question: closing it is how a question is withdrawn, and the server then stops
generating.

| what comes                               | becomes                                               |
|------------------------------------------|-------------------------------------------------------|
| an event                                 | itself                                                |
| 400 because of the length                | `Rejected`, too_large                                 |
| any other 4xx                            | `Rejected`: llama.cpp's own sentence                  |
| 5xx, an error in the stream              | `Transient`                                           |
| nothing more                             | `LlamaConnectionLost`, which is `Transient` too                    |
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec

from upswing.errors import Reason, Rejected, Transient

Event = dict[str, Any]
LlamaConnection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_CONTEXT_ERROR = "exceed_context_size_error"


class ResponseTimeout(Exception):
    """It has said nothing for too long."""


class LlamaSilent(Transient):
    """The same, of one that is ended for it."""


class LlamaConnectionLost(Transient):
    """The line was cut: whoever was at its other end is gone, or going."""


async def connect_to_server(address: str) -> LlamaConnection:
    """A connection to the server; `OSError` when it is not there."""
    parts = urlsplit(address)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def stream_events(
    connection: LlamaConnection, key: str, body: Event, silence_seconds: float
) -> AsyncGenerator[Event]:
    """What the server tells about one completion; `ResponseTimeout` when it tells nothing for too long."""
    reader, writer = connection
    try:
        writer.write(_http_request_bytes(key, msgspec.json.encode(body)))
        async for event in _read_events(reader, silence_seconds):
            yield event
    except TimeoutError:
        raise ResponseTimeout from None
    except (OSError, httptools.HttpParserError) as error:
        raise LlamaConnectionLost(f"llama.cpp's server broke off: {error}.") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _http_request_bytes(key: str, body: bytes) -> bytes:
    head = (
        f"POST /completion HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


class _ResponseBody:
    """What has come of an answer; httptools calls it."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = bytearray()
        self.complete = False

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True

    def take_lines(self) -> Iterator[bytes]:
        """The lines that are whole."""
        while (end := self.body.find(b"\n")) >= 0:
            line = bytes(self.body[:end])
            del self.body[: end + 1]
            yield line


async def _read_events(
    reader: asyncio.StreamReader, silence_seconds: float
) -> AsyncGenerator[Event]:
    received = _ResponseBody()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + silence_seconds
    while not received.complete:
        async with asyncio.timeout_at(deadline):
            data = await reader.read(1 << 16)
        if not data:
            raise LlamaConnectionLost("llama.cpp's server broke off in the middle of an answer.")
        received.parser.feed_data(data)
        if received.parser.get_status_code() != 200:
            continue
        for line in received.take_lines():
            if line.startswith((b"data: ", b"error: ")):  # the rest are blank, or keep us waiting
                deadline = loop.time() + silence_seconds
                yield _parse_event(line.partition(b": ")[2])
    if received.parser.get_status_code() != 200:
        raise _error_for_status(received.parser.get_status_code(), bytes(received.body))


def _parse_event(raw: bytes) -> Event:
    try:
        event = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise Transient("llama.cpp's server sent something that is no event.") from None
    match event:
        case {"error": {"message": str(sentence)}} | {"message": str(sentence), "code": int()}:
            raise Transient(f"llama.cpp's server gave up: {sentence}")
        case dict():
            return event
        case _:
            raise Transient("llama.cpp's server sent something that is no event.")


def _error_for_status(status: int, raw: bytes) -> Rejected | Transient:
    try:
        error = msgspec.json.decode(raw)["error"]
        kind, sentence = str(error["type"]), str(error["message"])
    except (msgspec.DecodeError, LookupError, TypeError):
        kind, sentence = "", f"status {status}"
    if 400 <= status < 500 and status != 429:
        reason = Reason.TOO_LARGE if kind == _CONTEXT_ERROR else Reason.SCHEMA
        return Rejected(reason, f"llama.cpp does not take the request: {sentence}")
    return Transient(f"llama.cpp's server cannot answer now: {sentence}")
