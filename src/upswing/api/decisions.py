"""What was decided, and why? The journal over HTTP: listed, one, and tried again with today's rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from upswing.api.explaining import decide_again, find_decision
from upswing.api.paging import ListQuery
from upswing.api.raw_json import raw_json
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.infra.sql.decisions import Decisions
from upswing.records import DECIDING_STAGES, Decision

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_NAME = {"type": "string", "maxLength": 200}
_DECISIONS = ListQuery(
    "decisions", {"stage": {"enum": list(DECIDING_STAGES)}, "kind": _NAME, "about": _NAME}
)
_OF_MODELS = frozenset({"deploy", "validate"})
_OF_JOBS = frozenset({"train", "trigger"})


class DecisionItem(Struct, frozen=True):
    """A decision in a list."""

    decision_id: str
    seq: int
    decided: datetime
    stage: str
    """`trigger`, `train`, `validate`, `deploy` or `monitor`."""
    kind: str
    sentence: str
    model_id: str | None
    """The model that it is about, if it is about one."""
    job_id: str | None


class DecisionList(Struct, frozen=True):
    decisions: list[DecisionItem]
    next: str | None


class DecisionView(DecisionItem, frozen=True, kw_only=True):
    """A decision with all that it was made from."""

    inputs: msgspec.Raw
    outcome: msgspec.Raw
    today: dict[str, Any] | None = None
    """What the same inputs lead to now: `same` and a `sentence`; only where it was asked for."""


class DecisionRoutes:
    """The handlers."""

    def __init__(self, decisions: Decisions, *, clock: Callable[[], datetime]) -> None:
        self._decisions, self._clock = decisions, clock

    def routes(self) -> list[Route]:
        gone = {404: ("There is no such decision, or several begin so.", Problem)}
        one = {"decision_id": _ID}
        return [
            Route(
                "GET",
                "/v1/decisions",
                "What the loop decided, the newest first.",
                self.list,
                READER,
                query=_DECISIONS.schema,
                answers={
                    200: ("A page of it.", DecisionList),
                    422: ("A filter is wrong, or is none.", Problem),
                },
            ),
            Route(
                "GET",
                "/v1/decisions/{decision_id}",
                "A decision with its inputs; the beginning of its id is enough.",
                self.one,
                READER,
                params=one,
                answers={200: ("It.", DecisionView), **gone},
            ),
            Route(
                "GET",
                "/v1/decisions/{decision_id}/explain",
                "The same, tried again with today's rules.",
                self.explain,
                READER,
                params=one,
                answers={200: ("It.", DecisionView), **gone},
            ),
        ]

    async def list(self, request: Request) -> Response:
        page = _DECISIONS.read(request, self._clock)
        found, position = await self._decisions.page(page.wanted(**page.filters))
        items = [decision_item(each) for each in found]
        return answer(200, DecisionList(items, page.cursor(position)))

    async def one(self, request: Request) -> Response:
        found = await find_decision(self._decisions, request.params["decision_id"])
        return answer(200, _view(found))

    async def explain(self, request: Request) -> Response:
        found = await find_decision(self._decisions, request.params["decision_id"])
        today = await asyncio.to_thread(decide_again, found)
        return answer(200, _view(found, today))


def decision_item(decision: Decision) -> DecisionItem:
    """A decision as it is shown."""
    about = decision.about or None
    return DecisionItem(
        decision.decision_id,
        decision.seq,
        decision.decided,
        decision.stage,
        decision.kind,
        decision.sentence,
        about if decision.stage in _OF_MODELS else None,
        about if decision.stage in _OF_JOBS else None,
    )


def _view(decision: Decision, today: dict[str, Any] | None = None) -> DecisionView:
    return DecisionView(
        **msgspec.structs.asdict(decision_item(decision)),
        inputs=raw_json(decision.inputs),
        outcome=raw_json(decision.outcome),
        today=today,
    )
