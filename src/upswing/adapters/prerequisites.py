"""Can this set-up serve its base model? Asked before anything starts, so that nobody waits for a no.

| `[serve] url` | the base model                         | becomes                                         |
|---------------|----------------------------------------|-------------------------------------------------|
| none          | nobody has named one                   | nothing is served here, which is no mistake     |
| none          | not on this machine, or unsafe to load | `Misuse`, with what to name instead             |
| none          | needs a package that is not installed  | `Misuse`, with the line that installs it        |
| set           | nobody has named one                   | `Misuse`, with the names that the server lists  |
| set           | the server lists others                | `Misuse`, with these                            |
| set           | the server is away, or keeps no list   | it is waited for, which is no mistake           |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from upswing.adapters.bases import check
from upswing.adapters.exchange import v1
from upswing.adapters.one_token import listed
from upswing.config import Defaults, ServeConfig
from upswing.errors import Denied, Misuse, Transient

EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "train": (
        ("torch", "transformers", "peft", "safetensors", "tokenizers"),
        "trains and serves models on this machine",
    ),
    "llama": (("xllamacpp",), "serves GGUF bases such as `smollm2` several times as fast"),
    "agents": (("openai",), "test agents (`upswing agents spawn`, the demo)"),
    "postgres": (("psycopg",), "keeps the store in PostgreSQL"),
    "lint": (("ruff", "bandit"), "lints the code that agents write, for their rewards"),
    "inspect": (("inspect_ai",), "validates with tasks of Inspect"),
    "presidio": (("presidio_analyzer",), "lets Presidio find names of people, too"),
    "reasoning": (("reasoning_gym",), "tasks of the slow bench `reasoning`"),
}
"""Extra → what it installs, and what for."""


def is_installed(package: str) -> bool:
    return find_spec(package) is not None


def missing(extra: str, installed: Callable[[str], bool] = is_installed) -> list[str]:
    """The packages of an extra that are not here."""
    return [package for package in EXTRAS[extra][0] if not installed(package)]


def check_serving(
    config: ServeConfig, chosen: Defaults, key: str | None, *, named: bool,
    installed: Callable[[str], bool] = is_installed,
) -> None:  # fmt: skip
    """Raise `Misuse` with the sentence that helps; `named`: the base model is the user's own choice."""
    if config.url:
        _check_theirs(v1(config.url), key, chosen.base_model if named else None)
    elif chosen.base_model is not None:
        _check_ours(config, chosen.base_model, installed)


def _check_ours(config: ServeConfig, base: str, installed: Callable[[str], bool]) -> None:
    if missing("train", installed):
        raise Misuse(
            f"Serving `{base}` needs the extra `train`: pip install 'upswing[train]'. Or name a server of "
            "your own with `url` in [serve], or start with --no-gateway to record only."
        )
    if config.engine == "llama" and missing("llama", installed):
        raise Misuse(
            "`engine` in [serve] is llama, which needs its extra: pip install 'upswing[llama]', or leave "
            "`engine` out."
        )
    check(base)


def _check_theirs(url: str, key: str | None, base: str | None) -> None:
    there: Sequence[str] | None = None
    with contextlib.suppress(Transient, Denied):  # the wait for its first answer says what is wrong
        there = listed(url, key)
    names = f"it serves {', '.join(there[:10])}" if there else "ask it which models it serves"
    if base is None:
        raise Misuse(
            f"`url` in [serve] names {url}, but nothing names its model: set `base_model` in [train], or "
            f"RL_BASE_MODEL ({names})."
        )
    if there is not None and base not in there:
        raise Misuse(
            f"The server at {url} has no model {base!r}: {names}. Set `base_model` in [train], or "
            "RL_BASE_MODEL."
        )
