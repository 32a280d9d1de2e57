"""Who may answer at this gateway, whatever the plan says? Its switches, the first that holds.

| the switch                                              | who answers                                    |
|---------------------------------------------------------|------------------------------------------------|
| USE_RL_MODEL is off                                     | the base                                       |
| RL_MODEL_VERSION names a model that can be had          | that one                                       |
| RL_MODEL_VERSION names one that cannot                  | the base, and a person is called               |
| RL_ROLLOUT_PERCENTAGE is less than trained models get   | they shrink in proportion; the base the rest   |
| none of them                                            | as the plan says                               |

`upswing.rl_models` says by which words. Whoever answers because of a switch is nobody's evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from upswing.contracts.traffic import Switches
from upswing.errors import Misuse
from upswing.gateway.plan import Candidate, Model, Plan
from upswing.rl_models import PERCENTAGE, PINNABLE, USE, VERSION, is_version, read_rl_models

_TOLERANCE = 1e-12
_LISTED = 20
"""Models that a refusal names, the newest first."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What this gateway permits."""

    enabled: bool = True
    most: float = 1.0
    """The share, 0 to 1, that all trained models may have together."""
    version: str | None = None
    """The only model that answers: its id, or what its id ends in, such as `v3`."""
    fallback: bool = True

    @property
    def switches(self) -> Switches:
        """As the controller hears of them."""
        return Switches(self.enabled, self.version, self.most * 100)

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


@dataclass(frozen=True, slots=True)
class Sole:
    """One model answers everybody, because of a switch."""

    model: Model | None
    """None: it is the base, and nobody serves that."""
    switch: str
    missing: str = ""
    """What a person should hear of."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What the plan gives, as far as the cap lets it."""

    candidates: tuple[Candidate, ...]
    holdback: Candidate | None
    beyond: float
    """What the base gets because trained models may not."""


def read_allowance(environment: Mapping[str, str], *, production: bool | None = None) -> Allowance:
    """The environment's word, or `Misuse` about the one that cannot be understood.

    >>> read_allowance({"USE_RL_MODEL": "true", "RL_ROLLOUT_PERCENTAGE": "10"}, production=True)
    Allowance(enabled=True, most=0.1, version=None, fallback=True)
    >>> read_allowance({}, production=True).enabled
    False
    """
    said = read_rl_models(environment, production=production)
    return Allowance(said.enabled, said.percentage / 100, said.version, said.fallback)


def sole(plan: Plan, allowance: Allowance) -> Sole | None:
    """The model that a switch gives everything to; None: shares decide."""
    if not allowance.enabled:
        return Sole(plan.untrained, USE)
    if allowance.version is not None:
        if (found := pinned(plan, allowance.version)) is not None:
            return Sole(found, VERSION)
        return Sole(plan.untrained, VERSION, _missing(plan, allowance.version))
    return None if allowance.most > 0 else Sole(plan.untrained, PERCENTAGE)


def pinned(plan: Plan, version: str) -> Model | None:
    """The model of this version, if it can be had; an exact id comes before an ending."""
    held = (plan.holdback.model,) if plan.holdback else ()
    base = (plan.base,) if plan.base else ()
    known = (*plan.models(), *held, *base, *plan.pinned)
    found = [model for model in known if is_version(model.model_id, version)]
    return min(found, key=lambda model: model.model_id != version, default=None)


def check_pin(version: str, states: Mapping[str, str]) -> None:
    """`Misuse`, with what there is, when no model of these may be pinned by that version.

    >>> check_pin("v3", {"agent-rl-v3": "retired", "tiny": "base"})
    >>> check_pin("v4", {"agent-rl-v4": "rolled_back", "agent-rl-v3": "deployed"})
    Traceback (most recent call last):
    upswing.errors.Misuse: RL_MODEL_VERSION is 'v4', and agent-rl-v4 is rolled_back. There are: agent-rl-v3 (deployed).
    """
    found = [name for name in states if is_version(name, version)]
    if any(states[name] in PINNABLE for name in found):
        return
    why = f"{found[0]} is {states[found[0]]}" if found else "no model is called so"
    there = [f"{name} ({state})" for name, state in states.items() if state in PINNABLE][:_LISTED]
    raise Misuse(
        f"RL_MODEL_VERSION is {version!r}, and {why}. There are: {', '.join(there) or 'none'}."
    )


def _missing(plan: Plan, version: str) -> str:
    gone = next((name for name in plan.withdrawn if is_version(name, version)), None)
    why = f"{gone} is withdrawn" if gone else "the traffic plan has no such model"
    return f"RL_MODEL_VERSION is {version!r}, and {why}: the base model answers here."


def allotted(plan: Plan, allowance: Allowance, *, leased: bool = True) -> Shares:
    """The plan's shares under the cap; trained models keep their proportion."""
    candidates, held = (plan.candidates if leased else ()), plan.holdback
    parts = [*candidates, *((held,) if held else ())]
    base = plan.untrained.model_id if plan.untrained else ""
    rest = max(0.0, 1 - math.fsum(part.share for part in parts))
    trained = math.fsum(part.share for part in parts if part.model.model_id != base)
    trained += rest if plan.baseline.model_id != base else 0.0
    if trained <= allowance.most + _TOLERANCE:
        return Shares(candidates, held, 0.0)
    scale = allowance.most / trained

    def scaled(part: Candidate) -> Candidate:
        if part.model.model_id == base:
            return part
        return msgspec.structs.replace(part, share=part.share * scale)

    return Shares(
        tuple(map(scaled, candidates)), scaled(held) if held else None, trained - allowance.most
    )


def allowed(plan: Plan, allowance: Allowance) -> tuple[Candidate, ...]:
    """The candidates that may answer, with the shares they may have."""
    return () if sole(plan, allowance) else allotted(plan, allowance).candidates
