"""What do tasks of this kind usually take? Turns, seconds and tokens by domain and difficulty.

| complexity   | band     |
|--------------|----------|
| up to 0.33   | `low`    |
| up to 0.66   | `medium` |
| above        | `high`   |

Six domains and three bands make eighteen kinds, however many trajectories come: a domain that the
contract does not know counts as `general`. A kind's windows follow from its last thousand
rows, so whoever reads those rows in order has the same statistics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from upswing.contracts import Trajectory
from upswing.contracts.steps import finite_number_or_none
from upswing.contracts.trajectory import DOMAINS
from upswing.records import ScoredFacts
from upswing.reward.core.baseline import SIZE, TrailingWindow

Band = Literal["low", "medium", "high"]


Facts = ScoredFacts
"""What one trajectory took; None where nobody measured."""


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """What the last trajectories of one kind took."""

    turns: TrailingWindow = field(default_factory=TrailingWindow)
    seconds: TrailingWindow = field(default_factory=TrailingWindow)
    tokens: TrailingWindow = field(default_factory=TrailingWindow)

    def push(self, facts: Facts) -> None:
        self.turns.push(facts.turns)
        if facts.seconds is not None:
            self.seconds.push(facts.seconds)
        if facts.tokens is not None:
            self.tokens.push(facts.tokens)

    def copy(self) -> TaskStatistics:
        return TaskStatistics(self.turns.copy(), self.seconds.copy(), self.tokens.copy())


class StatisticsByKind:
    """The statistics of every kind of task.

    >>> seen = StatisticsByKind(rows=[Facts("coding", 0.2, 6, 40.0, None)])
    >>> seen.of("coding", 0.3).turns.mean, seen.of("coding", 0.5)
    (6.0, None)
    """

    def __init__(self, size: int = SIZE, rows: Iterable[Facts] = ()) -> None:
        self._size = size
        self._kinds: dict[tuple[str, Band], TaskStatistics] = {}
        for row in rows:
            self.push(row)

    def of(self, domain: str, complexity: float) -> TaskStatistics | None:
        """What tasks of this kind took; None when there was none yet."""
        return self._kinds.get(task_kind(domain, complexity))

    def push(self, facts: Facts) -> None:
        key = task_kind(facts.domain, facts.complexity)
        if key not in self._kinds:
            self._kinds[key] = TaskStatistics(*(TrailingWindow(self._size) for _ in range(3)))
        self._kinds[key].push(facts)

    def copy(self) -> StatisticsByKind:
        other = StatisticsByKind(self._size)
        other._kinds = {key: kept.copy() for key, kept in self._kinds.items()}
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StatisticsByKind) and self._kinds == other._kinds

    __hash__ = None  # type: ignore[assignment] # it changes


def task_kind(domain: str, complexity: float) -> tuple[str, Band]:
    """The kind of task that trajectories are compared within."""
    return (domain if domain in DOMAINS else "general", complexity_band(complexity))


def complexity_band(complexity: float) -> Band:
    """How hard it is, in three words.

    >>> complexity_band(0.33), complexity_band(0.34), complexity_band(0.67)
    ('low', 'medium', 'high')
    """
    if complexity <= 0.33:
        return "low"
    return "medium" if complexity <= 0.66 else "high"


def facts_of(
    trajectory: Trajectory, domain: str | None = None, complexity: float | None = None
) -> Facts:
    """What this trajectory took. `domain` and `complexity` say what the store knows of them.

    No time between start and end, and no tokens at all, mean that nobody measured.
    """
    task, metadata = trajectory.task_context, trajectory.metadata
    seconds = (trajectory.end_timestamp - trajectory.start_timestamp).total_seconds()
    tokens = finite_number_or_none(metadata.get("total_tokens"))
    stated = finite_number_or_none(task.get("complexity_score"))
    return Facts(
        domain=domain or str(task.get("domain") or "general"),
        complexity=complexity if complexity is not None else stated or 0.0,
        turns=len(trajectory.turns),
        seconds=seconds if seconds > 0 else None,
        tokens=float(tokens) if tokens is not None and 0 < tokens < _ABSURD else None,
    )


_ABSURD = 1e15
"""Tokens beyond which a count is a mistake."""
