"""How does a gateway come up? With a bus, a recorder in a child process, and a plan that it follows.

The gateway itself knows none of them: here they are put together.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import SystemRandom
from uuid import UUID

import msgspec

from upswing.config import Settings
from upswing.contracts.traffic import read_plan
from upswing.errors import Rejected, Transient, UpswingError
from upswing.gateway.admin_client import AdminClient
from upswing.gateway.gateway import Gateway
from upswing.gateway.options import GatewayOptions
from upswing.gateway.recorder.child import RecorderSetup
from upswing.gateway.recorder.client import RecorderClient
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.traffic import GATEWAY_SECONDS, Pins, TrafficBoard
from upswing.infra.tasks import cancel_all, restart_on_error
from upswing.infra.tracing import exporter_for

log = logging.getLogger(__name__)
_LIVENESS_SECONDS = GATEWAY_SECONDS / 3
"""Between two messages that this gateway lives."""
_RANDOM = SystemRandom()
_DEFAULT_OPTIONS = GatewayOptions()


@dataclass(frozen=True, slots=True)
class GatewayIntervals:
    """How often a gateway exchanges state with the rest of the loop, in seconds."""

    counts: float = 1.0
    """Between two publications of the counts, where they have changed."""
    republish: float = 3600.0
    """Until unchanged counts are published again: those of a gateway that is silent for a day are forgotten."""
    keys: float = 5.0
    """Between two reads of the loop's keys: until a key that was made or revoked is known."""
    keys_expire: float = 24 * 3600.0
    """For known keys, while the loop cannot be reached: agents work on through an outage of a night."""


_DEFAULT_INTERVALS = GatewayIntervals()


