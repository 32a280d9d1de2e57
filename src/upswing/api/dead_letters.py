"""What was refused, and can it be tried again? Dead letters, and the trajectories that were taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from upswing.api.auditing import Auditor
from upswing.api.ingest import Accepted, outcome_response
from upswing.api.paging import ListQuery
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import OPERATOR, READER
from upswing.collect.intake import STAGE as COLLECT
from upswing.collect.intake import Intake
from upswing.contracts import DeadLetter
from upswing.contracts.topics import FEEDBACK, FEEDBACKS, GATEWAY_FEEDBACK
from upswing.errors import Misuse, Reason, Rejected
from upswing.infra.sql.store import SqlStore
from upswing.principals import Sender
from upswing.records import StoredDeadLetter, Taken
from upswing.reward.rewarder import STAGE as REWARD

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_DEAD = ListQuery(
    "dead",
    {"reason": {"enum": [*map(str, Reason)]}, "stage": {"type": "string", "maxLength": 200}},
    limit=100,
    most=1000,
)
_NOT_FOUND = {404: ("There is no such thing.", Problem)}
_REPLAYED = Sender("replay", many=False)
"""Of what nobody knows whose key it came with."""


class DeadInfo(msgspec.Struct, frozen=True):
    stage: str
    replayed: datetime | None
    letter: DeadLetter
    more: int = 0
    """How many of its key were refused for the same reason in that hour, of which no letter is kept."""


class DeadList(msgspec.Struct, frozen=True):
    dead: list[DeadInfo]
    next: str | None = None
    """The cursor of the next page."""


class DeadLetterRoutes:
    """Dead letters, their replay, and stored trajectories."""

    def __init__(
        self,
        store: SqlStore,
        intake: Intake,
        auditor: Auditor,
        *,
        clock: Callable[[], datetime],
        score_again: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._store, self._intake, self._auditor, self._clock = store, intake, auditor, clock
        self._score_again = score_again

    def routes(self) -> list[Route]:
        dead = {"dead_id": _ID}
        bad = {422: ("The request is not what it should be.", Problem), 400: ("Not JSON.", Problem)}
        return [
            Route(
                "GET",
                "/v1/trajectories/{trajectory_id}",
                "A stored trajectory.",
                self.trajectory,
                READER,
                params={"trajectory_id": _ID},
                answers={200: ("It.", {"type": "object"}), **_NOT_FOUND},
            ),
            Route(
                "GET",
                "/v1/dead",
                "The newest dead letters.",
                self.dead,
                READER,
                query=_DEAD.schema,
                answers={200: ("They.", DeadList), 422: bad[422]},
            ),
            Route(
                "GET",
                "/v1/dead/{dead_id}",
                "A dead letter.",
                self.dead_letter,
                READER,
                params=dead,
                answers={200: ("It.", DeadInfo), **_NOT_FOUND},
            ),
            Route(
                "POST",
                "/v1/dead/{dead_id}/replay",
                "Try a dead letter again.",
                self.replay,
                OPERATOR,
                params=dead,
                answers={
                    202: ("It was taken this time.", Accepted),
                    **_NOT_FOUND,
                    409: ("It conflicts.", Problem),
                    413: ("Too large.", Problem),
                    **bad,
                },
            ),
        ]

    async def trajectory(self, request: Request) -> Response:
        found = await self._store.trajectory(request.params["trajectory_id"])
        if found is None:
            raise Misuse("No trajectory with this id is stored.")
        return Response(200, found.admitted.body)

    async def dead(self, request: Request) -> Response:
        page = _DEAD.read(request, self._clock)
        found, position = await self._store.dead_letter_page(page.wanted(**page.filters))
        return answer(200, DeadList([dead_info(each) for each in found], page.cursor(position)))

    async def dead_letter(self, request: Request) -> Response:
        return answer(200, dead_info(await self._stored_letter(request)))

    async def replay(self, request: Request) -> Response:
        """Admit the kept payload again: after an upgrade or an opt-in it may pass."""
        stored = await self._stored_letter(request)
        table, _, key = stored.letter.subject.partition("/")
        if (stored.stage, table) == (REWARD, "trajectories") and self._score_again:
            if not await self._score_again(key):
                raise Misuse("The trajectory that it is about is not stored any more.")
            await self._mark_replayed(request, stored, "stored")
            return answer(202, Accepted(Taken.STORED.value, key, trajectory_id=key))
        payload = stored.letter.payload
        if payload is msgspec.UNSET or not payload:
            raise Rejected(
                Reason.SCHEMA, "This dead letter has no payload that could be tried again."
            )
        if stored.stage != COLLECT:
            raise Rejected(Reason.SCHEMA, _elsewhere(stored))
        raw, sender = payload.encode(), stored.sender if stored.sender.key_id else _REPLAYED
        if (
            stored.letter.subject in {FEEDBACK, GATEWAY_FEEDBACK, "/v1/feedback"}
            or table == FEEDBACKS
        ):
            outcome = await self._intake.feedback(
                raw, door="replay", principal=sender.key_id, many=sender.many
            )
        else:
            squats = stored.letter.reason == Reason.NOT_YOURS
            outcome = await self._intake.trajectory(
                raw, door="replay", sender=sender, gateway_ids=not squats
            )
        if outcome.taken:
            await self._mark_replayed(request, stored, outcome.status)
        return outcome_response(outcome)

    async def _mark_replayed(self, request: Request, stored: StoredDeadLetter, result: str) -> None:
        name, before = str(stored.letter.dead_id), {"replayed": stored.replayed}
        await self._store.mark_replayed(name, self._clock())
        detail = {"stage": stored.stage, "reason": stored.letter.reason, "result": result}
        after = {"replayed": self._clock()}
        await self._auditor.note(request, "replay", name, detail=detail, before=before, after=after)

    async def _stored_letter(self, request: Request) -> StoredDeadLetter:
        found = await self._store.dead_letter(request.params["dead_id"])
        if found is None:
            raise Misuse("There is no dead letter with this id; `upswing dead list` shows them.")
        return found


def _elsewhere(stored: StoredDeadLetter) -> str:
    """Where a letter of another stage would have to be tried again."""
    if "/" in stored.letter.subject:
        return f"It is the row {stored.letter.subject}, which {stored.stage} cannot read: mend it there."
    return f"It is {stored.stage}'s: publish it again on {stored.letter.subject}."


def dead_info(stored: StoredDeadLetter) -> DeadInfo:
    """A dead letter as it is shown."""
    return DeadInfo(stored.stage, stored.replayed, stored.letter, stored.more)
