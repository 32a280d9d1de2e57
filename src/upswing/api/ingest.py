"""The agents' endpoints: trajectories whole, in lines or in steps, and feedback."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from upswing.api.auditing import Auditor
from upswing.api.openapi import inline_refs
from upswing.api.router import (
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
from upswing.collect.core.shorthand import completed
from upswing.collect.intake import Intake, IntakeResult
from upswing.collect.step_intake import StepwiseIntake
from upswing.contracts.feedback import FEEDBACK_RULES, Feedback
from upswing.contracts.schema import json_schema_of
from upswing.contracts.trajectory import Trajectory
from upswing.errors import Reason, Rejected, UpswingError
from upswing.infra.tasks import start_task
from upswing.principals import GATEWAY, Sender
from upswing.records import Taken

log = logging.getLogger(__name__)
AGENT = frozenset({"agent", "operator"})
CHECKING = frozenset({GATEWAY, "operator"})
LINES_LIMIT = 64 * 1024 * 1024
MAX_LINES = 5000
"""Of one request: each may leave a dead letter, however short it is."""
_CHUNK = 128
OPERATOR_SOURCE = "operator"
"""The `source` of feedback that an operator gives on the web page."""
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
_TRAJECTORY_ANSWERS = {
    **_TAKEN,
    403: ("The id is another key's, or of the form that only gateways give.", Problem),
}
_STEP_ANSWERS = {**_TRAJECTORY_ANSWERS, 404: ("No such trajectory is open.", Problem)}
_OPEN_OBJECT = {"type": "object"}
_START = {
    "type": "object",
    "anyOf": [
        {"required": ["agent_id"], "properties": {"agent_id": {"type": "string"}}},
        {"required": ["agentId"], "properties": {"agentId": {"type": "string"}}},
    ],
}


_FEEDBACK_ANSWERS = {
    **_TAKEN,
    403: ("A key speaks for users whose trajectories it recorded.", Problem),
}


def _feedback_schema() -> dict[str, Any]:
    """feedback.v1, of which two fields may be left out, and `dryrun`."""
    whole = inline_refs(json_schema_of(Feedback))
    required = [name for name in whole["required"] if name not in {"feedback_id", "timestamp"}]
    dry = {"dryrun": {"type": "boolean", "description": "Answer, and keep nothing."}}
    fields = {**whole["properties"], **dry}
    return {**whole, "required": required, "properties": fields, **FEEDBACK_RULES}


class IngestRoutes:
    """The handlers of the agents' endpoints."""

    def __init__(
        self, intake: Intake, steps: StepwiseIntake, max_bytes: int, auditor: Auditor
    ) -> None:
        self._intake, self._auditor = intake, auditor
        self._max_bytes = max_bytes
        self._steps = steps

    def routes(self) -> list[Route]:
        max_bytes = self._max_bytes
        step_id = {"trajectory_id": _ID}
        return [
            Route(
                "POST",
                "/v1/trajectories",
                "Hand over one trajectory, or many as JSON lines.",
                self.trajectories,
                AGENT,
                takes={JSON: inline_refs(json_schema_of(Trajectory)), LINES: {"type": "string"}},
                answers={
                    **_TRAJECTORY_ANSWERS,
                    207: ("Some lines were refused; a result per line.", LINES),
                },
                max_body=LINES_LIMIT,
            ),
            Route(
                "POST",
                "/v1/trajectories/start",
                "Open a trajectory that is sent step by step.",
                self.start,
                AGENT,
                takes={JSON: _START},
                answers=_TRAJECTORY_ANSWERS,
                max_body=max_bytes,
            ),
            Route(
                "POST",
                "/v1/trajectories/{trajectory_id}/steps",
                "Add a step.",
                self.step,
                AGENT,
                takes={JSON: _OPEN_OBJECT},
                answers=_STEP_ANSWERS,
                params=step_id,
                max_body=max_bytes,
            ),
            Route(
                "POST",
                "/v1/trajectories/{trajectory_id}/end",
                "End it: the steps become a trajectory.",
                self.end,
                AGENT,
                takes={JSON: _OPEN_OBJECT},
                answers=_STEP_ANSWERS,
                params=step_id,
                max_body=max_bytes,
            ),
            Route(
                "POST",
                "/v1/feedback",
                "Say what a user thought of it, also days later.",
                self.feedback,
                AGENT,
                takes={JSON: _feedback_schema()},
                answers=_FEEDBACK_ANSWERS,
                max_body=max_bytes,
            ),
            Route(
                "POST",
                "/v1/feedback/check",
                "Would this feedback be taken? A gateway asks before it accepts.",
                self.check_feedback,
                CHECKING,
                takes={JSON: _feedback_schema()},
                answers=_FEEDBACK_ANSWERS,
                max_body=max_bytes,
            ),
        ]

    async def trajectories(self, request: Request) -> Response:
        door = "sdk" if request.user_agent.startswith("upswing-sdk") else "http"
        if request.content_type == LINES:
            return await self._store_lines(request.body, door, sender_of(request))
        return outcome_response(
            await self._store_trajectory(request.body, door, sender_of(request))
        )

    async def _store_trajectory(self, raw: bytes, door: str, sender: Sender) -> IntakeResult:
        return await self._intake.trajectory(
            raw, door=door, subject="/v1/trajectories", sender=sender
        )

    async def _store_lines(self, body: bytes, door: str, sender: Sender) -> Response:
        if body.count(b"\n") > MAX_LINES:
            raise Rejected(
                Reason.TOO_LARGE, f"A request has at most {MAX_LINES} lines: send several."
            )
        lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
        results: list[LineResult] = []
        for start in range(0, len(lines), _CHUNK):
            tasks = []
            for number, line in lines[start : start + _CHUNK]:
                tasks.append(start_task(self._store_line(number, line, door, sender)))
                await asyncio.sleep(0)  # lets other requests in between
            results += await asyncio.gather(*tasks)
        status = 202 if all(result.status == 202 for result in results) else 207
        return Response(status, msgspec.json.Encoder().encode_lines(results), LINES)

    async def _store_line(self, number: int, line: bytes, door: str, sender: Sender) -> LineResult:
        try:
            outcome = await self._store_trajectory(line, door, sender)
        except UpswingError:
            raise
        except Exception:
            log.exception(
                "line %d could not be taken",
                number,
                extra={"action": "alert", "reason": "line_broke"},
            )
            return LineResult(number, 500, Reason.UNREADABLE, detail="It could not be taken.")
        if outcome.rejected:
            error = outcome.rejected
            return LineResult(number, status_of(error.reason), error.reason, detail=error.detail)
        return LineResult(number, 202, outcome.status, outcome.id, outcome.note or None)

    async def start(self, request: Request) -> Response:
        return outcome_response(await self._steps.start(request.body, sender_of(request)))

    async def step(self, request: Request) -> Response:
        key = _acting_key(request)
        trajectory_id = await self._steps.resolve_id(request.params["trajectory_id"], key)
        return outcome_response(await self._steps.step(trajectory_id, request.body, key))

    async def end(self, request: Request) -> Response:
        key = _acting_key(request)
        trajectory_id = await self._steps.resolve_id(request.params["trajectory_id"], key)
        return outcome_response(await self._steps.end(trajectory_id, request.body, key))

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
        if sender.operator and outcome.taken is Taken.STORED and not dry:
            await self._audit_operator_feedback(request, whole, outcome.id or "")
        return outcome_response(outcome, name="feedback_id")

    async def _audit_operator_feedback(
        self, request: Request, raw: bytes, feedback_id: str
    ) -> None:
        """What a person says with an operator's key; agents may have that key, too, and are not audited."""
        said = msgspec.json.decode(raw)
        if said.get("source") == OPERATOR_SOURCE:
            about = str(said.get("trajectory_id") or feedback_id)
            detail = {
                "feedback_id": feedback_id,
                "type": said["type"],
                "rating": said.get("rating"),
            }
            await self._auditor.note(request, "feedback", about, detail=detail)

    async def check_feedback(self, request: Request) -> Response:
        whole, _ = completed(request.body, key=GATEWAY, now=self._intake.now())
        outcome = await self._intake.feedback(
            whole, dry=True, door=GATEWAY, principal=GATEWAY, many=True
        )
        return outcome_response(outcome, name="feedback_id")


def sender_of(request: Request) -> Sender:
    """Whose key it is: an operator's speaks for all, a trusted one for many users."""
    who = request.principal
    if who is None:
        return Sender("unknown", many=False)
    operator = who.scope == "operator"
    return Sender(who.key_id, many=operator or who.many, operator=operator)


def _acting_key(request: Request) -> str | None:
    """The key that asks, and speaks for itself; an operator's speaks for all."""
    who = request.principal
    return None if who is None or who.scope == "operator" else who.key_id


def outcome_response(outcome: IntakeResult, name: str = "trajectory_id") -> Response:
    """The answer to one message: 202 means durable."""
    if outcome.rejected:
        error = outcome.rejected
        return problem(status_of(error.reason), error.reason, error.detail)
    if outcome.id is None:
        raise Rejected(Reason.SCHEMA, "The message has no id.")
    fields = {name: outcome.id, "detail": outcome.note or None}
    return answer(202, Accepted(outcome.status, outcome.id, **fields))
