"""What came of a training job? Its model, the validation and the rollout, in the words of its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from upswing.monitor.core.recommendations import recommend_for_job
from upswing.monitor.core.report_figures import JobFigures, JobSummary
from upswing.records import Job, ModelRow

_VERDICTS = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive", "": "failed"}
DEPLOYMENTS: Mapping[str, str] = {
    "queued": "scheduled",
    "awaiting_approval": "scheduled",
    "ramping": "rolling out",
    "paused": "rolling out",
    "promoted": "promoted",
    "succeeded": "promoted",
    "rolled_back": "rolled back",
    "replaced": "aborted",
    "cancelled": "aborted",
}
"""The state of a rollout → what a report calls it."""
_UNDECIDED = {"trained", "validating", "passed"}
"""States of a model of which validation or deployment has still to say something."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job with everything that its report is about."""

    job: Job
    summary: JobSummary
    model: ModelRow | None = None
    validation: tuple[str, str] | None = None
    """Verdict and sentence of the newest validation of its model that ended."""
    rollout_state: str | None = None
    """Of the newest rollout of its model."""


def job_figures(facts: JobFacts) -> JobFigures:
    """The figures of a job's report, with what follows from them."""
    job, line = facts.job, facts.summary
    final, change = _evaluation(facts)
    config = job.request.training_config
    figures = JobFigures(
        job_id=job.job_id,
        state=job.state,
        reason=job.reason,
        algorithm=config.algorithm,
        base_model=config.base_model,
        started=job.started,
        ended=line.ended,
        model_id=line.model_id,
        duration_hours=line.seconds / 3600,
        attempts=job.attempt,
        samples=line.samples or _examples(job),
        final_reward=final,
        baseline_reward=final - change if final is not None and change is not None else None,
        improvement=change,
        improvement_pct=_percentage(final, change),
        validation=_validation_word(facts),
        validation_sentence=facts.validation[1] if facts.validation else "",
        deployment=_deployment_word(facts),
        cost_usd=line.cost_usd,
        error=line.error,
    )
    return replace(figures, recommendations=recommend_for_job(figures))


def is_settled(figures: JobFigures) -> bool:
    """Whether validation and deployment have said what a job's report waits for."""
    return "pending" not in {figures.validation, figures.deployment}


def _evaluation(facts: JobFacts) -> tuple[float | None, float | None]:
    """The held-out reward afterwards, and how far it changed."""
    results = facts.job.status.evaluation_results
    if isinstance(results, UnsetType):
        return (facts.model.final_reward if facts.model else None), None
    final, change = results.holdout_reward, results.improvement_over_baseline
    return (None if final is UNSET else final), (None if change is UNSET else change)


def _percentage(final: float | None, change: float | None) -> float | None:
    """Of what it was before, where that is more than nothing.

    >>> round(_percentage(0.6, 0.1), 6), _percentage(0.1, 0.1), _percentage(None, 0.1)
    (20.0, None, None)
    """
    if final is None or change is None or not final - change > 0:
        return None
    return change / (final - change) * 100


def _examples(job: Job) -> int:
    metadata = job.status.metadata
    found = None if isinstance(metadata, UnsetType) else metadata.get("examples")
    return found if isinstance(found, int) else 0


def _validation_word(facts: JobFacts) -> str:
    if facts.validation is not None:
        return _VERDICTS.get(facts.validation[0], facts.validation[0])
    return "pending" if facts.model and facts.model.state in _UNDECIDED else "none"


def _deployment_word(facts: JobFacts) -> str:
    if facts.rollout_state is not None:
        return DEPLOYMENTS.get(facts.rollout_state, facts.rollout_state)
    if facts.model is None:
        return "none"
    return "pending" if facts.model.state in _UNDECIDED else "aborted"
