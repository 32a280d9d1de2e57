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
from random import SystemRandom
from typing import Any
from uuid import UUID

import msgspec

from upswing.adapters.children import Child, NotStarted
from upswing.adapters.nats.bus import Bus
from upswing.adapters.nats.traffic import GATEWAY_SECONDS, Pins, TrafficBoard
from upswing.config import Settings
from upswing.errors import Rejected, Transient, UpswingError
from upswing.gateway.allowance import Allowance
from upswing.gateway.dead import Refusal
from upswing.gateway.frames import Kept, read_kept, write_batch
from upswing.gateway.plan import read_plan
from upswing.gateway.ports import KeyRing
from upswing.gateway.service import Gateway
from upswing.gateway_keeper import BURY, EPISODES, SETUP, WORD, Setup, question
from upswing.together import end, kept

log = logging.getLogger(__name__)
_TALLY_SECONDS = 1.0
_ANEW_SECONDS = 3600.0
"""Until unchanged counts are told again: those of a gateway that is silent for a day are forgotten."""
_LIVES_SECONDS = GATEWAY_SECONDS / 3
"""Between two words that this gateway lives."""
_KEYS_SECONDS = 5.0
"""Until a key that was made or revoked is heard of."""
_BELIEVED_SECONDS = 24 * 3600.0
"""For keys that were heard of, while the loop cannot be asked: agents work on through a bad night."""


_CHANCE = SystemRandom()


class ChildKeeper:
    """The gateway's keeper, in another process; started anew when it dies."""

    def __init__(self, setup: Setup, module: str = "upswing.gateway_keeper") -> None:
        """`module`: a test may have one that breaks."""
        greeting = question(SETUP, msgspec.msgpack.encode(setup))
        self._child = Child(module, greeting)

    async def start(self) -> None:
        await self._child.start()

    async def stop(self) -> None:
        await self._child.stop()

    async def keep(self, frames: list[bytes]) -> list[Kept]:
        try:
            return read_kept(await self._child.ask(question(EPISODES, write_batch(frames))))
        except NotStarted as error:  # nobody died of them
            log.warning("%s", error, extra={"action": "no_keeper"})
            return [Kept("", "later") for _ in frames]

    async def say(self, feedback: bytes) -> Kept:
        return read_kept(await self._child.ask(question(WORD, feedback)))[0]

    async def bury(self, refusal: Refusal) -> Kept:
        told = question(BURY, msgspec.msgpack.encode(refusal))
        return read_kept(await self._child.ask(told))[0]


