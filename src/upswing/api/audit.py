"""What did operators do, and is any of it missing? The audit over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import msgspec
from msgspec import Struct

from upswing.api.paging import ListQuery
from upswing.api.raw_json import raw_json
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.errors import Reason, Rejected
from upswing.infra.sql.audit import BEGINNING, AuditTrail, ChainState, StoredAudit

_NAME = {"type": "string", "maxLength": 200}
_ENTRIES = ListQuery("audit", dict.fromkeys(("who", "what", "about"), _NAME))
_PLACE = re.compile(r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9a-f]{64})")
"""How far a chain was followed: row, rows, and the hash of the last."""
_VERIFY = ListQuery("audit chain", moments=False, limit=10_000, most=10_000)


class AuditItem(Struct, frozen=True):
    """What an operator did."""

    seq: int
    at: datetime
    who: str
    what: str
    about: str
    detail: msgspec.Raw
    before: msgspec.Raw
    """How it stood; null where nothing was changed that stood before."""
    after: msgspec.Raw
    prev: str
    """The hash of the row before this one."""
    hash: str


class AuditList(Struct, frozen=True):
    entries: list[AuditItem]
    next: str | None
    rows: int
    """How many there are in all."""
    head: str
    """The hash of the newest row: whoever keeps it elsewhere can tell later whether it is still there."""


class ChainAnswer(Struct, frozen=True):
    """Whether the chain holds, as far as it was followed."""

    ok: bool
    rows: int
    head: str
    """The hash of the last row that was read."""
    broken: str | None
    """A sentence."""
    next: str | None
    """There is more: go on with it as `cursor`."""


class AuditRoutes:
    """The handlers."""

    def __init__(self, trail: AuditTrail, *, clock: Callable[[], datetime]) -> None:
        self._trail, self._clock = trail, clock

    def routes(self) -> list[Route]:
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        return [
            Route(
                "GET",
                "/v1/audit",
                "What operators did, the newest first.",
                self.entries,
                READER,
                query=_ENTRIES.schema,
                answers={200: ("A page of it.", AuditList), **wrong},
            ),
            Route(
                "GET",
                "/v1/audit/verify",
                "Whether a row of the audit is missing or was changed.",
                self.verify,
                READER,
                query=_VERIFY.schema,
                answers={200: ("As far as it was followed.", ChainAnswer), **wrong},
            ),
        ]

    async def entries(self, request: Request) -> Response:
        page = _ENTRIES.read(request, self._clock)
        found, position = await self._trail.list(page.wanted(**page.filters))
        rows, head = await self._trail.head()
        items = [audit_item(each) for each in found]
        return answer(200, AuditList(items, page.cursor(position), rows, head))

    async def verify(self, request: Request) -> Response:
        page = _VERIFY.read(request)
        state = await self._trail.verify(_state(page.position), page.limit)
        over = state.done or bool(state.broken)
        go_on = None if over else f"{state.seq} {state.entries} {state.hash}"
        found = ChainAnswer(
            not state.broken, state.entries, state.hash, state.broken or None, page.cursor(go_on)
        )
        return answer(200, found)


def audit_item(stored: StoredAudit) -> AuditItem:
    """An entry as it is shown."""
    entry = stored.entry
    return AuditItem(
        stored.seq,
        entry.written,
        entry.who,
        entry.what,
        entry.about,
        raw_json(entry.detail),
        raw_json(entry.before),
        raw_json(entry.after),
        stored.prev,
        stored.hash,
    )


def _state(position: int | str | None) -> ChainState:
    """How far the chain was followed by the call before."""
    if position is None:
        return BEGINNING
    found = _PLACE.fullmatch(str(position))
    if found is None:
        raise Rejected(Reason.SCHEMA, "`cursor` is `next` of the call before, and nothing else.")
    return ChainState(int(found[1]), int(found[2]), found[3])
