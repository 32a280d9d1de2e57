"""What is recorded of a user? Opt-outs, and the erasure of everything of one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256

import msgspec

from upswing.api.auditing import Auditor
from upswing.api.paging import ListQuery
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import OPERATOR
from upswing.infra.sql.users import Forgotten, Users
from upswing.records import AuditEntry
from upswing.redact import Redactor
from upswing.redact.identity import redact_identity

_OPTOUTS = ListQuery("optouts", moments=False)
_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}


class OptOut(msgspec.Struct, frozen=True):
    """Whether a user is recorded."""

    user: str
    opted_out: bool


class OptedOut(msgspec.Struct, frozen=True):
    """A user who is not recorded."""

    user: str
    since: datetime


class OptOutList(msgspec.Struct, frozen=True):
    optouts: list[OptedOut]
    """In the order of their names."""
    next: str | None


class Erasure(msgspec.Struct, frozen=True):
    """What was erased, and what waits because a part is away just now."""

    user: str
    trajectories: int
    feedback: int
    dead_letters: int
    pending_stream_messages: int
    pending_archive_copies: int
    models_that_saw: list[str]
    """Models that were trained on some of it: they are not changed by this."""
    jobs_that_see: list[str]
    """Training jobs that are not over and have some of it in their data."""


def audit_name(user: str) -> str:
    """How the audit names a user, who may be erased: by a hash.

    >>> audit_name("ann")
    'user 49915e0d7d4b402e'
    """
    return f"user {sha256(user.encode()).hexdigest()[:16]}"


class UserRoutes:
    """The handlers of opt-outs and erasure."""

    def __init__(
        self,
        users: Users,
        redactor: Redactor,
        auditor: Auditor,
        *,
        clock: Callable[[], datetime],
        sweep: Callable[[], Awaitable[tuple[int, int]]],
    ) -> None:
        """`sweep` erases what is pending in streams and archives; how much of either still waits."""
        self._users, self._redactor, self._auditor = users, redactor, auditor
        self._clock, self._sweep = clock, sweep

    def routes(self) -> list[Route]:
        user = {"user": _ID}
        return [
            Route(
                "GET",
                "/v1/optouts",
                "Who is not recorded.",
                self.optouts,
                OPERATOR,
                query=_OPTOUTS.schema,
                answers={200: ("A page of them.", OptOutList), 422: ("A filter is none.", Problem)},
            ),
            Route(
                "PUT",
                "/v1/optouts/{user}",
                "Stop recording a user.",
                self.opt_out,
                OPERATOR,
                params=user,
                answers={200: ("Done.", OptOut)},
            ),
            Route(
                "DELETE",
                "/v1/optouts/{user}",
                "Record a user again.",
                self.opt_in,
                OPERATOR,
                params=user,
                answers={200: ("Done.", OptOut)},
            ),
            Route(
                "DELETE",
                "/v1/users/{user}/data",
                "Erase everything of a user.",
                self.erase,
                OPERATOR,
                params=user,
                answers={200: ("Erased; what is pending follows by itself.", Erasure)},
            ),
        ]

    async def optouts(self, request: Request) -> Response:
        page = _OPTOUTS.read(request)
        after = page.position if isinstance(page.position, str) else ""
        found = await self._users.optouts(after, page.limit + 1)
        shown = [OptedOut(user, since) for user, since in found[: page.limit]]
        last = shown[-1].user if len(found) > page.limit else None
        return answer(200, OptOutList(shown, page.cursor(last)))

    async def opt_out(self, request: Request) -> Response:
        user = self._user(request)
        await self._users.opt_out(user, self._clock(), self._change(request, user, out=True))
        return answer(200, OptOut(user, opted_out=True))

    async def opt_in(self, request: Request) -> Response:
        user = self._user(request)
        await self._users.opt_in(user, self._change(request, user, out=False))
        return answer(200, OptOut(user, opted_out=False))

    async def erase(self, request: Request) -> Response:
        user = self._user(request)

        def audit(gone: Forgotten) -> AuditEntry:
            return self._auditor.entry(request, "erase-user", audit_name(user), detail=asdict(gone))

        gone = await self._users.erase(user, self._clock(), audit)
        messages, copies = await self._sweep()
        return answer(
            200,
            Erasure(
                user,
                gone.trajectories,
                gone.feedback,
                gone.dead_letters,
                messages,
                copies,
                list(gone.models_that_saw),
                list(gone.jobs_that_see),
            ),
        )

    def _change(self, request: Request, user: str, *, out: bool) -> AuditEntry:
        before, after = {"opted_out": self._users.opted_out(user)}, {"opted_out": out}
        what = "opt-out" if out else "opt-in"
        return self._auditor.entry(request, what, audit_name(user), before=before, after=after)

    def _user(self, request: Request) -> str:
        """The id under which we know the user: an e-mail address, say, is known by its pseudonym."""
        return redact_identity(self._redactor, "user", request.params["user"])
