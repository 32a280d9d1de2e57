"""How far may trained models answer, by the word of the environment?

| switch                                       | means                                                       |
|----------------------------------------------|-------------------------------------------------------------|
| `USE_RL_MODEL=false`, or unset in production | the base model answers, even if a trained one was promoted  |
| `RL_MODEL_VERSION=v`                         | that model answers; rollouts do not touch this gateway      |
| `RL_ROLLOUT_PERCENTAGE=p`                    | at most p % of episodes get any trained model; the rest the base |
| `RL_FALLBACK_TO_BASE=false`                  | a failure of a candidate, or of a pinned model, reaches the client |

The first of the first three that is set decides: a model that is pinned answers all episodes, whatever the
percentage is, and none where trained models are off. `UPSWING_ENV`, else `NODE_ENV`, says `production` or anything
else; unset it is development. `RL_BASE_MODEL`, else `BASE_MODEL`, names the base for an agent that chooses one by itself.

The gateway and an agent's own process read the same words, and understand the same by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from upswing.errors import Misuse

USE, VERSION, PERCENTAGE = "USE_RL_MODEL", "RL_MODEL_VERSION", "RL_ROLLOUT_PERCENTAGE"
PINNABLE = frozenset({"base", "passed", "canary", "deployed", "retired"})
"""States of models that RL_MODEL_VERSION may name: validated, and not withdrawn for a fault."""
_YES_OR_NO = {"1": True, "true": True, "yes": True, "on": True} | {
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
_KINDS = {
    "production": True,
    "prod": True,
    "development": False,
    "dev": False,
    "local": False,
    "test": False,
    "staging": False,
}


@dataclass(frozen=True, slots=True)
class RlModels:
    """What the environment permits."""

    enabled: bool = True
    percentage: float = 100.0
    """Of the episodes, 0 to 100, that trained models may have together."""
    version: str | None = None
    """The only one that answers: its id, or what its id ends in; None: whoever was promoted."""
    fallback: bool = True
    base_model: str | None = None


def read_rl_models(environment: Mapping[str, str], *, production: bool | None = None) -> RlModels:
    """The environment's word, or `Misuse` about the one that cannot be understood.

    >>> read_rl_models({"USE_RL_MODEL": "true", "RL_ROLLOUT_PERCENTAGE": "10"}, production=True)
    RlModels(enabled=True, percentage=10.0, version=None, fallback=True, base_model=None)
    >>> read_rl_models({"NODE_ENV": "production"}).enabled
    False
    """
    if production is None:
        production = in_production(environment)
    version = environment.get(VERSION, "").strip()
    base = environment.get("RL_BASE_MODEL") or environment.get("BASE_MODEL") or ""
    return RlModels(
        enabled=_switch(environment, USE, not production),
        percentage=_percentage(environment.get(PERCENTAGE, "")),
        version=None if version in {"", "latest"} else version,
        fallback=_switch(environment, "RL_FALLBACK_TO_BASE", default=True),
        base_model=base.strip() or None,
    )


def in_production(environment: Mapping[str, str]) -> bool:
    """Is this production? `UPSWING_ENV` is ours and checked; `NODE_ENV` has words of its own.

    >>> [in_production(e) for e in ({}, {"NODE_ENV": "production"}, {"NODE_ENV": "ci"})]
    [False, True, False]
    >>> in_production({"UPSWING_ENV": "development", "NODE_ENV": "production"})
    False
    """
    own = environment.get("UPSWING_ENV", "").strip().lower()
    if own and own not in _KINDS:
        raise Misuse(
            f"UPSWING_ENV is {environment['UPSWING_ENV']!r}: say production, staging or development."
        )
    if own:
        return _KINDS[own]
    return _KINDS.get(environment.get("NODE_ENV", "").strip().lower(), False)


def is_version(model_id: str, version: str) -> bool:
    """Does this id name that version?

    >>> [is_version("agent-zero-rl-v12", v) for v in ("agent-zero-rl-v12", "v12", "12", "v2", "2")]
    [True, True, True, False, False]
    """
    bare = version.removeprefix("v")
    return model_id == version or model_id.endswith(f"-v{bare}")


def _switch(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name, "").strip().lower()
    if text and text not in _YES_OR_NO:
        raise Misuse(f"{name} is {environment[name]!r}: say true or false.")
    return _YES_OR_NO.get(text, default)


def _percentage(text: str) -> float:
    plain = text.strip().removesuffix("%")
    if not plain:
        return 100.0
    try:
        percent = float(plain)
    except ValueError:
        percent = math.nan
    if not 0 <= percent <= 100:
        raise Misuse(f"{PERCENTAGE} is {text!r}: give a number from 0 to 100.")
    return percent
