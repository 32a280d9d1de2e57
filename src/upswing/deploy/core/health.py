"""Is this candidate failing, healthy, or can nobody say yet?

| what is seen                                                           | verdict      |
|------------------------------------------------------------------------|--------------|
| its backend is dead                                                    | failing      |
| half of its latest requests or more fail, the baseline's do not        | failing      |
| errors: above the limit and above the baseline's, not by chance        | failing      |
| reward: below the baseline's, not by chance, by the limit or more      | failing      |
| complaints: more than about the baseline, not by chance, twice as many | failing      |
| a guard: a part of the traffic loses, not by chance                    | failing      |
| too few users, where chance chose for users                            | inconclusive |
| a guard is losing, and that may be chance                              | inconclusive |
| too little seen of either side, or too many rewards missing            | inconclusive |
| fewer episodes of either side come back than were drawn                | inconclusive |
| errors: above the limit, not by chance, but the baseline's are too     | inconclusive |
| none of these                                                          | healthy      |

*Not by chance* means that a test which may be looked at as often as one likes has ruled chance out. A
healthy candidate is *proven* when it is also shown not to lose more than the limit.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from upswing.deploy.core.complaints import ComplaintEvidence
from upswing.deploy.core.error_rate import ErrorEvidence
from upswing.deploy.core.evidence import CanaryEvidence
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rewards import RewardEvidence

_WORTH_TELLING = 0.001


class HealthStatus(StrEnum):
    HEALTHY = "healthy"
    INCONCLUSIVE = "inconclusive"
    FAILING = "failing"


class FailureCause(StrEnum):
    """Why a candidate is failing, in the words that announcements and incidents carry."""

    BACKEND = "backend_dead"
    HARD = "hard_failure"
    ERRORS = "high_error_rate"
    REWARD = "performance_degradation"
    COMPLAINTS = "user_dissatisfaction"
    SEGMENT = "segment_degradation"


class CanaryFigures(Struct, frozen=True):
    """What the verdict rests on."""

    requests: int
    error_share: float
    baseline_error_share: float
    rewards: int
    baseline_rewards: int
    missing: int
    difference: float | None
    """Reward of the candidate minus the baseline's, neighbours compared."""
    lower: float
    """The difference lies between these two, whenever one looks."""
    upper: float
    complaints: int
    baseline_complaints: int
    odds: dict[str, float]
    """By test: how much a bettor against "no worse" has multiplied their stake."""


class HealthVerdict(Struct, frozen=True):
    health: HealthStatus
    sentence: str
    rewards: int = 0
    """Rewards of the candidate that this rests on."""
    proven: bool = False
    """Shown not to lose more than the limit."""
    cause: FailureCause | None = None
    """Of a failing one."""
    too_few_users: bool = False
    """It can be decided only by more users, by a person, or by letting chance choose for episodes."""


def judge_health(
    evidence: CanaryEvidence, limits: RolloutLimits, *, backend_alive: bool = True
) -> HealthVerdict:
    """The first row of the table that holds."""
    rewards = evidence.rewards
    found, few = _broken(evidence, limits, backend_alive), _too_few_users(evidence, limits)
    if found is None and few is None:
        found = _worse(evidence, limits)
    if found is not None:
        cause, sentence = found
        return HealthVerdict(HealthStatus.FAILING, sentence, rewards.candidates, False, cause)
    if few is not None:
        return HealthVerdict(HealthStatus.INCONCLUSIVE, few, rewards.candidates, too_few_users=True)
    doubt = _missing_evidence(evidence, limits)
    if doubt is not None:
        return HealthVerdict(
            HealthStatus.INCONCLUSIVE,
            doubt + evidence.voices.sentence,
            rewards.candidates,
            too_few_users=_needs_users(evidence),
        )
    upward_bias = evidence.lost.upward_bias(rewards)
    lower = rewards.lower(limits.promotion_chance) - upward_bias
    proven = lower > -rewards.drop
    return HealthVerdict(
        HealthStatus.HEALTHY,
        _healthy(lower, proven) + _lost(evidence, upward_bias),
        rewards.candidates,
        proven,
        too_few_users=_needs_users(evidence) and not proven,
    )


