"""Who may answer at this gateway, whatever the plan says? Its switches, the first that holds.

| the switch                                              | who answers                                    |
|---------------------------------------------------------|------------------------------------------------|
| USE_RL_MODEL is off                                     | the base                                       |
| RL_MODEL_VERSION names a model that can be had          | that one                                       |
| RL_MODEL_VERSION names one that cannot                  | the base, and a person is called               |
| RL_ROLLOUT_PERCENTAGE is less than trained models get   | they shrink in proportion; the base the rest   |
| none of them                                            | as the plan says                               |

`upswing.model_flags` lists the accepted values. Whoever answers because of a switch is nobody's evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from upswing.contracts.traffic import Candidate, Model, Plan, Switches
from upswing.errors import Misuse
from upswing.model_flags import PERCENTAGE, PINNABLE, USE, VERSION, is_version, read_rl_models

_TOLERANCE = 1e-12
_LISTED = 20
"""Models that a refusal names, the newest first."""


@dataclass(frozen=True, slots=True)
class ServingPolicy:
    """What this gateway permits."""

    enabled: bool = True
    max_share: float = 1.0
    """The share, 0 to 1, that all trained models may have together."""
    pinned_version: str | None = None
    """The only model that answers: its id, or what its id ends in, such as `v3`."""
    fallback: bool = True

    @property
    def switches(self) -> Switches:
        """As the controller hears of them."""
        return Switches(self.enabled, self.pinned_version, self.max_share * 100)

    def summary(self, plan: Plan | None) -> dict[str, object]:
        """For the log line at the start."""
        return {
            "enabled": self.enabled,
            "rollout_percentage": self.max_share * 100,
            "model_version": self.pinned_version or "latest",
            "fallback_to_base": self.fallback,
            "baseline": plan.baseline.model_id if plan else None,
            "candidates": {c.model.model_id: c.share for c in allowed_candidates(plan, self)}
            if plan
            else {},
        }


@dataclass(frozen=True, slots=True)
class SoleModel:
    """One model answers everybody, because of a switch."""

    model: Model | None
    """None: it is the base, and nobody serves that."""
    switch: str
    alert: str = ""
    """For an operator; empty: nothing."""


@dataclass(frozen=True, slots=True)
class CappedShares:
    """What the plan gives, as far as the cap lets it."""

    candidates: tuple[Candidate, ...]
    holdback: Candidate | None
    base_share: float
    """What the base gets because trained models may not."""


def read_serving_policy(
    environment: Mapping[str, str], *, production: bool | None = None
) -> ServingPolicy:
    """The policy that the environment sets, or `Misuse` about a value that cannot be understood.

    >>> read_serving_policy({"USE_RL_MODEL": "true", "RL_ROLLOUT_PERCENTAGE": "10"}, production=True)
    ServingPolicy(enabled=True, max_share=0.1, pinned_version=None, fallback=True)
    >>> read_serving_policy({}, production=True).enabled
    False
    """
    flags = read_rl_models(environment, production=production)
    return ServingPolicy(flags.enabled, flags.percentage / 100, flags.version, flags.fallback)


def sole_model(plan: Plan, policy: ServingPolicy) -> SoleModel | None:
    """The model that a switch gives everything to; None: shares decide."""
    if not policy.enabled:
        return SoleModel(plan.untrained, USE)
    if policy.pinned_version is not None:
        if (found := find_pinned_model(plan, policy.pinned_version)) is not None:
            return SoleModel(found, VERSION)
        return SoleModel(plan.untrained, VERSION, _pin_alert(plan, policy.pinned_version))
    return None if policy.max_share > 0 else SoleModel(plan.untrained, PERCENTAGE)


def find_pinned_model(plan: Plan, pinned_version: str) -> Model | None:
    """The model of this version, if it can be had; an exact id comes before an ending."""
    held = (plan.holdback.model,) if plan.holdback else ()
    base = (plan.base,) if plan.base else ()
    known = (*plan.models(), *held, *base, *plan.pinned)
    found = [model for model in known if is_version(model.model_id, pinned_version)]
    return min(found, key=lambda model: model.model_id != pinned_version, default=None)


def check_pin(pinned_version: str, states: Mapping[str, str]) -> None:
    """`Misuse`, with what there is, when no model of these may be pinned by that version.

    >>> check_pin("v3", {"agent-rl-v3": "retired", "tiny": "base"})
    >>> check_pin("v4", {"agent-rl-v4": "rolled_back", "agent-rl-v3": "deployed"})
    Traceback (most recent call last):
    upswing.errors.Misuse: RL_MODEL_VERSION is 'v4', and agent-rl-v4 is rolled_back. There are: agent-rl-v3 (deployed).
    """
    found = [name for name in states if is_version(name, pinned_version)]
    if any(states[name] in PINNABLE for name in found):
        return
    why = f"{found[0]} is {states[found[0]]}" if found else "no model is called so"
    there = [f"{name} ({state})" for name, state in states.items() if state in PINNABLE][:_LISTED]
    raise Misuse(
        f"RL_MODEL_VERSION is {pinned_version!r}, and {why}. There are: {', '.join(there) or 'none'}."
    )


def _pin_alert(plan: Plan, pinned_version: str) -> str:
    gone = next((name for name in plan.withdrawn if is_version(name, pinned_version)), None)
    why = f"{gone} is withdrawn" if gone else "the traffic plan has no such model"
    return f"RL_MODEL_VERSION is {pinned_version!r}, and {why}: the base model answers here."


def capped_shares(plan: Plan, policy: ServingPolicy, *, leased: bool = True) -> CappedShares:
    """The plan's shares under the cap; trained models keep their proportion."""
    candidates, held = (plan.candidates if leased else ()), plan.holdback
    parts = [*candidates, *((held,) if held else ())]
    base = plan.untrained.model_id if plan.untrained else ""
    rest = max(0.0, 1 - math.fsum(part.share for part in parts))
    trained = math.fsum(part.share for part in parts if part.model.model_id != base)
    trained += rest if plan.baseline.model_id != base else 0.0
    if trained <= policy.max_share + _TOLERANCE:
        return CappedShares(candidates, held, 0.0)
    scale = policy.max_share / trained

    def scaled(part: Candidate) -> Candidate:
        if part.model.model_id == base:
            return part
        return msgspec.structs.replace(part, share=part.share * scale)

    return CappedShares(
        tuple(map(scaled, candidates)), scaled(held) if held else None, trained - policy.max_share
    )


def allowed_candidates(plan: Plan, policy: ServingPolicy) -> tuple[Candidate, ...]:
    """The candidates that may answer, with the shares they may have."""
    return () if sole_model(plan, policy) else capped_shares(plan, policy).candidates
