"""What has the operator decided about rollouts? The file's `[deploy]`, and the environment, which wins.

| variable                  | knob               |                                                   |
|---------------------------|--------------------|---------------------------------------------------|
| CANARY_INITIAL_TRAFFIC    | `boldness.initial` | a share up to 0.5; 0.10 and `10%` mean the same, 10 is refused |
| CANARY_RAMP_HOURS         | `ramp_hours`       | hours from the first share to 100 %                |
| ROLLBACK_ERROR_THRESHOLD  | `limits.errors`    | a share below 0.5; 0.05 and `5%` mean the same, 5 is refused |
| ROLLBACK_REWARD_THRESHOLD | `limits.reward`    | −0.05 and 0.05 mean the same: a fall               |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from upswing.contracts.field_errors import locate_mistake
from upswing.contracts.typed import from_tree
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.queueing import NewcomerPolicy
from upswing.deploy.core.strategy import StrategyPolicy
from upswing.errors import Misuse


class DeployPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    boldness: StrategyPolicy = StrategyPolicy()
    limits: RolloutLimits = RolloutLimits()
    ramp_hours: Annotated[float, Meta(gt=0, le=720)] = 4.0
    """Hours from the first share to 100 %, at the earliest; up to 720. CANARY_RAMP_HOURS wins."""
    samples: Annotated[float, Meta(ge=0, le=1000)] = 1.0
    """Scales how many rewards each step has to see."""
    undecided_days: Annotated[float, Meta(gt=0, le=365)] = 7.0
    """Days after which a canary that nobody could decide goes back."""
    holdback: Annotated[float, Meta(ge=0, le=0.5)] = 0.05
    """Share of new episodes, up to 0.5, that stays with the model before a promoted one while that is watched, so
    that both can still be compared; 0: none does."""
    watch_days: Annotated[float, Meta(gt=0, le=365)] = 7.0
    """Days after a promotion for which the holdback is kept; up to 365."""
    newcomers: NewcomerPolicy = "wait"
    """What a model does that is ready while another is being rolled out."""


def deploy_policy_of(
    environment: Mapping[str, str], configured: Mapping[str, Any] | None = None
) -> DeployPolicy:
    """The policy, or `Misuse` with what is wrong.

    >>> deploy_policy_of({"ROLLBACK_REWARD_THRESHOLD": "-0.05"}).limits.reward
    0.05
    """
    try:
        policy = from_tree(dict(configured or {}), DeployPolicy)
    except msgspec.ValidationError as error:
        place, what = locate_mistake(error, DeployPolicy)
        raise Misuse(f"[deploy] {place}: {what}.") from None
    initial = _read(environment, "CANARY_INITIAL_TRAFFIC", 0.5, percent=True)
    hours = _read(environment, "CANARY_RAMP_HOURS", 720)
    errors = _read(environment, "ROLLBACK_ERROR_THRESHOLD", 0.499, percent=True)
    reward = _read(environment, "ROLLBACK_REWARD_THRESHOLD", 0.5, signed=True)
    boldness, limits = policy.boldness, policy.limits
    return replace(
        policy,
        boldness=boldness if initial is None else replace(boldness, initial=initial),
        ramp_hours=policy.ramp_hours if hours is None else hours,
        limits=replace(
            limits,
            errors=limits.errors if errors is None else errors,
            reward=limits.reward if reward is None else reward,
        ),
    )


def _read(
    environment: Mapping[str, str],
    name: str,
    most: float,
    *,
    percent: bool = False,
    signed: bool = False,
) -> float | None:
    """A number above 0 up to `most`; None when the variable is not set."""
    text = environment.get(name, "").strip()
    if not text:
        return None
    marked = percent and text.endswith("%")
    try:
        value = float(text.removesuffix("%") if marked else text)
    except ValueError:
        value = math.nan
    value = abs(value) if signed else value
    if marked:
        value /= 100
    elif percent and 1 <= value <= 100:
        raise Misuse(
            f"{name} is {text[:40]!r}, and it is a share: {value:g} % is {value / 100:g}, or `{value:g}%`."
        )
    if not 0 < value <= most:
        raise Misuse(f"{name} is {text[:40]!r}: give a number above 0, up to {most:g}.")
    return value
