"""A model has all the traffic: is it still what it was when it was promoted?

| what is seen                                                       | answer    |
|--------------------------------------------------------------------|-----------|
| its backend is dead, half of its latest requests fail               | RollBack  |
| errors: above the limit, not by chance                              | RollBack  |
| both of these, but the holdback's fail a fifth as often, or more    | Degraded, unless its own exceed them, not by chance |
| reward: below the holdback's, by the limit, not by chance           | RollBack  |
| reward: below what it earned when it was promoted, by 0.10 or more  | Degraded  |
| none of these, or too little seen                                   | Keep      |

A holdback (`upswing.deploy.core.holdback`) runs beside it for some days; then nobody does. Errors are measured against the limit, and rewards against the value
frozen at promotion, less what chance may have added to it: a canary of few rewards may have been lucky. A fall of these may be the world's fault as well, so it asks for a new training, not
for the old model. While nothing stands by, nothing is rolled back: then a person is called (`ModelDegraded`).
"""

from __future__ import annotations

from math import isfinite, log1p, sqrt

from msgspec import Struct, field

from upswing.deploy.core.canary import RollBack
from upswing.deploy.core.error_rate import ErrorEvidence
from upswing.deploy.core.evidence import CanaryEvidence
from upswing.deploy.core.health import (
    FailureCause,
    baseline_also_fails,
    exceeds_error_limits,
    is_hard_failure,
)
from upswing.deploy.core.holdback import HoldbackEvidence
from upswing.deploy.core.key_weights import VoiceCounts
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rewards import MEMORY
from upswing.deploy.core.sequential_test import SequentialTest

_FAR = 0.9
_PRIOR_VARIANCE, _PRIOR_COUNT = 0.1, 10
_ERRORS = 2.0
"""Standard errors of the frozen value that luck may account for."""
FALL_CHANCE = 0.01
"""Of a false alarm over the whole time of a model."""


class KeepModel(Struct, frozen=True, tag="keep"):
    sentence: str


class ModelDegraded(Struct, frozen=True, tag="degraded"):
    """It is not what it was: train anew, tell a person."""

    reason: str
    sentence: str


WatchVerdict = KeepModel | ModelDegraded | RollBack


class RewardDropEvidence(Struct):
    """Rewards of one model against a frozen value."""

    frozen: float | None = None
    """What it earned when it was promoted; None: nobody knows, so nothing can fall."""
    drop: float = 0.10
    seq: int = 0
    rewards: int = 0
    mean: float = 0.0
    variance: float = _PRIOR_VARIANCE
    lower: SequentialTest = field(default_factory=SequentialTest)
    run_rewards: int = 0
    run_sum: float = 0.0
    error: float = 0.0
    """The standard error of the frozen value, which is a mean of some rewards."""

    @property
    def frozen_margin(self) -> float:
        """What chance may have added to the frozen value."""
        return _ERRORS * self.error

    def observe(self, seq: int, reward: float | None, *, revision: int = 1) -> bool:
        """Take one reward; the claim to refute is that half the drop is all there is."""
        if seq <= self.seq:
            return False
        self.seq = seq
        if revision != 1 or reward is None or not isfinite(reward) or self.frozen is None:
            return False
        y = min(1.0, max(0.0, reward))
        claim = max(0.0, self.frozen - self.frozen_margin - self.drop / 2)
        stake = self.drop / (self.variance + self.drop * self.drop)
        stake = min(stake, _FAR / (1 - claim)) if claim < 1 else stake
        if self.lower.bet(log1p(-stake * (y - claim))):
            self.run_rewards, self.run_sum = 0, 0.0
        self.run_rewards += 1
        self.run_sum += y
        self.rewards += 1
        self.mean += (y - self.mean) / self.rewards
        off = y - self.mean
        self.variance += (off * off - self.variance) / (self.rewards + _PRIOR_COUNT)
        return True

    @property
    def run_drop(self) -> float:
        """How far it lies below the frozen value, since the bets began to win."""
        if self.frozen is None or not self.run_rewards:
            return 0.0
        return self.frozen - self.run_sum / self.run_rewards


