"""How is a model's server asked? Kept connections, one request at a time on each.

An answer reaches its sink in as few calls as the bytes allow:

    on_headers(status, headers)    once
    on_body(pieces, done)          as often as bytes come, the last time with `done`
    on_fault(fault)                instead, when it cannot go on
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from time import monotonic
from typing import Protocol
from urllib.parse import urlsplit

import httptools

from upswing.gateway.core.faults import Fault
from upswing.gateway.limits import GatewayLimits
from upswing.infra.tasks import run_in_background

log = logging.getLogger(__name__)
_FORWARDED_HEADERS = frozenset(
    {b"content-type", b"content-length", b"transfer-encoding", b"retry-after", b"x-request-id"}
)
_BODILESS_STATUSES = frozenset({204, 304})
_RETRY_PAUSE_SECONDS = 0.05


class ResponseSink(Protocol):
    """Receives the answer to a request."""

    finished: bool
    """It no longer wants the answer."""

    def on_sent(self, connection: UpstreamConnection) -> None: ...
    def on_headers(self, status: int, headers: dict[bytes, bytes]) -> None: ...
    def on_body(self, pieces: list[bytes], *, done: bool) -> None: ...
    def on_fault(self, fault: Fault) -> None: ...


class UpstreamConnection(asyncio.Protocol):
    """One connection to a server."""

    __slots__ = (
        "_done",
        "_ends_at_eof",
        "_extra_response",
        "_headers",
        "_interim",
        "_keep_alive",
        "_parser",
        "_pieces",
        "_pool",
        "response_started",
        "reused",
        "sink",
        "transport",
        "unused_since",
    )

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._done = self._keep_alive = self._interim = False
        self._ends_at_eof = self._extra_response = False
        self.sink: ResponseSink | None = None
        self.reused = False
        self.response_started = False
        """A byte of the answer has come."""
        self.unused_since = 0.0
        self.transport: asyncio.Transport = None  # type: ignore[assignment]

    def send(self, sink: ResponseSink, request: bytes) -> None:
        self.sink = sink
        self.response_started = self._ends_at_eof = False
        self.transport.write(request)
        sink.on_sent(self)

    def abandon(self) -> None:
        """Nobody wants the answer any more: the server sees that, and stops."""
        self.sink = None
        self.transport.abort()

    # --- asyncio ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        sink = self.sink
        if sink is None:  # it speaks without being asked
            self.transport.abort()
            return
        self.response_started = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError:
            log.exception("an answer could not be taken", extra={"action": "answer_failed"})
            self._fail(Fault.GARBAGE)
            return
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(Fault.GARBAGE)
            return
        if not self._pieces and not self._done:
            return
        pieces, self._pieces = self._pieces, []
        if not self._done:
            sink.on_body(pieces, done=False)
            return
        self._done = False
        self.sink = None
        if self._keep_alive and not self._extra_response:
            self._pool.release(self)
        else:
            self.transport.abort()
        sink.on_body(pieces, done=True)

    def eof_received(self) -> bool:
        if self.sink is not None and self._ends_at_eof:
            sink, self.sink = self.sink, None
            sink.on_body([], done=True)
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        self._pool.on_connection_lost(self)
        if self.sink is not None:
            self._fail(Fault.CUT_SHORT if self.response_started else Fault.STALE)

    def _fail(self, fault: Fault) -> None:
        sink, self.sink = self.sink, None
        self.transport.abort()
        if sink is not None:
            sink.on_fault(fault)

    # --- httptools -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        # A second answer to one request is not ours.
        self._extra_response = self._extra_response or self._done
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _FORWARDED_HEADERS:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._interim = status < 200
        if self._interim or self._extra_response or self.sink is None:
            return
        headers = self._headers
        self._ends_at_eof = (
            b"content-length" not in headers
            and b"transfer-encoding" not in headers
            and status not in _BODILESS_STATUSES
        )
        self.sink.on_headers(status, headers)

    def on_body(self, body: bytes) -> None:
        if not self._extra_response:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if not self._interim:
            self._keep_alive = self._parser.should_keep_alive() and not self._extra_response
            self._done = True


class ConnectionPool:
    """One server: its connections, and who waits for one."""

    def __init__(self, url: str, limits: GatewayLimits) -> None:
        parts = urlsplit(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._limits = limits
        self._free: list[UpstreamConnection] = []
        self._waiting: deque[tuple[ResponseSink, bytes]] = deque()
        self._connecting: set[asyncio.Task[None]] = set()
        self.connection_count = 0
        """Connections, and those that are being made."""

    def send(self, sink: ResponseSink, request: bytes, *, new_connection: bool = False) -> None:
        """Send now, or as soon as there is a connection; `new_connection` takes no kept one."""
        if self._free and not new_connection:
            connection = self._free.pop()
            connection.reused = True
            connection.send(sink, request)
        elif self.connection_count < self._limits.backend_connections:
            self._connect(sink, request, is_retry=new_connection)
        elif len(self._waiting) < self._limits.backend_waiting:
            self._waiting.append((sink, request))
        else:
            sink.on_fault(Fault.BUSY)

    def cancel_waiting(self, sink: ResponseSink) -> None:
        """Somebody who waits went away."""
        self._waiting = deque(each for each in self._waiting if each[0] is not sink)

    def release(self, connection: UpstreamConnection) -> None:
        """A connection has done its work."""
        if self._waiting:
            connection.reused = True
            connection.send(*self._waiting.popleft())
            return
        connection.unused_since = monotonic()
        self._free.append(connection)

    def on_connection_lost(self, connection: UpstreamConnection) -> None:
        self.connection_count -= 1
        if connection in self._free:
            self._free.remove(connection)
        if self._waiting and self.connection_count < self._limits.backend_connections:
            self._connect(*self._waiting.popleft())

    def close_idle(self, now: float) -> None:
        """Close what has been unused for long; the oldest stand first."""
        until = now - self._limits.backend_idle_seconds
        while self._free and self._free[0].unused_since < until:
            self._free.pop(0).transport.abort()

    def close(self) -> None:
        for task in self._connecting:
            task.cancel()
        for connection in self._free:
            connection.transport.abort()
        self._free.clear()

    def _connect(self, sink: ResponseSink, request: bytes, *, is_retry: bool = False) -> None:
        self.connection_count += 1
        task = run_in_background(self._open_connection(sink, request, is_retry), name="connecting")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _open_connection(self, sink: ResponseSink, request: bytes, is_retry: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            if is_retry:
                await asyncio.sleep(_RETRY_PAUSE_SECONDS)
            async with asyncio.timeout(self._limits.connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: UpstreamConnection(self), self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError, ssl.SSLError) as error:
            self.connection_count -= 1
            log.debug("%s:%d: %r", self._host, self._port, error)
            sink.on_fault(Fault.UNREACHABLE)
        except asyncio.CancelledError:
            self.connection_count -= 1
            raise
        else:
            if sink.finished:
                self.release(connection)
            else:
                connection.send(sink, request)
