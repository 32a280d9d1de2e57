"""How far may trained models answer here, whatever the plan says?

| variable                | what it does                                                       |
|-------------------------|--------------------------------------------------------------------|
| `USE_RL_MODEL`          | off: the baseline answers alone; unset: on, and off in production  |
| `RL_ROLLOUT_PERCENTAGE` | caps what all candidates get together; their proportion stays      |
| `RL_MODEL_VERSION`      | only this candidate answers beside the baseline                    |
| `RL_FALLBACK_TO_BASE`   | off: a candidate's failure reaches the client; unset: on           |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from upswing.errors import Misuse
from upswing.gateway.plan import Candidate, Plan

_YES = {"1": True, "true": True, "yes": True, "on": True}
_NO = {"0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Allowance:
    """What this gateway permits."""

    enabled: bool = True
    most: float = 1.0
    """The share, 0 to 1, that all candidates may have together."""
    version: str | None = None
    """The only candidate that is let through: its id, or what its id ends in, such as `v3`."""
    fallback: bool = True

    def told(self, plan: Plan | None) -> dict[str, object]:
        """What the start-up line says."""
        return {
            "enabled": self.enabled,
            "rollout_percentage": self.most * 100,
            "model_version": self.version or "latest",
            "fallback_to_base": self.fallback,
            "baseline": plan.baseline.model_id if plan else None,
            "candidates": {c.model.model_id: c.share for c in allowed(plan, self)} if plan else {},
        }


def read_allowance(environment: Mapping[str, str], *, production: bool = False) -> Allowance:
    """The environment's word, or `Misuse` about the one that cannot be understood.

    >>> read_allowance({"USE_RL_MODEL": "true", "RL_ROLLOUT_PERCENTAGE": "10"}, production=True)
    Allowance(enabled=True, most=0.1, version=None, fallback=True)
    >>> read_allowance({}, production=True).enabled
    False
    """
    version = environment.get("RL_MODEL_VERSION", "").strip()
    return Allowance(
        enabled=_switch(environment, "USE_RL_MODEL", not production),
        most=_percentage(environment.get("RL_ROLLOUT_PERCENTAGE", "")),
        version=None if version in {"", "latest"} else version,
        fallback=_switch(environment, "RL_FALLBACK_TO_BASE", default=True),
    )


def allowed(plan: Plan, allowance: Allowance) -> tuple[Candidate, ...]:
    """The candidates that may answer, with the shares they may have."""
    if not allowance.enabled:
        return ()
    chosen = [
        candidate
        for candidate in plan.candidates
        if allowance.version is None or is_version(candidate.model.model_id, allowance.version)
    ]
    total = math.fsum(candidate.share for candidate in chosen)
    if total > allowance.most:
        scale = allowance.most / total
        chosen = [msgspec.structs.replace(each, share=each.share * scale) for each in chosen]
    return tuple(chosen)


def is_version(model_id: str, version: str) -> bool:
    """Does this id name that version?

    >>> [is_version("agent-zero-rl-v12", v) for v in ("agent-zero-rl-v12", "v12", "12", "v2", "2")]
    [True, True, True, False, False]
    """
    bare = version.removeprefix("v")
    return model_id == version or model_id.endswith(f"-v{bare}")


def _switch(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name, "").strip().lower()
    if text and text not in _YES and text not in _NO:
        raise Misuse(f"{name} is {environment[name]!r}: say true or false.")
    return {**_YES, **_NO}.get(text, default)


def _percentage(text: str) -> float:
    plain = text.strip().removesuffix("%")
    if not plain:
        return 1.0
    try:
        percent = float(plain)
    except ValueError:
        percent = math.nan
    if not 0 <= percent <= 100:
        raise Misuse(f"RL_ROLLOUT_PERCENTAGE is {text!r}: give a number from 0 to 100.")
    return percent / 100
