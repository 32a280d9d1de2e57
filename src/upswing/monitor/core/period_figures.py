"""What do the facts of a day or a week come to? All figures of its report, worked out at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from upswing.monitor.core.costs import CostTable
from upswing.monitor.core.model_figures import (
    ModelFigures,
    ModelSums,
    PeriodSums,
    merge_sums,
    model_figures,
)
from upswing.monitor.core.recommendations import recommend
from upswing.monitor.core.report_figures import (
    CurrentModel,
    DeploymentSummary,
    JobSummary,
    PeriodFigures,
    ReportIssue,
    ScoreEntry,
    TrendPoint,
    ValidationSummary,
)
from upswing.monitor.core.report_periods import DuePeriod
from upswing.monitor.core.scorecard import ScoreInputs, make_scorecard


@dataclass(frozen=True, slots=True)
class ServingModel:
    """The model that answers, and what it is compared with."""

    model_id: str
    deployed: datetime | None = None
    """None: it is the base."""
    baseline_reward: float | None = None
    """What it earned when it was promoted."""
    earlier_reward: float | None = None
    """What it earned in the period before."""


@dataclass(frozen=True, slots=True)
class PeriodFacts:
    """Everything that was read."""

    period: DuePeriod
    sums: PeriodSums
    serving: ServingModel | None = None
    base: tuple[str, ModelSums] | None = None
    """The base's newest work, where another model answers."""
    jobs: tuple[JobSummary, ...] = ()
    deployments: tuple[DeploymentSummary, ...] = ()
    promoted_later: Collection[str] = ()
    validations: tuple[ValidationSummary, ...] = ()
    issues: tuple[ReportIssue, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    requests: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Model → requests at gateways, and how many failed."""
    costs: CostTable = field(default_factory=CostTable)
    lifetime: CostTable = field(default_factory=CostTable)


def period_figures(facts: PeriodFacts) -> PeriodFigures:
    """The figures of a report, with what follows from them."""
    by_model, whole = facts.sums.by_model(), merge_sums(facts.sums.by_day.values())
    names = sorted(by_model, key=lambda name: (-by_model[name].trajectories, name))
    models = tuple(model_figures(name, by_model[name], facts.requests.get(name)) for name in names)
    figures = PeriodFigures(
        start=facts.period.start,
        end=facts.period.end,
        trajectories=whole.trajectories,
        reward_mean=whole.reward.mean,
        reward_deviation=whole.reward.deviation,
        refused=dict(facts.refused),
        jobs=facts.jobs,
        jobs_completed=sum(job.state == "completed" for job in facts.jobs),
        jobs_failed=sum(job.state == "failed" for job in facts.jobs),
        current=_current(facts.serving, by_model),
        issues=facts.issues,
        recommendations=(),
        models=models,
        deployments=facts.deployments,
        validations=facts.validations,
        costs=facts.costs,
        lifetime=facts.lifetime,
        truncated=facts.sums.truncated,
    )
    if facts.period.kind == "weekly":
        figures = replace(figures, trend=_trend(facts.sums), scorecard=_scorecard(facts, models))
    return replace(figures, recommendations=recommend(figures))


def _current(serving: ServingModel | None, sums: Mapping[str, ModelSums]) -> CurrentModel | None:
    if serving is None:
        return None
    mean = sums[serving.model_id].reward.mean if serving.model_id in sums else None
    before, against = serving.baseline_reward, "what it earned when it was promoted"
    if before is None:
        before, against = serving.earlier_reward, "the period before"
    return CurrentModel(
        model_id=serving.model_id,
        deployed=serving.deployed,
        reward_mean=mean,
        delta=mean - before if mean is not None and before is not None else None,
        against=against,
    )


def _trend(sums: PeriodSums) -> tuple[TrendPoint, ...]:
    return tuple(
        TrendPoint(
            day=day, model_id=model, trajectories=each.trajectories, reward_mean=each.reward.mean
        )
        for (day, model), each in sorted(sums.by_day.items())
    )


def _scorecard(facts: PeriodFacts, models: tuple[ModelFigures, ...]) -> tuple[ScoreEntry, ...]:
    name = facts.serving.model_id if facts.serving else ""
    return make_scorecard(
        ScoreInputs(
            facts.jobs,
            facts.deployments,
            facts.validations,
            facts.promoted_later,
            next((each for each in models if each.model_id == name), None),
            model_figures(*facts.base) if facts.base else None,
        )
    )
