"""Everything at this port that no model is asked: who may ask, and what is the answer?

| path                                    | who               | what                              |
|-----------------------------------------|-------------------|-----------------------------------|
| `GET /health`, `GET /metrics`           | everybody         | health and metrics                |
| `GET /v1/models`, `GET /v1/models/{id}` | clients           | models that can be requested      |
| `POST /v1/episodes/{id}/close`          | clients           | the end of an episode             |
| `POST /feedback`, `POST /v1/feedback`   | clients           | feedback of a user                |
| `GET, POST /admin/models`               | the admin's token | list, register                    |
| `GET, PUT /admin/traffic`               | the admin's token | see and set shares                |
| `GET /admin/models/{id}/metrics`        | the admin's token | of one model, or of `current`     |
| `/api/admin/training/…`                 | that service's    | handed to the training service    |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from upswing.anthropic.errors import error_body as anthropic_error_body
from upswing.contracts.backend import ModelOrigin, resolve_base_and_path
from upswing.contracts.field_errors import schema_error_sentence
from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.gateway.admin_client import AdminClient
from upswing.gateway.core.episodes import parse_episode_id
from upswing.gateway.core.error_fields import field_in
from upswing.gateway.core.keys import bearer_token, token_matches
from upswing.gateway.core.model_list import ALIAS, model_entry, model_list
from upswing.gateway.core.shapes import SHAPE_BY_PATH
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.proxy.connections import ConnectionPool
from upswing.gateway.proxy.forwarding import ProxiedRequest
from upswing.infra.http1.connection import Connection as Client
from upswing.infra.http1.request import AdmittedRequest, HttpRequest, Refusal
from upswing.infra.http1.routing import NoRoute, RouteTable
from upswing.infra.http1.wire import JSON, STATUS_BY_REASON
from upswing.infra.tasks import cancel_all, run_in_background
from upswing.openai.errors import ErrorType, error_body, read_error
from upswing.openai.requests import unreadable_body

log = logging.getLogger(__name__)
_MAX_ADMIN_BYTES = 64 * 1024
_MAX_FORWARDED_BYTES = 1024 * 1024
_MAX_CLIENT_BYTES = 1024 * 1024
"""Of a close or of feedback, which are read whole."""
_FORWARD_SECONDS = 30.0
_WWW_AUTHENTICATE = b"www-authenticate: Bearer\r\n"
_MODEL = Meta(
    pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/\-]{0,199}$(?!\n)",
    description="A letter or a digit, then up to 199 letters, digits, dots, colons, slashes, dashes and underscores.",
)
T = TypeVar("T", bound=Struct)
_ANTHROPIC = b"anthropic-version"
_NO_PATH = "There is no such path at the gateway."
Access = Literal["all", "client", "admin", "theirs"]
"""Who may: everybody, a client with a key, the admin, or whomever the training service lets."""
Text = Annotated[str, Meta(min_length=1, max_length=2000)]


class RegisterModelBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /admin/models`."""

    model_id: Annotated[str, _MODEL]
    base_model: Text | None = None
    checkpoint_path: Text | None = None
    backend: Text | None = None
    name: Text | None = None
    probe: bool = True


class SetTrafficBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `PUT /admin/traffic`."""

    model_id: Annotated[str, _MODEL]
    traffic_percentage: Annotated[float, Meta(ge=0, le=100)]


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: bytes
    content_type: bytes = JSON
    extra_headers: bytes = b""


def json_reply(status: int, value: Any) -> HttpReply:
    return HttpReply(status, msgspec.json.encode(value))


def error_reply(
    status: int, message: str, error_type: ErrorType, extra_headers: bytes = b""
) -> HttpReply:
    param = field_in(message) if error_type == "invalid_request_error" else None
    body = error_body(message, error_type, param=param)
    return HttpReply(status, body, extra_headers=extra_headers)


def _error_refusal(
    status: int, message: str, error_type: ErrorType, extra_headers: bytes = b""
) -> Refusal:
    return Refusal(status, error_body(message, error_type), extra_headers)


@dataclass(frozen=True, slots=True)
class AdminCallbacks:
    """What the routes need of the gateway."""

    health: Callable[[], Mapping[str, Any]]
    metrics: Callable[[], bytes]
    models: Callable[[], Sequence[str]]
    """What can be requested."""
    traffic: Callable[[], Any]
    close_episode: Callable[[str, str, bytes], Awaitable[HttpReply]]
    """(owner, episode, body)"""
    record_feedback: Callable[[str, bytes, bytes | None], Awaitable[HttpReply]]
    """(owner, body, the user that a header names)"""
    key_owner: Callable[[Mapping[bytes, bytes]], str | None]
    """Whose key the headers of a request show."""
    count_refusal: Callable[[str], None]


RouteHandler = Callable[["AdminRequest"], Awaitable[HttpReply]]


@dataclass(frozen=True, slots=True)
class AdminRequest:
    request: HttpRequest
    owner: str
    path_parameter: str = ""
    """The variable part of the path."""


@dataclass(frozen=True, slots=True)
class AdminEndpoint:
    access: Access
    handler: RouteHandler


class AdminRoutes:
    """All paths but those of models."""

    def __init__(
        self,
        callbacks: AdminCallbacks,
        limits: GatewayLimits,
        *,
        admin_token: str | None,
        admin_client: AdminClient | None,
        training_url: str | None,
    ) -> None:
        self._callbacks, self._admin_client = callbacks, admin_client
        self._body_bytes = min(limits.body_bytes, _MAX_CLIENT_BYTES)
        self._token = (admin_token or "").encode()
        self._training_url = urlsplit(training_url) if training_url else None
        self._training_pool = ConnectionPool(training_url, limits) if training_url else None
        self._tasks: set[asyncio.Task[None]] = set()
        routes: list[tuple[Access, str, str, RouteHandler]] = [
            ("all", "GET", "/health", self._health),
            ("all", "GET", "/metrics", self._metrics),
            ("client", "GET", "/v1/models", self._list_models),
            ("client", "GET", "/v1/models/{model...}", self._get_model),
            ("client", "POST", "/v1/episodes/{episode}/close", self._close_episode),
            ("client", "POST", "/feedback", self._record_feedback),
            ("client", "POST", "/v1/feedback", self._record_feedback),
            # `ChatHandler` answers these; they stand here for other methods.
            *(("all", "POST", path.decode(), self._no_such_path) for path in SHAPE_BY_PATH),
            ("admin", "GET", "/admin/models", self._list_registered_models),
            ("admin", "POST", "/admin/models", self._register_model),
            ("admin", "GET", "/admin/traffic", self._get_traffic),
            ("admin", "PUT", "/admin/traffic", self._set_traffic),
            ("admin", "GET", "/admin/models/{model}/metrics", self._model_metrics),
            ("theirs", "GET", "/api/admin/training/{path...}", self._forward_to_training),
            ("theirs", "POST", "/api/admin/training/{path...}", self._forward_to_training),
        ]
        self._routes = RouteTable(
            (method, path, AdminEndpoint(access, handler))
            for access, method, path, handler in routes
        )

    def handle(self, client: Client, request: HttpRequest) -> None:
        task = run_in_background(self._respond(client, request), name="answer")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await cancel_all(self._tasks)
        if self._training_pool:
            self._training_pool.close()

    async def _respond(self, client: Client, request: HttpRequest) -> None:
        try:
            result = await self._call_handler(*request.admitted.call)
        except asyncio.CancelledError:
            client.abort()
            raise
        except Exception:  # whatever broke, this client hears of it and the others go on
            log.exception("request failed", extra={"action": "request_failed"})
            result = error_reply(500, "Something of ours broke; the log says what.", "server_error")
        body = _body_read_by(request, result.status, result.body)
        client.answer(request, result.status, body, result.content_type, result.extra_headers)

    def admit(self, request: HttpRequest) -> AdmittedRequest | Refusal:
        """Which handler, and may they? Asked before the body is read."""
        path = request.path.partition(b"?")[0].decode("latin-1")
        method = request.method.decode("latin-1")
        found = self._routes.find(method, path)
        if isinstance(found, NoRoute):
            return _as_read_by(request, _no_route(method, found.allowed))
        access, handler = found.endpoint.access, found.endpoint.handler
        if (denied := self._check_credentials(access, request)) is not None:
            return _as_read_by(request, denied)
        owner = self._callbacks.key_owner(request.headers) or ""
        admin_request = AdminRequest(request, owner, next(iter(found.parameters.values()), ""))
        if access in {"client", "admin"}:
            budget_owner = owner if access == "client" else (access,)
            return AdmittedRequest(
                self._body_bytes, keyed=True, call=(handler, admin_request), owner=budget_owner
            )
        return AdmittedRequest(_MAX_FORWARDED_BYTES, keyed=False, call=(handler, admin_request))

    async def _call_handler(self, handler: RouteHandler, admin_request: AdminRequest) -> HttpReply:
        try:
            return await handler(admin_request)
        except Rejected as error:
            self._callbacks.count_refusal(error.reason)
            return error_reply(
                STATUS_BY_REASON.get(error.reason, 422), error.detail, "invalid_request_error"
            )
        except Misuse as error:
            self._callbacks.count_refusal("unknown")
            return error_reply(404, str(error), "not_found_error")
        except Transient as error:
            return error_reply(503, str(error), "server_error", b"retry-after: 1\r\n")

    def _check_credentials(self, access: Access, request: HttpRequest) -> Refusal | None:
        key = request.headers.get(b"authorization")
        if access == "client" and self._callbacks.key_owner(request.headers) is None:
            self._callbacks.count_refusal("key")
            message = "Send a key of this gateway: `Authorization: Bearer …` or `x-api-key: …`."
            return _error_refusal(401, message, "authentication_error", _WWW_AUTHENTICATE)
        if access == "admin" and not token_matches(bearer_token(key), self._token):
            self._callbacks.count_refusal("admin_token")
            if not self._token:
                message = "No admin token is set, so nobody is admin."
                return _error_refusal(403, message, "permission_error")
            message = "Send the admin's token: `Authorization: Bearer …`."
            return _error_refusal(401, message, "authentication_error", _WWW_AUTHENTICATE)
        return None

    # --- everybody -------------------------------------------------------------------------------

    async def _no_such_path(self, _: AdminRequest) -> HttpReply:
        raise Misuse(_NO_PATH)

    async def _health(self, _: AdminRequest) -> HttpReply:
        return json_reply(200, self._callbacks.health())

    async def _metrics(self, _: AdminRequest) -> HttpReply:
        return HttpReply(
            200, self._callbacks.metrics(), b"text/plain; version=0.0.4; charset=utf-8"
        )

    # --- clients ---------------------------------------------------------------------------------

    async def _list_models(self, admin_request: AdminRequest) -> HttpReply:
        anthropic = _is_anthropic(admin_request)
        return json_reply(200, model_list(self._callbacks.models(), anthropic=anthropic))

    async def _get_model(self, admin_request: AdminRequest) -> HttpReply:
        name = admin_request.path_parameter
        if name not in {*self._callbacks.models(), ALIAS}:
            message = f"No model here is called {name[:200]!r}; GET /v1/models lists them."
            raise Misuse(f"{message} A request may name any: whoever answers now is meant then.")
        return json_reply(200, model_entry(name, anthropic=_is_anthropic(admin_request)))

    async def _close_episode(self, admin_request: AdminRequest) -> HttpReply:
        return await self._callbacks.close_episode(
            admin_request.owner,
            parse_episode_id(admin_request.path_parameter),
            admin_request.request.body,
        )

    async def _record_feedback(self, admin_request: AdminRequest) -> HttpReply:
        request = admin_request.request
        user = request.headers.get(b"x-user-id")
        return await self._callbacks.record_feedback(admin_request.owner, request.body, user)

    # --- the admin -------------------------------------------------------------------------------

    async def _list_registered_models(self, _: AdminRequest) -> HttpReply:
        return json_reply(200, {"models": await self._require_admin_client().models()})

    async def _register_model(self, admin_request: AdminRequest) -> HttpReply:
        new = _decode_body(admin_request.request.body, RegisterModelBody)
        origin = ModelOrigin(new.checkpoint_path, new.backend, new.name, new.probe)
        base, path = resolve_base_and_path(origin, new.model_id, new.base_model)
        return json_reply(
            201, await self._require_admin_client().register_model(new.model_id, base, path)
        )

    async def _get_traffic(self, _: AdminRequest) -> HttpReply:
        return json_reply(200, self._callbacks.traffic())

    async def _set_traffic(self, admin_request: AdminRequest) -> HttpReply:
        new = _decode_body(admin_request.request.body, SetTrafficBody)
        return json_reply(
            200,
            await self._require_admin_client().set_traffic(new.model_id, new.traffic_percentage),
        )

    async def _model_metrics(self, admin_request: AdminRequest) -> HttpReply:
        return json_reply(
            200, await self._require_admin_client().model_metrics(admin_request.path_parameter)
        )

    def _require_admin_client(self) -> AdminClient:
        if self._admin_client is None:
            raise Transient(
                "No controller runs beside this gateway, so nothing can be changed here."
            )
        return self._admin_client

    # --- the training service --------------------------------------------------------------------

    async def _forward_to_training(self, admin_request: AdminRequest) -> HttpReply:
        if self._training_pool is None or self._training_url is None:
            raise Misuse("The gateway does not know where the training service is.")
        request = admin_request.request
        lines = [
            request.method + b" " + request.path + b" HTTP/1.1",
            b"host: " + self._training_url.netloc.encode(),
        ]
        given = [name for name in (b"authorization", b"content-type") if name in request.headers]
        lines += [name + b": " + request.headers[name] for name in given]
        lines.append(b"content-length: %d" % len(request.body))
        whole = b"\r\n".join([*lines, b"", request.body])
        response = await ProxiedRequest().run(self._training_pool, whole, _FORWARD_SECONDS)
        return HttpReply(response.status, response.body, response.content_type)


def _is_anthropic(admin_request: AdminRequest) -> bool:
    return _ANTHROPIC in admin_request.request.headers


def _body_read_by(request: HttpRequest, status: int, body: bytes) -> bytes:
    """An error in Anthropic's shape for its clients, whatever the path; for all others as it is."""
    if status < HTTPStatus.BAD_REQUEST or _ANTHROPIC not in request.headers:
        return body
    told = read_error(body)
    return anthropic_error_body(told.message, told.type or "server_error") if told.message else body


def _as_read_by(request: HttpRequest, refusal: Refusal) -> Refusal:
    return replace(refusal, body=_body_read_by(request, refusal.status, refusal.body))


def _no_route(method: str, allowed: str) -> Refusal:
    if not allowed:
        return _error_refusal(404, _NO_PATH, "not_found_error")
    extra = f"allow: {allowed}\r\n".encode()
    if method == "OPTIONS":
        return Refusal(204, b"", extra)
    return _error_refusal(405, f"This path takes {allowed}.", "invalid_request_error", extra)


def _decode_body(body: bytes, body_type: type[T]) -> T:
    if len(body) > _MAX_ADMIN_BYTES:
        raise Rejected(Reason.TOO_LARGE, f"The body may have {_MAX_ADMIN_BYTES} bytes.")
    try:
        return from_json(body, body_type)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, schema_error_sentence(error, body_type)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise unreadable_body(error) from None
