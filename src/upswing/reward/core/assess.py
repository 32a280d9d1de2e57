"""What is this trajectory worth, beside those before it? All components, one reward.

`Memory` is everything that the past says: the trailing windows of each component and of each kind
of task. It is a function of the rows before, so whoever reads the same rows has the same memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from upswing.contracts import Feedback, Reward, Trajectory
from upswing.dataset.outcome import UNKNOWN_OUTCOME, TrajectoryOutcome, trajectory_outcome
from upswing.principals import GATEWAY
from upswing.records import LintReport, NewReward, StoredTrajectory
from upswing.reward.core.baseline import Method, TrailingWindow
from upswing.reward.core.completion import completion_score
from upswing.reward.core.efficiency import efficiency_score
from upswing.reward.core.feedback import explicit_score, feedback_score
from upswing.reward.core.implicit import implicit_signals
from upswing.reward.core.plugins import Plugin, score_with_plugins
from upswing.reward.core.quality import quality_score
from upswing.reward.core.score import Score
from upswing.reward.core.stats import Facts, StatisticsByKind, facts_of
from upswing.reward.core.total import RAW_TOTAL, build_reward, combine_scores
from upswing.reward.core.windows import EnvironmentNumbers, environment_numbers

CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far clocks may differ before it is worth a word."""


FIRST_HOUR = timedelta(hours=1)
"""How long people have before a trajectory becomes the measure of others."""
LATE_COMPONENTS = frozenset({"user_feedback"})
"""Components that come late: they enter the history as they stand after the first hour, the others at once."""


@dataclass(frozen=True, slots=True)
class RewardRules:
    """How rewards are made here."""

    weights: Mapping[str, float]
    method: Method = "z-score"
    plugins: tuple[Plugin, ...] = ()


@dataclass(slots=True)
class RewardHistory:
    """The past, as far as it matters."""

    windows: dict[str, TrailingWindow] = field(default_factory=dict)
    statistics: StatisticsByKind = field(default_factory=StatisticsByKind)

    def add(self, assessed: AssessedReward) -> None:
        """One more row; what the infrastructure spoiled is no measure for others."""
        if assessed.infra_error:
            return
        for name, value in assessed.immediate_scores.items():
            self.windows.setdefault(name, TrailingWindow()).push(value)
        self.statistics.push(assessed.facts)


@dataclass(frozen=True, slots=True)
class AssessedReward:
    """A reward, and what the past will remember of it."""

    reward: Reward
    raw: dict[str, float]
    """Raw scores by component, and the raw total."""
    facts: Facts
    numbers: EnvironmentNumbers
    infra_error: bool
    failures: dict[str, str]
    """Plugins that gave no score, and why."""
    clock: str | None = None
    """A sentence when the agent's clock and ours disagree."""
    outcome: TrajectoryOutcome = UNKNOWN_OUTCOME
    """How well it went, and who says so."""
    feedback: float | None = None
    """What users say; None when nobody has spoken."""

    @property
    def immediate_scores(self) -> dict[str, float]:
        """The raw scores that are a measure for others at once."""
        return {name: score for name, score in self.raw.items() if name not in LATE_COMPONENTS}


def assess(
    row: StoredTrajectory,
    trajectory: Trajectory,
    feedback: Sequence[Feedback],
    lint: LintReport | None,
    history: RewardHistory,
    rules: RewardRules,
    *,
    now: datetime,
) -> AssessedReward:
    """The first revision of a trajectory's reward."""
    known = row.admitted
    facts = facts_of(trajectory, known.domain, known.complexity)
    plugin_scores = score_with_plugins(rules.plugins, trajectory)
    outcome, shown = trajectory_outcome(trajectory.metadata), implicit_signals(trajectory)
    user_opinion = feedback_score(feedback, shown, known.user_id)
    scores: dict[str, Score | None] = {
        "task_completion": completion_score(trajectory, shown.complaints_before()),
        "efficiency": efficiency_score(
            trajectory, history.statistics.of(known.domain, known.complexity)
        ),
        "code_quality": quality_score(trajectory, lint),
        "user_feedback": user_opinion,
        **plugin_scores.scores,
    }
    total = combine_scores(scores, rules.weights, history.windows, rules.method)
    clock = clock_warning(trajectory.end_timestamp, now)
    metadata: dict[str, Any] = {
        "window_id": known.window_id,
        "scenario_id": known.scenario_id,
        "agent_id": known.agent_id,
        **({"infra_error": True} if known.infra_error else {}),
        **(
            {}
            if outcome.value is None
            else {"outcome": {"value": outcome.value, "said_by": outcome.source}}
        ),
        **({"clock": clock} if clock else {}),
    }
    return AssessedReward(
        reward=build_reward(total, trajectory, now=now, metadata=metadata),
        raw={term.name: term.score.value for term in total.terms} | {RAW_TOTAL: total.raw_total},
        facts=facts,
        numbers=environment_numbers({"metadata": trajectory.metadata}),
        infra_error=known.infra_error,
        failures=plugin_scores.failures,
        clock=clock,
        outcome=outcome,
        feedback=explicit_score(user_opinion),
    )


def new_reward(row: StoredTrajectory, assessed: AssessedReward) -> NewReward:
    """The first revision as the store keeps it."""
    known = row.admitted
    return NewReward(
        trajectory_seq=row.seq,
        reward=assessed.reward,
        raw=assessed.immediate_scores,
        facts=assessed.facts,
        episode_id=known.episode_id,
        agent_id=known.agent_id,
        principal=known.user_id or known.agent_id,
        pnl=assessed.numbers.pnl,
        balance=assessed.numbers.balance,
        infra_error=assessed.infra_error,
        verified=assessed.outcome.verified,
        reported=assessed.outcome.value,
        feedback=assessed.feedback,
        task_id=known.task_id,
        continuous=known.continuous,
        answers=known.answers,
        key_id="" if known.many else known.key_id,
        gateway=row.door == GATEWAY,
    )


def clock_warning(end: datetime, now: datetime) -> str | None:
    """What to say when a trajectory ended later than it is now.

    >>> from datetime import UTC
    >>> clock_warning(datetime(2025, 1, 1, 13, tzinfo=UTC), datetime(2025, 1, 1, 12, tzinfo=UTC))
    "The agent's clock is 1:00:00 ahead of ours; its times are kept as they are."
    """
    ahead = end - now
    if ahead <= CLOCK_TOLERANCE:
        return None
    return f"The agent's clock is {ahead} ahead of ours; its times are kept as they are."
