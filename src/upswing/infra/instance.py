"""How is a running loop found, and what does it keep to itself?

| file           | holds                                      | mode |
|----------------|--------------------------------------------|------|
| `running.json` | how to reach the loop, while it runs       | 600  |
| `starting.pid` | which process brings it up, until then     | 600  |
| `secrets.json` | the operator's key, the gateway's client key and admin token, the key with which our own gateway asks the loop, what signs webhooks, the bus's passwords | 600 |

`secrets.json` ends with a checksum of the rest: a key with a flipped bit would be a new key. Only a file of
a version before checksums may lack it: one with the operator's key, in a directory without a mark.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from upswing.contracts.topics import ROLES
from upswing.contracts.typed import from_json
from upswing.errors import Misuse
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.sockets import bind_port

log = logging.getLogger(__name__)
_PREFIXES = {
    "key": "up_",
    "gateway_key": "gw_",
    "admin_token": "adm_",
    "gateway_loop_key": "gwl_",
    "webhook_secret": "whs_",
}
"""How a credential of ours begins, so that it is told from others."""
STARTING = "starting.pid"
_CHECK = "check"
_MARK = "upswing.mark"
"""Younger than the checksum: beside it, a file without one is not an older version's."""
_BEFORE_CHECKS = {"key", "gateway_key", "admin_token"} | {
    f"nats_{role}" for role in (OPERATOR, *ROLES)
}
"""What a file may hold that an older version wrote, without a checksum."""


@dataclass(frozen=True, slots=True)
class InstanceInfo:
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
    admin_token: str | None = None
    """For operators: what the gateway's `/admin` asks for."""
    dashboard_url: str | None = None
    """The web page."""


def open_listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket, or a sentence about the port."""
    listener = bind_port(host, port)
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def read_secrets(folder: Path, known: dict[str, str] | None = None) -> dict[str, str]:
    """The credentials of this data directory, made at first start; `known`: those that were read already.

    One that an older version did not know of is made when it is missed. `Misuse` when the file is damaged.
    """
    path = folder / "secrets.json"
    known = read_known_secrets(folder) if known is None else known
    missing = [name for name in _secret_names() if name not in known]
    if known and missing:
        message = "secrets.json had no %s: made now"
        log.warning(message, ", ".join(missing), extra={"action": "keys_made"})
    if missing or not _has_checksum(path):
        known |= _make_secrets(missing)
        _write_secrets(path, known)
    return known


def renew_secrets(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """The credentials, of which these are made anew."""
    known = read_known_secrets(folder) | _make_secrets(names)
    _write_secrets(folder / "secrets.json", known)
    return known


def _secret_names() -> list[str]:
    return [*_PREFIXES, *(f"nats_{role}" for role in (OPERATOR, *ROLES))]


def _make_secrets(names: Iterable[str]) -> dict[str, str]:
    return {name: _PREFIXES.get(name, "") + secrets.token_urlsafe(32) for name in names}


def _write_secrets(path: Path, known: dict[str, str]) -> None:
    write_private(path, json.dumps({**known, _CHECK: _checksum(known)}, indent=2))


def read_known_secrets(folder: Path) -> dict[str, str]:
    """What `secrets.json` holds, without its checksum; nothing when there is none."""
    path = folder / "secrets.json"
    if not path.exists():
        return {}
    try:
        tree: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict) or not all(isinstance(v, str) and v for v in tree.values()):
        raise _damaged_secrets_error(path)
    check = tree.pop(_CHECK, None)
    older = "key" in tree and tree.keys() <= _BEFORE_CHECKS and not (folder / _MARK).exists()
    if not (older if check is None else check == _checksum(tree)):
        raise _damaged_secrets_error(path)
    return tree


def _damaged_secrets_error(path: Path) -> Misuse:
    return Misuse(
        f"{path} is damaged: put a copy of it back, or delete it to have new keys made at the next "
        "start; the old ones then work no more."
    )


def _has_checksum(path: Path) -> bool:
    return path.exists() and _CHECK in json.loads(path.read_bytes())


def _checksum(known: dict[str, str]) -> str:
    return sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)


def find_running_instance(folder: Path) -> InstanceInfo | None:
    """How to reach the loop of this directory, if one runs."""
    running = read_instance(folder)
    return running if running is not None and _is_alive(running.pid) else None


def no_loop_sentence(folder: Path) -> str:
    """Why nobody answers in this directory, and what to do."""
    if _is_alive(_starting_pid(folder)):
        return f"The loop in {folder} is starting: `upswing up` says there what it waits for. Ask again when it is ready."
    return f"No loop is running in {folder}: start it with `upswing up --data {folder}`."


def _starting_pid(folder: Path) -> int:
    try:
        return int((folder / STARTING).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _is_alive(pid: int) -> bool:
    try:
        if pid > 0:
            os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return pid > 0


def read_instance(folder: Path) -> InstanceInfo | None:
    """How to reach the loop that last said so; None when none did, or what it said is damaged."""
    try:
        return from_json((folder / "running.json").read_bytes(), InstanceInfo)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
