"""Rewards, windows and what really happened: the endpoints of evaluators and readers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from upswing.api.auditing import Auditor
from upswing.api.openapi import inline_refs
from upswing.api.paging import ListQuery
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import OPERATOR, READER
from upswing.contracts import decode, encode, from_builtins
from upswing.contracts.outcome import Outcome
from upswing.contracts.typed import from_json
from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS
from upswing.errors import Misuse, Reason, Rejected
from upswing.infra.sql.rewards import Rewards
from upswing.records import JudgedGroup
from upswing.redact import RedactionFailed, Redactor
from upswing.reward.core.windows import Readiness, report_windows, window_readiness, windows_json
from upswing.reward.outcome_repository import JudgedPlace, OutcomeRepository

MOST_MEMBERS = 5000
"""The newest trajectories whose windows are reported: more take longer than anybody waits."""
_JUDGEMENTS = ListQuery("judgements", moments=False, limit=100, most=1000)
_WINDOWS = ListQuery(
    "windows",
    {
        "min_agents": {"type": "integer", "minimum": 1, "maximum": 1000},
        "min_attempts": {"type": "integer", "minimum": 2, "maximum": 1000},
    },
    paged=False,
)
_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}


class OutcomeTaken(msgspec.Struct, frozen=True):
    """What became of an outcome."""

    result: str
    window_id: str


class GroupList(msgspec.Struct, frozen=True):
    """Groups that a judge has dealt with."""

    groups: list[JudgedGroup]
    next: str | None = None
    """The cursor of the next page."""


class Retried(msgspec.Struct, frozen=True):
    """How many groups are asked about again."""

    groups: int


def judged_place(position: str) -> JudgedPlace:
    """Where a page begins, as a cursor says it."""
    try:
        place: JudgedPlace = from_json(position, JudgedPlace)
    except msgspec.DecodeError:
        raise Rejected(
            Reason.SCHEMA, "`cursor` is `next` of the page before, and nothing else."
        ) from None
    return place


class RewardRoutes:
    """The handlers."""

    def __init__(
        self,
        rewards: Rewards,
        outcomes: OutcomeRepository,
        redactor: Redactor,
        auditor: Auditor,
        *,
        clock: Callable[[], datetime],
        ready: Callable[[], Awaitable[tuple[bool, str]]] | None = None,
    ) -> None:
        """`ready` says whether the loop is ready to train, and why or why not."""
        self._ready = ready
        self._redactor, self._auditor = redactor, auditor
        self._rewards = rewards
        self._outcomes = outcomes
        self._clock = clock

    def routes(self) -> list[Route]:
        bad = {400: ("Not JSON.", Problem), 422: ("Not an outcome.", Problem)}
        return [
            Route(
                "GET",
                "/v1/rewards/{trajectory_id}",
                "The newest reward of a trajectory.",
                self.reward,
                READER,
                params={"trajectory_id": _ID},
                answers={200: ("It.", {"type": "object"}), 404: ("There is none.", Problem)},
            ),
            Route(
                "GET",
                "/v1/windows",
                "Groups of agents that faced the same world.",
                self.windows,
                READER,
                query=_WINDOWS.schema,
                answers={200: ("They.", {"type": "object"}), 422: ("A number is wrong.", Problem)},
            ),
            Route(
                "GET",
                "/v1/judgements",
                "What the judge said of groups, and what it cost.",
                self.judgements,
                READER,
                query=_JUDGEMENTS.schema,
                answers={200: ("They.", GroupList), 422: ("A number is wrong.", Problem)},
            ),
            Route(
                "POST",
                "/v1/judgements/retry",
                "Ask the judge again about groups that could not be judged.",
                self.retry,
                OPERATOR,
                answers={200: ("How many.", Retried)},
            ),
            Route(
                "POST",
                "/v1/outcomes",
                "Say what really happened in a window.",
                self.outcome,
                OPERATOR,
                takes={JSON: inline_refs(msgspec.json.schema(Outcome))},
                answers={202: ("Durable.", OutcomeTaken), **bad},
            ),
        ]

    async def reward(self, request: Request) -> Response:
        found = await self._rewards.newest(request.params["trajectory_id"])
        if found is None:
            raise Misuse("No reward for this trajectory yet, or no such trajectory.")
        return Response(200, encode(found))

    async def windows(self, request: Request) -> Response:
        """With numbers of one's own, whether any group has them; else whether the loop is ready."""
        page = _WINDOWS.read(request, self._clock)
        agents = int(page.filters.get("min_agents", MIN_AGENTS))
        attempts = int(page.filters.get("min_attempts", MIN_ATTEMPTS))
        members = await self._rewards.members(page.since, page.until, MOST_MEMBERS)
        reports = await asyncio.to_thread(report_windows, members, agents, attempts)
        if page.filters or page.since or page.until or self._ready is None:
            state = window_readiness(reports, 1)
        else:
            state = Readiness(*await self._ready())
        truncated = len(members) >= MOST_MEMBERS
        tree = await asyncio.to_thread(windows_json, reports, state) | {"truncated": truncated}
        return Response(200, await asyncio.to_thread(msgspec.json.encode, tree))

    async def judgements(self, request: Request) -> Response:
        page = _JUDGEMENTS.read(request)
        after = judged_place(page.position) if isinstance(page.position, str) else None
        found, last = await self._outcomes.verdicts_page(page.limit, after)
        position = None if last is None else msgspec.json.encode(last).decode()
        return answer(200, GroupList(found, page.cursor(position)))

    async def retry(self, request: Request) -> Response:
        groups = await self._outcomes.retry_unjudged(self._clock())
        await self._auditor.note(request, "retry-judge", "judge", detail={"groups": groups})
        return answer(200, Retried(groups))

    async def outcome(self, request: Request) -> Response:
        stated = msgspec.to_builtins(decode(Outcome, request.body))
        try:
            clean = self._redactor.tree(stated).value
        except RedactionFailed as error:
            raise Rejected(Reason.REDACTION_FAILED, f"Nothing of it is kept: {error}") from None
        outcome = from_builtins(Outcome, clean)
        taken = await self._outcomes.put(outcome, self._clock())
        stated = {"result": taken.value, "source": outcome.source}
        await self._auditor.note(request, "outcome", outcome.window_id, detail=stated)
        return answer(202, OutcomeTaken(taken.value, outcome.window_id))
