"""What does training need from the world, and how long is it patient?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from upswing.aside import Burial
from upswing.contracts.training import TrainingRequest, TrainingStatus
from upswing.dataset.snapshot import Snapshot
from upswing.ports import Job, Renewed
from upswing.train.data_service import Gathered
from upswing.train.fit import LARGE
from upswing.train.progress import State
from upswing.train.recipe import Recipe
from upswing.train.report import Report
from upswing.train.spec import JobSpec


class Process(Protocol):
    """A training child."""

    @property
    def pid(self) -> int: ...

    async def report(self) -> Report | None: ...

    def frozen(self, now: float) -> bool:
        """Whether it is, asked about once a second: it neither beats nor computes."""
        ...

    async def ended(self) -> int: ...

    async def kill(self) -> None: ...

    def tail(self) -> str: ...


class JobStore(Protocol):
    """Jobs are rows; every write is durable when it returns."""

    async def claim(self, worker: str, now: datetime, lease: timedelta) -> Job | None: ...

    async def renew(self, job_id: str, worker: str, until: datetime) -> Renewed: ...

    async def note(
        self, job_id: str, status: TrainingStatus, *, announce: bool, worker: str | None = None
    ) -> None:
        """With `worker`, here and below: only while the job is this worker's."""
        ...

    async def plan(self, job_id: str, recipe: bytes, snapshot: str | None) -> None: ...

    async def requeue(
        self,
        job_id: str,
        *,
        recipe: bytes,
        failures: bytes,
        not_before: datetime,
        status: TrainingStatus,
        worker: str | None = None,
    ) -> None: ...

    async def finish(
        self,
        job_id: str,
        state: str,
        status: TrainingStatus,
        failures: bytes,
        now: datetime,
        *,
        worker: str | None = None,
    ) -> None: ...


class Registry(Protocol):
    """The models that training made."""

    async def register(
        self, *, job_id: str, base_model: str, parent: str | None, snapshot: str, path: str,
        card: str, samples: int, final_reward: float | None, now: datetime, seal: str = "",
    ) -> str: ...  # fmt: skip

    async def start_of(self, request: TrainingRequest) -> Start: ...

    async def checkpoints(self, names: Collection[str]) -> dict[str, str]:
        """Where the checkpoints of these models are kept, of those that are known."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """Where training begins, and which jobs led there."""

    base_model: str
    model_id: str = ""
    """The model whose weights are taken; none means the base's."""
    path: str = ""
    """Where its checkpoint is kept."""
    ancestors: tuple[str, ...] = ()
    ages: Mapping[str, int] = field(default_factory=dict)
    """Policy → how many versions back it is; this one is 0, models of other lines are far away."""


class Keeper(Protocol):
    """Where models are kept."""

    async def keep(self, folder: Path, name: str) -> str: ...

    async def fetch(self, path: str, folder: Path) -> Path: ...


class DataSource(Protocol):
    async def gather(
        self, request: TrainingRequest, recipe: Recipe, *, ancestors: Sequence[str], drop: Sequence[str], now: datetime,
        ages: Mapping[str, int],
    ) -> Gathered: ...  # fmt: skip

    async def note_trained(self, job_id: str, snapshot: Snapshot) -> None: ...

    async def erased(self, snapshot: Snapshot) -> bool:
        """Whether something of it was erased since it was gathered."""
        ...


Launch = Callable[[Path, JobSpec], Awaitable[Process]]
Journal = Callable[[str, str, Any, Any], Awaitable[None]]
"""kind, sentence, inputs, outcome."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a job may take, and how long we are patient. These keep real time."""

    memory_bytes: int | None = None
    timeout: timedelta = timedelta(hours=24)
    silence: timedelta = timedelta(seconds=60)
    """Without a heartbeat for so long, a child counts as hung."""
    lease: timedelta = timedelta(seconds=60)
    retry: timedelta = timedelta(minutes=10)
    status_interval: timedelta = timedelta(seconds=10)
    """Between two published statuses of a job that just goes on."""
    cost_per_hour: float = 0.0
    threads: int | None = None
    beside: bool = False
    """Whether a model server of ours works on the same cores."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a worker works with."""

    folder: Path
    """Where jobs have their folders."""
    cache: Path
    """Where bases that we make ourselves are kept."""
    jobs: JobStore
    registry: Registry
    data: DataSource
    keeper: Keeper
    launch: Launch
    journal: Journal
    limits: Limits
    clock: Callable[[], datetime]
    parameters: Callable[[str], tuple[int, bool]] = lambda _name: (LARGE, False)
    """Of a base: how many weights it has, and whether all of them are trained unless somebody says
    otherwise. Unless told, every base counts as large."""
    burial: Burial = field(default_factory=Burial)
    """Where rows go that cannot be read."""
    worlds: Mapping[str, str] = field(default_factory=dict)
    """Of the user's own, by name: their entry points."""
    changed: Callable[[], None] = lambda: None
    """Called after a commit, so that what follows from it is published at once."""
    finished: Callable[[State, float, int], None] = lambda _state, _seconds, _samples: None
    """Told of every job that ended: the metrics."""
