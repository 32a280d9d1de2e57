"""How far is a job, as its child reports it? Reports in, a training.status.v1 out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from upswing.contracts.training import (
    Artifacts,
    BestMetrics,
    CurrentMetrics,
    EvaluationResults,
    JobError,
    Metrics,
    Progress,
    ResourceUsage,
    TrainingStatus,
)
from upswing.train.core.report import (
    CheckpointSaved,
    FailureCode,
    Heartbeat,
    Report,
    StepReport,
    TrainingDone,
    TrainingFailed,
    TrainingStarted,
)

JobState = Literal["queued", "running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What the child has reported so far."""

    began: TrainingStarted | None = None
    stepped: StepReport | None = None
    saved: CheckpointSaved | None = None
    best: CheckpointSaved | None = None
    best_reward: float = 0.0
    done: TrainingDone | None = None
    failed: TrainingFailed | None = None
    doing: str = "starting"
    rss_bytes: int = 0
    peak_bytes: int = 0
    cpu_seconds: float = 0.0
    """Of processors, since the child began."""
    steps_taken: int = 0
    """By this attempt."""
    step_seconds: float = 0.0
    """A running mean: the estimate of what is left rests on it."""


def apply_report(progress: JobProgress, report: Report) -> JobProgress:
    """The progress after this report."""
    match report:
        case Heartbeat():
            peak = max(progress.peak_bytes, report.rss_bytes)
            return replace(
                progress,
                doing=report.doing,
                rss_bytes=report.rss_bytes,
                peak_bytes=peak,
                cpu_seconds=report.cpu_seconds,
            )
        case TrainingStarted():
            return replace(progress, began=report)
        case StepReport():
            known = progress.step_seconds
            pace = report.seconds if not known else 0.8 * known + 0.2 * report.seconds
            return replace(
                progress, stepped=report, step_seconds=pace, steps_taken=progress.steps_taken + 1
            )
        case CheckpointSaved():
            reward = progress.stepped.reward_mean if progress.stepped else 0.0
            best = (report, reward) if report.best else (progress.best, progress.best_reward)
            return replace(progress, saved=report, best=best[0], best_reward=best[1])
        case TrainingDone():
            return replace(progress, done=report)
        case TrainingFailed():
            return replace(progress, failed=report)


