"""How does a world of ours become a port that AgentGym's clients can use, until somebody stops it?

port ─▶ "ready URL" ─▶ … ─▶ SIGTERM or Ctrl-C ─▶ no more requests ─▶ those under way end
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from upswing.front import Front
from upswing.http.worlds import WorldDoor
from upswing.together import begin
from upswing.worlds.agentgym_sessions import Limits, Sessions
from upswing.worlds.world import World


@dataclass(frozen=True, slots=True)
class Options:
    """Where a world is served, and to how many."""

    host: str = "127.0.0.1"
    port: int = 0
    limits: Limits = field(default_factory=Limits)


class _NoKeys:
    """Every route of a world is open, so nobody looks for one."""

    def find(self, key: str) -> None: ...


async def serve(
    world: World[Any, Any],
    options: Options,
    ready: Callable[[str], None],
    told: asyncio.Event | None = None,
) -> None:
    """Answer until it is told to stop, by `told` or else by a signal; `ready` hears the URL."""
    door = WorldDoor(Sessions(world, options.limits), time.monotonic)
    front = Front(door.routes(), _NoKeys(), options.host, options.port)
    stop = begin((told or _told_to_stop()).wait())
    running = begin(front.run())
    ready(front.url)
    try:
        await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
        await front.close()
        await running


def _told_to_stop() -> asyncio.Event:
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    return told
