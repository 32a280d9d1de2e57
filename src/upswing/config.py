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
from typing import Annotated, Any, Literal

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


class RewardConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How good it was."""

    method: Literal["z-score", "min-max"] = "z-score"
    """How a score is compared with the last thousand."""
    weights: dict[str, float] = {}
    """By component; they sum to 1. REWARD_WEIGHT_<NAME> in the environment wins."""
    min_agents: Annotated[int, Meta(ge=2, le=1000)] = 5
    """Different agents that make a group worth comparing, 2 to 1000."""
    lint: bool = True
    """Whether Python code that agents wrote is linted when nothing is reported of it."""
    lint_seconds: Annotated[float, Meta(gt=0, le=10)] = 0.3
    """How long a reward waits for the linter, up to 10: then it goes without."""


class JudgeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who compares the members of a group. Without a model, the world's own numbers do."""

    model: str | None = None
    """JUDGE_MODEL in the environment wins."""
    base_url: str | None = None
    """Of any OpenAI-compatible endpoint; OPENAI_BASE_URL in the environment wins."""
    rubric: str | None = None
    """What makes one attempt better than another; a general rubric is built in."""
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 100
    max_tokens_per_day: Annotated[int, Meta(ge=0)] | None = 5_000_000
    """Of prompts and answers together; beyond it, groups stay unjudged and say so."""
    max_usd_per_day: Annotated[float, Meta(ge=0)] | None = None
    prompt_price: Annotated[float, Meta(ge=0)] = 0.0
    """US dollars for a million prompt tokens, so that spending can be told and bounded."""
    completion_price: Annotated[float, Meta(ge=0)] = 0.0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be decided."""

    collect: CollectConfig = CollectConfig()
    redact: RedactConfig = RedactConfig()
    reward: RewardConfig = RewardConfig()
    judge: JudgeConfig = JudgeConfig()


class Surroundings(msgspec.Struct, frozen=True):
    """What the environment says."""

    nats_url: str | None = None
    """NATS_URL: use this server or cluster instead of an embedded one."""
    database_url: str | None = None
    """DATABASE_URL: use this PostgreSQL instead of SQLite in the data directory."""
    api_key: str | None = None
    """AGENTGYM_RL_API_KEY: the operator's key; made at first start when it is not set."""
    judge_model: str | None = None
    """JUDGE_MODEL: the model that compares the members of a group."""
    judge_key: str | None = None
    """OPENAI_API_KEY: for the judge's endpoint."""
    judge_url: str | None = None
    """OPENAI_BASE_URL: the judge's endpoint, if it is not OpenAI's own."""
    weights: dict[str, str] = {}
    """REWARD_WEIGHT_TASK_COMPLETION, …_EFFICIENCY, …_CODE_QUALITY, …_USER_FEEDBACK, and plugins'."""
    storage_path: str | None = None
    """TRAJECTORY_STORAGE_PATH: archive redacted trajectories there (a path, file:// or s3://)."""


VARIABLES = {
    "nats_url": "NATS_URL",
    "database_url": "DATABASE_URL",
    "api_key": "AGENTGYM_RL_API_KEY",
    "storage_path": "TRAJECTORY_STORAGE_PATH",
    "judge_model": "JUDGE_MODEL",
    "judge_key": "OPENAI_API_KEY",
    "judge_url": "OPENAI_BASE_URL",
}


WEIGHT = "REWARD_WEIGHT_"


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
    weights = {name: value for name, value in environment.items() if name.startswith(WEIGHT)}
    return Surroundings(**found, weights=weights)
