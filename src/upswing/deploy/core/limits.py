"""Which losses matter, how sure must one be, and how much must have been seen?"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Share = Annotated[float, Meta(gt=0, lt=1)]


class RolloutLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """What matters to a rollout.

    The thresholds are effect sizes: compared raw, on a few samples, they would roll back one healthy
    model in three.
    """

    errors: Annotated[float, Meta(gt=0, lt=0.5)] = 0.05
    """Share of failed requests that a candidate may have; ROLLBACK_ERROR_THRESHOLD wins."""
    reward: Annotated[float, Meta(gt=0, le=0.5)] = 0.05
    """How much less raw reward than the baseline's matters; ROLLBACK_REWARD_THRESHOLD wins."""
    complaints: Annotated[float, Meta(gt=1, le=100)] = 2.0
    """How many times the baseline's rate of negative feedback matters."""
    reward_chance: Share = 0.010
    """Chance of a false alarm over a whole rollout, however often one looks. With the next three it makes
    2 %, beside the 5 % of healthy models that a rollout may lose at most."""
    error_chance: Share = 0.003
    complaint_chance: Share = 0.003
    guard_chance: Share = 0.004
    """All guards of segments together (`upswing.deploy.core.guards`)."""
    promotion_chance: Share = 0.05
    """Chance that a candidate which loses more than `reward` is ever taken to have shown that it does not."""
    min_rewards: Annotated[int, Meta(ge=1)] = 25
    """Rewards, of the candidate and of the baseline each, below which nothing is called healthy."""
    min_users: Annotated[int, Meta(ge=2)] = 40
    """Users below which nothing is decided where chance chose for users, not for episodes."""
    min_requests: Annotated[int, Meta(ge=1)] = 25
    """Requests of the candidate below which nothing is called healthy."""
    missing: Share = 0.2
    """Share of the candidate's rewards that may be missing: what is not scored may be what is bad."""
    hard_share: Share = 0.5
    """Share of failed requests that does not wait for any test."""
    hard_requests: Annotated[int, Meta(ge=1)] = 10
    """Requests below which even that is chance."""
