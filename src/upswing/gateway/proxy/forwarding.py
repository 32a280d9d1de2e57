"""How is a request handed to another service of ours, and its answer back? Whole, both ways."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from upswing.errors import Transient
from upswing.gateway.core.faults import Fault
from upswing.gateway.proxy.connections import ConnectionPool, UpstreamConnection

_MAX_RESPONSE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProxiedResponse:
    status: int
    content_type: bytes
    body: bytes


class ProxiedRequest:
    """A request that is forwarded whole; it uses a pool as an exchange does."""

    def __init__(self) -> None:
        self.finished = False
        self._response: asyncio.Future[ProxiedResponse] = asyncio.get_running_loop().create_future()
        self._status, self._content_type = 0, b""
        self._pieces: list[bytes] = []
        self._connection: UpstreamConnection | None = None

    async def run(
        self, pool: ConnectionPool, request: bytes, timeout_seconds: float
    ) -> ProxiedResponse:
        """What came back; `Transient` when nothing did."""
        pool.send(self, request)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._response
        except TimeoutError:
            raise Transient("The service behind this path did not answer in time.") from None
        finally:
            self.finished = True
            if self._connection is not None:
                self._connection.abandon()

    def on_sent(self, connection: UpstreamConnection) -> None:
        self._connection = connection

    def on_headers(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status, self._content_type = status, headers.get(b"content-type", b"application/json")

    def on_body(self, pieces: list[bytes], *, done: bool) -> None:
        self._pieces += pieces
        if done:
            self._connection = None
            if not self._response.done():
                self._response.set_result(
                    ProxiedResponse(self._status, self._content_type, b"".join(self._pieces))
                )
        elif sum(map(len, self._pieces)) > _MAX_RESPONSE_BYTES:
            self.on_fault(Fault.TOO_LARGE)

    def on_fault(self, fault: Fault) -> None:
        if fault is not Fault.TOO_LARGE:
            self._connection = None
        if not self._response.done():
            self._response.set_exception(
                Transient(f"The service behind this path: {fault.info.code}.")
            )
