"""What configures a gateway before it starts, and from where?

| what                       | option       | environment                    | the data directory's loop |
|----------------------------|--------------|--------------------------------|---------------------------|
| the bus                    | `--nats-url` | `NATS_URL`                     | the role `gateway`'s      |
| the loop                   | `--loop-url` | `AGENTGYM_RL_URL`              | its own                   |
| the loop's key             |              | `AGENTGYM_RL_API_KEY`          | its own                   |
| the admin's token          |              | `TENSORZERO_ADMIN_TOKEN`       | made at its first start   |
| clients' keys              |              | `UPSWING_GATEWAY_KEYS`, and an operator's key | made at its first start |
| keys of models' servers    |              | `UPSWING_BACKEND_KEY_*`, `UPSWING_BACKEND_KEYS`, `OPENAI_API_KEY`, `WANDB_API_KEY` | |

Beside those keys, the ones that `upswing keys` makes work here, if the loop is known and its key is
a gateway's or an operator's. The first source that has a value counts. A key belongs to the address beside it: the loop's key is never
sent to an address that somebody else named.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from upswing.contracts.backend_keys import read_backend_keys
from upswing.errors import Misuse
from upswing.gateway.core.serving_policy import ServingPolicy, read_serving_policy
from upswing.principals import CLIENT, OPERATOR

_GATEWAY_KEY_PREFIX = "gwl_"
"""How a key of scope `gateway` begins: it is for asking the loop, and opens no gateway."""
MIN_TOKEN_LENGTH = 20
"""Characters of a token or key that may stand on a public address."""
_MIN_DISTINCT = 8
"""Different characters in it."""
_KNOWN_SERVERS = {
    "OPENAI_API_KEY": "https://api.openai.com/",
    "WANDB_API_KEY": "https://api.inference.wandb.ai/",
}


@dataclass(frozen=True, slots=True)
class SetupSources:
    """What the command line and the data directory say."""

    nats_url: str | None = None
    loop_url: str | None = None
    running_info: Mapping[str, Any] = field(default_factory=dict)
    """`running.json` of a loop that runs."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """`secrets.json`."""


@dataclass(frozen=True, slots=True)
class GatewaySetup:
    """What a gateway starts with; nothing of it is shown."""

    nats_url: str = field(repr=False)
    loop_url: str | None
    loop_key: str | None = field(repr=False)
    admin_token: str | None = field(repr=False)
    keys: Mapping[str, str] = field(repr=False)
    """A client's key → its name."""
    backend_keys: Mapping[str, str] = field(repr=False)
    """The beginning of a server's URL → the key that it wants."""
    policy: ServingPolicy

    @property
    def accepts_anyone(self) -> bool:
        """No keys are known, so that everybody who reaches the port may send requests."""
        return not self.keys and not (self.loop_url and self.loop_key)


def read_setup(sources: SetupSources, environment: Mapping[str, str]) -> GatewaySetup:
    """The table above, or `Misuse` with what is missing or cannot be understood."""
    loop_url, loop_key = _loop_address(sources, environment)
    return GatewaySetup(
        _nats_url(sources, environment),
        loop_url,
        loop_key,
        environment.get("TENSORZERO_ADMIN_TOKEN", "").strip() or sources.secrets.get("admin_token"),
        _client_keys(sources, environment, loop_key),
        _backend_keys(environment),
        read_serving_policy(environment),
    )


def check_public_address(host: str, setup: GatewaySetup) -> None:
    """Everything that can be guessed is refused where strangers can reach it."""
    if is_loopback(host):
        return
    if setup.admin_token is not None and is_weak_token(setup.admin_token):
        raise Misuse(
            f"TENSORZERO_ADMIN_TOKEN is too weak for a public address: take {MIN_TOKEN_LENGTH} characters "
            "or more, leave it out so that nobody is admin, or listen on 127.0.0.1."
        )
    if setup.accepts_anyone:
        raise Misuse(
            "No client's key is set, so everybody who reaches this public address could send requests: set "
            "UPSWING_GATEWAY_KEYS, or listen on 127.0.0.1."
        )
    for key, name in setup.keys.items():
        if is_weak_token(key):
            raise Misuse(
                f"The key of {name} is too weak for a public address: take {MIN_TOKEN_LENGTH} characters or "
                "more, or listen on 127.0.0.1."
            )