class PromotionWatch(Struct):
    """All that is remembered of a promoted model."""

    errors: ErrorEvidence = field(default_factory=ErrorEvidence)
    fall: RewardDropEvidence = field(default_factory=RewardDropEvidence)
    voices: VoiceCounts = field(default_factory=VoiceCounts)
    """Whose rewards they are."""
    held: HoldbackEvidence | None = None
    """Beside the model before it, while that keeps a share."""


def frozen_reward(evidence: CanaryEvidence, limits: RolloutLimits) -> float | None:
    """What the candidate earns at its promotion; None when too little is known."""
    rewards = evidence.rewards
    return rewards.mean_candidate if rewards.candidates >= limits.min_rewards else None


def frozen_error(evidence: CanaryEvidence) -> float:
    """The standard error of that; a mean that fades is worth twice as many rewards as it fades over."""
    rewards = evidence.rewards
    return sqrt(rewards.variance / max(1, min(rewards.candidates, 2 * MEMORY)))


def standard_error(mean: float, count: int) -> float:
    """The standard error of the mean of so many rewards from 0 to 1, at most.

    >>> standard_error(0.5, 25), standard_error(0.9, 100)
    (0.1, 0.03)
    """
    share = min(1.0, max(0.0, mean))
    return round(sqrt(share * (1 - share) / max(1, count)), 9)


def begin_watch(
    limits: RolloutLimits,
    frozen: float | None,
    *,
    drop: float = 0.10,
    reward_seq: int = 0,
    error: float = 0.0,
) -> PromotionWatch:
    """`error` is the standard error of what is frozen."""
    known = frozen if frozen is not None and 0 <= frozen <= 1 else None
    return PromotionWatch(
        ErrorEvidence(limit=limits.errors),
        RewardDropEvidence(frozen=known, drop=drop, seq=reward_seq, error=error),
    )


def judge_watch(
    watch: PromotionWatch,
    limits: RolloutLimits,
    *,
    backend_alive: bool = True,
    standby: bool = True,
) -> WatchVerdict:
    """The table."""
    found = _errors(watch, limits, backend_alive)
    if found is not None:
        reason, sentence = found
        if standby:
            return RollBack(reason, sentence)
        return ModelDegraded(reason, f"{sentence} No model stands by.")
    if watch.held and watch.errors.above_limit.rejects_null(limits.error_chance):
        counts, beside = watch.errors.candidate, watch.errors.baseline
        return ModelDegraded(
            FailureCause.ERRORS,
            f"{counts.error_rate:.1%} of its requests failed, and {beside.error_rate:.1%} of those of {watch.held.model_id} "
            "beside it: that may not be its fault.",
        )
    if standby and watch.held and (worse := watch.held.failing(limits)) is not None:
        return RollBack(FailureCause.REWARD, worse)
    fall = watch.fall
    if fall.lower.rejects_null(FALL_CHANCE) and fall.run_drop >= fall.drop + fall.frozen_margin:
        return ModelDegraded(
            FailureCause.REWARD,
            f"It earns {fall.run_drop:.3f} less than at its promotion, over its last "
            f"{fall.run_rewards} rewards.",
        )
    counts = watch.errors.candidate
    seen = (
        f"{counts.requests} requests since its promotion, {counts.error_rate:.1%} of them failed."
    )
    mismatch_sentence = watch.held.mismatch_sentence if watch.held else ""
    return KeepModel(f"{seen} {mismatch_sentence}".rstrip())


def _errors(
    watch: PromotionWatch, limits: RolloutLimits, alive: bool
) -> tuple[FailureCause, str] | None:
    """What rolls it back, for which no reward is waited."""
    errors, alone = watch.errors, watch.held is None
    if not alive:
        return FailureCause.BACKEND, "Its backend does not answer."
    if is_hard_failure(errors, limits, alone=alone):
        return (
            FailureCause.HARD,
            f"{errors.recent_candidate.error_rate:.0%} of its latest requests fail.",
        )
    counts = errors.candidate
    its_own = alone or not baseline_also_fails(
        errors, max(errors.recent_candidate.error_rate, counts.error_rate)
    )
    if exceeds_error_limits(errors, limits) or (
        its_own and errors.above_limit.rejects_null(limits.error_chance)
    ):
        return FailureCause.ERRORS, (
            f"{counts.errors} of its {counts.requests} requests failed ({counts.error_rate:.1%}): "
            f"more than {errors.limit:.1%}, and not by chance."
        )
    return None
