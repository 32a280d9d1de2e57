"""How did each model do? Sums over scored trajectories, and the figures that follow from them.

| figure            | of which trajectories                | is                                                  |
|-------------------|--------------------------------------|-----------------------------------------------------|
| reward            | all that are sound                   | mean and standard deviation of raw totals           |
| completion rate   | whose outcome is known               | share that is completed: checked, else as reported  |
| satisfaction      | of which a user spoke                | mean of what they said, 0 to 1                      |
| complaints        | of which a user spoke                | those with less than 0.5: thumbs down, one or two   |
|                   |                                      | stars, a correction, or left                        |
| turns             | all that are sound                   | mean                                                |
| lint score        | with code that a linter saw          | mean, 0 to 1                                        |
| P&L, win rate     | that state a profit or loss          | mean, and share above zero                          |
| errors            | all                                  | share that the infrastructure spoiled               |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite, sqrt

from msgspec import Struct

OTHER = "other"
"""All models together that are not told by name."""
MOST_MODELS = 100
"""That are told by name. Anybody can name a model in a trajectory, and nobody reads of more."""
_COMPLETED = 0.999
_UNHAPPY = 0.5


@dataclass(slots=True)
class Spread:
    """Values, as far as their mean and their scatter need them."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float | None) -> None:
        """Take a value; what is none is left out."""
        if value is None or not isfinite(value):
            return
        self.count += 1
        self.total += value
        self.squares += value * value

    def merge(self, other: Spread) -> None:
        self.count += other.count
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of these values.

        >>> some = Spread()
        >>> for value in (0.0, 1.0, float("nan"), None): some.add(value)
        >>> some.mean, some.deviation, some.count
        (0.5, 0.5, 2)
        """
        if not self.count:
            return None
        mean = self.total / self.count
        return sqrt(max(0.0, self.squares / self.count - mean * mean))


@dataclass(frozen=True, slots=True)
class ScoredTrajectory:
    """What of a scored trajectory is counted."""

    seq: int
    model: str
    raw_total: float
    turns: int
    tokens: float | None
    pnl: float | None
    infra_error: int
    verified: float | None
    reported: float | None
    feedback: float | None


@dataclass(slots=True)
class ModelSums:
    """Everything that was counted of one model."""

    trajectories: int = 0
    faults: int = 0
    reward: Spread = field(default_factory=Spread)
    turns: Spread = field(default_factory=Spread)
    completed: Spread = field(default_factory=Spread)
    satisfaction: Spread = field(default_factory=Spread)
    complaints: int = 0
    lint: Spread = field(default_factory=Spread)
    pnl: Spread = field(default_factory=Spread)
    wins: Spread = field(default_factory=Spread)
    tokens: Spread = field(default_factory=Spread)

    def add(self, row: ScoredTrajectory) -> None:
        """Count a trajectory; of one that the infrastructure spoiled nothing else counts."""
        self.trajectories += 1
        if row.infra_error:
            self.faults += 1
            return
        outcome = row.reported if row.verified is None else row.verified
        self.reward.add(row.raw_total)
        self.turns.add(row.turns)
        self.completed.add(None if outcome is None else float(outcome >= _COMPLETED))
        self.satisfaction.add(row.feedback)
        self.complaints += row.feedback is not None and row.feedback < _UNHAPPY
        self.pnl.add(row.pnl)
        self.wins.add(None if row.pnl is None else float(row.pnl > 0))
        self.tokens.add(row.tokens)

    def merge(self, other: ModelSums) -> None:
        self.trajectories += other.trajectories
        self.faults += other.faults
        self.complaints += other.complaints
        for name in _SPREADS:
            getattr(self, name).merge(getattr(other, name))


_SPREADS = ("reward", "turns", "completed", "satisfaction", "lint", "pnl", "wins", "tokens")


class ModelFigures(Struct, frozen=True, kw_only=True):
    """How one model did; None: nobody knows."""

    model_id: str
    trajectories: int
    reward_mean: float | None = None
    reward_deviation: float | None = None
    completion_rate: float | None = None
    outcomes: int = 0
    """Trajectories whose outcome is known."""
    satisfaction: float | None = None
    voices: int = 0
    """Trajectories of which a user spoke."""
    complaints: int = 0
    complaint_rate: float | None = None
    """Of all sound trajectories."""
    turns: float | None = None
    lint_score: float | None = None
    linted: int = 0
    pnl_mean: float | None = None
    pnl_total: float | None = None
    trades: int = 0
    """Trajectories that state a profit or loss."""
    win_rate: float | None = None
    faults: int = 0
    error_rate: float | None = None
    """Share of its trajectories that the infrastructure spoiled."""
    requests: int | None = None
    """At gateways, since these started."""
    request_error_rate: float | None = None
    tokens: float = 0.0


def model_figures(
    model_id: str, sums: ModelSums, requests: tuple[int, int] | None = None
) -> ModelFigures:
    """The figures of one model; `requests` are those at gateways and how many of them failed."""
    sound = sums.trajectories - sums.faults
    return ModelFigures(
        model_id=model_id,
        trajectories=sums.trajectories,
        reward_mean=sums.reward.mean,
        reward_deviation=sums.reward.deviation,
        completion_rate=sums.completed.mean,
        outcomes=sums.completed.count,
        satisfaction=sums.satisfaction.mean,
        voices=sums.satisfaction.count,
        complaints=sums.complaints,
        complaint_rate=sums.complaints / sound if sound else None,
        turns=sums.turns.mean,
        lint_score=sums.lint.mean,
        linted=sums.lint.count,
        pnl_mean=sums.pnl.mean,
        pnl_total=sums.pnl.total if sums.pnl.count else None,
        trades=sums.pnl.count,
        win_rate=sums.wins.mean,
        faults=sums.faults,
        error_rate=sums.faults / sums.trajectories if sums.trajectories else None,
        requests=requests[0] if requests else None,
        request_error_rate=requests[1] / requests[0] if requests and requests[0] else None,
        tokens=sums.tokens.total,
    )


@dataclass(frozen=True, slots=True)
class PeriodSums:
    """What was counted, by day and model."""

    by_day: dict[tuple[str, str], ModelSums]
    """(`YYYY-MM-DD` at which the day begins, model)."""
    truncated: bool

    def by_model(self) -> dict[str, ModelSums]:
        """The same over the whole period."""
        found: dict[str, ModelSums] = {}
        for (_, model), sums in self.by_day.items():
            found.setdefault(model, ModelSums()).merge(sums)
        return found


def merge_sums(parts: Iterable[ModelSums]) -> ModelSums:
    """All of them together."""
    whole = ModelSums()
    for part in parts:
        whole.merge(part)
    return whole