def canary_figures(evidence: CanaryEvidence, limits: RolloutLimits) -> CanaryFigures:
    """All that was seen, for journals, incidents and people."""
    rewards, errors, complaints = evidence.rewards, evidence.errors, evidence.complaints
    return CanaryFigures(
        requests=errors.candidate.requests,
        error_share=errors.candidate.error_rate,
        baseline_error_share=errors.baseline.error_rate,
        rewards=rewards.candidates,
        baseline_rewards=rewards.baselines,
        missing=rewards.missing,
        difference=rewards.difference,
        lower=rewards.lower(limits.promotion_chance),
        upper=rewards.upper(limits.promotion_chance),
        complaints=complaints.candidate,
        baseline_complaints=complaints.baseline,
        odds={
            "reward": rewards.worse.wealth,
            "errors above limit": errors.above_limit.wealth,
            "errors above baseline": errors.above_baseline.wealth,
            "complaints": complaints.more.wealth,
        },
    )


def _broken(
    evidence: CanaryEvidence, limits: RolloutLimits, alive: bool
) -> tuple[FailureCause, str] | None:
    """What waits for no test."""
    errors = evidence.errors
    if not alive:
        return FailureCause.BACKEND, "Its backend does not answer."
    if is_hard_failure(errors, limits):
        share = errors.recent_candidate.error_rate
        return FailureCause.HARD, f"{share:.0%} of its latest requests fail, the baseline's do not."
    return None


def _worse(evidence: CanaryEvidence, limits: RolloutLimits) -> tuple[FailureCause, str] | None:
    rewards, errors, complaints = evidence.rewards, evidence.errors, evidence.complaints
    if exceeds_error_limits(errors, limits):
        return FailureCause.ERRORS, _errors(errors)
    if earns_less(rewards, limits, downward_bias=evidence.lost.downward_bias(rewards)):
        return FailureCause.REWARD, _reward(rewards)
    if draws_more_complaints(complaints, limits):
        return FailureCause.COMPLAINTS, _complaints(complaints)
    if (found := evidence.guards.failing(limits)) is not None:
        name, test = found
        return FailureCause.SEGMENT, f"In {name}: {_reward(test)}"
    return None


def _needs_users(evidence: CanaryEvidence) -> bool:
    """More episodes of the same would not decide it."""
    return evidence.by_user or bool(evidence.voices.sentence)


def _too_few_users(evidence: CanaryEvidence, limits: RolloutLimits) -> str | None:
    rewards = evidence.rewards
    users = rewards.candidates + rewards.baselines - evidence.others
    if not evidence.by_user or users >= limits.min_users:
        return None
    return (
        f"inconclusive: {users} users cannot decide it, {limits.min_users} are needed. Approve it, or let "
        'chance choose for each episode: `[gateway] sticky = "conversation"`.'
    )


def is_hard_failure(errors: ErrorEvidence, limits: RolloutLimits, *, alone: bool = False) -> bool:
    """A failure that waits for no test.

    Where the baseline fails a fifth as often, lately or in all, it may be chance or a common cause:
    that is left to the tests. `alone`: nobody answers beside it any more.
    """
    share = errors.recent_candidate.error_rate
    if share < limits.hard_share or errors.candidate.requests < limits.hard_requests:
        return False
    return alone or not baseline_also_fails(errors, share)


def baseline_also_fails(errors: ErrorEvidence, share: float) -> bool:
    """Does the baseline fail so often, lately or in all, that such a share may have a common cause?"""
    return max(errors.recent_baseline.error_rate, errors.baseline.error_rate) >= share / 5


def exceeds_error_limits(errors: ErrorEvidence, limits: RolloutLimits) -> bool:
    """Both claims are ruled out: that it keeps the limit, and that it fails no more than the baseline."""
    chance = limits.error_chance
    return errors.above_limit.rejects_null(chance) and errors.above_baseline.rejects_null(chance)


