"""Which bus does the loop use? A nats-server of its own, or one that somebody else runs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from upswing.app.context import Installation
from upswing.contracts.topics import ROLES
from upswing.infra.nats.bus import Bus, redacted_url
from upswing.infra.nats.durability import log_durability, query_durability
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.server import EmbeddedServer


@dataclass(frozen=True, slots=True)
class LoopBus:
    """The bus of a loop, connected."""

    bus: Bus
    urls: dict[str, str]
    """Role → address with its password; of a foreign bus, ours only."""
    server: EmbeddedServer | None
    """None: somebody else runs it."""
    monitor_url: str | None
    """Where a foreign server tells its settings."""

    async def syncs_always(self) -> bool | None:
        """Our own server fsyncs before it acknowledges; another one is asked. None: it does not say."""
        if self.server is not None:
            return True
        return (await query_durability(self.bus, self.monitor_url)).always


async def start_bus(
    exits: contextlib.AsyncExitStack,
    installation: Installation,
    passwords: dict[str, str],
    *,
    port: int,
    ack_wait_seconds: float,
) -> LoopBus:
    """Start a server where none is named, and connect; `exits` closes the connection, then the server."""
    surroundings = installation.surroundings
    if surroundings.nats_url:
        server, urls = None, {OPERATOR: surroundings.nats_url}
    else:
        server = EmbeddedServer(installation.folder / "nats", passwords, port)
        exits.push_async_callback(server.stop)
        await server.start()
        urls = {role: server.url(role) for role in (OPERATOR, *ROLES)}
    bus = await Bus.connect(urls[OPERATOR], ack_wait_seconds=ack_wait_seconds)
    exits.push_async_callback(bus.close)
    await bus.prepare()
    if server is None:
        durability = await query_durability(bus, surroundings.nats_monitor)
        log_durability(durability, redacted_url(urls[OPERATOR]))
    return LoopBus(bus, urls, server, surroundings.nats_monitor)
