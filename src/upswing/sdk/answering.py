"""Which trained models answer now? Asked of the loop, else of the gateway, and remembered for a moment.

| asked                | where                                              | what                        |
|----------------------|----------------------------------------------------|-----------------------------|
| the loop             | `AGENTGYM_RL_URL`, or the loop of `UPSWING_DATA`   | its registry, with states   |
| else the gateway     | `TENSORZERO_BASE_URL`, or that of `UPSWING_DATA`   | who has which share         |

Silence is remembered like an answer, so that an agent never waits long or often.
"""

from __future__ import annotations

import http.client
import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing import __version__
from upswing.sdk.target import data_folder, resolve

log = logging.getLogger(__name__)
SECONDS = 2.0
"""For one question."""
KEPT_SECONDS = 10.0
"""How long an answer is used."""
_MOST = 4 * 1024 * 1024
_DEPLOYED, _CANARY = "deployed", "canary"
_VERSION = re.compile(r"-v(\d[\w.]*)$")
_LOST = (OSError, http.client.HTTPException, ValueError, msgspec.DecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class RlModel:
    """A trained model that answers."""

    model_id: str
    """What to ask for, at the gateway or at its server."""
    version: str
    """What its id ends in, such as `v3`."""
    canary: bool = False
    """It is still on trial, with the share of the traffic that the gateway gives it."""
    base_model: str | None = None


@dataclass(frozen=True, slots=True)
class Answering:
    """What was heard: the models, the newest first, and what went wrong while asking."""

    models: Sequence[RlModel] = ()
    trouble: str = ""


@dataclass(slots=True)
class _Memory:
    addresses: tuple[str | None, ...] = ()
    until: float = 0.0
    known: Answering = field(default_factory=Answering)
    lock: threading.Lock = field(default_factory=threading.Lock)


_MEMORY = _Memory()


def answering(env: Mapping[str, str]) -> Answering:
    """Who answers, as of a few seconds ago."""
    try:
        addresses = _server_addresses(env)
    except _LOST as error:
        return Answering(trouble=f"The loop's address cannot be read: {type(error).__name__}.")
    with _MEMORY.lock:
        if _MEMORY.addresses != addresses or monotonic() >= _MEMORY.until:
            _MEMORY.known = _ask_who_answers(*addresses)
            _MEMORY.addresses, _MEMORY.until = addresses, monotonic() + KEPT_SECONDS
            if _MEMORY.known.trouble:
                log.info("%s", _MEMORY.known.trouble, extra={"action": "rl_model_unknown"})
        return _MEMORY.known


def _server_addresses(env: Mapping[str, str]) -> tuple[str | None, str | None, str | None]:
    """The loop, the key to it, the gateway."""
    target = resolve(None, None, None, env)
    if target is None or not target.url.startswith(("http://", "https://")):
        return None, None, gateway_url(env)  # a bus has no list
    return target.url, target.key, gateway_url(env)


def forget() -> None:
    """Ask anew next time."""
    _MEMORY.until = 0.0


def gateway_url(env: Mapping[str, str]) -> str | None:
    """The gateway's address, without `/v1`."""
    if named := (env.get("TENSORZERO_BASE_URL") or "").strip():
        return named.rstrip("/").removesuffix("/v1") or None
    if env.get("AGENTGYM_RL_URL") or env.get("NATS_URL"):
        return None  # the loop is elsewhere, and so is its gateway
    try:
        running: Any = msgspec.json.decode((data_folder(None, env) / "running.json").read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    url = running.get("gateway_url") if isinstance(running, dict) else None
    return url if isinstance(url, str) else None


def _ask_who_answers(loop: str | None, key: str | None, gateway: str | None) -> Answering:
    trouble = "" if loop or gateway else "Neither a loop nor a gateway is known."
    for url, path, read in (
        (loop, "/models", _models_of_loop),
        (gateway, "/health", _models_of_gateway),
    ):
        if url:
            try:
                return Answering(read(_get_json(url, path, key if url == loop else None)))
            except _LOST as error:
                trouble = (
                    f"{_host_of_url(url)} does not say which models answer: {type(error).__name__}."
                )
    return Answering(trouble=trouble)


def _get_json(url: str, path: str, key: str | None) -> Any:
    parts = urlsplit(url.rstrip("/"))
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    line = kind(parts.hostname or "", parts.port, timeout=SECONDS)
    headers = {"Accept": "application/json", "User-Agent": f"upswing-sdk/{__version__}"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        line.request("GET", parts.path + path, headers=headers)
        answer = line.getresponse()
        if answer.status != 200:
            raise http.client.HTTPException
        return msgspec.json.decode(answer.read(_MOST))
    finally:
        line.close()


def _models_of_loop(reply: Any) -> list[RlModel]:
    """`GET /models`: rows of the registry, the newest first."""
    return [
        RlModel(
            row["model_id"],
            _version_of_model_id(row["model_id"]),
            row["state"] == _CANARY,
            row.get("base_model"),
        )
        for row in _field_of_type(reply, "models", list)
        if isinstance(row, dict)
        and isinstance(row.get("model_id"), str)
        and row.get("state") in {_DEPLOYED, _CANARY}
    ]


def _models_of_gateway(reply: Any) -> list[RlModel]:
    """`GET /health`: shares, the baseline's first; a trained model's id ends in its version."""
    found = [
        RlModel(name, _version_of_model_id(name), canary=position > 0)
        for position, name in enumerate(_field_of_type(reply, "shares", dict))
        if _VERSION.search(name)
    ]
    numbers = {m.model_id: [int(n) for n in re.findall(r"\d+", m.version)] for m in found}
    return sorted(found, key=lambda m: numbers[m.model_id], reverse=True)


def _field_of_type(reply: Any, name: str, kind: type) -> Any:
    found = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(found, kind):
        raise ValueError  # noqa: TRY004 - as any other answer that cannot be read
    return found


def _version_of_model_id(model_id: str) -> str:
    """What an id ends in.

    >>> _version_of_model_id("agent-zero-rl-v12"), _version_of_model_id("my-model")
    ('v12', 'my-model')
    """
    found = _VERSION.search(model_id)
    return f"v{found[1]}" if found else model_id


def _host_of_url(url: str) -> str:
    """The address without anything that could be a secret."""
    try:
        return urlsplit(url).hostname or "The address"
    except ValueError:
        return "The address"
