"""What can people look at? The routes of pages, reports and tools that read, and the stream of what happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from upswing.api.audit import AuditRoutes
from upswing.api.decisions import DecisionRoutes
from upswing.api.events import EventHub, EventRoutes
from upswing.api.health import Health
from upswing.api.jobs import JobRoutes
from upswing.api.live import LiveReader
from upswing.api.models import ModelRoutes
from upswing.api.overview import OverviewRoutes
from upswing.api.rollout_views import RolloutRoutes
from upswing.api.router import Route
from upswing.api.series import SeriesRoutes
from upswing.api.settings import SettingRoutes
from upswing.api.trajectories import TrajectoryRoutes
from upswing.app.context import Installation
from upswing.app.deployment import ModelDelivery
from upswing.deploy.core.policy import deploy_policy_of
from upswing.deploy.history import RolloutHistory
from upswing.errors import Misuse, Transient
from upswing.infra.sql.audit import AuditTrail
from upswing.infra.sql.database import Database
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.infra.sql.reward_series import RewardSeriesReader
from upswing.redact import Redactor
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.train.jobs.curves import JobCurveReader
from upswing.train.jobs.repository import JobRepository
from upswing.validate.repository import Validations

MOST_CARD = 256 * 1024
"""Bytes of a model's card."""


@dataclass(frozen=True, slots=True)
class ReadSources:
    """Where what is shown comes from."""

    database: Database
    redactor: Redactor
    installation: Installation


@dataclass(frozen=True, slots=True)
class CurrentState:
    """What the loop knows of itself without asking the store."""

    health: Callable[[], Health]
    ready: Callable[[], Awaitable[tuple[bool, str, datetime]]]
    """Whether it is ready to train, why or why not, and when that was counted."""


class LiveViews:
    """How everything stands, and who is told when that changes."""

    def __init__(
        self, database: Database, installation: Installation, *, clock: Callable[[], datetime]
    ) -> None:
        surroundings, settings = installation.surroundings, installation.settings
        self.limits = deploy_policy_of(surroundings.deploy, settings.deploy).limits
        self.reader = LiveReader(database, self.limits, clock=clock)
        self.events = EventHub(self.reader)


class ReadApi:
    """Everything that only reads."""

    def __init__(
        self,
        sources: ReadSources,
        live: LiveViews,
        checkpoints: CheckpointStore,
        delivery: ModelDelivery | None,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._sources, self._live, self._checkpoints = sources, live, checkpoints
        self._delivery, self._clock = delivery, clock
        self.rewards = RewardSeriesReader(sources.database)

    def routes(self, current: CurrentState) -> list[Route]:
        sources, clock = self._sources, self._clock
        database = sources.database
        jobs, models = JobRepository(database), Models(database)
        decisions, history = Decisions(database), RolloutHistory(database)
        pins = self._delivery.validation.pins if self._delivery else None
        parts = (
            TrajectoryRoutes(
                database,
                sources.redactor,
                clock=clock,
                is_pinned=pins.has_trajectory if pins else None,
            ),
            SeriesRoutes(
                self.rewards, history, models, decisions, shares=self._shares, clock=clock
            ),
            DecisionRoutes(decisions, clock=clock),
            RolloutRoutes(history, decisions, self._live.limits, clock=clock),
            JobRoutes(
                jobs,
                models,
                JobCurveReader(self._jobs_folder(), self._checkpoints),
                clock=clock,
            ),
            ModelRoutes(
                models,
                jobs,
                Validations(database),
                decisions,
                read_card=self._read_card,
                clock=clock,
            ),
            AuditRoutes(AuditTrail(database), clock=clock),
            SettingRoutes(
                sources.installation.settings, sources.installation.surroundings, sources.redactor
            ),
            OverviewRoutes(
                self._live.reader,
                models,
                decisions,
                health=current.health,
                traffic=self._traffic,
                ready=current.ready,
                streams=lambda: self._live.events.streams,
                clock=clock,
            ),
            EventRoutes(self._live.events),
        )
        return [route for part in parts for route in part.routes()]

    async def prune(self) -> None:
        """Delete what nobody reads any more."""
        await self.rewards.prune(self._clock())

    def _jobs_folder(self) -> Path:
        return self._sources.installation.folder / "jobs"

    async def _read_card(self, path: str) -> str | None:
        """The text of a card; None where it cannot be had."""
        if not path:
            return None
        try:
            raw = await self._checkpoints.read_artifact(path, MOST_CARD)
        except (Misuse, Transient):
            return None
        return raw.decode(errors="replace") if raw is not None else None

    async def _traffic(self) -> dict[str, Any] | None:
        return self._delivery.controller.last_traffic() if self._delivery else None

    async def _shares(self) -> dict[str, float] | None:
        found = await self._traffic()
        return None if found is None else found["traffic"]
