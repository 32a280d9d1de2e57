"""How does the loop stand, at a glance? One bounded answer for the first page that somebody opens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from upswing.api.decisions import DecisionItem, decision_item
from upswing.api.health import Health
from upswing.api.live import LiveReader
from upswing.api.models import RecentReward
from upswing.api.router import Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.api.training_types import JobInfo
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.infra.sql.paging import PageWanted
from upswing.train.core.job_states import ACTIVE

_DECISIONS = 10
Traffic = Callable[[], Awaitable[dict[str, Any] | None]]
"""Who gets which share; None: no model is served here."""
Ready = Callable[[], Awaitable[tuple[bool, str, datetime]]]
"""Whether the loop is ready to train, why or why not, and when that was counted."""


class ReadinessView(Struct, frozen=True):
    ready: bool
    reason: str
    as_of: datetime


class AnsweringModel(Struct, frozen=True):
    """A model that has traffic."""

    model_id: str
    traffic_percentage: float
    reward: RecentReward | None


class Overview(Struct, frozen=True):
    """The loop at a glance."""

    at: datetime
    health: Health
    counts: dict[str, int]
    collected: dict[str, int]
    """Trajectories of the last hour and day."""
    traffic: dict[str, Any] | None
    models: list[AnsweringModel]
    """Those that have traffic, the largest share first."""
    rollouts: list[dict[str, Any]]
    """Those that are not over, with their figures."""
    job: JobInfo | None
    """The one that runs, else the next."""
    queued_jobs: int
    readiness: ReadinessView
    decisions: list[DecisionItem]
    streams: int
    """Live views that are open."""


class OverviewRoutes:
    """The handler."""

    def __init__(
        self,
        reader: LiveReader,
        models: Models,
        decisions: Decisions,
        *,
        health: Callable[[], Health],
        traffic: Traffic,
        ready: Ready,
        streams: Callable[[], int],
        clock: Callable[[], datetime],
    ) -> None:
        self._reader, self._models, self._decisions = reader, models, decisions
        self._health, self._traffic, self._ready = health, traffic, ready
        self._streams, self._clock = streams, clock

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/v1/overview",
                "How the loop stands, at a glance.",
                self.overview,
                READER,
                answers={200: ("That.", Overview)},
            )
        ]

    async def overview(self, _: Request) -> Response:
        state, traffic = await self._reader.read(), await self._traffic()
        decisions = (await self._decisions.page(PageWanted(_DECISIONS)))[0]
        active = [job for job in state.jobs.values() if job.status in ACTIVE]
        running = next((job for job in active if job.status == "running"), None)
        return answer(
            200,
            Overview(
                self._clock(),
                self._health(),
                state.counts,
                state.collected,
                traffic,
                await self._answering(traffic),
                list(state.rollouts.values()),
                running or (active[0] if active else None),
                sum(job.status == "queued" for job in active),
                ReadinessView(*await self._ready()),
                [decision_item(each) for each in decisions],
                self._streams(),
            ),
        )

    async def _answering(self, traffic: dict[str, Any] | None) -> list[AnsweringModel]:
        shares: dict[str, float] = (traffic or {}).get("traffic", {})
        rewards = await self._models.recent_rewards(shares)
        models = [
            AnsweringModel(name, share, RecentReward(*rewards[name]) if name in rewards else None)
            for name, share in shares.items()
        ]
        return sorted(models, key=lambda each: -each.traffic_percentage)
