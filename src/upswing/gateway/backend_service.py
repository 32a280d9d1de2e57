"""How is a model's server asked? Kept connections, one request at a time on each.

An answer is told to whoever asked in as few calls as the bytes allow:

    answered(status, headers)      once
    received(pieces, done)         as often as bytes come, the last time with `done`
    broke(fault)                   instead, when it cannot go on
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

from upswing.gateway.faults import Fault
from upswing.gateway.limits import Limits
from upswing.together import aside

log = logging.getLogger(__name__)
_WANTED = frozenset(
    {b"content-type", b"content-length", b"transfer-encoding", b"retry-after", b"x-request-id"}
)
_NO_BODY = frozenset({204, 304})
_PAUSE_BEFORE_SECOND_TRY = 0.05


class Asker(Protocol):
    """Who asked, and hears of the answer."""

    over: bool
    """It no longer wants one."""

    def sent(self, connection: Connection) -> None: ...
    def answered(self, status: int, headers: dict[bytes, bytes]) -> None: ...
    def received(self, pieces: list[bytes], *, done: bool) -> None: ...
    def broke(self, fault: Fault) -> None: ...


class Connection(asyncio.Protocol):
    """One connection to a server."""

    __slots__ = (
        "_backend", "_done", "_headers", "_interim", "_keep", "_parser", "_pieces", "_second", "_until_end",
        "asker", "heard", "reused", "transport", "unused_since",
    )  # fmt: skip

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._done = self._keep = self._interim = self._until_end = self._second = False
        self.asker: Asker | None = None
        self.reused = False
        self.heard = False
        """A byte of the answer has come."""
        self.unused_since = 0.0
        self.transport: asyncio.Transport = None  # type: ignore[assignment]

    def ask(self, asker: Asker, request: bytes) -> None:
        self.asker = asker
        self.heard = self._until_end = False
        self.transport.write(request)
        asker.sent(self)

    def drop(self) -> None:
        """Nobody wants the answer any more: the server sees that, and stops."""
        self.asker = None
        self.transport.abort()

    # --- asyncio ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        asker = self.asker
        if asker is None:  # it speaks without being asked
            self.transport.abort()
            return
        self.heard = True
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
            asker.received(pieces, done=False)
            return
        self._done = False
        self.asker = None
        if self._keep and not self._second:
            self._backend.free(self)
        else:
            self.transport.abort()
        asker.received(pieces, done=True)

    def eof_received(self) -> bool:
        if self.asker is not None and self._until_end:
            asker, self.asker = self.asker, None
            asker.received([], done=True)
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        self._backend.lost(self)
        if self.asker is not None:
            self._fail(Fault.CUT_SHORT if self.heard else Fault.STALE)

    def _fail(self, fault: Fault) -> None:
        asker, self.asker = self.asker, None
        self.transport.abort()
        if asker is not None:
            asker.broke(fault)

    # --- httptools -------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._second = self._second or self._done  # a second answer to one request: it is not ours
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in _WANTED:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._interim = status < 200
        if self._interim or self._second or self.asker is None:
            return
        headers = self._headers
        self._until_end = (
            b"content-length" not in headers
            and b"transfer-encoding" not in headers
            and status not in _NO_BODY
        )
        self.asker.answered(status, headers)

    def on_body(self, body: bytes) -> None:
        if not self._second:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if not self._interim:
            self._keep = self._parser.should_keep_alive() and not self._second
            self._done = True


class Backend:
    """One server: its connections, and who waits for one."""

    def __init__(self, url: str, limits: Limits) -> None:
        parts = urlsplit(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._limits = limits
        self._free: list[Connection] = []
        self._waiting: deque[tuple[Asker, bytes]] = deque()
        self._connecting: set[asyncio.Task[None]] = set()
        self.count = 0
        """Connections, and those that are being made."""

    def ask(self, asker: Asker, request: bytes, *, fresh: bool = False) -> None:
        """Send now, or as soon as there is a connection; `fresh` takes no kept one."""
        if self._free and not fresh:
            connection = self._free.pop()
            connection.reused = True
            connection.ask(asker, request)
        elif self.count < self._limits.backend_connections:
            self._connect(asker, request, second=fresh)
        elif len(self._waiting) < self._limits.backend_waiting:
            self._waiting.append((asker, request))
        else:
            asker.broke(Fault.BUSY)

    def forget(self, asker: Asker) -> None:
        """Somebody who waits went away."""
        self._waiting = deque(each for each in self._waiting if each[0] is not asker)

    def free(self, connection: Connection) -> None:
        """A connection has done its work."""
        if self._waiting:
            connection.reused = True
            connection.ask(*self._waiting.popleft())
            return
        connection.unused_since = monotonic()
        self._free.append(connection)

    def lost(self, connection: Connection) -> None:
        self.count -= 1
        if connection in self._free:
            self._free.remove(connection)
        if self._waiting and self.count < self._limits.backend_connections:
            self._connect(*self._waiting.popleft())

    def tidy(self, now: float) -> None:
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

    def _connect(self, asker: Asker, request: bytes, *, second: bool = False) -> None:
        self.count += 1
        task = aside(self._connected(asker, request, second), name="connecting")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connected(self, asker: Asker, request: bytes, second: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            if second:
                await asyncio.sleep(_PAUSE_BEFORE_SECOND_TRY)
            async with asyncio.timeout(self._limits.connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: Connection(self), self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError, ssl.SSLError) as error:
            self.count -= 1
            log.debug("%s:%d: %r", self._host, self._port, error)
            asker.broke(Fault.UNREACHABLE)
        except asyncio.CancelledError:
            self.count -= 1
            raise
        else:
            if asker.over:
                self.free(connection)
            else:
                connection.ask(asker, request)
