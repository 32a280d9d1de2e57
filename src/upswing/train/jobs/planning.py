"""What would a job do? The same steps as at the start of a job, without a job and without writing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec

from upswing.contracts.training import TrainingRequest
from upswing.contracts.typed import from_json
from upswing.dataset.snapshot import Snapshot
from upswing.records import Job
from upswing.train.core.fit import fit_recipe
from upswing.train.core.plan import CompletedJob, TrainingPlan, build_plan
from upswing.train.core.recipe import Recipe
from upswing.train.jobs.data import DataPreview, TrainingData
from upswing.train.jobs.registry import ModelRegistry
from upswing.train.jobs.repository import JobRepository


class TrainingPlanner:
    """Plans jobs."""

    def __init__(
        self,
        data: TrainingData,
        registry: ModelRegistry,
        jobs: JobRepository,
        *,
        base_parameters: Callable[[str], tuple[int, bool]],
        clock: Callable[[], datetime],
    ) -> None:
        self._data, self._registry, self._jobs = data, registry, jobs
        self._base_parameters, self._clock = base_parameters, clock

    async def preview(self, request: TrainingRequest, recipe: Recipe) -> DataPreview:
        """What a job of this request would find."""
        start = await self._registry.resolve_start(request)
        return await self._data.preview(
            request,
            recipe,
            ancestor_jobs=start.ancestor_jobs,
            policy_ages=start.policy_ages,
            now=self._clock(),
        )

    async def plan(
        self, request: TrainingRequest, recipe: Recipe, snapshot: Snapshot
    ) -> TrainingPlan:
        """The plan of this request, with the data that it would find."""
        start = await self._registry.resolve_start(request)
        parameters, all_weights = await asyncio.to_thread(self._base_parameters, start.base_model)
        full = all_weights if recipe.full is None else recipe.full
        fit = fit_recipe(
            recipe,
            parameters=parameters,
            full=full,
            trajectories=len(snapshot.trained()),
            groups=snapshot.trained_groups,
        )
        done = await self._jobs.list("completed", limit=20)
        return build_plan(
            snapshot,
            fit,
            base_model=start.base_model,
            starts_from=start.model_id or start.base_model,
            parameters=parameters,
            full=full,
            earlier=[
                each for job in done if (each := _completed_job(job, start.base_model)) is not None
            ],
        )


def _completed_job(job: Job, base_model: str) -> CompletedJob | None:
    """What a completed job of this base took, where it says so."""
    config, usage = job.request.training_config, job.status.resource_usage
    try:
        recipe = from_json(job.recipe, Recipe)
    except msgspec.MsgspecError:  # of another version: it says nothing about this one
        return None
    if isinstance(usage, msgspec.UnsetType) or config.base_model != base_model:
        return None
    seconds, memory = usage.total_training_time_seconds, usage.peak_memory_gb
    metadata = job.status.metadata if isinstance(job.status.metadata, dict) else {}
    samples = metadata.get("examples")
    if isinstance(seconds, msgspec.UnsetType) or not isinstance(samples, int):
        return None
    known = 0.0 if isinstance(memory, msgspec.UnsetType) else memory
    return CompletedJob(job.job_id, samples * recipe.epochs * recipe.iterations, seconds, known)
