"""The agents' door: trajectories whole, in lines or in steps, and feedback."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from upswing.collect.service import Intake, Outcome
from upswing.collect.short import completed
from upswing.collect.steps_service import StepwiseDoor
from upswing.contracts.feedback import FEEDBACK_RULES, Feedback
from upswing.contracts.schema import schema
from upswing.contracts.steps import identity as trajectory_id_of
from upswing.contracts.trajectory import Trajectory
from upswing.errors import Reason, Rejected, UpswingError
from upswing.http.app import (
    JSON,
    LINES,
    Problem,
    Request,
    Response,
    Route,
    answer,
    problem,
    status_of,
)
from upswing.http.openapi import inline
from upswing.senders import GATEWAY, Sender
from upswing.together import begin

log = logging.getLogger(__name__)
AGENT = frozenset({"agent", "operator"})
CHECKING = frozenset({GATEWAY, "operator"})
LINES_LIMIT = 64 * 1024 * 1024
_CHUNK = 128
_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}


class Accepted(msgspec.Struct, frozen=True, omit_defaults=True):
    """It is durable: it will not be lost, and sending it again changes nothing."""

    result: str
    """`stored`, `known`, `opted_out`, `erased`, or `dryrun`: it would be taken."""
    id: str
    trajectory_id: str | None = None
    feedback_id: str | None = None
    detail: str | None = None
    """What was not understood of it, although it was taken."""


class LineResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one line."""

    line: int
    status: int
    """What a request with this line alone would have been answered."""
    result: str
    trajectory_id: str | None = None
    detail: str | None = None


_REFUSALS = {
    400: ("Not JSON, or nested too deeply.", Problem),
    409: ("The id is known with other content; the stored one stays.", Problem),
    413: ("Too large.", Problem),
    422: ("JSON, but not what the contract says.", Problem),
}
_TAKEN = {202: ("Durable.", Accepted), **_REFUSALS}
_STEP_ANSWERS = {**_TAKEN, 404: ("No such trajectory is open.", Problem)}
_OPEN_OBJECT = {"type": "object"}
_START = {
    "type": "object",
    "anyOf": [
        {"required": ["agent_id"], "properties": {"agent_id": {"type": "string"}}},
        {"required": ["agentId"], "properties": {"agentId": {"type": "string"}}},
    ],
}


_SPOKEN = {**_TAKEN, 403: ("A key speaks for users whose trajectories it recorded.", Problem)}


def _short_feedback() -> dict[str, Any]:
    """feedback.v1, of which two fields may be left out, and `dryrun`."""
    whole = inline(schema(Feedback))
    named = [name for name in whole["required"] if name not in {"feedback_id", "timestamp"}]
    dry = {"dryrun": {"type": "boolean", "description": "Answer, and keep nothing."}}
    fields = {**whole["properties"], **dry}
    return {**whole, "required": named, "properties": fields, **FEEDBACK_RULES}


