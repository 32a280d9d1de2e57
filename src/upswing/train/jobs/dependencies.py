"""What does a training worker depend on, and which limits do its jobs have?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from upswing.infra.dead_letters import DeadLetterWriter
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.train.core.fit import LARGE
from upswing.train.core.progress import JobProgress, JobState
from upswing.train.core.spec import JobSpec
from upswing.train.jobs.child_process import TrainingProcess
from upswing.train.jobs.data import TrainingData
from upswing.train.jobs.registry import ModelRegistry
from upswing.train.jobs.repository import JobRepository

LaunchTraining = Callable[[Path, JobSpec], Awaitable[TrainingProcess]]
RecordDecision = Callable[[str, str, str, Any, Any], Awaitable[None]]
"""job, kind, sentence, inputs, outcome."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The resources and time limits of a job, in real time."""

    memory_bytes: int | None = None
    timeout: timedelta = timedelta(hours=24)
    heartbeat_timeout: timedelta = timedelta(seconds=60)
    """Without a heartbeat for so long, a child counts as hung."""
    lease: timedelta = timedelta(seconds=60)
    retry_delay: timedelta = timedelta(minutes=10)
    status_interval: timedelta = timedelta(seconds=10)
    """Between two published statuses of a job that just goes on."""
    cost_per_hour: float = 0.0
    threads: int | None = None
    shares_cores: bool = False
    """Whether a model server of ours works on the same cores."""


@dataclass(frozen=True, slots=True)
class JobDependencies:
    """Everything that a training worker depends on."""

    jobs_folder: Path
    """Where jobs have their folders."""
    base_cache: Path
    """Where bases are cached that we make ourselves."""
    jobs: JobRepository
    registry: ModelRegistry
    data: TrainingData
    checkpoint_store: CheckpointStore
    launch: LaunchTraining
    record_decision: RecordDecision
    limits: JobLimits
    clock: Callable[[], datetime]
    base_parameters: Callable[[str], tuple[int, bool]] = lambda _name: (LARGE, False)
    """Of a base: how many weights it has, and whether all of them are trained unless somebody says
    otherwise. By default every base counts as large."""
    dead_letters: DeadLetterWriter = field(default_factory=DeadLetterWriter)
    """Where rows go that cannot be read."""
    worlds: Mapping[str, str] = field(default_factory=dict)
    """Of the user's own, by name: their entry points."""
    on_change: Callable[[], None] = lambda: None
    """Called after a commit, so that what follows from it is published at once."""
    on_finished: Callable[[JobState, float, int], None] = lambda _state, _seconds, _samples: None
    """Called for every job that ended: the metrics."""
    on_progress: Callable[[str, JobProgress | None], None] = lambda _worker, _progress: None
    """Called with a worker's name after each report of its child, and with None after its end: the metrics."""
