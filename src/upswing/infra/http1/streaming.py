"""How does an answer go out that never ends? Piece by piece, as fast as its client reads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from upswing.infra.http1.wire import status_line

if TYPE_CHECKING:
    from upswing.infra.http1.connection import Connection
    from upswing.infra.http1.request import HttpRequest


class StreamedResponse:
    """An answer that goes on, and what its connection tells it (`InFlight`)."""

    def __init__(self, connection: Connection, request: HttpRequest) -> None:
        self._connection, self._request = connection, request
        self._keep_alive = request.keep_alive and request.chunked
        self._writable = asyncio.Event()
        self._writable.set()
        self.task: asyncio.Task[Any] | None = None
        """Who writes it."""

    # --- what the connection tells ---------------------------------------------------------------

    def cancel(self) -> None:
        """Nobody reads it any more."""
        if self.task is not None:
            self.task.cancel()

    def pause(self) -> None:
        self._writable.clear()

    def resume(self) -> None:
        self._writable.set()

    # --- writing ---------------------------------------------------------------------------------

    def start(self, status: int, content_type: bytes, extra_headers: bytes = b"") -> None:
        framing = b"transfer-encoding: chunked\r\n" if self._request.chunked else b""
        last = b"" if self._keep_alive else b"connection: close\r\n"
        self._connection.write(
            b"%scontent-type: %s\r\n%s%s%s\r\n"
            % (status_line(status), content_type, framing, extra_headers, last)
        )

    async def write(self, data: bytes) -> None:
        """Returns when the client has read enough for more."""
        if data:
            framed = b"%x\r\n%s\r\n" % (len(data), data) if self._request.chunked else data
            self._connection.write(framed)
        await self._writable.wait()

    def finish(self) -> None:
        if self._request.chunked and self._request.method != b"HEAD":
            self._connection.write(b"0\r\n\r\n")
        self._connection.on_response_written(keep_alive=self._keep_alive)
