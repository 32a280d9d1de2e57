"""Models, traffic and rollouts: look, register, set, approve, hold, take back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct

from upswing.contracts.backend import ModelOrigin, placed
from upswing.contracts.typed import from_json
from upswing.contracts.wire import END
from upswing.errors import Reason, Rejected
from upswing.http.app import JSON, Problem, Request, Response, Route, answer
from upswing.http.openapi import inline
from upswing.http.operations import GATEWAY, OPERATOR, READER

_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}" + END
_MODEL = {"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}$"}
_MOST_BYTES = 64 * 1024
Name = Annotated[str, Meta(pattern=_PATTERN)]
Text = Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f]+" + END)]
Percentage = Annotated[float, Meta(ge=0, le=100)]
T = TypeVar("T", bound=Struct)


class ModelWish(Struct, frozen=True, forbid_unknown_fields=True):
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


class TrafficWish(Struct, frozen=True, forbid_unknown_fields=True):
    """A model's share; the baseline gets the rest."""

    model_id: Name
    traffic_percentage: Percentage


class SplitWish(Struct, frozen=True, forbid_unknown_fields=True):
    """Models side by side at fixed shares; the baseline gets the rest."""

    shares: Annotated[dict[Name, Percentage], Meta(min_length=1, max_length=20)]


