"""What would have differed under another policy, when, and what would it have cost or saved?

    journal, oldest first ─▶ each stage replays its own ─▶ differences
                                                     └──▶ effects, modelled ─▶ cost

Each stage knows how to make its decisions again (`*/core/what_if.py`); here they are counted and put together. An entry
that cannot be read, such as one of an older version, is counted and named, and the others are replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from upswing.contracts.backtest import (
    BacktestCost,
    BacktestReport,
    DecisionDifference,
    PolicyKnob,
    PolicyReplay,
    RolloutEffect,
    StageCount,
    TrainingEffect,
    UnreadableEntries,
)
from upswing.errors import UpswingError, count_phrase
from upswing.records import Decision

SHOWN = 200
"""Differences that a report shows, those first in which something else is done."""
_EXAMPLES, _REASONS = 5, 20
"""Ids that stand for unreadable entries, and how many kinds of them are told apart."""
_UNREADABLE = (
    msgspec.MsgspecError,
    UpswingError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What the inputs of another version, or a damaged entry, make of replaying it."""
_WITHDRAWN = {"rolled_back", "not_begun"}
Replay = Callable[[Decision], PolicyReplay]


@dataclass(frozen=True, slots=True)
class StageReplays:
    """How the stages replay their decisions, and what they say afterwards of what would have followed."""

    by_stage: Mapping[str, Replay]
    training: Callable[[], TrainingEffect | None] = lambda: None
    rollouts: Callable[[], Sequence[RolloutEffect]] = tuple


@dataclass(frozen=True, slots=True)
class BacktestSpan:
    """Which part of the journal was read."""

    since: datetime
    until: datetime
    truncated: bool = False
    """There was more than a backtest takes: the newest were read."""


class BacktestRun:
    """Takes decisions in the order in which they were made."""

    def __init__(self, stages: StageReplays) -> None:
        self._stages = stages
        self.decisions = 0
        self.replayed: Counter[str] = Counter()
        self.differences: list[DecisionDifference] = []
        self.unreadable: dict[str, list[str]] = {}
        self.ruled_otherwise = 0

    def add_all(self, decisions: Iterable[Decision]) -> None:
        for each in decisions:
            self.add(each)

    def add(self, decision: Decision) -> None:
        """Replay one; a stage that has nothing to replay is only counted."""
        self.decisions += 1
        if (replay := self._stages.by_stage.get(decision.stage)) is None:
            return
        try:
            found = replay(decision)
        except _UNREADABLE as error:
            self._set_aside(decision, error)
            return
        self.replayed[decision.stage] += 1
        self.ruled_otherwise += not found.as_journalled
        if not found.same:
            self.differences.append(_difference(decision, found))

    def add_bad_rows(self, ids: Sequence[str]) -> None:
        """Rows that the store itself cannot read."""
        self.decisions += len(ids)
        if ids:
            self.unreadable.setdefault("The store cannot read these rows.", []).extend(ids)

    def _set_aside(self, decision: Decision, error: Exception) -> None:
        what = str(error).partition("\n")[0][:200].rstrip(".") or type(error).__name__
        reason = f"A decision of {decision.stage} needs other inputs today: {what}."
        if reason not in self.unreadable and len(self.unreadable) >= _REASONS:
            reason = "Other decisions need other inputs today."
        self.unreadable.setdefault(reason, []).append(decision.decision_id)

    def report(self, span: BacktestSpan, knobs: Sequence[PolicyKnob]) -> BacktestReport:
        """What all of it comes to."""
        training, rollouts = self._stages.training(), tuple(self._stages.rollouts())
        cost = backtest_cost(training, rollouts)
        shown = sorted(self.differences, key=lambda each: not each.acts)[:SHOWN]
        return BacktestReport(
            since=span.since,
            until=span.until,
            decisions=self.decisions,
            knobs=tuple(knobs),
            stages=_stage_counts(self),
            differences=tuple(sorted(shown, key=lambda each: each.decided)),
            shown=len(shown),
            total=len(self.differences),
            cost=cost,
            training=training,
            rollouts=rollouts,
            unreadable=tuple(
                UnreadableEntries(reason, len(ids), tuple(ids[:_EXAMPLES]))
                for reason, ids in self.unreadable.items()
            ),
            ruled_otherwise=self.ruled_otherwise,
            truncated=span.truncated,
            summary=_summary(self, cost),
            notes=_notes(self, span, knobs),
        )


