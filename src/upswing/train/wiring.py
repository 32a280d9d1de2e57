"""How do the dependencies of training become workers on this machine?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from upswing.config import TrainConfig
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.records import Decision
from upswing.train.bases import catalog
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.train.jobs.child_process import launch_training
from upswing.train.jobs.data import TrainingData
from upswing.train.jobs.dependencies import JobDependencies, JobLimits
from upswing.train.jobs.planning import TrainingPlanner
from upswing.train.jobs.queue import TrainingWorker
from upswing.train.jobs.registry import ModelRegistry
from upswing.train.jobs.repository import JobRepository
from upswing.train.metrics import TrainMetrics

_DAY = timedelta(days=1)
_ALL = 1_000_000


def base_parameters(name: str) -> tuple[int, bool]:
    return catalog.count_parameters(name), catalog.trains_all_weights(name)


@dataclass(frozen=True, slots=True)
class TrainingStores:
    """The rows and the data that training reads and writes."""

    jobs: JobRepository
    models: Models
    decisions: Decisions
    data: TrainingData


@dataclass(frozen=True, slots=True)
class TrainingRuntime:
    """What the composition root gives to training: time, ids, and who is notified."""

    clock: Callable[[], datetime]
    new_id: Callable[[], UUID]
    on_change: Callable[[], None]
    """Called after a commit, so that what follows from it is published at once."""
    dead_letters: DeadLetterWriter = field(default_factory=DeadLetterWriter)
    """Where rows go that cannot be read."""


class TrainerPool:
    """The training workers of this machine, and the store of their checkpoints."""

    def __init__(
        self,
        folder: Path,
        config: TrainConfig,
        stores: TrainingStores,
        metrics: TrainMetrics,
        runtime: TrainingRuntime,
        *,
        storage: str | None,
        shares_cores: bool = False,
        worlds: Mapping[str, str] | None = None,
    ) -> None:
        self.checkpoint_store = CheckpointStore(storage or str(folder / "models"))
        self._models = stores.models
        self._decisions = stores.decisions
        self._clock = runtime.clock
        self._new_id = runtime.new_id
        self._retention = timedelta(days=config.keep_days)
        self._pruned_at: datetime | None = None
        dependencies = JobDependencies(
            jobs_folder=folder / "jobs",
            base_cache=folder / "bases",
            jobs=stores.jobs,
            registry=ModelRegistry(stores.models),
            data=stores.data,
            checkpoint_store=self.checkpoint_store,
            launch=launch_training,
            record_decision=self._record_decision,
            limits=job_limits(config, shares_cores=shares_cores),
            clock=runtime.clock,
            on_change=runtime.on_change,
            on_finished=metrics.finished,
            on_progress=metrics.children.report,
            base_parameters=base_parameters,
            worlds=worlds or {},
            dead_letters=runtime.dead_letters,
        )
        self.planner = TrainingPlanner(
            stores.data,
            dependencies.registry,
            stores.jobs,
            base_parameters=base_parameters,
            clock=runtime.clock,
        )
        names = [str(runtime.new_id()) for _ in range(config.workers)]
        metrics.children.expect(names)
        self.workers = [TrainingWorker(name, dependencies) for name in names]

    def wake(self) -> None:
        """A job was queued."""
        for worker in self.workers:
            worker.wake()

    async def prune(self) -> None:
        """Once a day: delete old checkpoints; those of deployed models stay for ever."""
        now = self._clock()
        if self._pruned_at is not None and now - self._pruned_at < _DAY:
            return
        deployed = await self._models.list(datetime.fromtimestamp(0, UTC), limit=_ALL)
        await self.checkpoint_store.prune(now, [row.path for row in deployed], self._retention)
        self._pruned_at = now

    async def _record_decision(
        self, job_id: str, kind: str, sentence: str, inputs: Any, outcome: Any
    ) -> None:
        await self._decisions.record(
            Decision(
                str(self._new_id()),
                "train",
                kind,
                sentence,
                msgspec.json.encode(inputs),
                msgspec.json.encode(outcome),
                self._clock(),
                about=job_id,
            )
        )


def job_limits(config: TrainConfig, *, shares_cores: bool) -> JobLimits:
    """What a job may take, as configured; `shares_cores`: a model server uses the same cores."""
    heartbeat_timeout = timedelta(seconds=config.heartbeat_seconds)
    return JobLimits(
        memory_bytes=int(config.memory_gb * 1e9) if config.memory_gb else None,
        timeout=timedelta(hours=config.timeout_hours),
        heartbeat_timeout=heartbeat_timeout,
        lease=heartbeat_timeout,
        retry_delay=timedelta(minutes=config.retry_minutes),
        status_interval=timedelta(seconds=config.status_seconds),
        cost_per_hour=config.cost_per_hour,
        threads=config.threads,
        shares_cores=shares_cores,
    )