class Reasoned(Struct, frozen=True, forbid_unknown_fields=True):
    """Why; for the journal and the audit."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class OverrideWish(Struct, frozen=True, forbid_unknown_fields=True):
    """Why a model gets traffic without a passed validation."""

    reason: Text


class TrafficTold(Struct, frozen=True):
    """Who gets which share, in percent."""

    baseline: str
    rollout: str
    operator: bool
    traffic: dict[str, float]


class ModelsTold(Struct, frozen=True):
    models: list[dict[str, Any]]


class RolloutsTold(Struct, frozen=True):
    rollouts: list[dict[str, Any]]


class RolloutTold(Struct, frozen=True):
    """How a rollout stands now."""

    model_id: str
    rollout_id: str
    state: str
    traffic_percentage: float
    sentence: str


class Awaited(Struct, frozen=True):
    """A model that is to be validated."""

    model_id: str
    state: str


class Stands(Protocol):
    """A rollout, as far as it is told."""

    @property
    def model_id(self) -> str: ...
    @property
    def rollout_id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def share(self) -> float: ...
    @property
    def sentence(self) -> str: ...


class Controls(Protocol):
    """The controller."""

    async def register(self, model_id: str, base_model: str, checkpoint_path: str, by: str) -> dict[str, Any]: ...  # fmt: skip
    async def set_traffic(self, model_id: str, percentage: float, by: str) -> dict[str, Any]: ...
    async def split(self, percentages: Mapping[str, float], by: str) -> dict[str, Any]: ...
    async def traffic(self) -> dict[str, Any]: ...
    async def models(self) -> list[dict[str, Any]]: ...
    async def metrics(self, model_id: str) -> dict[str, Any]: ...
    async def rollouts(self, limit: int = 100) -> Sequence[dict[str, Any]]: ...
    async def revalidate(self, model_id: str, by: str, why: str = "") -> None: ...
    async def told(self, what: str, model_id: str | None, by: str, why: str = "") -> Stands:
        """approve, pause, resume, rollback or override."""
        ...


class Deployment:
    """The handlers."""

    def __init__(self, controller: Controls) -> None:
        self._controller = controller

    def routes(self) -> list[Route]:
        model: dict[str, dict[str, Any]] = {"model_id": _MODEL}
        bad = {400: ("Not JSON.", Problem), 422: ("Not what it should be.", Problem)}
        gone = {404: ("There is no such model.", Problem)}
        odd = {409: ("That cannot be done with a model that stands like this.", Problem)}
        wish = inline(msgspec.json.schema(TrafficWish)), inline(msgspec.json.schema(SplitWish))
        limit: dict[str, dict[str, Any]] = {
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000}
        }
        routes = [
            Route("POST", "/admin/models", "Make a model known that training did not make.", self.register, OPERATOR | {GATEWAY},
                  takes={JSON: ModelWish}, answers={201: ("It is known, and will be validated.", {"type": "object"}), **odd, **bad}, max_body=_MOST_BYTES),
            Route("GET", "/admin/models", "The base and every model, the newest first.", self.models, READER | {GATEWAY},
                  answers={200: ("They.", ModelsTold)}),
            Route("GET", "/admin/models/{model_id}/metrics", "How a model does; `current` is the baseline.", self.metrics, READER | {GATEWAY},
                  params=model, answers={200: ("That.", {"type": "object"}), **gone}),
            Route("PUT", "/admin/traffic", "Hold a model at a share, or several; 100 makes it the baseline.", self.set_traffic, OPERATOR | {GATEWAY},
                  takes={JSON: {"anyOf": list(wish)}}, answers={200: ("How it is now.", TrafficTold), **gone, **odd, **bad}, max_body=_MOST_BYTES),
            Route("GET", "/admin/traffic", "Who gets which share.", self.traffic, READER | {GATEWAY},
                  answers={200: ("That.", TrafficTold)}),
            Route("GET", "/v1/rollouts", "Rollouts, the newest first.", self.rollouts, READER, query=limit,
                  answers={200: ("They.", RolloutsTold), 422: ("A number is wrong.", Problem)}),
            Route("POST", "/v1/rollouts/{model_id}/revalidate", "Have a model validated once more.", self.revalidate, OPERATOR,
                  takes={JSON: Reasoned}, params=model, answers={202: ("It will be.", Awaited), **gone, **odd, **bad}, max_body=_MOST_BYTES),
            Route("POST", "/v1/rollback", "Take back what is on its way, or else what answers.", self.rollback, OPERATOR,
                  takes={JSON: Reasoned}, answers={200: ("How it stands now.", RolloutTold), **odd, **bad}, max_body=_MOST_BYTES),
        ]  # fmt: skip
        about = {200: ("How it stands now.", RolloutTold), **gone, **odd, **bad}
        words: dict[str, tuple[str, type[Reasoned | OverrideWish]]] = {
            "approve": ("Agree to a model's first traffic, or to 100 %.", Reasoned),
            "pause": ("Hold a model's traffic where it is.", Reasoned),
            "resume": ("Let a held ramp go on where it stood.", Reasoned),
            "rollback": ("Take a model back.", Reasoned),
            "override": ("A canary without a passed validation: an emergency.", OverrideWish),
        }
        for word, (summary, kind) in words.items():
            path = f"/v1/rollouts/{{model_id}}/{word}"
            handler = self._handler(word, kind)
            routes.append(
                Route("POST", path, summary, handler, OPERATOR, takes={JSON: kind}, params=model, answers=about, max_body=_MOST_BYTES)
            )  # fmt: skip
        return routes

    async def register(self, request: Request) -> Response:
        wish = _read(request.body, ModelWish)
        origin = ModelOrigin(wish.checkpoint_path, wish.backend, wish.name, wish.probe)
        base, path = placed(origin, wish.model_id, wish.base_model)
        made = await self._controller.register(wish.model_id, base, path, _who(request))
        return answer(201, made)

    async def models(self, _: Request) -> Response:
        return answer(200, ModelsTold(await self._controller.models()))

    async def metrics(self, request: Request) -> Response:
        return answer(200, await self._controller.metrics(request.params["model_id"]))

    async def set_traffic(self, request: Request) -> Response:
        if _names(request.body) == {"shares"}:
            shares = _read(request.body, SplitWish).shares
            return answer(200, await self._controller.split(shares, _who(request)))
        wish = _read(request.body, TrafficWish)
        told = await self._controller.set_traffic(
            wish.model_id, wish.traffic_percentage, _who(request)
        )
        return answer(200, told)

    async def traffic(self, _: Request) -> Response:
        return answer(200, await self._controller.traffic())

    async def rollouts(self, request: Request) -> Response:
        text = request.query.get("limit", "100")
        if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= 1000):
            raise Rejected(Reason.SCHEMA, "`limit` is a number from 1 to 1000.")
        return answer(200, RolloutsTold(list(await self._controller.rollouts(int(text)))))

    async def rollback(self, request: Request) -> Response:
        wish = _read(request.body or b"{}", Reasoned)
        return _told(await self._controller.told("rollback", None, _who(request), wish.reason))

    async def revalidate(self, request: Request) -> Response:
        wish, name = _read(request.body or b"{}", Reasoned), request.params["model_id"]
        await self._controller.revalidate(name, _who(request), wish.reason)
        return answer(202, Awaited(name, "validating"))

    def _handler(self, word: str, kind: type[Reasoned | OverrideWish]) -> Callable[[Request], Awaitable[Response]]:  # fmt: skip
        async def handle(request: Request) -> Response:
            empty = b"{}" if kind is Reasoned else b""
            wish = _read(request.body or empty, kind)
            name = request.params["model_id"]
            return _told(await self._controller.told(word, name, _who(request), wish.reason))

        return handle


def _told(rollout: Stands) -> Response:
    return answer(
        200,
        RolloutTold(
            rollout.model_id, rollout.rollout_id, str(rollout.state),
            round(rollout.share * 100, 6), rollout.sentence,
        ),
    )  # fmt: skip


def _who(request: Request) -> str:
    return f"key {request.principal.key_id}" if request.principal else "unknown"


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
        raise Rejected(Reason.SCHEMA, f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if b"NaN" in body or b"Infinity" in body:
            raise Rejected(Reason.SCHEMA, "A share is a number from 0 to 100.") from None
        raise Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.") from None
