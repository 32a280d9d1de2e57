"""How do the parts of training become workers on this machine?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from upswing.adapters import bases
from upswing.adapters.objects import Objects
from upswing.adapters.sql.decisions import Decisions
from upswing.adapters.sql.jobs import Jobs
from upswing.adapters.sql.models import Models
from upswing.adapters.training_process import launch
from upswing.aside import Burial
from upswing.config import TrainConfig
from upswing.ports import Decision
from upswing.train.data_service import Data
from upswing.train.metrics import TrainMetrics
from upswing.train.parts import Limits, Parts
from upswing.train.plan_service import Planner
from upswing.train.registry_service import ModelRegistry
from upswing.train.worker_service import Worker

_DAY = timedelta(days=1)
_ALL = 1_000_000


def _parameters(name: str) -> tuple[int, bool]:
    return bases.parameters(name), bases.trains_all(name)


class Workshop:
    """The workers of this machine, and where they keep things."""

    def __init__(
        self,
        folder: Path,
        config: TrainConfig,
        jobs: Jobs,
        models: Models,
        decisions: Decisions,
        data: Data,
        metrics: TrainMetrics,
        *,
        storage: str | None,
        beside: bool = False,
        worlds: Mapping[str, str] | None = None,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        changed: Callable[[], None],
        burial: Burial | None = None,
    ) -> None:
        self.objects = Objects(storage or str(folder / "models"))
        self._models = models
        self._decisions = decisions
        self._clock = clock
        self._new_id = new_id
        self._kept = timedelta(days=config.keep_days)
        self._pruned: datetime | None = None
        parts = Parts(
            folder=folder / "jobs", cache=folder / "bases", jobs=jobs,
            registry=ModelRegistry(models), data=data, keeper=self.objects, launch=launch,
            journal=self._journal, limits=limits_of(config, beside=beside), clock=clock, changed=changed,
            finished=metrics.finished, parameters=_parameters, worlds=worlds or {},
            burial=burial or Burial(),
        )  # fmt: skip
        self.planner = Planner(data, parts.registry, jobs, parameters=_parameters, clock=clock)
        self.workers = [Worker(str(new_id()), parts) for _ in range(config.workers)]

    def wake(self) -> None:
        """A job was queued."""
        for worker in self.workers:
            worker.wake()

    async def prune(self) -> None:
        """Once a day: forget old checkpoints; those of deployed models stay for ever."""
        now = self._clock()
        if self._pruned is not None and now - self._pruned < _DAY:
            return
        deployed = await self._models.list(datetime.fromtimestamp(0, UTC), limit=_ALL)
        await self.objects.prune(now, [row.path for row in deployed], self._kept)
        self._pruned = now

    async def _journal(self, kind: str, sentence: str, inputs: Any, outcome: Any) -> None:
        await self._decisions.record(
            Decision(
                str(self._new_id()), "train", kind, sentence, msgspec.json.encode(inputs),
                msgspec.json.encode(outcome), self._clock(),
            )
        )  # fmt: skip


def limits_of(config: TrainConfig, *, beside: bool) -> Limits:
    """What a job may take, as the config says; `beside`: models are served on this machine."""
    patience = timedelta(seconds=config.heartbeat_seconds)
    return Limits(
        memory_bytes=int(config.memory_gb * 1e9) if config.memory_gb else None,
        timeout=timedelta(hours=config.timeout_hours),
        silence=patience,
        lease=patience,
        retry=timedelta(minutes=config.retry_minutes),
        status_interval=timedelta(seconds=config.status_seconds),
        cost_per_hour=config.cost_per_hour,
        threads=config.threads,
        beside=beside,
    )
