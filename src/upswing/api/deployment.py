"""Models, traffic and rollouts: list, register, set shares, approve, hold, roll back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from upswing.api.auditing import actor_of
from upswing.api.openapi import inline_refs
from upswing.api.paging import ListQuery
from upswing.api.router import JSON, Problem, Request, Response, Route, answer
from upswing.api.scopes import GATEWAY, OPERATOR, READER, REQUESTER
from upswing.contracts.backend import ModelOrigin, resolve_base_and_path
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_json
from upswing.contracts.wire import END
from upswing.deploy.controller import Controller
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.states import RolloutState
from upswing.errors import Reason, Rejected
from upswing.redact import Redacted, RedactionFailed, Redactor

_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}" + END
_MODEL = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}$"}
_MOST_BYTES = 64 * 1024
_ALL = 1000
"""Rollouts that are listed, the newest."""
_OWN_ADDRESS = {"ip"}
"""Where an operator's own server stands is nobody's secret."""
_NAME_SCHEMA = {"type": "string", "maxLength": 200}
_ROLLOUTS = ListQuery(
    "rollouts",
    {"model": _NAME_SCHEMA, "state": {"enum": [*map(str, RolloutState)]}},
    moments=False,
    limit=100,
    most=_ALL,
)
_TAKES_TRAFFIC = frozenset({"pause", "rollback"})
"""Actions that give no model any traffic."""
Name = Annotated[
    str,
    Meta(
        pattern=_PATTERN,
        description="A letter or a digit, then up to 199 letters, digits, dots, colons, dashes and underscores.",
    ),
]
Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        pattern=r"^[^\x00-\x1f]+" + END,
        description="Text in one line.",
    ),
]
Percentage = Annotated[float, Meta(ge=0, le=100)]
T = TypeVar("T", bound=Struct)


class ModelRegistration(Struct, frozen=True, forbid_unknown_fields=True):
    """A model to be known: a checkpoint, or one at an OpenAI-compatible server."""

    model_id: Name
    base_model: Text | None = None
    """What the checkpoint was made from; left out for a `backend`: its name there."""
    checkpoint_path: Text | None = None
    backend: Text | None = None
    """The server's URL, such as `https://gpu.example/v1`; UPSWING_BACKEND_KEY_* has its key."""
    name: Text | None = None
    """What that server calls the model; left out: as we do."""
    probe: bool = True
    """Whether the server may be asked what it can do."""


class TrafficRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A model's share; the baseline gets the rest."""

    model_id: Name
    traffic_percentage: Percentage


class TrafficSplitRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Models side by side at fixed shares; the baseline gets the rest."""

    shares: Annotated[dict[Name, Percentage], Meta(min_length=1, max_length=20)]


class ActionReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why; for the journal and the audit."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class OverrideRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a model gets traffic without a passed validation."""

    reason: Text


class TrafficView(Struct, frozen=True):
    """Who gets which share, in percent."""

    baseline: str
    rollout: str
    operator: bool
    traffic: dict[str, float]


class DeployedModelList(Struct, frozen=True):
    models: list[dict[str, Any]]


class RolloutList(Struct, frozen=True):
    rollouts: list[dict[str, Any]]
    next: str | None = None
    """The cursor of the next page."""


class RolloutView(Struct, frozen=True):
    """How a rollout stands now."""

    model_id: str
    rollout_id: str
    state: str
    traffic_percentage: float
    sentence: str


class AwaitedValidation(Struct, frozen=True):
    """A model that is to be validated."""

    model_id: str
    state: str


