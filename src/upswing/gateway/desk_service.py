"""Everything at this port that is not a chat completion: who may ask, and what is the answer?

| path                                    | who               | what                              |
|-----------------------------------------|-------------------|-----------------------------------|
| `GET /health`, `GET /metrics`           | everybody         | is it well                        |
| `GET /v1/models`                        | clients           | who can be asked                  |
| `POST /v1/episodes/{id}/close`          | clients           | the end of an episode             |
| `POST /feedback`, `POST /v1/feedback`   | clients           | a user's word                     |
| `GET, POST /admin/models`               | the admin's token | list, register                    |
| `GET, PUT /admin/traffic`               | the admin's token | see and set shares                |
| `GET /admin/models/{id}/metrics`        | the admin's token | of one model, or of `current`     |
| `/api/admin/training/…`                 | that service's    | handed to the training service    |
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Meta, Struct

from upswing.contracts.backend import ModelOrigin, placed
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.gateway.backend_service import Backend
from upswing.gateway.episodes import id_of
from upswing.gateway.errand_service import Errand
from upswing.gateway.keys import bearer, same
from upswing.gateway.limits import Limits
from upswing.gateway.ports import Desk
from upswing.gateway.problems import JSON, STATUS_OF, Kind, error_body, unreadable
from upswing.http1.connection import Connection as Client
from upswing.http1.request import Admitted, Refusal, Request
from upswing.together import aside, end

log = logging.getLogger(__name__)
_MOST_ADMIN_BYTES = 64 * 1024
_MOST_PASSED_ON = 1024 * 1024
_RELAY_SECONDS = 30.0
_WANTED = b"www-authenticate: Bearer\r\n"
_MODEL = Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/\-]{0,199}$(?!\n)")
T = TypeVar("T", bound=Struct)
Text = Annotated[str, Meta(min_length=1, max_length=2000)]


class NewModel(Struct, frozen=True, forbid_unknown_fields=True):
    """A model to be known."""

    model_id: Annotated[str, _MODEL]
    base_model: Text | None = None
    checkpoint_path: Text | None = None
    backend: Text | None = None
    name: Text | None = None
    probe: bool = True


class NewTraffic(Struct, frozen=True, forbid_unknown_fields=True):
    """A model's share, set by an operator."""

    model_id: Annotated[str, _MODEL]
    traffic_percentage: Annotated[float, Meta(ge=0, le=100)]


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    kind: bytes = JSON
    extra: bytes = b""


def reply(status: int, value: Any) -> Reply:
    return Reply(status, msgspec.json.encode(value))


def refusal(status: int, message: str, kind: Kind, extra: bytes = b"") -> Reply:
    return Reply(status, error_body(message, kind), extra=extra)


def _refused(status: int, message: str, kind: Kind, extra: bytes = b"") -> Refusal:
    return Refusal(status, error_body(message, kind), extra)


@dataclass(frozen=True, slots=True)
class Windows:
    """What these paths need of the gateway."""

    health: Callable[[], Mapping[str, Any]]
    metrics: Callable[[], bytes]
    models: Callable[[], Any]
    traffic: Callable[[], Any]
    close: Callable[[str, str, bytes], Awaitable[Reply]]
    """(owner, episode, body)"""
    feedback: Callable[[str, bytes, bytes | None], Awaitable[Reply]]
    """(owner, body, the user that a header names)"""
    owner: Callable[[bytes | None], str | None]
    """Whose key an `Authorization` header holds."""
    refused: Callable[[str], None]


