"""What did the user decide? One file, `upswing.toml`, and the environment, which wins.

The file lies in the data directory, or where UPSWING_CONFIG says:

    [collect]
    max_bytes = 4000000
    window_hours = 1

    [[redact.rules]]
    name = "acme-badge"
    pattern = "ACME-[0-9]{6}"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from upswing.errors import Misuse


class CollectConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What enters the loop."""

    max_bytes: Annotated[int, Meta(ge=1024, le=8 * 1024 * 1024)] = 8 * 1024 * 1024
    """Bytes of one message, 1 KB to 8 MB: a larger one is refused. The bus carries 8 MB."""
    max_depth: Annotated[int, Meta(ge=8, le=500)] = 64
    """Levels of nesting, 8 to 500: a deeper message is refused."""
    window_hours: Annotated[int, Meta(ge=1, le=24)] = 1
    """Hours of a window, 1 to 24: agents that acted in the same window are compared."""
    stale_hours: Annotated[int, Meta(ge=1)] = 24
    """Hours after which a step-wise trajectory that nobody continues is ended as `timeout`."""


class RedactRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of your own, beside the built-in ones."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,40}$")]
    """Lower case; it becomes the placeholder: `<acme-badge-1>`."""
    pattern: Annotated[str, Meta(min_length=1, max_length=1000)]
    """A Python regular expression."""


class RedactConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What must never be stored."""

    rules: tuple[RedactRule, ...] = ()
    """Your own rules, added to the built-in ones."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be decided."""

    collect: CollectConfig = CollectConfig()
    redact: RedactConfig = RedactConfig()


class Surroundings(msgspec.Struct, frozen=True):
    """What the environment says."""

    nats_url: str | None = None
    """NATS_URL: use this server or cluster instead of an embedded one."""
    database_url: str | None = None
    """DATABASE_URL: use this PostgreSQL instead of SQLite in the data directory."""
    api_key: str | None = None
    """AGENTGYM_RL_API_KEY: the operator's key; made at first start when it is not set."""
    storage_path: str | None = None
    """TRAJECTORY_STORAGE_PATH: archive redacted trajectories there (a path, file:// or s3://)."""


VARIABLES = {
    "nats_url": "NATS_URL",
    "database_url": "DATABASE_URL",
    "api_key": "AGENTGYM_RL_API_KEY",
    "storage_path": "TRAJECTORY_STORAGE_PATH",
}


def read_settings(folder: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of a data directory, or `Misuse` with the place that is wrong."""
    path = Path(environment.get("UPSWING_CONFIG") or folder / "upswing.toml")
    if not path.exists():
        if environment.get("UPSWING_CONFIG"):
            raise Misuse(f"UPSWING_CONFIG names {path}, which does not exist.")
        return Settings()
    try:
        tree: Any = tomllib.loads(path.read_text())
        return msgspec.convert(tree, Settings)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: {error}.") from None


def read_surroundings(environment: Mapping[str, str]) -> Surroundings:
    """The environment variables that concern the loop; empty ones count as not set."""
    found = {name: environment.get(variable) or None for name, variable in VARIABLES.items()}
    url = found["database_url"]
    if url and not url.startswith(("postgres://", "postgresql://")):
        raise Misuse("DATABASE_URL must start with postgresql://; leave it out to use SQLite.")
    nats = found["nats_url"]
    if nats and not nats.startswith(("nats://", "tls://", "ws://", "wss://")):
        raise Misuse(
            "NATS_URL must start with nats:// or tls://; leave it out to run an embedded server."
        )
    return Surroundings(**found)
