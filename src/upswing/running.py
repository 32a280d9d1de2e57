"""How is a running loop found, and what does it keep to itself?

| file           | holds                                      | mode |
|----------------|--------------------------------------------|------|
| `running.json` | how to reach the loop, while it runs       | 600  |
| `secrets.json` | the operator's key, the gateway's client key and admin token, the bus's passwords | 600 |
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from upswing.adapters.listening import bound
from upswing.adapters.nats.permissions import OPERATOR
from upswing.contracts.topics import ROLES

_PREFIXES = {"key": "up_", "gateway_key": "gw_", "admin_token": "adm_"}
"""How a credential of ours begins, so that it is told from others."""


@dataclass(frozen=True, slots=True)
class Running:
    """How to reach a running loop; kept in `running.json`, which only its owner can read."""

    pid: int
    http_url: str
    gateway_url: str | None
    nats_url: str
    nats_urls: dict[str, str]
    key: str
    data: str
    gateway_key: str | None = None
    """For agents: what the gateway asks for."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or a sentence about the port."""
    listener = bound(host, port)
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def read_secrets(folder: Path) -> dict[str, str]:
    """The credentials of this data directory, made at first start.

    One that an older version did not know of is made when it is missed.
    """
    path = folder / "secrets.json"
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    wanted = [*_PREFIXES, *(f"nats_{role}" for role in (OPERATOR, *ROLES))]
    if missing := [name for name in wanted if name not in known]:
        known |= {name: _PREFIXES.get(name, "") + secrets.token_urlsafe(32) for name in missing}
        write_private(path, json.dumps(known, indent=2))
    return known


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)


def read_running(folder: Path) -> Running | None:
    """How to reach the loop of this directory, if one runs."""
    try:
        running = Running(**json.loads((folder / "running.json").read_text()))
        os.kill(running.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return running