class GatewayProcess:
    """A gateway with everything around it."""

    def __init__(
        self, *, nats_url: str, instance: str, clock: Callable[[], datetime],
        new_id: Callable[[], UUID], settings: Settings | None = None, spool: Path | None = None,
        draw: Callable[[], float] = _CHANCE.random, key_ring: KeyRing | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        """`draw` is the chance that gives models to episodes. `options` are `Gateway`'s."""
        self._key_ring = key_ring
        self._nats_url, self._instance, self._draw = nats_url, instance, draw
        self._clock, self._new_id, self._options = clock, new_id, options
        place = str(spool) if spool else None
        self._keeper = ChildKeeper(Setup(settings or Settings(), nats_url, place))
        self._tasks: list[asyncio.Task[None]] = []
        self._exits = contextlib.AsyncExitStack()
        self._board: TrafficBoard | None = None
        self._told = 0
        self._planned, self._keyed = asyncio.Event(), asyncio.Event()
        self._drain_seconds = 5.0

    async def start(
        self, host: str = "127.0.0.1", port: int = 3000, *,
        listener: socket.socket | None = None, plan_seconds: float = 0.0,
    ) -> str:  # fmt: skip
        """Listen; the URL. A bus that is away is waited for while requests are answered already.

        Before that the keys, a plan and what was assigned are waited for, for `plan_seconds`: clients who come while a
        gateway is started anew are better kept waiting than refused.
        """
        await self._keeper.start()
        self._exits.push_async_callback(self._keeper.stop)
        pins = Pins()
        self.gateway = Gateway(
            clock=self._clock, new_id=self._new_id, draw=self._draw, keeper=self._keeper, pins=pins,
            learns_keys=self._key_ring is not None, **self._options,
        )  # fmt: skip
        self._exits.push_async_callback(self._bus_away)
        self._run("bus", lambda: self._with_bus(pins))
        if ring := self._key_ring:
            self._run("keys", lambda: self._follow_keys(ring))
        if plan_seconds and not self._options.get("plan"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(plan_seconds):
                    await self._planned.wait()
                    await (self._keyed.wait() if ring else asyncio.sleep(0))
                    await pins.remembered.wait()
        url = await self.gateway.start(host, port, listener=listener)
        self._exits.push_async_callback(self._drained)
        return url

    async def stop(self, seconds: float = 5.0) -> None:
        """Let answers under way end, for so long; record and count what there is; go."""
        self._drain_seconds = seconds
        await self._exits.aclose()

    @property
    def failed(self) -> asyncio.Event:
        """Set when a part of the gateway is dead, so that this process has to end."""
        return self.gateway.failed

    async def _drained(self) -> None:
        """Plans are followed to the end, and the last counts are told."""
        await self.gateway.stop(self._drain_seconds)
        board = self._board
        if board and board.bus.connected and self.gateway.tally.changes != self._told:
            with contextlib.suppress(Transient):
                await board.put_tally(self.gateway.tally.written())

    async def _bus_away(self) -> None:
        await end(self._tasks)
        self.gateway.traffic.stop()  # a plan may have come meanwhile
        if self._board:
            if self._board.bus.connected:
                with contextlib.suppress(Transient):
                    await self._board.leave()
            await _hang_up(self._board.bus)

    async def _with_bus(self, pins: Pins) -> None:
        bus = await Bus.connect(self._nats_url, name=f"upswing-gateway-{self._instance}")
        self._board = board = TrafficBoard(bus, self._instance)
        self._run("plan", lambda: board.follow(self._apply))
        self._run("tally", lambda: self._tell(board))
        self._run("switches", lambda: self._tell_switches(board))
        self._run("pins", lambda: pins.run(bus))

    def _apply(self, raw: bytes, age: float | None) -> None:
        try:
            self.gateway.apply(read_plan(raw), age)
            if (
                not self.gateway.traffic.alert
            ):  # a model that it is pinned to may be loaded just now
                self._planned.set()
        except Rejected as error:
            self.gateway.tally.refuse("bad_plan")
            log.error("%s", error, extra={"action": "bad_plan"})  # noqa: TRY400 - a clear sentence

    async def _follow_keys(self, ring: KeyRing) -> None:
        """Whose keys work, for ever."""
        now, keys = asyncio.get_running_loop().time, self.gateway.keys
        heard, away = now(), False
        while True:
            try:
                keys.learn(await ring.keys())
                heard, away = now(), False
            except UpswingError as error:
                if not away:
                    log.warning("keys: %s", error, extra={"action": "gateway_keys"})
                away = True
                if now() - heard > _BELIEVED_SECONDS:
                    keys.learn({})
            self._keyed.set()
            await asyncio.sleep(_KEYS_SECONDS)

    async def _tell(self, board: TrafficBoard) -> None:
        """The counts, once a second at most, when they have changed or were told long ago."""
        now = asyncio.get_running_loop().time
        told_at = now()
        while True:
            await asyncio.sleep(_TALLY_SECONDS)
            changes = self.gateway.tally.changes
            if changes != self._told or (changes and now() - told_at > _ANEW_SECONDS):
                with contextlib.suppress(Transient):
                    await board.put_tally(self.gateway.tally.written())
                    self._told, told_at = changes, now()

    async def _tell_switches(self, board: TrafficBoard) -> None:
        """That this gateway lives, and what it may serve, for ever."""
        allowance = self._options.get("allowance") or Allowance()
        while True:
            await board.put_switches(msgspec.json.encode(allowance.switches))
            await asyncio.sleep(_LIVES_SECONDS)

    def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """A part that fails is tried again: answers do not depend on any of them."""
        self._tasks.append(kept(work, name=name))


async def _hang_up(bus: Bus) -> None:
    """A bus that went away just now has hung up already."""
    with contextlib.suppress(OSError):
        await bus.close()