def earns_less(
    rewards: RewardEvidence, limits: RolloutLimits, *, downward_bias: float = 0.0
) -> bool:
    """It is worse than the baseline for sure, and by as much as matters; `blames`: what lost episodes may make of it."""
    if not rewards.worse.rejects_null(limits.reward_chance):
        return False
    fall = rewards.run_difference
    return fall is not None and fall <= -rewards.drop - downward_bias


def draws_more_complaints(complaints: ComplaintEvidence, limits: RolloutLimits) -> bool:
    """It draws more complaints for sure, and as many more as matter."""
    return (
        complaints.more.rejects_null(limits.complaint_chance)
        and complaints.ratio >= complaints.factor
    )


def _missing_evidence(evidence: CanaryEvidence, limits: RolloutLimits) -> str | None:
    rewards, errors = evidence.rewards, evidence.errors
    least, counts = limits.min_rewards, errors.candidate
    if rewards.candidates < least or rewards.baselines < least:
        return (
            f"{rewards.candidates} rewards of the candidate and {rewards.baselines} of the baseline: "
            f"{least} of each are needed."
        )
    if counts.requests < limits.min_requests:
        return f"{counts.requests} requests of it are counted, {limits.min_requests} are needed."
    if rewards.missing > limits.missing * (rewards.missing + rewards.candidates):
        return f"{rewards.missing} of its rewards are missing beside {rewards.candidates}."
    if (lost := evidence.ratio.mismatch()) is not None:
        whose, came, drawn = lost
        return (
            f"Sample ratio mismatch: {came} episodes of the {whose} came back where {drawn} were drawn, so "
            "what is compared is what is left."
        )
    if errors.above_limit.rejects_null(limits.error_chance):
        return (
            f"{counts.error_rate:.1%} of its requests failed and {errors.baseline.error_rate:.1%} of the "
            "baseline's: that may not be its fault."
        )
    if (found := evidence.guards.losing_guard()) is not None:
        name, test = found
        return f"In {name} it earns {-(test.run_difference or 0.0):.3f} less over {test.run_settled} rewards, which may be chance."
    return None


def _healthy(lower: float, proven: bool) -> str:
    if not proven:
        return f"Nothing is failing; it may still lose up to {-lower:.3f} of reward."
    if lower >= 0:
        return "Nothing is failing, and its reward is above the baseline's."
    return f"Nothing is failing, and it loses no more than {-lower:.3f} of reward."


def _lost(evidence: CanaryEvidence, upward_bias: float) -> str:
    if upward_bias < _WORTH_TELLING:
        return ""
    lost = evidence.lost
    return (
        f" {lost.candidate} of its episodes and {lost.baseline} of the baseline's cannot be compared, which may hide "
        f"{upward_bias:.3f} of that."
    )


def _errors(errors: ErrorEvidence) -> str:
    counts = errors.candidate
    return (
        f"{counts.errors} of its {counts.requests} requests failed ({counts.error_rate:.1%}), "
        f"{errors.baseline.error_rate:.1%} of the baseline's: more than {errors.limit:.1%}, and not by chance "
        f"(odds of {format_odds(min(errors.above_limit.wealth, errors.above_baseline.wealth))})."
    )


def _reward(rewards: RewardEvidence) -> str:
    fall = -(rewards.run_difference or 0.0)
    return (
        f"It earns {fall:.3f} less than the baseline beside it, over {rewards.run_settled} rewards: "
        f"more than {rewards.drop:g}, and not by chance (odds of {format_odds(rewards.worse.wealth)})."
    )


def _complaints(complaints: ComplaintEvidence) -> str:
    return (
        f"Users complain {complaints.ratio:.1f} times as often as about the baseline "
        f"({complaints.candidate} and {complaints.baseline} complaints), and not by chance "
        f"(odds of {format_odds(complaints.more.wealth)})."
    )


def format_odds(wealth: float) -> str:
    return f"{wealth:,.0f} to 1" if wealth < 1e6 else "more than a million to 1"