def training_status(
    job_id: str,
    state: JobState,
    progress: JobProgress,
    *,
    now: datetime,
    seconds: float,
    cost_per_hour: float = 0.0,
    error: tuple[FailureCode, str, str] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> TrainingStatus:
    """The status to publish. `seconds` is the time that the job has been running, all attempts."""
    done = progress.done
    return TrainingStatus(
        training_job_id=job_id,
        timestamp=now,
        status=state,
        progress=_progress_message(progress) if progress.began else UNSET,
        metrics=_metrics_message(progress) if progress.stepped else UNSET,
        evaluation_results=_evaluation_results(done) if done else UNSET,
        artifacts=_artifacts_of_training(done) if done else UNSET,
        resource_usage=ResourceUsage(
            gpu_hours=0.0,
            cost_usd=round(seconds / 3600 * cost_per_hour, 6),
            peak_memory_gb=round(
                max(progress.peak_bytes, done.peak_rss_bytes if done else 0) / 1e9, 3
            ),
            total_training_time_seconds=round(seconds, 3),
        ),
        error=JobError(code=error[0], message=error[1], traceback=error[2]) if error else UNSET,
        metadata={"doing": progress.doing, **_status_metadata(progress), **(notes or {})},
    )


def _progress_message(progress: JobProgress) -> Progress:
    began, stepped = progress.began, progress.stepped
    assert began is not None  # noqa: S101 - the caller checked
    at = stepped.step if stepped else began.first_step
    left = max(0, began.total_steps - at)
    return Progress(
        current_epoch=stepped.epoch if stepped else 0,
        total_epochs=max(1, began.total_epochs),
        current_step=at,
        total_steps=max(1, at, began.total_steps),  # fresh rollouts take steps that nobody foresaw
        percent_complete=round(100 * at / max(1, at, began.total_steps), 2),
        eta_seconds=round(left * progress.step_seconds, 1) if stepped else UNSET,
    )


def _metrics_message(progress: JobProgress) -> Metrics:
    now, best = progress.stepped, progress.best
    assert now is not None  # noqa: S101 - the caller checked
    return Metrics(
        current=CurrentMetrics(
            loss=_finite_number(now.loss),
            reward_mean=_finite_number(now.reward_mean),
            reward_std=_finite_number(now.reward_std),
            policy_entropy=_finite_number(now.entropy),
            kl_divergence=_finite_number(max(0.0, now.kl)),
            learning_rate=now.learning_rate,
        ),
        best=BestMetrics(
            step=best.step, reward_mean=progress.best_reward, checkpoint_path=best.path
        )
        if best
        else UNSET,
    )


def _finite_number(value: float) -> float | UnsetType:
    """What is not a number cannot be written as JSON."""
    return value if math.isfinite(value) else UNSET


def _evaluation_results(done: TrainingDone) -> EvaluationResults:
    before, after = done.holdout_before, done.holdout_after
    if after is None:
        return EvaluationResults()
    return EvaluationResults(
        holdout_reward=after,
        improvement_over_baseline=after - before if before is not None else UNSET,
    )


def _artifacts_of_training(done: TrainingDone) -> Artifacts:
    return Artifacts(
        final_checkpoint=done.final,
        tensorboard_logs=done.tensorboard,
        training_curves=done.curves,
        model_card=done.card,
    )


def _status_metadata(progress: JobProgress) -> dict[str, Any]:
    """What the contract has no field for and a person wants to see."""
    facts: dict[str, Any] = {"training_platform": "upswing", "steps_taken": progress.steps_taken}
    if progress.began:
        began = progress.began
        facts |= {
            "pytorch_version": began.versions.get("torch", ""),
            "first_step": began.first_step,
            "examples": began.examples,
            "groups": began.groups,
            "groups_without_variance": began.flat_groups,
            "off_policy_share": round(began.off_policy_tokens / max(1, began.trained_tokens), 4),
            "masked_trajectories": began.masked_trajectories,
            "left_out": began.dropped,
            "encoded_in_pieces": began.pieced,
            "tokens_not_believed": began.doubted,
            "policy_versions": began.policy_versions,
            "importance_mean": _round_or_none(began.importance_mean),
            "importance_truncated": _round_or_none(began.importance_truncated),
            "effective_sample": _round_or_none(began.effective_sample),
            "mismatch_kl": _round_or_none(began.mismatch_kl),
            "mismatch_logp": _round_or_none(began.mismatch_logp),
        }
    if progress.stepped:
        facts |= {
            "trained_tokens": progress.stepped.tokens,
            "clipped_share": progress.stepped.clipped,
        }
    if progress.done:
        facts |= _outcome_metadata(progress.done)
    return facts


def _outcome_metadata(done: TrainingDone) -> dict[str, Any]:
    """What came of it: how far the policy moved, what that brought, and why it ended."""
    found: dict[str, Any] = {
        "stopped": done.stopped or None,
        "shipped_step": done.step,
        "kl_from_parent": _round_or_none(done.kl),
        "kl_budget": _round_or_none(done.kl_budget),
        "changed_answers": _round_or_none(done.changed_answers),
        "train_reward": [_round_or_none(done.train_before), _round_or_none(done.train_after)],
        "holdout_reward": [_round_or_none(done.holdout_before), _round_or_none(done.holdout_after)],
        "holdout_measured_by": done.measured_by,
        "holdout_effective_samples": _round_or_none(done.effective),
    }
    if done.no_change:
        found |= {"no_change": True, "advice": done.advice}
    return found


def _round_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)
