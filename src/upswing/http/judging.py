"""Rewards, windows and what really happened: the door of evaluators and readers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol

import msgspec

from upswing.contracts import Reward, decode, encode, from_builtins
from upswing.contracts.outcome import Outcome
from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS
from upswing.errors import Misuse, Reason, Rejected
from upswing.http.app import JSON, Problem, Request, Response, Route, answer
from upswing.http.openapi import inline
from upswing.http.operations import OPERATOR, READER
from upswing.ports import JudgedGroup, ScoredMember, Taken
from upswing.redact import RedactionFailed, Redactor
from upswing.reward.windows import Readiness, readiness, report, to_json

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}


class OutcomeTaken(msgspec.Struct, frozen=True):
    """What became of an outcome."""

    result: str
    window_id: str


class GroupList(msgspec.Struct, frozen=True):
    """Groups that a judge has dealt with."""

    groups: list[JudgedGroup]


class Retried(msgspec.Struct, frozen=True):
    """How many groups are asked about again."""

    groups: int


class RewardStore(Protocol):
    async def newest(self, trajectory_id: str) -> Reward | None: ...

    async def members(self, since: str = "") -> list[ScoredMember]: ...


class OutcomeStore(Protocol):
    async def put(self, outcome: Outcome, now: datetime) -> Taken: ...

    async def ask_again(self, now: datetime) -> int: ...

    async def verdicts(self, limit: int = 100) -> list[JudgedGroup]: ...


def _number(request: Request, name: str, usual: int, least: int) -> int:
    text = request.query.get(name, str(usual))
    if (
        not text.isascii()
        or not text.isdecimal()
        or len(text) > 4
        or not least <= int(text) <= 1000
    ):
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number from {least} to 1000.")
    return int(text)


class Judging:
    """The handlers."""

    def __init__(
        self,
        rewards: RewardStore,
        outcomes: OutcomeStore,
        redactor: Redactor,
        *,
        clock: Callable[[], datetime],
        ready: Callable[[], Awaitable[tuple[bool, str]]] | None = None,
    ) -> None:
        """`ready` says whether the loop is ready to train, and why or why not."""
        self._ready = ready
        self._redactor = redactor
        self._rewards = rewards
        self._outcomes = outcomes
        self._clock = clock

    def routes(self) -> list[Route]:
        bad = {400: ("Not JSON.", Problem), 422: ("Not an outcome.", Problem)}
        query: dict[str, dict[str, Any]] = {
            "since": {"type": "string"},
            "min_agents": {"type": "integer", "minimum": 1, "maximum": 1000},
            "min_attempts": {"type": "integer", "minimum": 2, "maximum": 1000},
        }
        return [
            Route("GET", "/v1/rewards/{trajectory_id}", "The newest reward of a trajectory.", self.reward, READER,
                  params={"trajectory_id": _ID},
                  answers={200: ("It.", {"type": "object"}), 404: ("There is none.", Problem)}),
            Route("GET", "/v1/windows", "Groups of agents that faced the same world.", self.windows, READER,
                  query=query, answers={200: ("They.", {"type": "object"}), 422: ("A number is wrong.", Problem)}),
            Route("GET", "/v1/judgements", "What the judge said of groups, and what it cost.", self.judgements, READER,
                  answers={200: ("They.", GroupList)}),
            Route("POST", "/v1/judgements/retry", "Ask the judge again about groups that could not be judged.",
                  self.retry, OPERATOR, answers={200: ("How many.", Retried)}),
            Route("POST", "/v1/outcomes", "Say what really happened in a window.", self.outcome, OPERATOR,
                  takes={JSON: inline(msgspec.json.schema(Outcome))}, answers={202: ("Durable.", OutcomeTaken), **bad}),
        ]  # fmt: skip

    async def reward(self, request: Request) -> Response:
        found = await self._rewards.newest(request.params["trajectory_id"])
        if found is None:
            raise Misuse("No reward for this trajectory yet, or no such trajectory.")
        return Response(200, encode(found))

    async def windows(self, request: Request) -> Response:
        """With numbers of one's own, whether any group has them; else whether the loop is ready."""
        agents = _number(request, "min_agents", MIN_AGENTS, 1)
        attempts = _number(request, "min_attempts", MIN_ATTEMPTS, 2)
        members = await self._rewards.members(request.query.get("since", ""))
        reports = report(members, agents, attempts)
        if request.query.keys() & {"min_agents", "min_attempts", "since"} or self._ready is None:
            return answer(200, to_json(reports, readiness(reports, 1)))
        return answer(200, to_json(reports, Readiness(*await self._ready())))

    async def judgements(self, _: Request) -> Response:
        return answer(200, GroupList(await self._outcomes.verdicts()))

    async def retry(self, _: Request) -> Response:
        return answer(200, Retried(await self._outcomes.ask_again(self._clock())))

    async def outcome(self, request: Request) -> Response:
        told = msgspec.to_builtins(decode(Outcome, request.body))
        try:
            clean = self._redactor.tree(told).value
        except RedactionFailed as error:
            raise Rejected(Reason.REDACTION_FAILED, f"Nothing of it is kept: {error}") from None
        outcome = from_builtins(Outcome, clean)
        taken = await self._outcomes.put(outcome, self._clock())
        return answer(202, OutcomeTaken(taken.value, outcome.window_id))
