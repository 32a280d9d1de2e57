"""How does a gateway come up? With a bus, a keeper in a child process, and a plan that it follows.

The gateway itself knows none of them: here they are put together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from upswing.adapters.children import Child
from upswing.adapters.nats.bus import Bus
from upswing.adapters.nats.traffic import Pins, TrafficBoard
from upswing.config import Settings
from upswing.errors import Rejected, Transient
from upswing.gateway.frames import Kept, read_kept, write_batch
from upswing.gateway.plan import read_plan
from upswing.gateway.service import Gateway
from upswing.gateway.tasks_service import ended
from upswing.gateway_keeper import EPISODES, SETUP, WORD, Setup, question

log = logging.getLogger(__name__)
_TALLY_SECONDS = 1.0
_AGAIN_SECONDS = 1.0


class ChildKeeper:
    """The gateway's keeper, in another process; started anew when it dies."""

    def __init__(self, setup: Setup) -> None:
        greeting = question(SETUP, msgspec.msgpack.encode(setup))
        self._child = Child("upswing.gateway_keeper", greeting)

    async def start(self) -> None:
        await self._child.start()

    async def stop(self) -> None:
        await self._child.stop()

    async def keep(self, frames: list[bytes]) -> list[Kept]:
        return read_kept(await self._child.ask(question(EPISODES, write_batch(frames))))

    async def say(self, feedback: bytes) -> Kept:
        return read_kept(await self._child.ask(question(WORD, feedback)))[0]


class GatewayProcess:
    """A gateway with everything around it."""

    def __init__(
        self, *, nats_url: str, instance: str, clock: Callable[[], datetime],
        new_id: Callable[[], UUID], settings: Settings | None = None, spool: Path | None = None,
        several: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        """`several`: other gateways answer too, so assignments are shared. `options` are `Gateway`'s."""
        self._nats_url, self._instance, self._several = nats_url, instance, several
        self._clock, self._new_id, self._options = clock, new_id, options
        place = str(spool) if spool else None
        self._keeper = ChildKeeper(Setup(settings or Settings(), nats_url, place))
        self._tasks: list[asyncio.Task[None]] = []
        self._exits = contextlib.AsyncExitStack()

    async def start(
        self, host: str = "127.0.0.1", port: int = 3000, *, listener: socket.socket | None = None
    ) -> str:
        """Listen; the URL. A bus that is away is waited for while requests are answered already."""
        await self._keeper.start()
        self._exits.push_async_callback(self._keeper.stop)
        pins = Pins() if self._several else None
        self.gateway = Gateway(
            clock=self._clock, new_id=self._new_id, keeper=self._keeper, pins=pins, **self._options
        )
        url = await self.gateway.start(host, port, listener=listener)
        self._exits.push_async_callback(self.gateway.stop)
        self._run("bus", lambda: self._with_bus(pins))
        return url

    async def stop(self) -> None:
        await ended(self._tasks)
        await self._exits.aclose()

    async def _with_bus(self, pins: Pins | None) -> None:
        bus = await Bus.connect(self._nats_url, name=f"upswing-gateway-{self._instance}")
        self._exits.push_async_callback(_hang_up, bus)
        board = TrafficBoard(bus, self._instance)
        self._run("plan", lambda: board.follow(self._apply))
        self._run("tally", lambda: self._tell(board))
        if pins:
            self._run("pins", lambda: pins.run(bus))

    def _apply(self, raw: bytes) -> None:
        try:
            self.gateway.apply(read_plan(raw))
        except Rejected as error:
            self.gateway.tally.refuse("bad_plan")
            log.error("%s", error, extra={"action": "bad_plan"})  # noqa: TRY400 - a clear sentence

    async def _tell(self, board: TrafficBoard) -> None:
        """The counts, once a second at most and only when they have changed."""
        told = 0
        while True:
            await asyncio.sleep(_TALLY_SECONDS)
            changes = self.gateway.tally.changes
            if changes != told:
                with contextlib.suppress(Transient):
                    await board.put_tally(self.gateway.tally.written())
                    told = changes

    def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """A part that fails is tried again: answers do not depend on any of them."""

        async def again() -> None:
            while True:
                try:
                    await work()
                except Transient as error:
                    log.warning("%s: %s", name, error, extra={"action": f"gateway_{name}"})
                except Exception:
                    log.exception("%s broke", name, extra={"action": "broke"})
                else:
                    return
                await asyncio.sleep(_AGAIN_SECONDS)

        self._tasks.append(asyncio.create_task(again(), name=name))


async def _hang_up(bus: Bus) -> None:
    """A bus that went away just now has hung up already."""
    with contextlib.suppress(OSError):
        await bus.close()
