"""What would a job do? The same way as a job begins, without a job, and without a word written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from upswing.contracts.training import TrainingRequest
from upswing.contracts.typed import from_json
from upswing.dataset.snapshot import Snapshot
from upswing.ports import Job
from upswing.train.data_service import Data, Preview
from upswing.train.fit import fitted
from upswing.train.parts import Registry
from upswing.train.plan import Earlier, Plan, plan_of
from upswing.train.recipe import Recipe


class Jobs(Protocol):
    async def list(
        self, status: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> Sequence[Job]: ...


class Planner:
    """Plans jobs."""

    def __init__(
        self, data: Data, registry: Registry, jobs: Jobs,
        *, parameters: Callable[[str], tuple[int, bool]], clock: Callable[[], datetime],
    ) -> None:  # fmt: skip
        self._data, self._registry, self._jobs = data, registry, jobs
        self._parameters, self._clock = parameters, clock

    async def look(self, request: TrainingRequest, recipe: Recipe) -> Preview:
        """What a job of this request would find."""
        start = await self._registry.start_of(request)
        return await self._data.preview(
            request, recipe, ancestors=start.ancestors, ages=start.ages, now=self._clock()
        )

    async def plan(self, request: TrainingRequest, recipe: Recipe, snapshot: Snapshot) -> Plan:
        """The plan of this request, with the data that it would find."""
        start = await self._registry.start_of(request)
        parameters, all_weights = await asyncio.to_thread(self._parameters, start.base_model)
        full = all_weights if recipe.full is None else recipe.full
        fit = fitted(
            recipe, parameters=parameters, full=full,
            trajectories=len(snapshot.trained()), groups=snapshot.trained_groups,
        )  # fmt: skip
        done = await self._jobs.list("completed", limit=20)
        return plan_of(
            snapshot, fit, base_model=start.base_model, starts_from=start.model_id or start.base_model,
            parameters=parameters, full=full,
            earlier=[each for job in done if (each := _earlier(job, start.base_model)) is not None],
        )  # fmt: skip


def _earlier(job: Job, base_model: str) -> Earlier | None:
    """What a completed job of this base took, where it says so."""
    config, usage = job.request.training_config, job.status.resource_usage
    try:
        recipe = from_json(job.recipe, Recipe)
    except msgspec.MsgspecError:  # of another version: it says nothing about this one
        return None
    if isinstance(usage, msgspec.UnsetType) or config.base_model != base_model:
        return None
    seconds, memory = usage.total_training_time_seconds, usage.peak_memory_gb
    about = job.status.metadata if isinstance(job.status.metadata, dict) else {}
    samples = about.get("examples")
    if isinstance(seconds, msgspec.UnsetType) or not isinstance(samples, int):
        return None
    known = 0.0 if isinstance(memory, msgspec.UnsetType) else memory
    return Earlier(job.job_id, samples * recipe.epochs * recipe.iterations, seconds, known)
