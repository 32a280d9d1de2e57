"""Can this set-up serve its base model? Asked before anything starts, so that nobody waits for a no.

| `[serve] url` | the base model                         | becomes                                         |
|---------------|----------------------------------------|-------------------------------------------------|
| none          | nobody has named one                   | nothing is served here, which is no mistake     |
| none          | not on this machine, or unsafe to load | `Misuse`, with what to name instead             |
| none          | needs a package that is not installed  | `Misuse`, with the line that installs it        |
| set           | nobody has named one                   | `Misuse`, with the names that the server lists  |
| set           | the server lists others                | `Misuse`, with these                            |
| set           | the server wants another key           | `Misuse`, with the variable to set              |
| set           | the server is away, or keeps no list   | it is waited for, which is no mistake           |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec

from upswing.config import Defaults, ServeConfig
from upswing.errors import Denied, Misuse, Transient
from upswing.serve.http_client import with_v1
from upswing.serve.readiness import list_models, probe_one_token
from upswing.train.bases.catalog import check_base

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
    "dashboard": (("nicegui",), "shows the loop in a browser (`upswing up`, `upswing dashboard`)"),
    "mcp": (("mcp",), "lets assistants ask the loop (`upswing mcp`)"),
    "reasoning": (("reasoning_gym",), "tasks of the slow bench `reasoning`"),
}
"""Extra → what it installs, and what for."""


def is_installed(package: str) -> bool:
    return find_spec(package) is not None


def missing_packages(extra: str, installed: Callable[[str], bool] = is_installed) -> list[str]:
    """The packages of an extra that are not here."""
    return [package for package in EXTRAS[extra][0] if not installed(package)]


def check_serving(
    config: ServeConfig,
    defaults: Defaults,
    key: str | None,
    *,
    base_named: bool,
    installed: Callable[[str], bool] = is_installed,
) -> None:
    """Raise `Misuse` with the sentence that helps; `base_named`: the base model is the user's own choice."""
    if config.url:
        _check_remote_server(with_v1(config.url), key, defaults.base_model if base_named else None)
    elif defaults.base_model is not None:
        _check_local_server(config, defaults.base_model, installed)


def _check_local_server(config: ServeConfig, base: str, installed: Callable[[str], bool]) -> None:
    if missing_packages("train", installed):
        raise Misuse(
            f"Serving `{base}` needs the extra `train`: pip install '.[train]'. Or name a server of "
            "your own with `url` in [serve], or start with --no-gateway to record only."
        )
    if config.engine == "llama" and missing_packages("llama", installed):
        raise Misuse(
            "`engine` in [serve] is llama, which needs its extra: pip install '.[llama]', or leave "
            "`engine` out."
        )
    check_base(base)


def _models_at(url: str, key: str | None, base: str | None) -> Sequence[str] | None:
    """What the server lists; None: it is away, keeps no list, or shows it to nobody. `Misuse` without the right key."""
    try:
        return list_models(url, key)
    except Transient:  # the wait for its first answer says what is wrong
        return None
    except Denied as error:
        try:
            if key and base:
                probe_one_token(
                    url, key, base
                )  # some servers hide their list from keys that may ask
                return None
        except (Transient, Misuse):
            return None
        except Denied:
            pass
        raise Misuse(
            f"{error} Set UPSWING_BACKEND_KEY_NAME={url}=KEY, or UPSWING_MODEL_SERVER_KEY=KEY."
        ) from None


def _check_remote_server(url: str, key: str | None, base: str | None) -> None:
    models = _models_at(url, key, base)
    names = f"it serves {', '.join(models[:10])}" if models else "ask it which models it serves"
    if base is None:
        raise Misuse(
            f"`url` in [serve] names {url}, but nothing names its model: set `base_model` in [train], or "
            f"RL_BASE_MODEL ({names})."
        )
    if models is not None and base not in models:
        raise Misuse(
            f"The server at {url} has no model {base!r}: {names}. Set `base_model` in [train], or "
            "RL_BASE_MODEL."
        )
