"""How is a world of ours an AgentGym environment server? These routes, open to who reaches the port.

| what happened                          | status                  |
|----------------------------------------|-------------------------|
| no JSON, a wrong field, no such task   | 400                     |
| no such session                        | 404                     |
| the task is over                       | 409                     |
| a body above 64 KB                     | 413                     |
| as many sessions as there may be       | 429, with `Retry-After` |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from upswing.api.router import JSON, Problem, Request, Response, Route, answer, problem, status_of
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected
from upswing.worlds.agentgym import (
    MAX_REQUEST_BYTES,
    CloseSession,
    CreateSession,
    ResetSession,
    SessionClosed,
    SessionReply,
    StepSession,
    WorldInfo,
)
from upswing.worlds.agentgym_sessions import SessionsFull, WorldSessions

_NOBODY: frozenset[str] = frozenset()
"""The scopes that are asked for: AgentGym's clients have no keys."""
_TEXT = {"type": "string"}
_BAD = {400: ("No JSON, a wrong field, or no such task.", Problem)}
_GONE = {404: ("No such session: it was closed, or dropped.", Problem)}
_FULL = {429: ("As many sessions as there may be.", Problem)}
_OVER = {409: ("The task is over.", Problem)}
_SESSION = {"id": {"type": "integer", "minimum": 0}}
_NUMBER = re.compile(r"[0-9]{1,15}")
_RETRY_SECONDS = 5
B = TypeVar("B")


class WorldRoutes:
    """The handlers of one world's endpoints; `clock` gives seconds and never goes back."""

    def __init__(self, sessions: WorldSessions, clock: Callable[[], float]) -> None:
        self._sessions, self._clock = sessions, clock

    def routes(self) -> list[Route]:
        session_reply = {200: ("How the session stands.", SessionReply)}

        def post(path: str, what: str, run: Any, takes: Any, answers: Any) -> Route:
            return Route(
                "POST",
                path,
                what,
                run,
                _NOBODY,
                takes={JSON: takes},
                answers=answers | _BAD,
                max_body=MAX_REQUEST_BYTES,
            )

        return [
            Route(
                "GET",
                "/",
                "Which world this is.",
                self.hello,
                _NOBODY,
                answers={200: ("One sentence.", _TEXT)},
            ),
            Route(
                "GET",
                "/tasks",
                "How many tasks it has.",
                self.tasks,
                _NOBODY,
                answers={200: ("The world.", WorldInfo)},
            ),
            post("/create", "Make a session.", self.create, CreateSession, session_reply | _FULL),
            post("/step", "Act.", self.step, StepSession, session_reply | _GONE | _OVER),
            post("/reset", "Begin a task.", self.reset, ResetSession, session_reply | _GONE),
            post(
                "/close",
                "End a session.",
                self.close,
                CloseSession,
                {200: ("It is gone.", SessionClosed)} | _GONE,
            ),
            Route(
                "GET",
                "/observation",
                "What is seen now.",
                self.observation,
                _NOBODY,
                query=_SESSION,
                answers={200: ("The text.", _TEXT)} | _BAD | _GONE,
            ),
        ]

    async def hello(self, _: Request) -> Response:
        return answer(200, f"This is environment {self._sessions.world_info().world}.")

    async def tasks(self, _: Request) -> Response:
        return answer(200, self._sessions.world_info())

    async def create(self, request: Request) -> Response:
        def create_session() -> SessionReply:
            return self._sessions.create(
                _decode_body(request, CreateSession).data_idx, self._clock()
            )

        return _respond(create_session)

    async def step(self, request: Request) -> Response:
        def take_step() -> SessionReply:
            body = _decode_body(request, StepSession)
            return self._sessions.step(body.id, body.action, self._clock())

        return _respond(take_step)

    async def reset(self, request: Request) -> Response:
        def reset_session() -> SessionReply:
            body = _decode_body(request, ResetSession)
            return self._sessions.reset(body.id, body.data_idx, self._clock())

        return _respond(reset_session)

    async def observation(self, request: Request) -> Response:
        def observe() -> str:
            session = request.query.get("id", "")
            if not _NUMBER.fullmatch(session):
                raise Rejected(Reason.SCHEMA, "Name the session: /observation?id=0.")
            return self._sessions.current(int(session), self._clock()).observation

        return _respond(observe)

    async def close(self, request: Request) -> Response:
        def close_session() -> SessionClosed:
            self._sessions.close(_decode_body(request, CloseSession).id, self._clock())
            return SessionClosed()

        return _respond(close_session)


def _respond(action: Callable[[], Any]) -> Response:
    """What came of it, or the sentence that says why nothing did."""
    try:
        return answer(200, action())
    except SessionsFull as error:
        refusal = problem(429, "sessions", str(error))
        return Response(429, refusal.body, headers=((b"retry-after", b"%d" % _RETRY_SECONDS),))
    except Rejected as error:
        status = 400 if error.reason is Reason.SCHEMA else status_of(error.reason)
        return problem(status, error.reason, error.detail)


def _decode_body(request: Request, kind: type[B]) -> B:
    """The body as this type; none at all is an empty object."""
    try:
        return from_json(request.body or b"{}", kind)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, schema_error_sentence(error, kind)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Rejected(Reason.MALFORMED, "The body is not JSON.") from None