class Doors:
    """The handlers of the agents' endpoints."""

    def __init__(self, intake: Intake, steps: StepwiseDoor, max_bytes: int) -> None:
        self._intake = intake
        self._max_bytes = max_bytes
        self._steps = steps

    def routes(self) -> list[Route]:
        most = self._max_bytes
        step_id = {"trajectory_id": _ID}
        return [
            Route(
                "POST", "/v1/trajectories", "Hand over one trajectory, or many as JSON lines.",
                self.trajectories, AGENT,
                takes={JSON: inline(schema(Trajectory)), LINES: {"type": "string"}},
                answers={**_TAKEN, 207: ("Some lines were refused; a result per line.", LINES)},
                max_body=LINES_LIMIT,
            ),
            Route(
                "POST", "/v1/trajectories/start", "Open a trajectory that is told step by step.",
                self.start, AGENT, takes={JSON: _START}, answers=_TAKEN, max_body=most,
            ),
            Route(
                "POST", "/v1/trajectories/{trajectory_id}/steps", "Add a step.",
                self.step, AGENT, takes={JSON: _OPEN_OBJECT}, answers=_STEP_ANSWERS, params=step_id, max_body=most,
            ),
            Route(
                "POST", "/v1/trajectories/{trajectory_id}/end", "End it: the steps become a trajectory.",
                self.end, AGENT, takes={JSON: _OPEN_OBJECT}, answers=_STEP_ANSWERS, params=step_id, max_body=most,
            ),
            Route(
                "POST", "/v1/feedback", "Say what a user thought of it, also days later.",
                self.feedback, AGENT, takes={JSON: _short_feedback()}, answers=_SPOKEN, max_body=most,
            ),
            Route(
                "POST", "/v1/feedback/check", "Would this word be taken? A gateway asks before it says yes.",
                self.check_feedback, CHECKING, takes={JSON: _short_feedback()}, answers=_SPOKEN, max_body=most,
            ),
        ]  # fmt: skip

    async def trajectories(self, request: Request) -> Response:
        door = "sdk" if request.user_agent.startswith("upswing-sdk") else "http"
        if request.content_type == LINES:
            return await self._lines(request.body, door, sender_of(request))
        return reply(await self._take(request.body, door, sender_of(request)))

    async def _take(self, raw: bytes, door: str, sender: Sender) -> Outcome:
        return await self._intake.trajectory(
            raw, door=door, subject="/v1/trajectories", sender=sender
        )

    async def _lines(self, body: bytes, door: str, sender: Sender) -> Response:
        lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
        results: list[LineResult] = []
        for place in range(0, len(lines), _CHUNK):
            tasks = []
            for number, line in lines[place : place + _CHUNK]:
                tasks.append(begin(self._line(number, line, door, sender)))
                await asyncio.sleep(0)  # lets other requests in between
            results += await asyncio.gather(*tasks)
        status = 202 if all(result.status == 202 for result in results) else 207
        return Response(status, msgspec.json.Encoder().encode_lines(results), LINES)

    async def _line(self, number: int, line: bytes, door: str, sender: Sender) -> LineResult:
        try:
            outcome = await self._take(line, door, sender)
        except UpswingError:
            raise
        except Exception:
            log.exception("line %d could not be taken", number, extra={"action": "alert"})
            return LineResult(number, 500, Reason.UNREADABLE, detail="It could not be taken.")
        if outcome.rejected:
            error = outcome.rejected
            return LineResult(number, status_of(error.reason), error.reason, detail=error.detail)
        return LineResult(number, 202, outcome.word, outcome.id, outcome.note or None)

    async def start(self, request: Request) -> Response:
        return reply(await self._steps.start(request.body, sender_of(request)))

    async def step(self, request: Request) -> Response:
        return reply(
            await self._steps.step(
                trajectory_id_of(request.params["trajectory_id"]), request.body, _speaks(request)
            )
        )

    async def end(self, request: Request) -> Response:
        return reply(
            await self._steps.end(
                trajectory_id_of(request.params["trajectory_id"]), request.body, _speaks(request)
            )
        )

    async def feedback(self, request: Request) -> Response:
        sender = sender_of(request)
        whole, dry = completed(request.body, key=sender.key_id, now=self._intake.now())
        outcome = await self._intake.feedback(
            whole,
            dry=dry,
            door="http",
            subject="/v1/feedback",
            principal=sender.key_id,
            trusted=sender.operator,
            many=sender.many,
        )
        return reply(outcome, name="feedback_id")

    async def check_feedback(self, request: Request) -> Response:
        whole, _ = completed(request.body, key=GATEWAY, now=self._intake.now())
        outcome = await self._intake.feedback(
            whole, dry=True, door=GATEWAY, principal=GATEWAY, many=True
        )
        return reply(outcome, name="feedback_id")


def sender_of(request: Request) -> Sender:
    """Whose key it is: an operator's speaks for all, a trusted one for many users."""
    who = request.principal
    if who is None:
        return Sender("unknown", many=False)
    operator = who.scope == "operator"
    return Sender(who.key_id, many=operator or who.many, operator=operator)


def _speaks(request: Request) -> str | None:
    """The key that asks, and speaks for itself; an operator's speaks for all."""
    who = request.principal
    return None if who is None or who.scope == "operator" else who.key_id


def reply(outcome: Outcome, name: str = "trajectory_id") -> Response:
    """The answer to one message: 202 means durable."""
    if outcome.rejected:
        error = outcome.rejected
        return problem(status_of(error.reason), error.reason, error.detail)
    if outcome.id is None:
        raise Rejected(Reason.SCHEMA, "The message has no id.")
    named = {name: outcome.id, "detail": outcome.note or None}
    return answer(202, Accepted(outcome.word, outcome.id, **named))
