"""May this model ship, which of two is better, and what must not go wrong again?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from upswing.api.auditing import Auditor
from upswing.api.comparison import Comparison
from upswing.api.openapi import inline_refs
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import OPERATOR, READER, REQUESTER
from upswing.contracts import Trajectory, decode
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_json
from upswing.contracts.validation import ValidationReport
from upswing.errors import Misuse, Reason, Rejected
from upswing.infra.sql.store import SqlStore
from upswing.redact import Redactor
from upswing.validate.core.task import Pinned
from upswing.validate.runner import ValidationRunner

T = TypeVar("T")
_ID: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_MODEL: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 200}
Name = Annotated[str, Meta(min_length=1, max_length=200)]
ExpectedText = Annotated[str, Meta(min_length=1, max_length=1000)]


class ValidationRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model, against which one, in which suites."""

    model_id: Name
    against: Name | None = None
    """By default the model that answers now."""
    suites: Annotated[list[Name], Meta(max_length=100)] | None = None
    """By default those of the config."""


class ValidationStarted(msgspec.Struct, frozen=True):
    """It is under way, or waits for another one to end."""

    validation_id: str
    model_id: str
    against: str
    suites: tuple[str, ...]


class SuiteProgress(msgspec.Struct, frozen=True):
    """How far a suite is, in answers of both models."""

    suite: str
    done: int
    total: int


class ValidationInfo(msgspec.Struct, frozen=True):
    """A validation, and how it stands."""

    validation_id: str
    model_id: str
    against: str
    suites: tuple[str, ...]
    state: str
    """`running`, `done`, or `failed` when there is no report."""
    started: datetime
    ended: datetime | None
    progress: list[SuiteProgress]
    """While it runs; empty while it waits."""
    word: str | None
    """`pass`, `fail` or `inconclusive`, when it is done."""
    sentence: str | None
    decision_id: str | None
    artifact: str | None
    report: ValidationReport | None


class PinRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What went wrong, and what must come of it; without that, anything but the same again."""

    trajectory_id: Name
    turn_id: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """The turn that went wrong; by default the last."""
    contains: Annotated[tuple[ExpectedText, ...], Meta(max_length=20)] = ()
    """Texts that a good answer has."""
    excludes: Annotated[tuple[ExpectedText, ...], Meta(max_length=20)] = ()
    """Texts that it must not have."""


class PinnedTask(msgspec.Struct, frozen=True):
    """The task in the suite `regression`."""

    task_id: str
    new: bool
    """False: it was pinned before."""
    pinned: int
    """How many there are now."""


Compare = Callable[[str, str], Awaitable[Comparison]]
"""Two model ids → what is known of both."""
Current = Callable[[], Awaitable[str | None]]
"""The model that answers now."""
Known = Callable[[str], Awaitable[bool]]
"""Is there such a model?"""


class ValidationRoutes:
    """The handlers."""

    def __init__(
        self,
        runner: ValidationRunner,
        store: SqlStore,
        redactor: Redactor,
        auditor: Auditor,
        *,
        compare: Compare,
        current: Current,
        known: Known,
    ) -> None:
        self._runner, self._store, self._redactor = runner, store, redactor
        self._auditor = auditor
        self._compare, self._current, self._known = compare, current, known

    def routes(self) -> Sequence[Route]:
        not_found = {404: ("There is no such thing.", Problem)}
        invalid = {400: ("Not JSON.", Problem), 422: ("Not what it should be.", Problem)}
        pair = {"a": _MODEL, "b": _MODEL}
        return [
            Route(
                "POST",
                "/v1/validations",
                "Compare a model with another one, task by task.",
                self.start,
                REQUESTER,
                takes={JSON: inline_refs(msgspec.json.schema(ValidationRequest))},
                answers={
                    202: ("It is under way.", ValidationStarted),
                    **not_found,
                    **invalid,
                    409: ("These two are being compared already.", Problem),
                },
            ),
            Route(
                "GET",
                "/v1/validations/{validation_id}",
                "How a validation goes, then its report.",
                self.show,
                READER,
                params={"validation_id": _ID},
                answers={200: ("It.", ValidationInfo), **not_found},
            ),
            Route(
                "GET",
                "/v1/compare",
                "What two models earned in production, and how they were validated.",
                self.compare,
                READER,
                query=pair,
                answers={
                    200: ("a − b.", Comparison),
                    422: ("Two different names are needed.", Problem),
                    **not_found,
                },
            ),
            Route(
                "POST",
                "/v1/pins",
                "Make a failure a task that every later model has to do.",
                self.pin,
                OPERATOR,
                takes={JSON: inline_refs(msgspec.json.schema(PinRequest))},
                answers={201: ("It is pinned.", PinnedTask), **not_found, **invalid},
            ),
        ]

    async def start(self, request: Request) -> Response:
        requested = _decode(request.body, ValidationRequest)
        against = requested.against or await self._current()
        if against is None:
            raise Rejected(Reason.SCHEMA, "No model answers now: say which one with `against`.")
        await self._runner.suite_names(requested.suites, requested.model_id)
        await self._require_models(requested.model_id, against)
        row = await self._runner.start(requested.model_id, against, requested.suites)
        begun = {"validation_id": row.run_id, "against": row.against, "suites": row.suites}
        await self._auditor.note(request, "validate", row.candidate, detail=begun)
        return answer(202, ValidationStarted(row.run_id, row.candidate, row.against, row.suites))

    async def show(self, request: Request) -> Response:
        found = await self._runner.status(request.params["validation_id"])
        if found is None:
            raise Misuse("There is no validation with this id.")
        row, progress = found
        info = ValidationInfo(
            row.run_id,
            row.candidate,
            row.against,
            row.suites,
            row.state,
            row.started,
            row.ended,
            [SuiteProgress(each.suite, each.done, each.total) for each in progress],
            row.verdict,
            row.sentence,
            row.decision_id,
            row.artifact,
            row.report,
        )
        return answer(200, info)

    async def compare(self, request: Request) -> Response:
        a, b = request.query.get("a", ""), request.query.get("b", "")
        if not a or not b or a == b:
            raise Rejected(Reason.SCHEMA, "`a` and `b` are the names of two different models.")
        found = await self._compare(a, b)
        await self._require_models(
            *(arm.model_id for arm in (found.a, found.b) if not arm.trajectories)
        )
        return answer(200, found)

    async def pin(self, request: Request) -> Response:
        requested = _decode(request.body, PinRequest)
        stored = await self._store.trajectory(requested.trajectory_id)
        if stored is None:
            raise Misuse("No trajectory with this id is stored.")
        expectation = self._expectation(requested)
        task, new = await self._runner.pin(
            decode(Trajectory, stored.admitted.body), expectation, requested.turn_id
        )
        if await self._store.trajectory(requested.trajectory_id) is None:  # erased in this moment
            await self._runner.forget_trajectories({requested.trajectory_id})
            raise Misuse("No trajectory with this id is stored.")
        count = len(await self._runner.pins.pinned())
        pinned = PinnedTask(task.task_id, new, count)
        await self._auditor.note(request, "pin", requested.trajectory_id, after=pinned)
        return answer(201, pinned)

    def _expectation(self, requested: PinRequest) -> Pinned | None:
        expected = [*requested.contains, *requested.excludes]
        if any(self._redactor.text(text).changed for text in expected):
            raise Rejected(
                Reason.SCHEMA, "What is expected holds something private, which is never stored."
            )
        return (
            Pinned(contains=requested.contains, excludes=requested.excludes) if expected else None
        )

    async def _require_models(self, *models: str) -> None:
        for model in models:
            if not await self._known(model):
                raise Misuse(f"There is no model {model[:200]}; `upswing models` lists them.")


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return from_json(body, kind)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, schema_error_sentence(error, kind)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.MALFORMED, f"{error}.") from None
