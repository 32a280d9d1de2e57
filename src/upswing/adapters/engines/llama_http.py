"""How is llama.cpp's server asked, and how does its answer come in, token by token?

One connection per question: closing it is how a question is withdrawn, and the server then stops
generating.

| what comes                               | becomes                                               |
|------------------------------------------|-------------------------------------------------------|
| an event                                 | itself                                                |
| 400 because of the length                | `Rejected`, too_large                                 |
| any other 4xx                            | `Rejected`: llama.cpp's own sentence                  |
| 5xx, an error in the stream              | `Transient`                                           |
| nothing more                             | `Broken`, which is `Transient` too                    |
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
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_LENGTH = "exceed_context_size_error"


class Silent(Exception):
    """It has said nothing for too long."""


class Broken(Transient):
    """The line was cut: whoever was at its other end is gone, or going."""


async def connect(address: str) -> Line:
    """A connection to the server; `OSError` when it is not there."""
    where = urlsplit(address)
    return await asyncio.open_connection(where.hostname, where.port)


async def events(line: Line, key: str, body: Event, silence: float) -> AsyncGenerator[Event]:
    """What the server tells about one completion; `Silent` when it tells nothing for too long."""
    reader, writer = line
    try:
        writer.write(_request(key, msgspec.json.encode(body)))
        async for event in _answer(reader, silence):
            yield event
    except TimeoutError:
        raise Silent from None
    except (OSError, httptools.HttpParserError) as error:
        raise Broken(f"llama.cpp's server broke off: {error}.") from None
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _request(key: str, body: bytes) -> bytes:
    head = (
        f"POST /completion HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


class _Received:
    """What has come of an answer; httptools calls it."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = bytearray()
        self.whole = False

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.whole = True

    def lines(self) -> Iterator[bytes]:
        """The lines that are whole."""
        while (end := self.body.find(b"\n")) >= 0:
            line = bytes(self.body[:end])
            del self.body[: end + 1]
            yield line


async def _answer(reader: asyncio.StreamReader, silence: float) -> AsyncGenerator[Event]:
    received = _Received()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + silence
    while not received.whole:
        async with asyncio.timeout_at(deadline):
            data = await reader.read(1 << 16)
        if not data:
            raise Broken("llama.cpp's server broke off in the middle of an answer.")
        received.parser.feed_data(data)
        if received.parser.get_status_code() != 200:
            continue
        for line in received.lines():
            if line.startswith((b"data: ", b"error: ")):  # the rest are blank, or keep us waiting
                deadline = loop.time() + silence
                yield _event(line.partition(b": ")[2])
    if received.parser.get_status_code() != 200:
        raise _refusal(received.parser.get_status_code(), bytes(received.body))


def _event(raw: bytes) -> Event:
    try:
        tree = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        raise Transient("llama.cpp's server sent something that is no event.") from None
    match tree:
        case {"error": {"message": str(sentence)}} | {"message": str(sentence), "code": int()}:
            raise Transient(f"llama.cpp's server gave up: {sentence}")
        case dict():
            return tree
        case _:
            raise Transient("llama.cpp's server sent something that is no event.")


def _refusal(status: int, raw: bytes) -> Rejected | Transient:
    try:
        told = msgspec.json.decode(raw)["error"]
        kind, sentence = str(told["type"]), str(told["message"])
    except (msgspec.DecodeError, LookupError, TypeError):
        kind, sentence = "", f"status {status}"
    if 400 <= status < 500 and status != 429:
        reason = Reason.TOO_LARGE if kind == _LENGTH else Reason.SCHEMA
        return Rejected(reason, f"llama.cpp does not take the request: {sentence}")
    return Transient(f"llama.cpp's server cannot answer now: {sentence}")
