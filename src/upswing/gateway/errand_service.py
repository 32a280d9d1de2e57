"""How is a request handed to another service of ours, and its answer back? Whole, both ways."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from upswing.errors import Transient
from upswing.gateway.backend_service import Backend, Connection
from upswing.gateway.faults import Fault

_MOST = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Brought:
    status: int
    kind: bytes
    body: bytes


class Errand:
    """One request on its way; asks a backend like an exchange does."""

    def __init__(self) -> None:
        self.over = False
        self._told: asyncio.Future[Brought] = asyncio.get_running_loop().create_future()
        self._status, self._kind = 0, b""
        self._pieces: list[bytes] = []
        self._connection: Connection | None = None

    async def run(self, backend: Backend, request: bytes, seconds: float) -> Brought:
        """What came back; `Transient` when nothing did."""
        backend.ask(self, request)
        try:
            async with asyncio.timeout(seconds):
                return await self._told
        except TimeoutError:
            raise Transient("The service behind this path did not answer in time.") from None
        finally:
            self.over = True
            if self._connection is not None:
                self._connection.drop()

    def sent(self, connection: Connection) -> None:
        self._connection = connection

    def answered(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status, self._kind = status, headers.get(b"content-type", b"application/json")

    def received(self, pieces: list[bytes], *, done: bool) -> None:
        self._pieces += pieces
        if done:
            self._connection = None
            if not self._told.done():
                self._told.set_result(Brought(self._status, self._kind, b"".join(self._pieces)))
        elif sum(map(len, self._pieces)) > _MOST:
            self.broke(Fault.TOO_LARGE)

    def broke(self, fault: Fault) -> None:
        if fault is not Fault.TOO_LARGE:
            self._connection = None
        if not self._told.done():
            self._told.set_exception(
                Transient(f"The service behind this path: {fault.about.word}.")
            )
