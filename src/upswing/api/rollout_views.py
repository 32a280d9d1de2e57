"""How does a rollout go, and how did it come to that? One with its evidence, its steps and its incidents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from upswing.api.decisions import DecisionItem, decision_item
from upswing.api.paging import ListQuery, integer_of
from upswing.api.raw_json import raw_json
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.deploy.core.health import CanaryFigures, canary_figures, judge_health
from upswing.deploy.core.limits import RolloutLimits
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import EvidencePoint, Incident
from upswing.deploy.core.views import rollout_view
from upswing.deploy.history import RolloutHistory
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.paging import PageWanted
from upswing.infra.thinning import evenly

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_NAME = {"type": "string", "maxLength": 200}
_INCIDENTS = ListQuery("incidents", {"model": _NAME})
_POINTS = {"type": "integer", "minimum": 2, "maximum": 2000}
_EVIDENCE = ListQuery("evidence", {"points": _POINTS}, moments=False, paged=False)
_NEWEST = 50
"""Decisions and incidents that are told of one rollout."""
_SHOWN = 200
"""Points of its evidence."""


class IncidentItem(Struct, frozen=True):
    """What a person had to hear of."""

    incident_id: str
    rollout_id: str | None
    model_id: str
    reason: str
    sentence: str
    metrics: msgspec.Raw
    """All that was known."""
    happened: datetime


class IncidentList(Struct, frozen=True):
    incidents: list[IncidentItem]
    next: str | None


class RolloutDetail(Struct, frozen=True):
    """A rollout, and what it rests on."""

    rollout: dict[str, Any]
    """As in the list of rollouts."""
    figures: CanaryFigures | None
    """None: it has no evidence."""
    health: str | None
    verdict: str | None
    """What the evidence says, in a sentence."""
    waits_for: str | None
    evidence: list[EvidencePoint]
    """As it grew, the oldest first."""
    steps: list[DecisionItem]
    """What was decided of its model, the newest first."""
    incidents: list[IncidentItem]


class EvidenceHistory(Struct, frozen=True):
    rollout_id: str
    history: list[EvidencePoint]


class RolloutRoutes:
    """The handlers."""

    def __init__(
        self,
        history: RolloutHistory,
        decisions: Decisions,
        limits: RolloutLimits,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._history, self._decisions = history, decisions
        self._limits, self._clock = limits, clock

    def routes(self) -> list[Route]:
        gone = {404: ("There is no such rollout.", Problem)}
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        one = {"rollout": _ID}
        return [
            Route(
                "GET",
                "/v1/rollouts/{rollout}",
                "A rollout with its evidence and its steps; a model's name means its newest one.",
                self.one,
                READER,
                params=one,
                answers={200: ("It.", RolloutDetail), **gone},
            ),
            Route(
                "GET",
                "/v1/rollouts/{rollout}/evidence",
                "How the evidence of a rollout grew.",
                self.evidence,
                READER,
                params=one,
                query=_EVIDENCE.schema,
                answers={200: ("That.", EvidenceHistory), **gone, **wrong},
            ),
            Route(
                "GET",
                "/v1/incidents",
                "What a person had to hear of, the newest first.",
                self.incidents,
                READER,
                query=_INCIDENTS.schema,
                answers={200: ("A page of it.", IncidentList), **wrong},
            ),
        ]

    async def one(self, request: Request) -> Response:
        return answer(200, await self.detail(await self._find(request)))

    async def detail(self, rollout: Rollout) -> RolloutDetail:
        """All that is known of a rollout."""
        record = await self._history.record(rollout.rollout_id)
        figures = verdict = None
        if record.evidence is not None:
            figures = canary_figures(record.evidence, self._limits)
            verdict = judge_health(record.evidence, self._limits)
        about = {"about": rollout.model_id}
        decisions, _ = await self._decisions.page(PageWanted(_NEWEST, equal=about))
        incidents, _ = await self._history.incidents(
            PageWanted(_NEWEST, equal={"rollout_id": rollout.rollout_id})
        )
        points = await self._history.points(rollout.rollout_id)
        return RolloutDetail(
            rollout_view(rollout),
            figures,
            verdict.health.value if verdict else None,
            verdict.sentence if verdict else None,
            record.hold or rollout.sentence or None,
            evenly(points, _SHOWN),
            [decision_item(each) for each in decisions if each.stage == "deploy"],
            [incident_item(each) for each in incidents],
        )

    async def evidence(self, request: Request) -> Response:
        page = _EVIDENCE.read(request)
        points = integer_of(page.filters, "points", _SHOWN, 2, 2000)
        rollout = await self._find(request)
        found = await self._history.points(rollout.rollout_id)
        return answer(200, EvidenceHistory(rollout.rollout_id, evenly(found, points)))

    async def incidents(self, request: Request) -> Response:
        page = _INCIDENTS.read(request, self._clock)
        wanted = page.wanted(model_id=page.filters.get("model"))
        found, position = await self._history.incidents(wanted)
        items = [incident_item(each) for each in found]
        return answer(200, IncidentList(items, page.cursor(position)))

    async def _find(self, request: Request) -> Rollout:
        rollout = await self._history.find(request.params["rollout"])
        if rollout is None:
            raise Misuse("There is no such rollout; `upswing rollouts` lists them.")
        return rollout


def incident_item(incident: Incident) -> IncidentItem:
    """An incident as it is shown."""
    return IncidentItem(
        incident.incident_id,
        incident.rollout_id,
        incident.model_id,
        incident.reason,
        incident.sentence,
        raw_json(incident.metrics),
        incident.happened,
    )
