"""Who is at the door, and what do they ask? One connection of a client, HTTP/1.1 with keep-alive.

Requests of one connection are answered one after the other; while one that was sent ahead waits,
the socket is not read on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

import httptools

from upswing.gateway.problems import error_body, response

Headers = dict[bytes, bytes]
_WANTED = frozenset({
    b"authorization", b"content-length", b"content-type", b"expect", b"transfer-encoding",
    b"x-episode-id", b"episode_id", b"episode-id", b"x-session-id", b"x-user-id", b"x-agent-id",
    b"x-task-id", b"x-model-id", b"accept", b"user-agent",
})  # fmt: skip
_MOST_HEADER_BYTES = 64 * 1024
_WRITE_BUFFER = 256 * 1024
"""What a client may leave unread before its answer waits."""
_DISCARDED = 256 * 1024 * 1024
"""How much of a body that is too large is read, so that the client hears the answer."""


class Request:
    """A whole request."""

    __slots__ = ("at", "body", "chunked", "headers", "keep", "method", "path")

    def __init__(
        self, method: bytes, path: bytes, headers: Headers, body: bytes,
        *, keep: bool, chunked: bool, at: float,
    ) -> None:  # fmt: skip
        self.method, self.path, self.headers, self.body = method, path, headers, body
        self.keep, self.chunked, self.at = keep, chunked, at


class UnderWay(Protocol):
    """What a connection tells the exchange that it carries."""

    def cancel(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Door(Protocol):
    """Who takes the requests."""

    body_bytes: int
    clients: set[Client]

    def now(self) -> float: ...
    def take(self, client: Client, request: Request) -> UnderWay | None: ...
    def room_for(self, size: int) -> bool: ...
    def held(self, size: int) -> None: ...
    def refused(self, word: str) -> None: ...


class Client(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_ahead",
        "_body",
        "_busy",
        "_door",
        "_header_bytes",
        "_headers",
        "_held",
        "_parser",
        "_paused",
        "_refusal",
        "_size",
        "_transport",
        "_under_way",
        "_url",
        "since",
        "state",
    )  # fmt: skip

    def __init__(self, door: Door) -> None:
        self._door = door
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._ahead: deque[Request] = deque()
        self._busy = self._paused = False
        self._under_way: UnderWay | None = None
        self._headers: Headers = {}
        self._body: list[bytes] = []
        self._url = b""
        self._size = self._header_bytes = self._held = 0
        self._refusal: tuple[int, str] | None = None
        self.state = "idle"
        """`idle`, `asking` or `waiting`, for those who look for the slow."""
        self.since = 0.0

    # --- asyncio ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        self.since = self._door.now()
        self._door.clients.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if not self._transport.is_closing():
                self._door.refused("bad_http")
                self._hang_up(400, "This is not a request that HTTP/1.1 knows.")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        self._door.clients.discard(self)
        self._ahead.clear()
        self._let_go()
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.cancel()

    def pause_writing(self) -> None:
        self._paused = True
        self.since = self._door.now()
        if self._under_way is not None:
            self._under_way.pause()

    def resume_writing(self) -> None:
        self._paused = False
        self.since = self._door.now()
        if self._under_way is not None:
            self._under_way.resume()

    # --- httptools -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._headers = {}
        self._body = []
        self._url = b""
        self._size = self._header_bytes = 0
        self._refusal = None
        if not self._busy:
            self.state, self.since = "asking", self._door.now()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_header(len(name) + len(value))
        name = name.lower()
        if name in _WANTED:
            self._headers[name] = value

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _MOST_HEADER_BYTES:
            raise ValueError

    def on_headers_complete(self) -> None:
        declared = self._headers.get(b"content-length", b"0")
        size = int(declared) if declared.isdigit() else 0
        if size > self._door.body_bytes:
            self._refuse(413)
        elif not self._door.room_for(size):
            self._refuse(429)
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and not self._busy:
            if self._refusal is None:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            else:
                self._hang_up(*self._refusal)

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if not self._busy:
            self.since = self._door.now()
        if self._refusal is None:
            if self._size > self._door.body_bytes:
                self._refuse(413)
            else:
                self._body.append(body)
                self._held += len(body)
                self._door.held(len(body))
        elif self._size > _DISCARDED:
            self._hang_up(*self._refusal)

    def on_message_complete(self) -> None:
        if self._transport.is_closing():
            return
        if self._refusal is not None:
            self._answer_refusal(*self._refusal)
            return
        request = Request(
            self._parser.get_method(), self._url, self._headers, b"".join(self._body),
            keep=self._parser.should_keep_alive(),
            chunked=self._parser.get_http_version() != "1.0", at=self._door.now(),
        )  # fmt: skip
        self._body = []
        if self._busy:
            self._ahead.append(request)
            self._transport.pause_reading()
        else:
            self._start(request)

    # --- one request after the other -------------------------------------------------------------

    def _start(self, request: Request) -> None:
        self._busy = True
        self.state, self.since = "waiting", request.at
        under_way = self._door.take(self, request)
        if self._busy:  # it may be answered already
            self._under_way = under_way
            if self._paused and under_way is not None:
                under_way.pause()

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def finished(self, *, keep: bool) -> None:
        """The answer is written."""
        self._under_way = None
        self._busy = False
        self._let_go()
        if not keep:
            self._transport.close()
            return
        self.state, self.since = "idle", self._door.now()
        if self._ahead:
            request = self._ahead.popleft()
            if not self._ahead:
                self._transport.resume_reading()
            self._start(request)

    def abort(self) -> None:
        self._transport.abort()

    def overdue(self, now: float, patience: float, idle: float) -> bool:
        """Has it been asking, or not reading, or silent, for too long?"""
        if self._paused or self.state == "asking":
            return self.since + patience < now
        return self.state == "idle" and self.since + idle < now

    # --- requests that are not taken -------------------------------------------------------------

    def _refuse(self, status: int) -> None:
        self._door.refused("too_large" if status == 413 else "uploads")
        limit = self._door.body_bytes
        sentences = {
            413: f"The body may have {limit} bytes.",
            429: "Too many large requests are under way; try again later.",
        }
        self._refusal = (status, sentences[status])
        self._body = []
        self._let_go()

    def _answer_refusal(self, status: int, sentence: str) -> None:
        if self._busy:  # in the middle of another answer there is no place for this one
            self._transport.close()
            return
        kind = "rate_limit_error" if status == 429 else "invalid_request_error"
        self.write(response(status, error_body(sentence, kind)))
        self.finished(keep=self._parser.should_keep_alive())

    def _hang_up(self, status: int, sentence: str) -> None:
        if not self._busy:
            body = error_body(sentence, "invalid_request_error")
            self.write(response(status, body, keep=False))
        self._transport.close()

    def _let_go(self) -> None:
        if self._held:
            self._door.held(-self._held)
            self._held = 0


def clients_of(door: Door) -> Callable[[], Client]:
    """What makes a `Client` of every connection."""
    return lambda: Client(door)
