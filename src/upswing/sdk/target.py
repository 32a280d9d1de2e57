"""Where is the loop? Asked again at every connection, because a local loop's ports may change.

1. `url=` and `key=` of the recorder; or its `data=`, as in 4
2. `AGENTGYM_RL_URL` with `AGENTGYM_RL_API_KEY`
3. `NATS_URL`, unless `AGENTZERO_JETSTREAM` is `false`
4. a loop that runs on this machine: `running.json` in `UPSWING_DATA` or `./upswing-data`
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from upswing.sdk.transport import HttpTransport, Transport, checked


@dataclass(frozen=True, slots=True)
class LoopAddress:
    """An address, and the key to it."""

    url: str = field(repr=False)
    key: str | None = field(default=None, repr=False)


def resolve(
    url: str | None, key: str | None, data: Path | None, env: Mapping[str, str]
) -> LoopAddress | None:
    """The loop's address by the order above, or None when there is none to be found."""
    if (address := _named_address(url, data, env)) is None:
        return _read_running_loop(data_folder(data, env) / "running.json")
    bus = address.startswith(("nats:", "tls:"))
    return LoopAddress(address, None if bus else key or env.get("AGENTGYM_RL_API_KEY"))


def _named_address(url: str | None, data: Path | None, env: Mapping[str, str]) -> str | None:
    """The address that somebody named; naming a data directory says to look there instead."""
    if url or data:
        return url
    jetstream = env.get("AGENTZERO_JETSTREAM", "true").strip().lower() != "false"
    return env.get("AGENTGYM_RL_URL") or (env.get("NATS_URL") if jetstream else None) or None


def data_folder(data: Path | None, env: Mapping[str, str]) -> Path:
    return (data or Path(env.get("UPSWING_DATA") or "upswing-data")).expanduser().absolute()


def _read_running_loop(file: Path) -> LoopAddress | None:
    try:
        running: Any = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(running, dict):
        return None
    if isinstance(address := running.get("http_url"), str):
        return LoopAddress(address, running.get("key"))
    return LoopAddress(bus) if isinstance(bus := running.get("nats_url"), str) else None


def spool_folder(url: str | None, data: Path | None, env: Mapping[str, str], home: Path) -> Path:
    """One folder per loop: what was recorded for one is never sent to another."""
    state = Path(env.get("XDG_STATE_HOME") or home / ".local" / "state")
    where = _named_address(url, data, env) or str(data_folder(data, env))
    if "@" in where:  # a password is no part of a place
        where = where.rpartition("@")[2]
    return state / "upswing" / "spool" / hashlib.sha256(where.encode()).hexdigest()[:16]


def transport_to(target: LoopAddress) -> Transport:
    """The transport that the address asks for; nats-py is imported only for a bus."""
    if checked(target.url).scheme in ("http", "https"):
        return HttpTransport(target.url, target.key)
    from upswing.sdk.nats import NatsTransport  # noqa: PLC0415 - heavy, and often not needed

    return NatsTransport(target.url)
