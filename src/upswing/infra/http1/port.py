"""A port: who listens, who is let in, and who looks for the overdue?"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
from collections.abc import Callable

from upswing.errors import Misuse
from upswing.infra.http1.budget import BodyBudget
from upswing.infra.http1.connection import Connection
from upswing.infra.http1.connection_table import ConnectionTable
from upswing.infra.http1.limits import PortLimits
from upswing.infra.http1.request import AdmittedRequest, HttpRequest, Refusal, RequestHandler

log = logging.getLogger(__name__)
_BACKLOG = 1024
TICK = 0.05
"""Seconds between two looks for the overdue."""


class Port:
    """All connections to one service."""

    def __init__(
        self, service: RequestHandler, limits: PortLimits, now: Callable[[], float]
    ) -> None:
        self.service, self.limits, self.now = service, limits, now
        self._files = open_file_limit()
        self.connections = ConnectionTable(limits, min(limits.connections, self._files // 2))
        self.uploads = BodyBudget(limits.uploads_bytes)
        self._server: asyncio.Server | None = None
        self._open: set[Connection] = set()
        """Those whose socket is open, also where the crowd has left them already."""
        self._ending: asyncio.Event | None = None
        """No connection stays; set when the last one is closed."""

    async def listen(self, host: str, port: int, listener: socket.socket | None = None) -> str:
        """The URL."""
        loop = asyncio.get_running_loop()
        # So many are accepted before any of them can be dropped.
        backlog = min(_BACKLOG, self._files // 8)
        try:
            self._server = await (
                loop.create_server(lambda: Connection(self), sock=listener, backlog=backlog)
                if listener
                else loop.create_server(lambda: Connection(self), host, port, backlog=backlog)
            )
        except OSError as error:
            raise Misuse(f"Port {port} on {host} cannot be used ({error.strerror}).") from None
        where = self._server.sockets[0].getsockname()
        return f"http://{where[0]}:{where[1]}"

    async def close(self) -> None:
        """Take no more connections.

        An accepted socket becomes a connection in the next turn of asyncio's loop. A server that is closed by then
        refuses it with an error that nobody hears, and its socket stays open: so it accepts no more, and closes after.
        """
        if self._server is None:
            return
        loop = asyncio.get_running_loop()
        for listening in self._server.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
        self._server.close()

    def close_unused(self) -> None:
        for connection in self.connections:
            if connection.state in {"silent", "head", "idle"}:
                connection.close()

    async def close_all(self) -> None:
        """Close every connection, also those that were accepted just now: when it is over, no socket is open."""
        await self.close()
        self._ending = asyncio.Event()
        for connection in list(self._open):
            connection.abort()
        await asyncio.sleep(0)  # the turn in which those join that were accepted last
        if self._open:
            await self._ending.wait()

    async def close_overdue_forever(self) -> None:
        """Look for the overdue, for ever."""
        while True:
            await asyncio.sleep(TICK)
            try:
                self.close_overdue()
            except Exception:  # whatever broke, the next look must come
                log.exception("tending failed", extra={"action": "tending_failed"})

    def close_overdue(self) -> None:
        for connection in self.connections.overdue_connections(self.now()):
            connection.on_overdue()

    # --- what a connection asks of it ------------------------------------------------------------

    def on_connection_opened(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._ending:
            connection.abort()
            return
        evicted = self.connections.join(connection, self.now())
        if evicted is connection:
            message = "There are too many connections."
            connection.turn_away(self.service.refusal_for(503, "connections", message))
        elif evicted is not None:
            self.connections.leave(evicted)
            evicted.abort()

    def on_connection_closed(self, connection: Connection) -> None:
        self.connections.leave(connection)
        self._open.discard(connection)
        if self._ending and not self._open:
            self._ending.set()

    def reserve(self, request: HttpRequest, size: int) -> bool:
        """Room for a body of `size` in all."""
        more = size - request.reserved
        if not self.uploads.reserve(more, request.admitted.owner, whole=size):
            return False
        request.reserved = size
        return True

    def release(self, request: HttpRequest) -> None:
        self.uploads.release(request.reserved, request.admitted.owner)
        request.reserved = 0

    @staticmethod
    def admission_of_refusal(refusal: Refusal) -> AdmittedRequest:
        """What stands for a request that is answered with this."""
        return AdmittedRequest(0, keyed=False, call=refusal)


def open_file_limit() -> int:
    """How many files this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if soft == resource.RLIM_INFINITY else soft


def raise_open_file_limit() -> None:
    """As many as the system lets it: a connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
