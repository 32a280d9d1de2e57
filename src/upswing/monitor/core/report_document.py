"""What does a reader of a report see, and in which order? Figures become a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from upswing.errors import count_phrase
from upswing.monitor.core.charts import MOST_SERIES, ReportChart, Series
from upswing.monitor.core.costs import CostTable
from upswing.monitor.core.document import Block, Bullets, Document, Heading, Paragraph, Table
from upswing.monitor.core.model_figures import ModelFigures
from upswing.monitor.core.report_figures import (
    JobFigures,
    PeriodFigures,
    Recommendation,
    ReportIssue,
    ScoreEntry,
    TrendPoint,
)

_UNKNOWN = "–"
_MOST_ROWS = 30
_MODELS_HEAD = (
    "model",
    "trajectories",
    "reward",
    "completion",
    "satisfaction",
    "turns",
    "lint score",
    "complaints",
    "P&L",
    "win rate",
    "errors",
)


def daily_document(seen: PeriodFigures) -> Document:
    """The daily summary: seven lines, the models, and the costs."""
    return Document(
        f"Daily summary, {_day(seen.end)}",
        (
            Bullets(_summary_lines(seen)),
            *_issue_blocks(seen.issues),
            *_recommendation_blocks(seen.recommendations),
            *_model_blocks(seen.models),
            *_cost_blocks("Costs of the day", seen.costs),
            *_truncation_blocks(seen),
        ),
    )


def weekly_document(seen: PeriodFigures) -> Document:
    """The weekly report: the same over a week, with its course, the rollouts and the scorecard."""
    return Document(
        f"Weekly report, {_day(seen.start)} to {_day(seen.end)}",
        (
            Bullets(_summary_lines(seen)),
            *_trend_blocks(seen.trend),
            *_scorecard_blocks(seen.scorecard),
            *_model_blocks(seen.models),
            *_cost_blocks("Costs of the week", seen.costs),
            *_cost_blocks("Cost of each version so far", seen.lifetime),
            *_job_blocks(seen),
            *_deployment_blocks(seen),
            *_issue_blocks(seen.issues),
            *_recommendation_blocks(seen.recommendations),
            *_truncation_blocks(seen),
        ),
    )


def job_document(seen: JobFigures) -> Document:
    """The report of a training job."""
    lines = [
        f"Training job ID: {seen.job_id}",
        f"State: {seen.state}" + (f" ({seen.error})" if seen.error else ""),
        f"Duration: {seen.duration_hours:.2f} h, {_count(seen.attempts, 'attempt')}",
        f"Algorithm: {seen.algorithm}, from {seen.base_model}",
        f"Samples used: {seen.samples:,}",
        f"Final reward: {_number(seen.final_reward)}",
        f"Improvement: {_improvement(seen)}",
        f"Validation: {seen.validation}",
        f"Deployment: {seen.deployment}",
        f"Cost: {_usd(seen.cost_usd)}",
    ]
    if seen.model_id:
        lines.insert(1, f"Model: {seen.model_id}")
    more: list[Block] = []
    if seen.validation_sentence:
        more = [Paragraph(seen.validation_sentence)]
    return Document(
        f"Training job {seen.job_id}",
        (Bullets(tuple(lines)), *more, *_recommendation_blocks(seen.recommendations)),
    )


def _improvement(seen: JobFigures) -> str:
    if seen.improvement_pct is not None:
        return f"{seen.improvement_pct:+.1f} %"
    return "unknown" if seen.improvement is None else f"{seen.improvement:+.3f} of reward"


def _summary_lines(seen: PeriodFigures) -> tuple[str, ...]:
    current = seen.current
    reward = f"{_number(seen.reward_mean)} ± {_number(seen.reward_deviation)}"
    lines = [
        f"Trajectories collected: {seen.trajectories:,}",
        f"Average reward: {reward if seen.reward_mean is not None else 'none was earned'}",
        f"Training jobs: {seen.jobs_completed} completed, {seen.jobs_failed} failed",
    ]
    if current is None:
        return (*lines, "Current model: none is named")
    deployed = f"deployed {_minute(current.deployed)}" if current.deployed else "the base"
    delta = f" ({current.delta:+.3f} beside {current.against})" if current.delta is not None else ""
    return (
        *lines,
        f"Current model: {current.model_id} ({deployed})",
        f"Model performance: {_number(current.reward_mean)}{delta}",
    )


def _issue_blocks(issues: Sequence[ReportIssue]) -> Iterable[Block]:
    yield Heading("Issues")
    if not issues:
        yield Paragraph("None: no alert was open.")
        return
    rows = tuple(
        (f"{each.name}: {each.summary}", each.severity, each.state, _minute(each.began))
        for each in issues[:_MOST_ROWS]
    )
    yield Table(("alert", "severity", "state", "began"), rows)
    if len(issues) > _MOST_ROWS:
        yield Paragraph(f"And {len(issues) - _MOST_ROWS:,} more: `upswing alerts --state all`.")


def _recommendation_blocks(found: Sequence[Recommendation]) -> Iterable[Block]:
    yield Heading("Recommendations")
    if not found:
        yield Paragraph("None: no figure calls for anything.")
        return
    yield Bullets(tuple(f"{each.sentence} Because: {each.evidence}" for each in found[:_MOST_ROWS]))


def _model_blocks(models: Sequence[ModelFigures]) -> Iterable[Block]:
    yield Heading("Models")
    if not models:
        yield Paragraph("No model did any work.")
        return
    yield Table(_MODELS_HEAD, tuple(_model_row(each) for each in models[:_MOST_ROWS]))


def _model_row(each: ModelFigures) -> tuple[str, ...]:
    errors = [_share(each.error_rate)]
    if each.request_error_rate is not None:
        errors.append(f"{_share(each.request_error_rate)} of requests")
    return (
        each.model_id,
        f"{each.trajectories:,}",
        _number(each.reward_mean),
        _share(each.completion_rate),
        _number(each.satisfaction, 2),
        _number(each.turns, 1),
        _number(each.lint_score, 2),
        f"{each.complaints:,} ({_share(each.complaint_rate)})",
        _number(each.pnl_mean, 2),
        _share(each.win_rate),
        ", ".join(errors),
    )


def _cost_blocks(title: str, costs: CostTable) -> Iterable[Block]:
    yield Heading(title)
    if not costs.models and not costs.total_usd:
        yield Paragraph("Nothing was used.")
        return
    rows = [
        (
            each.model_id,
            _usd(each.total_usd),
            _usd(each.training_usd),
            _usd(each.judge_usd),
            _usd(each.serving_usd),
            f"{each.tokens:,.0f}",
        )
        for each in costs.models[:_MOST_ROWS]
    ]
    apart = costs.without_model
    if any(apart.values()):
        training, judge = apart.get("training_usd", 0.0), apart.get("judge_usd", 0.0)
        rows.append(
            ("(no model)", _usd(training + judge), _usd(training), _usd(judge), _usd(0), "0")
        )
    yield Table(("model", "total", "training", "judge", "serving", "tokens"), tuple(rows))
    missing = sum(each.uncounted for each in costs.models)
    if missing:
        yield Paragraph(
            f"{count_phrase(missing, 'trajectory', 'trajectories')} without `metadata.total_tokens`: "
            "what serving them cost is not counted."
        )


def _trend_blocks(trend: Sequence[TrendPoint]) -> Iterable[Block]:
    days = tuple(sorted({each.day for each in trend}))
    if not days:
        return
    most: Counter[str] = Counter()
    for each in trend:
        most[each.model_id] += each.trajectories
    models = sorted(most, key=lambda name: (-most[name], name))[:MOST_SERIES]
    by_place = {(each.day, each.model_id): each for each in trend}
    rewards = [
        Series(name, tuple(_reward_of(by_place.get((day, name))) for day in days))
        for name in models
    ]
    counts = [
        Series(name, tuple(_count_of(by_place.get((day, name))) for day in days)) for name in models
    ]
    short = tuple(day[5:] for day in days)
    yield ReportChart("Reward of each model by day", short, tuple(rewards))
    yield ReportChart("Trajectories of each model by day", short, tuple(counts), bars=True)


def _reward_of(point: TrendPoint | None) -> float | None:
    return point.reward_mean if point else None


def _count_of(point: TrendPoint | None) -> float:
    return float(point.trajectories) if point else 0.0


def _scorecard_blocks(entries: Sequence[ScoreEntry]) -> Iterable[Block]:
    if not entries:
        return
    yield Heading("Scorecard")
    yield Table(
        ("metric", "target", "value", "verdict"),
        tuple((each.name, each.target, score_value(each), each.verdict) for each in entries),
    )
    yield Bullets(tuple(f"{each.name}: {each.evidence}" for each in entries))


def score_value(entry: ScoreEntry) -> str:
    """The value of a metric, in its own unit."""
    if entry.value is None:
        return _UNKNOWN
    match entry.unit:
        case "share":
            return _share(entry.value)
        case "change":
            return f"{entry.value:+.1%}".replace("%", " %")
        case "seconds":
            return f"{entry.value:.1f} s"
        case "points":
            return f"{entry.value * 100:+.1f} points"


def _job_blocks(seen: PeriodFigures) -> Iterable[Block]:
    if seen.jobs:
        yield Heading("Training jobs")
        rows = tuple(
            (
                each.job_id,
                each.state + (f" ({each.error})" if each.error else ""),
                each.model_id or _UNKNOWN,
                f"{each.samples:,}",
                f"{each.seconds / 3600:.2f} h",
                _usd(each.cost_usd),
            )
            for each in seen.jobs[:_MOST_ROWS]
        )
        yield Table(("job", "state", "model", "samples", "duration", "cost"), rows)


def _deployment_blocks(seen: PeriodFigures) -> Iterable[Block]:
    if seen.validations:
        yield Heading("Validations")
        rows = tuple(
            (
                each.model_id,
                each.verdict or "not carried out",
                _points(each.improvement),
                _minute(each.at),
            )
            for each in seen.validations[:_MOST_ROWS]
        )
        yield Table(("candidate", "verdict", "improvement", "ended"), rows)
    if seen.deployments:
        yield Heading("Deployments")
        rows = tuple(
            (each.model_id, each.outcome, _minute(each.at), each.sentence or each.reason)
            for each in seen.deployments[:_MOST_ROWS]
        )
        yield Table(("model", "what happened", "when", "why"), rows)


def _truncation_blocks(seen: PeriodFigures) -> Iterable[Block]:
    if seen.truncated:
        yield Paragraph(
            "More trajectories came in than a report reads: the figures are of the newest."
        )


def _number(value: float | None, digits: int = 3) -> str:
    return _UNKNOWN if value is None else f"{value:,.{digits}f}"


def _share(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value * 100:.1f} %"


def _points(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value * 100:+.1f} points"


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 0.01 or not value else f"${value:.4f}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
