"""Does a bus that is not ours keep what it acknowledges? Its own word, where it can be asked.

| its monitoring says        | an acknowledgement                                           |
|----------------------------|--------------------------------------------------------------|
| `sync_always`              | is durable                                                   |
| an interval                | may be taken back by a power cut, for as long as the interval|
| nothing, or another server | is as durable as whoever runs the server says                |

A nats-server answers on its monitoring port, which by custom is 8222; a client cannot ask.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.errors import UpswingError
from upswing.infra.http import exchange
from upswing.infra.nats.bus import Bus

log = logging.getLogger(__name__)
PORT = 8222
_SECONDS = 2.0


class _Config(msgspec.Struct, frozen=True):
    sync_always: bool = False
    sync_interval: int = 0
    """Nanoseconds; servers before 2.10 do not say."""


class _JetStream(msgspec.Struct, frozen=True):
    server_id: str = ""
    config: _Config | None = None


_ANSWER = json_decoder(_JetStream)


@dataclass(frozen=True, slots=True)
class Durability:
    """Whether acknowledged messages outlive a power cut; None: nobody says."""

    always: bool | None
    why: str


async def query_durability(bus: Bus, monitor: str | None = None) -> Durability:
    """What the server behind this connection says of itself; `monitor` is its monitoring's URL."""
    address = bus.client.connected_url
    host = address.hostname if address else None
    if host is None:
        return Durability(None, "it is not connected")
    named = f"[{host}]" if ":" in host else host
    base = (monitor or f"http://{named}:{PORT}").rstrip("/")
    try:
        reply = await exchange("GET", f"{base}/jsz?config=true", seconds=_SECONDS)
        answer = _ANSWER.decode(reply.body)
    except (UpswingError, ValueError, msgspec.MsgspecError) as error:
        return Durability(None, f"its monitoring at {base} does not answer: {error}")
    return _read_durability(answer, base, bus.server_id)


def _read_durability(answer: _JetStream, base: str, server_id: str) -> Durability:
    if answer.server_id != server_id:
        return Durability(None, f"at {base} another server answers")
    if answer.config is None or not (answer.config.sync_always or answer.config.sync_interval):
        return Durability(None, "its monitoring does not say")
    if answer.config.sync_always:
        return Durability(True, "it runs with `sync_interval: always`")
    return Durability(False, f"its sync_interval is {answer.config.sync_interval / 1e9:g} s")


def log_durability(durability: Durability, url: str) -> None:
    """Say once what that means."""
    if durability.always:
        log.info(
            "the bus at %s keeps what it acknowledges: %s",
            url,
            durability.why,
            extra={"action": "foreign_bus"},
        )
    elif durability.always is False:
        log.error(
            "the bus at %s may lose in a power cut what it has acknowledged: %s. Run it with `sync_interval: always`",
            url,
            durability.why,
            extra={"action": "alert", "reason": "bus_not_durable"},
        )
    else:
        log.warning(
            "whether the bus at %s keeps what it acknowledges is not known: %s. It does only with "
            "`sync_interval: always`; UPSWING_NATS_MONITOR names its monitoring",
            url,
            durability.why,
            extra={"action": "foreign_bus"},
        )
