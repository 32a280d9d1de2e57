"""What does a report hold? Its figures as values, which a program reads and a page shows."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from upswing.monitor.core.costs import CostTable
from upswing.monitor.core.model_figures import ModelFigures

ScoreVerdict = Literal["met", "missed", "unknown"]


class ReportIssue(Struct, frozen=True, kw_only=True):
    """An alert that was open in the period."""

    name: str
    severity: str
    state: str
    summary: str
    began: datetime


class Recommendation(Struct, frozen=True, kw_only=True):
    """What to do, and on what that rests."""

    rule: str
    sentence: str
    evidence: str


class ScoreEntry(Struct, frozen=True, kw_only=True):
    """One success metric beside its target."""

    group: Literal["technical", "business"]
    name: str
    target: str
    value: float | None
    unit: Literal["share", "change", "seconds", "points"]
    verdict: ScoreVerdict
    evidence: str


class TrendPoint(Struct, frozen=True, kw_only=True):
    """A day of one model."""

    day: str
    """`YYYY-MM-DD`, UTC."""
    model_id: str
    trajectories: int
    reward_mean: float | None


class JobSummary(Struct, frozen=True, kw_only=True):
    """A training job that ended."""

    job_id: str
    state: str
    ended: datetime
    model_id: str = ""
    error: str = ""
    """`OOM`, `DATA` …"""
    samples: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0


class DeploymentSummary(Struct, frozen=True, kw_only=True):
    """A rollout that was promoted or rolled back."""

    model_id: str
    outcome: Literal["promoted", "rolled back"]
    at: datetime
    reason: str = ""
    sentence: str = ""
    seconds: float | None = None
    """Of a rollback: until the last episode began that it answered."""


class ValidationSummary(Struct, frozen=True, kw_only=True):
    """A validation that ended."""

    model_id: str
    verdict: str
    improvement: float | None
    at: datetime


class CurrentModel(Struct, frozen=True, kw_only=True):
    """The model that answers."""

    model_id: str
    deployed: datetime | None
    """None: it is the base."""
    reward_mean: float | None
    delta: float | None
    """Its reward now beside `against`."""
    against: str
    """What it is compared with, in words."""


class PeriodFigures(Struct, frozen=True, kw_only=True):
    """A day or a week."""

    start: datetime
    end: datetime
    trajectories: int
    reward_mean: float | None
    reward_deviation: float | None
    refused: dict[str, int]
    """Messages that were refused, by reason."""
    jobs: tuple[JobSummary, ...]
    jobs_completed: int
    jobs_failed: int
    current: CurrentModel | None
    issues: tuple[ReportIssue, ...]
    recommendations: tuple[Recommendation, ...]
    models: tuple[ModelFigures, ...]
    deployments: tuple[DeploymentSummary, ...] = ()
    validations: tuple[ValidationSummary, ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    scorecard: tuple[ScoreEntry, ...] = ()
    costs: CostTable = CostTable()
    """Of this period."""
    lifetime: CostTable = CostTable()
    """Of every version so far."""
    truncated: bool = False
    """More trajectories came in than a report reads: the newest are counted."""


class JobFigures(Struct, frozen=True, kw_only=True):
    """A training job, and what became of its model."""

    job_id: str
    state: str
    reason: str
    algorithm: str
    base_model: str
    started: datetime | None
    ended: datetime
    model_id: str
    duration_hours: float
    attempts: int
    samples: int
    final_reward: float | None
    baseline_reward: float | None
    """The same before the training."""
    improvement: float | None
    improvement_pct: float | None
    """None: unknown, or it began at nothing."""
    validation: str
    """`passed`, `failed`, `inconclusive`, `pending` or `none`."""
    validation_sentence: str
    deployment: str
    """`scheduled`, `rolling out`, `promoted`, `rolled back`, `aborted`, `pending` or `none`."""
    cost_usd: float
    error: str
    recommendations: tuple[Recommendation, ...] = ()