def is_weak_token(token: str) -> bool:
    """Short, or hardly more than one character over and over.

    >>> [is_weak_token(token) for token in ("secret", "a" * 40, "kC3-2vQ8_zLr7WmXb1Ty")]
    [True, True, False]
    """
    return len(token) < MIN_TOKEN_LENGTH or len(set(token)) < _MIN_DISTINCT


def is_loopback(host: str) -> bool:
    """Is this address only for processes of this machine?

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "", "gw.example")]
    [True, True, True, False, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _nats_url(sources: SetupSources, environment: Mapping[str, str]) -> str:
    urls = sources.running_info.get("nats_urls") or {}
    found = (
        sources.nats_url
        or environment.get("NATS_URL")
        or urls.get("gateway")
        or sources.running_info.get("nats_url")
    )
    if not found:
        raise Misuse(
            "There is no bus: give --nats-url, set NATS_URL, or name the data directory of a "
            "running loop with --data."
        )
    if not found.startswith(("nats://", "tls://", "ws://", "wss://")):
        raise Misuse("NATS_URL must start with nats:// or tls://.")
    return str(found)


def _loop_address(
    sources: SetupSources, environment: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """The loop's address and the key to it, from the same source."""
    url = sources.loop_url or environment.get("AGENTGYM_RL_URL")
    key = environment.get("AGENTGYM_RL_API_KEY")
    own, own_key = sources.running_info.get("http_url"), sources.running_info.get("key")
    if not url:
        return (own, own_key) if own else (None, key or None)
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise Misuse("AGENTGYM_RL_URL must be an address such as http://127.0.0.1:8100.")
    key = key or (own_key if url == own else None)
    if not key:
        raise Misuse("The loop's address is set, but AGENTGYM_RL_API_KEY is not: set both.")
    return url, key


def _client_keys(
    sources: SetupSources, environment: Mapping[str, str], loop_key: str | None
) -> dict[str, str]:
    """Client's key → its name."""
    keys = {loop_key: OPERATOR} if loop_key and not loop_key.startswith(_GATEWAY_KEY_PREFIX) else {}
    if own := sources.secrets.get("gateway_key"):
        keys[own] = CLIENT
    for name, key in _parse_pairs(environment, "UPSWING_GATEWAY_KEYS", "name=key"):
        if name in {OPERATOR, CLIENT} or name.startswith("key:"):
            raise Misuse(
                f"UPSWING_GATEWAY_KEYS cannot call a key {name!r}: that name is the loop's own."
            )
        if keys.setdefault(key, name) != name:
            raise Misuse(f"UPSWING_GATEWAY_KEYS gives the key of {name} to somebody else too.")
    return keys


def _backend_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """A server's URL → its key. The URL ends where a host ends, so that no other can begin like it."""
    keys = {}
    for name, url in _KNOWN_SERVERS.items():
        if key := environment.get(name, "").strip():
            if not _fits_header(key):
                raise Misuse(f"{name} holds characters that no HTTP header can carry.")
            keys[url] = key
    for url, key in _parse_pairs(environment, "UPSWING_BACKEND_KEYS", "https://host/path=key"):
        if not url.startswith(("http://", "https://")):
            raise Misuse(
                f"UPSWING_BACKEND_KEYS names {url!r}: a server's URL begins with https://."
            )
        keys[url.rstrip("/") + "/"] = key
    return keys | read_backend_keys(environment)


def _parse_pairs(environment: Mapping[str, str], name: str, form: str) -> list[tuple[str, str]]:
    """`a=1,b=2`, or `Misuse` that does not repeat what may be a secret."""
    pairs = []
    for number, part in enumerate(filter(None, environment.get(name, "").split(",")), 1):
        left, _, right = part.strip().partition("=")
        if (
            not left
            or not right
            or not (left + right).isascii()
            or not (left + right).isprintable()
        ):
            raise Misuse(f"{name}: entry {number} is not of the form {form}.")
        pairs.append((left, right))
    return pairs


def _fits_header(text: str) -> bool:
    """In a header."""
    return text.isascii() and text.isprintable()
