"""What may an assistant set going by itself? Training, validations, and whatever takes traffic away from a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta

from upswing.contracts.training import Algorithm
from upswing.contracts.trajectory import Domain
from upswing.integrations.operations.formatting import Identifier, Name, figure
from upswing.integrations.operations.loop_port import LoopPort, path_of
from upswing.integrations.operations.operation import (
    Access,
    Arguments,
    Link,
    Operation,
    OperationAnswer,
    bounded,
)
from upswing.integrations.operations.quoting import one_line, sentence

Why = Annotated[str, Meta(max_length=500, description="Why; it stands in the audit.")]
REQUESTER = "assistant"


class TrainArgs(Arguments, frozen=True):
    """What to train on; everything that is left out is the loop's to choose."""

    samples: (
        Annotated[int, Meta(ge=1, le=10_000_000, description="Trajectories at most.")] | None
    ) = None
    days: (
        Annotated[float, Meta(gt=0, le=3650, description="Only of the last so many days.")] | None
    ) = None
    min_reward: Annotated[float, Meta(ge=-1000, le=1000)] | None = None
    max_turns: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    domains: Annotated[tuple[Domain, ...], Meta(max_length=6)] = ()
    algorithm: Algorithm | None = None
    base_model: Identifier | None = None
    priority: Literal["low", "normal", "high", "urgent"] = "high"
    force: Annotated[
        bool, Meta(description="Even when there is not enough, or a model is being rolled out.")
    ] = False
    dry_run: Annotated[bool, Meta(description="Only say what would be trained on.")] = False
    reason: Why = ""


def training_body(asked: TrainArgs, now: datetime, requester: str) -> dict[str, Any]:
    """The request as the loop takes it.

    >>> at = datetime(2026, 1, 31, tzinfo=UTC)
    >>> training_body(TrainArgs(samples=10_000, days=30), at, "rl-trainer")["training_config"]["dataset"]
    {'source': 'local', 'sample_size': 10000, 'filter': {'date_range': {'start': '2026-01-01T00:00:00+00:00'}}}
    """
    config: dict[str, Any] = {
        name: value for name in ("algorithm", "base_model") if (value := getattr(asked, name))
    }
    chosen = _filter(asked, now)
    if asked.samples is not None or chosen:
        size = asked.samples if asked.samples is not None else 10_000
        config["dataset"] = {
            "source": "local",
            "sample_size": size,
            **({"filter": chosen} if chosen else {}),
        }
    return {
        "training_config": config,
        "priority": asked.priority,
        "trigger_reason": "manual",
        "requester": requester,
        "metadata": {"notes": asked.reason} if asked.reason else {},
    }


def _filter(asked: TrainArgs, now: datetime) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if asked.days is not None:
        chosen["date_range"] = {"start": (now - timedelta(days=asked.days)).isoformat()}
    if asked.min_reward is not None:
        chosen["min_reward"] = asked.min_reward
    if asked.max_turns is not None:
        chosen["max_trajectory_length"] = asked.max_turns
    if asked.domains:
        chosen["task_domains"] = list(asked.domains)
    return chosen


async def train(loop: LoopPort, asked: TrainArgs) -> OperationAnswer:
    now = datetime.now(UTC)  # noqa: TID251 - an assistant's process has no runtime of ours
    body = training_body(asked, now, REQUESTER)
    if asked.dry_run:
        return OperationAnswer(_plan_text(await loop.post("/training/plan", body)))
    path = "/training/start" if asked.force else "/training/start?only_if_ready=true"
    started = await loop.post(path, body)
    job_id = started["training_job_id"]
    told = f"Job {job_id} is {started['status']}. {sentence(started['detail'])}"
    return OperationAnswer(told, [Link(f"upswing://jobs/{job_id}", "The job")], {"job_id": job_id})


def _plan_text(plan: dict[str, Any]) -> str:
    told = [
        f"{name}: {figure(value) if isinstance(value, float) else one_line(value, 300)}"
        for name, value in plan.items()
        if value is not None and not isinstance(value, dict | list)
    ]
    return bounded("\n".join(["Nothing is trained; a job would have:", *told]))


class ValidateArgs(Arguments, frozen=True):
    """Which model, and against which; left out: the one that answers."""

    model_id: Name
    against: Name | None = None


async def validate(loop: LoopPort, asked: ValidateArgs) -> OperationAnswer:
    against = {"against": asked.against} if asked.against else {}
    started = await loop.post("/v1/validations", {"model_id": asked.model_id, **against})
    number = started["validation_id"]
    return OperationAnswer(
        f"Validation {number} is under way.",
        [Link(f"upswing://validations/{number}", "How it goes")],
        {"validation_id": number},
    )


class HoldArgs(Arguments, frozen=True):
    """Which model."""

    model_id: Name
    reason: Why = ""


async def hold(loop: LoopPort, asked: HoldArgs) -> OperationAnswer:
    path = path_of("/v1/rollouts/{id}/pause", id=asked.model_id)
    return rollout_answer(await loop.post(path, {"reason": asked.reason}))


class RollbackArgs(Arguments, frozen=True):
    """Which model; left out: what is being rolled out, or else what answers."""

    model_id: Name | None = None
    reason: Why = ""


async def rollback(loop: LoopPort, asked: RollbackArgs) -> OperationAnswer:
    path = "/v1/rollback"
    if asked.model_id is not None:
        path = path_of("/v1/rollouts/{id}/rollback", id=asked.model_id)
    return rollout_answer(await loop.post(path, {"reason": asked.reason}))


def rollout_answer(stands: dict[str, Any]) -> OperationAnswer:
    """How a rollout stands after something was done to it."""
    model = stands["model_id"]
    told = f"{one_line(model)}: {stands['state']}, {figure(stands['traffic_percentage'])} % of the traffic. {sentence(stands['sentence'])}"
    return OperationAnswer(
        told, [Link("upswing://rollouts", "Rollouts")], {"state": stands["state"]}
    )


REQUESTING: Sequence[Operation] = (
    Operation(
        "train",
        "Request a training job, for example with 10,000 samples of the last 30 days; `dry_run` only shows the plan.",
        TrainArgs,
        train,
        Access.REQUEST,
    ),
    Operation(
        "validate",
        "Have a model compared with the one that answers, task by task.",
        ValidateArgs,
        validate,
        Access.REQUEST,
    ),
    Operation(
        "hold",
        "Keep a model's share where it is until a person resumes it.",
        HoldArgs,
        hold,
        Access.REQUEST,
    ),
    Operation(
        "rollback",
        "Take a model's traffic away: the one before it answers again.",
        RollbackArgs,
        rollback,
        Access.REQUEST,
    ),
)
