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

from upswing.api.server import HttpServer
from upswing.api.worlds import WorldRoutes
from upswing.infra.tasks import start_task
from upswing.worlds.agentgym_sessions import SessionLimits, WorldSessions
from upswing.worlds.world import World


@dataclass(frozen=True, slots=True)
class WorldServerOptions:
    """Where a world is served, and to how many."""

    host: str = "127.0.0.1"
    port: int = 0
    limits: SessionLimits = field(default_factory=SessionLimits)


async def serve(
    world: World[Any, Any],
    options: WorldServerOptions,
    ready: Callable[[str], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Answer until `stop` is set, or else until a signal comes; `ready` gets the URL."""
    routes = WorldRoutes(WorldSessions(world, options.limits), time.monotonic).routes()
    server = HttpServer(routes, None, options.host, options.port)
    stopping = start_task((stop or _stop_on_signal()).wait())
    running = start_task(server.run())
    ready(server.url)
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        await server.close()
        await running


def _stop_on_signal() -> asyncio.Event:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