class GatewayProcess:
    """A gateway with everything around it."""

    def __init__(
        self,
        *,
        nats_url: str,
        instance: str,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        settings: Settings | None = None,
        spool: Path | None = None,
        draw: Callable[[], float] = _RANDOM.random,
        options: GatewayOptions = _DEFAULT_OPTIONS,
        intervals: GatewayIntervals = _DEFAULT_INTERVALS,
    ) -> None:
        """`draw` is the chance that gives models to episodes."""
        self._nats_url, self._instance, self._draw = nats_url, instance, draw
        self._clock, self._new_id = clock, new_id
        self._options, self._intervals = options, intervals
        endpoint = settings.otel.endpoint if settings else None
        self._exporter = exporter_for(endpoint, "upswing-gateway", os.environ)
        spool_folder = str(spool) if spool else None
        self._recorder_client = RecorderClient(
            RecorderSetup(settings or Settings(), nats_url, spool_folder)
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._exits = contextlib.AsyncExitStack()
        self._board: TrafficBoard | None = None
        self._published_changes = 0
        self._plan_received, self._keys_received = asyncio.Event(), asyncio.Event()
        self._drain_seconds = 5.0

    async def start(
        self,
        host: str = "127.0.0.1",
        port: int = 3000,
        *,
        listener: socket.socket | None = None,
        plan_seconds: float = 0.0,
    ) -> str:
        """Listen; the URL. A bus that is away is waited for while requests are answered already.

        Before that the keys, a plan and what was assigned are waited for, for `plan_seconds`: clients who come while a
        gateway is started anew are better kept waiting than refused.
        """
        await self._recorder_client.start()
        self._exits.push_async_callback(self._recorder_client.stop)
        pins = Pins()
        self.gateway = Gateway(
            clock=self._clock,
            new_id=self._new_id,
            draw=self._draw,
            options=self._options,
            recorder_client=self._recorder_client,
            pins=pins,
            exporter=self._exporter,
        )
        if self._exporter is not None:
            self._exits.push_async_callback(self._exporter.flush)
            self._start_task("spans", self._exporter.run)
        self._exits.push_async_callback(self._disconnect)
        self._start_task("bus", lambda: self._connect_bus(pins))
        admin_client = self._options.admin_client if self._options.auth.keys_from_loop else None
        if admin_client is not None:
            self._start_task("keys", lambda: self._follow_keys(admin_client))
        if plan_seconds and not self._options.plan:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(plan_seconds):
                    await self._plan_received.wait()
                    await (self._keys_received.wait() if admin_client else asyncio.sleep(0))
                    await pins.remembered.wait()
        url = await self.gateway.start(host, port, listener=listener)
        self._exits.push_async_callback(self._drain_gateway)
        return url

    async def stop(self, seconds: float = 5.0) -> None:
        """Let answers under way end, for so long; record and count what there is; go."""
        self._drain_seconds = seconds
        await self._exits.aclose()

    @property
    def failed(self) -> asyncio.Event:
        """Set when a part of the gateway is dead, so that this process has to end."""
        return self.gateway.failed

    async def _drain_gateway(self) -> None:
        """Plans are followed to the end, and the last counts are published."""
        await self.gateway.stop(self._drain_seconds)
        board = self._board
        if (
            board
            and board.bus.connected
            and self.gateway.counters.changes != self._published_changes
        ):
            with contextlib.suppress(Transient):
                await board.put_tally(self.gateway.counters.encode())

    async def _disconnect(self) -> None:
        await cancel_all(self._tasks)
        self.gateway.traffic.stop()  # a plan may have come meanwhile
        if self._board:
            if self._board.bus.connected:
                with contextlib.suppress(Transient):
                    await self._board.leave()
            await _close_bus(self._board.bus)

    async def _connect_bus(self, pins: Pins) -> None:
        bus = await Bus.connect(self._nats_url, name=f"upswing-gateway-{self._instance}")
        self._board = board = TrafficBoard(bus, self._instance)
        self._start_task("plan", lambda: board.follow(self._apply_plan))
        self._start_task("tally", lambda: self._publish_tally(board))
        self._start_task("switches", lambda: self._publish_switches(board))
        self._start_task("pins", lambda: pins.run(bus))

    def _apply_plan(self, raw: bytes, age: float | None) -> None:
        try:
            self.gateway.apply(read_plan(raw), age)
            # With an alert, a model that it is pinned to may be loaded just now.
            if not self.gateway.traffic.alert:
                self._plan_received.set()
        except Rejected as error:
            self.gateway.counters.count_refusal("bad_plan")
            log.error("%s", error, extra={"action": "bad_plan"})  # noqa: TRY400 - a clear sentence

    async def _follow_keys(self, admin_client: AdminClient) -> None:
        """Read the loop's keys, for ever."""
        now, keys = asyncio.get_running_loop().time, self.gateway.client_keys
        last_success, failing = now(), False
        while True:
            try:
                keys.replace_loop_keys(await admin_client.fetch_keys())
                last_success, failing = now(), False
            except UpswingError as error:
                if not failing:
                    log.warning("keys: %s", error, extra={"action": "gateway_keys"})
                failing = True
                if now() - last_success > self._intervals.keys_expire:
                    keys.replace_loop_keys({})
            self._keys_received.set()
            await asyncio.sleep(self._intervals.keys)

    async def _publish_tally(self, board: TrafficBoard) -> None:
        """The counts, once a second at most, when they have changed or were published long ago."""
        now = asyncio.get_running_loop().time
        published_at = now()
        while True:
            await asyncio.sleep(self._intervals.counts)
            changes = self.gateway.counters.changes
            if changes != self._published_changes or (
                changes and now() - published_at > self._intervals.republish
            ):
                with contextlib.suppress(Transient):
                    await board.put_tally(self.gateway.counters.encode())
                    self._published_changes, published_at = changes, now()

    async def _publish_switches(self, board: TrafficBoard) -> None:
        """That this gateway lives, and what it may serve, for ever."""
        policy = self._options.routing.policy
        while True:
            await board.put_switches(msgspec.json.encode(policy.switches))
            await asyncio.sleep(_LIVENESS_SECONDS)

    def _start_task(self, name: str, coroutine_factory: Callable[[], Awaitable[None]]) -> None:
        """A part that fails is tried again: answers do not depend on any of them."""
        self._tasks.append(restart_on_error(coroutine_factory, name=name))


async def _close_bus(bus: Bus) -> None:
    """A bus that went away just now has hung up already."""
    with contextlib.suppress(OSError):
        await bus.close()