Handler = Callable[["Asking"], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Asking:
    request: Request
    owner: str
    part: str = ""
    """The variable part of the path."""


class Paths:
    """The other paths."""

    def __init__(
        self, windows: Windows, limits: Limits, *, admin_token: str | None, desk: Desk | None,
        training_url: str | None,
    ) -> None:  # fmt: skip
        self._windows, self._desk, self._body_bytes = windows, desk, limits.body_bytes
        self._token = (admin_token or "").encode()
        self._training = urlsplit(training_url) if training_url else None
        self._relay = Backend(training_url, limits) if training_url else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._routes: list[tuple[str, re.Pattern[str], Mapping[str, Handler]]] = [
            (who, re.compile(path), handlers)
            for who, path, handlers in (
                ("all", r"/health", {"GET": self._health}),
                ("all", r"/metrics", {"GET": self._metrics}),
                ("client", r"/v1/models", {"GET": self._models}),
                ("client", r"/v1/episodes/([^/]+)/close", {"POST": self._close}),
                ("client", r"(?:/v1)?/feedback", {"POST": self._feedback}),
                ("all", r"(?:/v1)?/chat/completions", {"POST": self._health}),  # not by this way
                ("admin", r"/admin/models", {"GET": self._registered, "POST": self._register}),
                ("admin", r"/admin/traffic", {"GET": self._traffic, "PUT": self._set_traffic}),
                ("admin", r"/admin/models/([^/]+)/metrics", {"GET": self._model_metrics}),
                (
                    "theirs",
                    r"/api/admin/training/.+",
                    {"GET": self._pass_on, "POST": self._pass_on},
                ),
            )
        ]

    def take(self, client: Client, request: Request) -> None:
        task = aside(self._answer(client, request), name="answer")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await end(self._tasks)
        if self._relay:
            self._relay.close()

    async def _answer(self, client: Client, request: Request) -> None:
        try:
            told = await self._handled(*request.admitted.call)
        except asyncio.CancelledError:
            client.abort()
            raise
        except Exception:  # whatever broke, this client hears of it and the others go on
            log.exception("request failed", extra={"action": "request_failed"})
            told = refusal(500, "Something of ours broke; the log says what.", "server_error")
        client.answer(request, told.status, told.body, told.kind, told.extra)

    def admit(self, request: Request) -> Admitted | Refusal:
        """Which handler, and may they? Asked before the body is read."""
        path = request.path.partition(b"?")[0].decode("latin-1")
        for who, pattern, handlers in self._routes:
            if (found := pattern.fullmatch(path)) is not None:
                part = unquote(found[1]) if found.lastindex else ""
                return self._admitted(who, handlers, part, request)
        return _refused(404, "There is no such path at the gateway.", "not_found_error")

    def _admitted(
        self, who: str, handlers: Mapping[str, Handler], part: str, request: Request
    ) -> Admitted | Refusal:
        method = request.method.decode("latin-1")
        handler = handlers.get("GET" if method == "HEAD" else method)
        if handler is None:
            heads = {"HEAD"} if "GET" in handlers else set()
            allowed = ", ".join(sorted({*handlers, *heads, "OPTIONS"}))
            extra = f"allow: {allowed}\r\n".encode()
            if method == "OPTIONS":
                return Refusal(204, b"", extra)
            return _refused(405, f"This path takes {allowed}.", "invalid_request_error", extra)
        if (denied := self._denied(who, request)) is not None:
            return denied
        owner = self._windows.owner(request.headers.get(b"authorization")) or ""
        asking = Asking(request, owner, part)
        if who in {"client", "admin"}:
            whose = owner if who == "client" else (who,)
            return Admitted(self._body_bytes, keyed=True, call=(handler, asking), owner=whose)
        return Admitted(_MOST_PASSED_ON, keyed=False, call=(handler, asking))

    async def _handled(self, handler: Handler, asking: Asking) -> Reply:
        try:
            return await handler(asking)
        except Rejected as error:
            self._windows.refused(error.reason)
            return refusal(STATUS_OF.get(error.reason, 422), error.detail, "invalid_request_error")
        except Misuse as error:
            self._windows.refused("unknown")
            return refusal(404, str(error), "not_found_error")
        except Transient as error:
            return refusal(503, str(error), "server_error", b"retry-after: 1\r\n")

    def _denied(self, who: str, request: Request) -> Refusal | None:
        key = request.headers.get(b"authorization")
        if who == "client" and self._windows.owner(key) is None:
            self._windows.refused("key")
            said = "Send a key of this gateway: `Authorization: Bearer …`."
            return _refused(401, said, "authentication_error", _WANTED)
        if who == "admin" and not same(bearer(key), self._token):
            self._windows.refused("admin_token")
            if not self._token:
                said = "No admin token is set, so nobody is admin."
                return _refused(403, said, "permission_error")
            said = "Send the admin's token: `Authorization: Bearer …`."
            return _refused(401, said, "authentication_error", _WANTED)
        return None

    # --- everybody -------------------------------------------------------------------------------

    async def _health(self, _: Asking) -> Reply:
        return reply(200, self._windows.health())

    async def _metrics(self, _: Asking) -> Reply:
        return Reply(200, self._windows.metrics(), b"text/plain; version=0.0.4; charset=utf-8")

    # --- clients ---------------------------------------------------------------------------------

    async def _models(self, _: Asking) -> Reply:
        return reply(200, self._windows.models())

    async def _close(self, asking: Asking) -> Reply:
        return await self._windows.close(asking.owner, id_of(asking.part), asking.request.body)

    async def _feedback(self, asking: Asking) -> Reply:
        request = asking.request
        user = request.headers.get(b"x-user-id")
        return await self._windows.feedback(asking.owner, request.body, user)

    # --- the admin -------------------------------------------------------------------------------

    async def _registered(self, _: Asking) -> Reply:
        return reply(200, {"models": await self._at_desk().models()})

    async def _register(self, asking: Asking) -> Reply:
        new = _read(asking.request.body, NewModel)
        origin = ModelOrigin(new.checkpoint_path, new.backend, new.name, new.probe)
        base, path = placed(origin, new.model_id, new.base_model)
        return reply(201, await self._at_desk().register(new.model_id, base, path))

    async def _traffic(self, _: Asking) -> Reply:
        return reply(200, self._windows.traffic())

    async def _set_traffic(self, asking: Asking) -> Reply:
        new = _read(asking.request.body, NewTraffic)
        return reply(200, await self._at_desk().set_traffic(new.model_id, new.traffic_percentage))

    async def _model_metrics(self, asking: Asking) -> Reply:
        return reply(200, await self._at_desk().metrics(asking.part))

    def _at_desk(self) -> Desk:
        if self._desk is None:
            raise Transient(
                "No controller runs beside this gateway, so nothing can be changed here."
            )
        return self._desk

    # --- the training service --------------------------------------------------------------------

    async def _pass_on(self, asking: Asking) -> Reply:
        if self._relay is None or self._training is None:
            raise Misuse("The gateway does not know where the training service is.")
        request = asking.request
        lines = [
            request.method + b" " + request.path + b" HTTP/1.1",
            b"host: " + self._training.netloc.encode(),
        ]
        given = [name for name in (b"authorization", b"content-type") if name in request.headers]
        lines += [name + b": " + request.headers[name] for name in given]
        lines.append(b"content-length: %d" % len(request.body))
        whole = b"\r\n".join([*lines, b"", request.body])
        brought = await Errand().run(self._relay, whole, _RELAY_SECONDS)
        return Reply(brought.status, brought.body, brought.kind)


def _read(body: bytes, kind: type[T]) -> T:
    if len(body) > _MOST_ADMIN_BYTES:
        raise Rejected(Reason.TOO_LARGE, f"The body may have {_MOST_ADMIN_BYTES} bytes.")
    try:
        return from_json(body, kind)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable(error) from None
