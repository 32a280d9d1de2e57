"""What does the loop's own gateway have to know? The bus, the loop's address, and keys of model servers."""

from __future__ import annotations

import os

from upswing.app.bus import LoopBus
from upswing.app.context import Installation
from upswing.gateway.process import GatewayChildEnv, GatewaySupervisor
from upswing.infra.nats.permissions import OPERATOR


def make_gateway(
    installation: Installation, loop_bus: LoopBus, http_url: str, key: str, *, host: str, port: int
) -> GatewaySupervisor:
    """A gateway that asks the loop at `http_url` with `key`; it is not started yet."""
    bus_url = loop_bus.urls.get("gateway") or loop_bus.urls[OPERATOR]
    env = GatewayChildEnv(bus_url, http_url, key, _backend_keys(installation))
    return GatewaySupervisor(installation.folder, env, host, port)


def _backend_keys(installation: Installation) -> dict[str, str]:
    """The gateway asks a model server of somebody's own, so it has to know its key."""
    url, key = installation.settings.serve.url, installation.surroundings.serve_key
    if not url or not key:
        return {}
    known = [os.environ.get("UPSWING_BACKEND_KEYS", ""), f"{url}={key}"]
    return {"UPSWING_BACKEND_KEYS": ",".join(filter(None, known))}