class DeploymentRoutes:
    """The handlers."""

    def __init__(self, controller: Controller, redactor: Redactor) -> None:
        self._controller, self._redactor = controller, redactor

    def routes(self) -> list[Route]:
        model: dict[str, dict[str, Any]] = {"model_id": _MODEL}
        bad = {400: ("Not JSON.", Problem), 422: ("Not what it should be.", Problem)}
        gone = {404: ("There is no such model.", Problem)}
        odd = {409: ("That cannot be done with a model that stands like this.", Problem)}
        bodies = (
            inline_refs(msgspec.json.schema(TrafficRequest)),
            inline_refs(msgspec.json.schema(TrafficSplitRequest)),
        )
        routes = [
            Route(
                "POST",
                "/admin/models",
                "Make a model known that training did not make.",
                self.register,
                OPERATOR | {GATEWAY},
                takes={JSON: ModelRegistration},
                answers={
                    201: ("It is known, and will be validated.", {"type": "object"}),
                    **odd,
                    **bad,
                },
                max_body=_MOST_BYTES,
            ),
            Route(
                "GET",
                "/admin/models",
                "The base and every model, the newest first.",
                self.models,
                READER | {GATEWAY},
                answers={200: ("They.", DeployedModelList)},
            ),
            Route(
                "GET",
                "/admin/models/{model_id}/metrics",
                "How a model does; `current` is the baseline.",
                self.metrics,
                READER | {GATEWAY},
                params=model,
                answers={200: ("That.", {"type": "object"}), **gone},
            ),
            Route(
                "PUT",
                "/admin/traffic",
                "Hold a model at a share, or several; 100 makes it the baseline.",
                self.set_traffic,
                OPERATOR | {GATEWAY},
                takes={JSON: {"anyOf": list(bodies)}},
                answers={200: ("How it is now.", TrafficView), **gone, **odd, **bad},
                max_body=_MOST_BYTES,
            ),
            Route(
                "GET",
                "/admin/traffic",
                "Who gets which share.",
                self.traffic,
                READER | {GATEWAY},
                answers={200: ("That.", TrafficView)},
            ),
            Route(
                "GET",
                "/v1/rollouts",
                "Rollouts, the newest first.",
                self.rollouts,
                READER,
                query=_ROLLOUTS.schema,
                answers={200: ("They.", RolloutList), 422: ("A number is wrong.", Problem)},
            ),
            Route(
                "POST",
                "/v1/rollouts/{model_id}/revalidate",
                "Have a model validated once more.",
                self.revalidate,
                OPERATOR,
                takes={JSON: ActionReason},
                params=model,
                answers={202: ("It will be.", AwaitedValidation), **gone, **odd, **bad},
                max_body=_MOST_BYTES,
            ),
            Route(
                "POST",
                "/v1/rollback",
                "Roll back what is being rolled out, or else what answers.",
                self.rollback,
                REQUESTER,
                takes={JSON: ActionReason},
                answers={200: ("How it stands now.", RolloutView), **odd, **bad},
                max_body=_MOST_BYTES,
            ),
        ]
        about = {200: ("How it stands now.", RolloutView), **gone, **odd, **bad}
        actions: dict[str, tuple[str, type[ActionReason | OverrideRequest]]] = {
            "approve": ("Agree to a model's first traffic, or to 100 %.", ActionReason),
            "pause": ("Hold a model's traffic where it is.", ActionReason),
            "resume": ("Let a held ramp go on where it stood.", ActionReason),
            "rollback": ("Roll a model back.", ActionReason),
            "override": ("A canary without a passed validation: an emergency.", OverrideRequest),
        }
        for action, (summary, kind) in actions.items():
            path = f"/v1/rollouts/{{model_id}}/{action}"
            handler = self._handler(action, kind)
            routes.append(
                Route(
                    "POST",
                    path,
                    summary,
                    handler,
                    REQUESTER if action in _TAKES_TRAFFIC else OPERATOR,
                    takes={JSON: kind},
                    params=model,
                    answers=about,
                    max_body=_MOST_BYTES,
                )
            )
        return routes

    async def register(self, request: Request) -> Response:
        requested = _read(request.body, ModelRegistration)
        origin = ModelOrigin(
            requested.checkpoint_path, requested.backend, requested.name, requested.probe
        )
        base, path = resolve_base_and_path(origin, requested.model_id, requested.base_model)
        place = "backend" if requested.checkpoint_path is None else "checkpoint_path"
        self._check_storable({"model_id": requested.model_id, "base_model": base, place: path})
        made = await self._controller.register(requested.model_id, base, path, actor_of(request))
        return answer(201, made)

    async def models(self, _: Request) -> Response:
        return answer(200, DeployedModelList(await self._controller.models()))

    async def metrics(self, request: Request) -> Response:
        return answer(200, await self._controller.metrics(request.params["model_id"]))

    async def set_traffic(self, request: Request) -> Response:
        if _names(request.body) == {"shares"}:
            shares = _read(request.body, TrafficSplitRequest).shares
            return answer(200, await self._controller.split(shares, actor_of(request)))
        requested = _read(request.body, TrafficRequest)
        view = await self._controller.set_traffic(
            requested.model_id, requested.traffic_percentage, actor_of(request)
        )
        return answer(200, view)

    async def traffic(self, _: Request) -> Response:
        return answer(200, await self._controller.traffic())

    async def rollouts(self, request: Request) -> Response:
        page = _ROLLOUTS.read(request)
        model, state = page.filters.get("model"), page.filters.get("state")
        found = [
            each
            for each in await self._controller.rollouts(_ALL)
            if (model or each["model_id"]) == each["model_id"]
            and (state or each["state"]) == each["state"]
        ]
        names = [each["rollout_id"] for each in found]
        begin = names.index(page.position) + 1 if page.position in names else 0
        shown = found[begin : begin + page.limit]
        last = shown[-1]["rollout_id"] if begin + page.limit < len(found) else None
        return answer(200, RolloutList(shown, page.cursor(last)))

    async def rollback(self, request: Request) -> Response:
        requested = _read(request.body or b"{}", ActionReason)
        return _rollout_answer(
            await self._controller.operator.act(
                "rollback", None, actor_of(request), self._clean(requested.reason)
            )
        )

    async def revalidate(self, request: Request) -> Response:
        requested, name = _read(request.body or b"{}", ActionReason), request.params["model_id"]
        reason = self._clean(requested.reason)
        await self._controller.operator.revalidate(name, actor_of(request), reason)
        return answer(202, AwaitedValidation(name, "validating"))

    def _handler(
        self, action: str, kind: type[ActionReason | OverrideRequest]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            empty = b"{}" if kind is ActionReason else b""
            requested = _read(request.body or empty, kind)
            name, reason = request.params["model_id"], self._clean(requested.reason)
            return _rollout_answer(
                await self._controller.operator.act(action, name, actor_of(request), reason)
            )

        return handle

    def _check_storable(self, names: Mapping[str, str]) -> None:
        """A model's names and place are used as they are: what holds something private is refused, not redacted."""
        for field, value in names.items():
            if {each.kind for each in self._redacted(value).findings} - _OWN_ADDRESS:
                raise Rejected(
                    Reason.SCHEMA, f"`{field}` holds something private, which is not stored."
                )

    def _clean(self, reason: str) -> str:
        """What is kept of a reason: journal and audit are disks like any other."""
        return self._redacted(reason).value

    def _redacted(self, text: str) -> Redacted[str]:
        try:
            return self._redactor.text(text)
        except RedactionFailed as error:
            raise Rejected(Reason.REDACTION_FAILED, f"Nothing of it is kept: {error}") from None


def _rollout_answer(rollout: Rollout) -> Response:
    return answer(
        200,
        RolloutView(
            rollout.model_id,
            rollout.rollout_id,
            str(rollout.state),
            round(rollout.share * 100, 6),
            rollout.sentence,
        ),
    )


def _names(body: bytes) -> set[str]:
    """The fields of a body, as far as it has any."""
    try:
        tree = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return set()
    return set(tree) if isinstance(tree, dict) else set()


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return from_json(body, kind)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, schema_error_sentence(error, kind)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if b"NaN" in body or b"Infinity" in body:
            raise Rejected(Reason.SCHEMA, "A share is a number from 0 to 100.") from None
        raise Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.") from None
