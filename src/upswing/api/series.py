"""How did it go over time? Rewards by model with what happened to models, and who answered how much."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from upswing.api.paging import ListQuery, PageQuery, integer_of
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.deploy.core.rows import TrafficStep
from upswing.deploy.history import RolloutHistory
from upswing.errors import Reason, Rejected
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import Models
from upswing.infra.sql.paging import PageWanted
from upswing.infra.sql.reward_series import ModelSeries, RewardPoint, RewardSeriesReader

DAY = timedelta(hours=24)
LONGEST = timedelta(days=3660)
_POINTS = {"type": "integer", "minimum": 10, "maximum": 1000}
_REWARDS = ListQuery(
    "reward series",
    {
        "model": {"type": "string", "maxLength": 2000, "description": "One, or several by commas."},
        "points": _POINTS,
    },
    paged=False,
)
_TRAFFIC = ListQuery("traffic series", {"points": _POINTS}, paged=False)
_MOST_MARKS = 200
_KINDS = {
    "deployed": "canary",
    "ramped": "canary",
    "promoted": "promoted",
    "rollback": "rolled_back",
}
"""What happened to a model's traffic → what the drawing calls it."""
_SENTENCES = {
    "canary": "{model} gets {share:g} % of the traffic.",
    "promoted": "{model} answers everybody.",
    "rolled_back": "{model} is rolled back.",
}


class SeriesMark(Struct, frozen=True):
    """Something that happened to a model."""

    at: datetime
    kind: str
    """`trained`, `canary`, `promoted` or `rolled_back`."""
    model_id: str
    sentence: str
    decision_id: str | None


class RewardSeriesAnswer(Struct, frozen=True):
    """Raw rewards over time."""

    since: datetime
    until: datetime
    bucket_seconds: int
    series: list[ModelSeries]
    marks: list[SeriesMark]


class ObservedTraffic(Struct, frozen=True):
    """Who answered how many episodes in one stretch of time."""

    at: datetime
    counts: dict[str, int]


class PlannedTraffic(Struct, frozen=True):
    """Who got which percentage from then on."""

    at: datetime
    shares: dict[str, float]


class TrafficSeriesAnswer(Struct, frozen=True):
    """The traffic over time."""

    since: datetime
    until: datetime
    bucket_seconds: int
    observed: list[ObservedTraffic]
    planned: list[PlannedTraffic]
    """The first is what held at the beginning, where that is known."""


CurrentShares = Callable[[], Awaitable[dict[str, float] | None]]
"""Model → percent, now; None: no model is served here."""


class SeriesRoutes:
    """The handlers."""

    def __init__(
        self,
        rewards: RewardSeriesReader,
        history: RolloutHistory,
        models: Models,
        decisions: Decisions,
        *,
        shares: CurrentShares,
        clock: Callable[[], datetime],
    ) -> None:
        self._rewards, self._history, self._models = rewards, history, models
        self._decisions, self._shares, self._clock = decisions, shares, clock

    def routes(self) -> list[Route]:
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        return [
            Route(
                "GET",
                "/v1/rewards/series",
                "Rewards over time by model, and what happened to models.",
                self.rewards,
                READER,
                query=_REWARDS.schema,
                answers={200: ("That.", RewardSeriesAnswer), **wrong},
            ),
            Route(
                "GET",
                "/v1/traffic/series",
                "Who answered how much over time, and who was to.",
                self.traffic,
                READER,
                query=_TRAFFIC.schema,
                answers={200: ("That.", TrafficSeriesAnswer), **wrong},
            ),
        ]

    async def rewards(self, request: Request) -> Response:
        page = _REWARDS.read(request, self._clock)
        since, until = self._span(page)
        names = frozenset(filter(None, page.filters.get("model", "").split(",")))
        points = integer_of(page.filters, "points", 200, 10, 1000)
        found = await self._rewards.series(since, until, points, names)
        marks = [
            each for each in await self._marks(since, until) if not names or each.model_id in names
        ]
        return answer(
            200,
            RewardSeriesAnswer(since, until, found.bucket_seconds, list(found.series), marks),
        )

    async def traffic(self, request: Request) -> Response:
        page = _TRAFFIC.read(request, self._clock)
        since, until = self._span(page)
        points = integer_of(page.filters, "points", 200, 10, 1000)
        found = await self._rewards.series(since, until, points)
        steps = await self._history.traffic(since, until)
        planned = [PlannedTraffic(max(each.at, since), each.shares) for each in steps]
        if not planned and (now := await self._shares()) is not None:
            planned = [PlannedTraffic(since, now)]
        observed = observed_traffic(found.series)
        return answer(
            200, TrafficSeriesAnswer(since, until, found.bucket_seconds, observed, planned)
        )

    def _span(self, page: PageQuery) -> tuple[datetime, datetime]:
        until = page.until or self._clock()
        since = page.since or until - DAY
        if not timedelta() < until - since <= LONGEST:
            raise Rejected(Reason.SCHEMA, "`since` lies before `until`, ten years at most.")
        return since, until

    async def _marks(self, since: datetime, until: datetime) -> list[SeriesMark]:
        """The newest of them, the oldest first."""
        made, _ = await self._models.page(PageWanted(_MOST_MARKS, since=since, until=until))
        marks = [
            SeriesMark(row.created, "trained", row.model_id, f"{row.model_id} was trained.", None)
            for row in made
        ]
        steps = [each for each in await self._history.traffic(since, until) if each.at > since]
        for step in steps[-_MOST_MARKS:]:
            marks += await self._marks_of_step(step)
        return sorted(marks, key=lambda mark: mark.at)[-_MOST_MARKS:]

    async def _marks_of_step(self, step: TrafficStep) -> list[SeriesMark]:
        decision = await self._decisions.get(step.decision_id) if step.decision_id else None
        found = []
        for model, event in step.events.items():
            kind = _KINDS.get(event, event)
            share = step.shares.get(model, 0.0)
            plain = _SENTENCES.get(kind, "{model}: {kind}.").format(
                model=model, share=share, kind=kind
            )
            sentence = decision.sentence if decision else plain
            found.append(SeriesMark(step.at, kind, model, sentence, step.decision_id or None))
        return found


def observed_traffic(series: Sequence[ModelSeries]) -> list[ObservedTraffic]:
    """What gateways recorded, by time."""
    by_time: dict[datetime, dict[str, int]] = {}
    for each in series:
        for point in each.points:
            if point.served:
                by_time.setdefault(point.at, {})[each.model] = point.served
    return [ObservedTraffic(at, counts) for at, counts in sorted(by_time.items())]


def series_point(model: str, point: RewardPoint) -> dict[str, object]:
    """A point as an event tells it."""
    return {"at": point.at, "model": model, "mean": point.mean, "count": point.count}
