"""Does a bus that is not ours keep what it acknowledges? Its own word, where it can be asked.

| its monitoring says        | an acknowledgement                                           |
|----------------------------|--------------------------------------------------------------|
| `sync_always`              | is durable                                                   |
| an interval                | may be taken back by a power cut, for as long as the interval|
| nothing, or another server | is as durable as whoever runs the server says                |

A nats-server answers on its monitoring port, which by custom is 8222; a client cannot ask.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException

import msgspec

from upswing.adapters.nats.bus import Bus
from upswing.contracts.typed import json_decoder

log = logging.getLogger(__name__)
PORT = 8222
_SECONDS = 2.0
_MOST_BYTES = 4 * 1024 * 1024


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


async def ask(bus: Bus, monitor: str | None = None) -> Durability:
    """What the server behind this connection says of itself; `monitor` is its monitoring's URL."""
    place = bus.client.connected_url
    host = place.hostname if place else None
    if host is None:
        return Durability(None, "it is not connected")
    named = f"[{host}]" if ":" in host else host
    base = (monitor or f"http://{named}:{PORT}").rstrip("/")
    return await asyncio.to_thread(_ask, base, bus.server_id)


def _ask(base: str, server_id: str) -> Durability:
    try:
        with urllib.request.urlopen(f"{base}/jsz?config=true", timeout=_SECONDS) as answer:  # noqa: S310 - an operator named the host
            told = _ANSWER.decode(answer.read(_MOST_BYTES))
    except (HTTPException, OSError, ValueError, msgspec.MsgspecError) as error:
        why = getattr(error, "reason", None) or error
        return Durability(None, f"its monitoring at {base} does not answer: {why}")
    return _judged(told, base, server_id)


def _judged(told: _JetStream, base: str, server_id: str) -> Durability:
    if told.server_id != server_id:
        return Durability(None, f"at {base} another server answers")
    if told.config is None or not (told.config.sync_always or told.config.sync_interval):
        return Durability(None, "its monitoring does not say")
    if told.config.sync_always:
        return Durability(True, "it runs with `sync_interval: always`")
    return Durability(False, f"its sync_interval is {told.config.sync_interval / 1e9:g} s")


def tell(durability: Durability, url: str) -> None:
    """Say once what that means."""
    if durability.always:
        log.info(
            "the bus at %s keeps what it acknowledges: %s", url, durability.why,
            extra={"action": "foreign_bus"},
        )  # fmt: skip
    elif durability.always is False:
        log.error(
            "the bus at %s may lose in a power cut what it has acknowledged: %s. Run it with `sync_interval: always`",
            url, durability.why, extra={"action": "alert"},
        )  # fmt: skip
    else:
        log.warning(
            "whether the bus at %s keeps what it acknowledges is not known: %s. It does only with "
            "`sync_interval: always`; UPSWING_NATS_MONITOR names its monitoring",
            url, durability.why, extra={"action": "foreign_bus"},
        )  # fmt: skip
