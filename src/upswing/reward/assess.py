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
from upswing.dataset.outcome import NOT_STATED, Outcome, outcome_of
from upswing.ports import LintReport, NewReward, StoredTrajectory
from upswing.reward.baseline import Method, Window
from upswing.reward.completion import completion
from upswing.reward.efficiency import efficiency
from upswing.reward.implicit import implicit_signals
from upswing.reward.opinion import opinion, voiced
from upswing.reward.plugins import Plugin, ask
from upswing.reward.quality import quality
from upswing.reward.score import Score
from upswing.reward.stats import Facts, Statistics, facts_of
from upswing.reward.total import RAW_TOTAL, combine, to_reward
from upswing.reward.windows import EnvironmentNumbers, environment_numbers

TOLERANCE = timedelta(minutes=5)
"""How far clocks may differ before it is worth a word."""


FIRST_HOUR = timedelta(hours=1)
"""How long people have before a trajectory becomes the measure of others."""
LATE = frozenset({"user_feedback"})
"""Components that come late: they enter the history as they stand after the first hour, the others at once."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How rewards are made here."""

    weights: Mapping[str, float]
    method: Method = "z-score"
    plugins: tuple[Plugin, ...] = ()


@dataclass(slots=True)
class Memory:
    """The past, as far as it matters."""

    windows: dict[str, Window] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)

    def push(self, assessed: Assessed) -> None:
        """One more row; what the infrastructure spoiled is no measure for others."""
        if assessed.infra_error:
            return
        for name, value in assessed.known.items():
            self.windows.setdefault(name, Window()).push(value)
        self.statistics.push(assessed.facts)


@dataclass(frozen=True, slots=True)
class Assessed:
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
    outcome: Outcome = NOT_STATED
    """How well it went, and who says so."""
    feedback: float | None = None
    """What users say; None when nobody has spoken."""

    @property
    def known(self) -> dict[str, float]:
        """The raw scores that are a measure for others at once."""
        return {name: score for name, score in self.raw.items() if name not in LATE}


def assess(
    row: StoredTrajectory,
    trajectory: Trajectory,
    said: Sequence[Feedback],
    lint: LintReport | None,
    memory: Memory,
    rules: Rules,
    *,
    now: datetime,
) -> Assessed:
    """The first revision of a trajectory's reward."""
    known = row.admitted
    facts = facts_of(trajectory, known.domain, known.complexity)
    others = ask(rules.plugins, trajectory)
    outcome, shown = outcome_of(trajectory.metadata), implicit_signals(trajectory)
    users = opinion(said, shown, known.user_id)
    scores: dict[str, Score | None] = {
        "task_completion": completion(trajectory, shown.complaints_before()),
        "efficiency": efficiency(trajectory, memory.statistics.of(known.domain, known.complexity)),
        "code_quality": quality(trajectory, lint),
        "user_feedback": users,
        **others.scores,
    }
    total = combine(scores, rules.weights, memory.windows, rules.method)
    clock = clocks(trajectory.end_timestamp, now)
    about: dict[str, Any] = {
        "window_id": known.window_id,
        "scenario_id": known.scenario_id,
        "agent_id": known.agent_id,
        **({"infra_error": True} if known.infra_error else {}),
        **(
            {}
            if outcome.value is None
            else {"outcome": {"value": outcome.value, "said_by": outcome.said_by}}
        ),
        **({"clock": clock} if clock else {}),
    }
    return Assessed(
        reward=to_reward(total, trajectory, now=now, metadata=about),
        raw={term.name: term.score.value for term in total.terms} | {RAW_TOTAL: total.raw_total},
        facts=facts,
        numbers=environment_numbers({"metadata": trajectory.metadata}),
        infra_error=known.infra_error,
        failures=others.failures,
        clock=clock,
        outcome=outcome,
        feedback=voiced(users),
    )


def new_reward(row: StoredTrajectory, assessed: Assessed) -> NewReward:
    """The first revision as the store keeps it."""
    known = row.admitted
    return NewReward(
        trajectory_seq=row.seq,
        reward=assessed.reward,
        raw=assessed.known,
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
    )


def clocks(end: datetime, now: datetime) -> str | None:
    """What to say when a trajectory ended later than it is now.

    >>> from datetime import UTC
    >>> clocks(datetime(2025, 1, 1, 13, tzinfo=UTC), datetime(2025, 1, 1, 12, tzinfo=UTC))
    "The agent's clock is 1:00:00 ahead of ours; its times are kept as they are."
    """
    ahead = end - now
    if ahead <= TOLERANCE:
        return None
    return f"The agent's clock is {ahead} ahead of ours; its times are kept as they are."
