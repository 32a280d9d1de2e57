"""What was learned, who answers, and who earns more?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from upswing.integrations.operations.formatting import (
    Identifier,
    Limit,
    Name,
    figure,
    lines,
    pairs,
    value_text,
)
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.operation import (
    Arguments,
    Link,
    Operation,
    OperationAnswer,
    bounded,
)
from upswing.integrations.operations.quoting import one_line, sentence


class JobsArgs(Arguments, frozen=True):
    """Which ones."""

    status: Literal["queued", "running", "completed", "failed", "cancelled"] | None = None
    limit: Limit = 10


async def jobs(loop: LoopPort, asked: JobsArgs) -> OperationAnswer:
    found = (await loop.get("/jobs", status=asked.status, limit=asked.limit))["jobs"]
    links = [Link(f"upswing://jobs/{job['training_job_id']}", "The job") for job in found[:3]]
    return OperationAnswer(lines(map(job_line, found), "No jobs."), links)


def job_line(job: Mapping[str, Any]) -> str:
    """One job in a line."""
    latest = job.get("latest") or {}
    progress = (latest.get("progress") or {}).get("percent_complete")
    error = latest.get("error") or {}
    far = f" {progress:.0f} %" if isinstance(progress, int | float) else ""
    why = f" {error['code']}: {sentence(error.get('message'), 200)}" if error.get("code") else ""
    return (
        f"{job['training_job_id']}  {job['status']}{far}  {job['created'][:16]}  {job['algorithm']}  "
        f"{one_line(job['base_model'], 60)}  {job['trigger_reason']}{why}"
    )


class JobArgs(Arguments, frozen=True):
    """Which one."""

    job_id: Identifier


async def job(loop: LoopPort, asked: JobArgs) -> OperationAnswer:
    found = await loop.get(path_of("/training/{id}/status", id=asked.job_id))
    told = [f"{asked.job_id}: {found['status']} ({found['timestamp']})."]
    parts = {name: found.get(name) for name in ("progress", "evaluation_results", "resource_usage")}
    measured = found.get("metrics") or {}
    parts |= {name: measured.get(name) for name in ("current", "best")}
    told += [f"{name}: {pairs(values)}" for name, values in parts.items() if values]
    if error := found.get("error"):
        told.append(f"error {error['code']}: {sentence(error.get('message'))}")
    return OperationAnswer(
        bounded("\n".join(told)), [Link(f"upswing://jobs/{asked.job_id}", "All of it")]
    )


class ModelsArgs(Arguments, frozen=True):
    """Takes nothing."""


async def models(loop: LoopPort, _: ModelsArgs) -> OperationAnswer:
    found = (await loop.get("/admin/models"))["models"]
    told = lines((_model_line(row) for row in found[:30]), "Only the base answers.")
    links = [Link(f"upswing://models/{row['model_id']}", "The model") for row in found[:3]]
    return OperationAnswer(bounded(told), links)


def _model_line(row: Mapping[str, Any]) -> str:
    return " ".join(
        [
            one_line(row["model_id"], 80),
            *(
                f"{name}={one_line(value, 60) if not isinstance(value, float) else figure(value)}"
                for name, value in row.items()
                if name != "model_id" and value is not None and not isinstance(value, dict | list)
            ),
        ]
    )


class ModelArgs(Arguments, frozen=True):
    """Which one."""

    model_id: Name = "current"


async def model(loop: LoopPort, asked: ModelArgs) -> OperationAnswer:
    found = await loop.get(path_of("/admin/models/{id}/metrics", id=asked.model_id))
    told = [
        f"{one_line(asked.model_id)}:",
        *(f"{key}: {value_text(value)}" for key, value in found.items()),
    ]
    return OperationAnswer(
        bounded("\n".join(told)), [Link(f"upswing://models/{asked.model_id}", "The model")]
    )


class RolloutsArgs(Arguments, frozen=True):
    """How many."""

    limit: Limit = 5


async def rollouts(loop: LoopPort, asked: RolloutsArgs) -> OperationAnswer:
    found = (await loop.get("/v1/rollouts", limit=asked.limit))["rollouts"]
    told = [
        f"{one_line(row.get('model_id'))}  {row.get('state')}  {figure(row.get('traffic_percentage', row.get('share')))} %  {sentence(row.get('sentence'))}"
        for row in found
    ]
    return OperationAnswer(
        lines(told, "No model has been rolled out yet."), [Link("upswing://rollouts", "All of it")]
    )


class CompareArgs(Arguments, frozen=True):
    """Which two."""

    a: Name
    b: Name


async def compare(loop: LoopPort, asked: CompareArgs) -> OperationAnswer:
    found = await loop.get("/v1/compare", a=asked.a, b=asked.b)
    told = [sentence(found["sentence"])]
    told += [
        f"{one_line(arm['model_id'])}: mean {figure(arm['mean'])} of {arm['trajectories']}"
        for arm in (found["a"], found["b"])
    ]
    if side := found.get("production"):
        told.append(
            f"difference {figure(side['difference'])} ({figure(side['lower'])} to {figure(side['upper'])}), {side['compared']} compared"
        )
    told += [
        f"suite {one_line(suite['suite'])}: {figure(suite['a'])} against {figure(suite['b'])}"
        for suite in found.get("suites", [])
    ]
    return OperationAnswer(bounded("\n".join(told)))


class ValidationArgs(Arguments, frozen=True):
    """Which one."""

    validation_id: Identifier


async def validation(loop: LoopPort, asked: ValidationArgs) -> OperationAnswer:
    found = await loop.get(path_of("/v1/validations/{id}", id=asked.validation_id))
    told = [
        f"{one_line(found['model_id'])} against {one_line(found['against'])}: {found['state']}, verdict {found['word'] or 'none yet'}. {sentence(found['sentence'])}",
        *(f"{pairs(part)}" for part in found.get("progress", [])),
        *(
            f"suite {one_line(suite['name'])}: {figure(suite.get('candidate'))} against {figure(suite.get('current'))}"
            for suite in (found.get("report") or {}).get("suites", [])
        ),
    ]
    return OperationAnswer(
        bounded("\n".join(told)),
        [Link(f"upswing://validations/{asked.validation_id}", "The report")],
    )


MODELS = (
    Operation("jobs", "Training jobs, the newest first.", JobsArgs, jobs),
    Operation("job", "How one training job goes, or how it ended.", JobArgs, job),
    Operation("models", "All models and their states.", ModelsArgs, models),
    Operation(
        "model",
        "How one model does in production; `current` is the one that answers.",
        ModelArgs,
        model,
    ),
    Operation(
        "rollouts",
        "How models were rolled out, and why each has the share it has.",
        RolloutsArgs,
        rollouts,
    ),
    Operation(
        "compare", "Which of two models earns more, and how sure that is.", CompareArgs, compare
    ),
    Operation("validation", "How a validation goes, or its report.", ValidationArgs, validation),
)
