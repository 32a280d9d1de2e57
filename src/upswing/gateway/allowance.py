"""How far may trained models answer here, whatever the plan says?

Off, the baseline answers alone; a cap holds for all candidates together and keeps their proportion;
a version lets one of them through. `upswing.rl_models` says by which words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from upswing.gateway.plan import Candidate, Plan
from upswing.rl_models import is_version, read_rl_models


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


def read_allowance(environment: Mapping[str, str], *, production: bool | None = None) -> Allowance:
    """The environment's word, or `Misuse` about the one that cannot be understood.

    >>> read_allowance({"USE_RL_MODEL": "true", "RL_ROLLOUT_PERCENTAGE": "10"}, production=True)
    Allowance(enabled=True, most=0.1, version=None, fallback=True)
    >>> read_allowance({}, production=True).enabled
    False
    """
    said = read_rl_models(environment, production=production)
    return Allowance(said.enabled, said.percentage / 100, said.version, said.fallback)


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
