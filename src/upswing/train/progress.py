"""How far is a job, as its child tells it? Reports come in, a training.status.v1 goes out."""

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
from upswing.train.report import Beat, Began, Code, Done, Failed, Report, Saved, Stepped

State = Literal["queued", "running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Told:
    """What the child has told so far."""

    began: Began | None = None
    stepped: Stepped | None = None
    saved: Saved | None = None
    best: Saved | None = None
    best_reward: float = 0.0
    done: Done | None = None
    failed: Failed | None = None
    doing: str = "starting"
    rss_bytes: int = 0
    peak_bytes: int = 0
    steps_taken: int = 0
    """By this attempt."""
    step_seconds: float = 0.0
    """A running mean: the estimate of what is left rests on it."""


def heard(told: Told, report: Report) -> Told:
    """`told`, and then this."""
    match report:
        case Beat():
            peak = max(told.peak_bytes, report.rss_bytes)
            return replace(told, doing=report.doing, rss_bytes=report.rss_bytes, peak_bytes=peak)
        case Began():
            return replace(told, began=report)
        case Stepped():
            known = told.step_seconds
            pace = report.seconds if not known else 0.8 * known + 0.2 * report.seconds
            return replace(
                told, stepped=report, step_seconds=pace, steps_taken=told.steps_taken + 1
            )
        case Saved():
            reward = told.stepped.reward_mean if told.stepped else 0.0
            best = (report, reward) if report.best else (told.best, told.best_reward)
            return replace(told, saved=report, best=best[0], best_reward=best[1])
        case Done():
            return replace(told, done=report)
        case Failed():
            return replace(told, failed=report)


def status_of(
    job_id: str,
    state: State,
    told: Told,
    *,
    now: datetime,
    seconds: float,
    cost_per_hour: float = 0.0,
    error: tuple[Code, str, str] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> TrainingStatus:
    """The status to publish. `seconds` is the time that the job has been running, all attempts."""
    done = told.done
    return TrainingStatus(
        training_job_id=job_id,
        timestamp=now,
        status=state,
        progress=_progress(told) if told.began else UNSET,
        metrics=_metrics(told) if told.stepped else UNSET,
        evaluation_results=_evaluation(done) if done else UNSET,
        artifacts=_artifacts(done) if done else UNSET,
        resource_usage=ResourceUsage(
            gpu_hours=0.0,
            cost_usd=round(seconds / 3600 * cost_per_hour, 6),
            peak_memory_gb=round(max(told.peak_bytes, done.peak_rss_bytes if done else 0) / 1e9, 3),
            total_training_time_seconds=round(seconds, 3),
        ),
        error=JobError(code=error[0], message=error[1], traceback=error[2]) if error else UNSET,
        metadata={"doing": told.doing, **_facts(told), **(notes or {})},
    )


def _progress(told: Told) -> Progress:
    began, stepped = told.began, told.stepped
    assert began is not None  # noqa: S101 - the caller looked
    at = stepped.step if stepped else began.first_step
    left = max(0, began.total_steps - at)
    return Progress(
        current_epoch=stepped.epoch if stepped else 0,
        total_epochs=max(1, began.total_epochs),
        current_step=at,
        total_steps=max(1, at, began.total_steps),  # fresh rollouts take steps that nobody foresaw
        percent_complete=round(100 * at / max(1, at, began.total_steps), 2),
        eta_seconds=round(left * told.step_seconds, 1) if stepped else UNSET,
    )


def _metrics(told: Told) -> Metrics:
    now, best = told.stepped, told.best
    assert now is not None  # noqa: S101 - the caller looked
    return Metrics(
        current=CurrentMetrics(
            loss=_number(now.loss), reward_mean=_number(now.reward_mean), reward_std=_number(now.reward_std),
            policy_entropy=_number(now.entropy), kl_divergence=_number(max(0.0, now.kl)),
            learning_rate=now.learning_rate,
        ),
        best=BestMetrics(step=best.step, reward_mean=told.best_reward, checkpoint_path=best.path) if best else UNSET,
    )  # fmt: skip


def _number(value: float) -> float | UnsetType:
    """What is not a number cannot be told in JSON."""
    return value if math.isfinite(value) else UNSET


def _evaluation(done: Done) -> EvaluationResults:
    before, after = done.holdout_before, done.holdout_after
    if after is None:
        return EvaluationResults()
    return EvaluationResults(
        holdout_reward=after,
        improvement_over_baseline=after - before if before is not None else UNSET,
    )


def _artifacts(done: Done) -> Artifacts:
    return Artifacts(
        final_checkpoint=done.final,
        tensorboard_logs=done.tensorboard,
        training_curves=done.curves,
        model_card=done.card,
    )


def _facts(told: Told) -> dict[str, Any]:
    """What the contract has no field for and a person wants to see."""
    facts: dict[str, Any] = {"training_platform": "upswing", "steps_taken": told.steps_taken}
    if told.began:
        began = told.began
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
            "importance_mean": _rounded(began.importance_mean),
            "importance_truncated": _rounded(began.importance_truncated),
            "effective_sample": _rounded(began.effective_sample),
            "mismatch_kl": _rounded(began.mismatch_kl),
            "mismatch_logp": _rounded(began.mismatch_logp),
        }
    if told.stepped:
        facts |= {"trained_tokens": told.stepped.tokens, "clipped_share": told.stepped.clipped}
    if told.done:
        facts |= _outcome(told.done)
    return facts


def _outcome(done: Done) -> dict[str, Any]:
    """What came of it: how far the policy moved, what that brought, and why it ended."""
    found: dict[str, Any] = {
        "stopped": done.stopped or None,
        "shipped_step": done.step,
        "kl_from_parent": _rounded(done.kl),
        "kl_budget": _rounded(done.kl_budget),
        "changed_answers": _rounded(done.changed_answers),
        "train_reward": [_rounded(done.train_before), _rounded(done.train_after)],
        "holdout_reward": [_rounded(done.holdout_before), _rounded(done.holdout_after)],
        "holdout_measured_by": done.measured_by,
        "holdout_effective_samples": _rounded(done.effective),
    }
    if done.no_change:
        found |= {"no_change": True, "advice": done.advice}
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)