def backtest_cost(
    training: TrainingEffect | None, rollouts: Sequence[RolloutEffect]
) -> BacktestCost:
    """What all effects come to; what nobody can say counts for nothing."""
    known = [each for each in rollouts if each.now.ended != "unknown"]
    return BacktestCost(
        training_jobs=training.now - training.then if training else 0,
        worse_episodes=sum(
            each.episodes or 0 for each in known if {each.then.ended, each.now.ended} <= _WITHDRAWN
        ),
        hours_to_promotion=round(
            sum(each.hours or 0.0 for each in known if each.now.ended == "promoted"), 3
        ),
        promotions=_more(known, "promoted"),
        rollbacks=_more(known, "rolled_back"),
    )


def _more(effects: Sequence[RolloutEffect], end: str) -> int:
    return sum((each.now.ended == end) - (each.then.ended == end) for each in effects)


def _difference(decision: Decision, found: PolicyReplay) -> DecisionDifference:
    return DecisionDifference(
        decision.decision_id,
        decision.decided,
        decision.stage,
        decision.kind,
        found.about,
        found.then,
        found.now,
        found.then.action != found.now.action,
    )


def _stage_counts(run: BacktestRun) -> tuple[StageCount, ...]:
    differ = Counter(each.stage for each in run.differences)
    acts = Counter(each.stage for each in run.differences if each.acts)
    return tuple(
        StageCount(stage, count, differ[stage], acts[stage])
        for stage, count in sorted(run.replayed.items())
    )


def _summary(run: BacktestRun, cost: BacktestCost) -> str:
    replayed, differ = sum(run.replayed.values()), len(run.differences)
    acts = sum(each.acts for each in run.differences)
    said = f"{count_phrase(replayed, 'decision')} replayed: " + (
        f"{differ} would have come out otherwise, {acts} of them in what is done."
        if differ
        else "none would have come out otherwise."
    )
    parts = [
        _change(cost.training_jobs, "training job"),
        _change(cost.promotions, "promotion"),
        _change(cost.rollbacks, "rollback"),
        _change(cost.worse_episodes, "episode", " of models that are rolled back"),
        _hours(cost.hours_to_promotion),
    ]
    effects = [each for each in parts if each]
    return f"{said} In between, modelled: {', '.join(effects)}." if effects else said


def _change(number: int, noun: str, what: str = "") -> str:
    return (
        f"{count_phrase(abs(number), noun)} {'more' if number > 0 else 'fewer'}{what}"
        if number
        else ""
    )


def _hours(hours: float) -> str:
    return (
        f"promotions {abs(hours):.1f} h {'later' if hours > 0 else 'earlier'} in all"
        if hours
        else ""
    )


def _notes(run: BacktestRun, span: BacktestSpan, knobs: Sequence[PolicyKnob]) -> tuple[str, ...]:
    notes: list[str] = []
    if span.truncated:
        notes.append("There are more decisions than a backtest takes; the newest were replayed.")
    if not knobs:
        notes.append("The policy names no knob, so everything is replayed as it was.")
    unreadable = sum(map(len, run.unreadable.values()))
    if unreadable:
        notes.append(f"{count_phrase(unreadable, 'entry', 'entries')} could not be replayed.")
    if run.ruled_otherwise:
        notes.append(
            f"{count_phrase(run.ruled_otherwise, 'decision')} would come out otherwise by today's rules alone, whatever "
            "the policy: they count as no difference here, and `upswing explain ID` shows one."
        )
    return tuple(notes)
