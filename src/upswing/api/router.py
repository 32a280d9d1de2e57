"""Who is asking, for what, and may they? Find the route, check the key, and only then read the body.

A route is a value. From the same values come the checks of every request and the OpenAPI document,
so the document cannot say one thing while the server does another.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import msgspec

from upswing.errors import Denied, Forbidden, Misuse, Reason, Rejected, Transient
from upswing.infra.http1.routing import NoRoute, RouteTable
from upswing.infra.http1.wire import STATUS_BY_REASON
from upswing.infra.sql.keys import Keys

log = logging.getLogger(__name__)

JSON = "application/json"
LINES = "application/x-ndjson"
FORM = "application/x-www-form-urlencoded"
"""What `curl -d` says of any body: it is read as JSON. A form that a browser posts from a foreign page carries no key."""
_ASSISTANT_KEY = b"x-assistant-key"


def status_of(reason: Reason) -> int:
    return STATUS_BY_REASON.get(reason, 422)


class Problem(msgspec.Struct, frozen=True):
    """Why a request was not carried out."""

    error: str
    """A fixed word."""
    detail: str
    """One sentence with what to do."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Whose key it is."""

    key_id: str
    scope: str
    many: bool = False
    """It may speak for many users."""
    asked_by: str = ""
    """The key of the assistant whose request a person confirmed with this one."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler gets to see."""

    params: dict[str, str]
    query: dict[str, str]
    body: bytes
    content_type: str
    principal: Principal | None
    user_agent: str = ""
    last_event_id: str = ""
    """Up to which event a stream was read before."""
    host: str = ""
    """The name and port that the client asked for."""
    content_encoding: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamingAnswer:
    """An answer that goes on for as long as somebody reads it."""

    pieces: AsyncGenerator[bytes, None]
    close: Callable[[], None]
    """Called when nobody reads any more, also where nobody has begun to."""
    content_type: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


def answer(status: int, value: Any) -> Response:
    return Response(status, msgspec.json.encode(value))


def problem(status: int, error: str, detail: str) -> Response:
    headers = ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
    return Response(status, msgspec.json.encode(Problem(error, detail)), headers=headers)


Handler = Callable[[Request], Awaitable[Response | StreamingAnswer]]
ErrorForm = Callable[[Response, str], Response]
"""A refusal in our form, and the content type of what is refused → the refusal as another standard wants it."""


def problem_form(refusal: Response, _content_type: str) -> Response:
    return refusal


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint: who may call it, what it takes, what it answers."""

    method: str
    path: str
    summary: str
    handler: Handler
    scopes: frozenset[str]
    """Empty: open to everybody who can reach the port."""
    takes: dict[str, Any] = field(default_factory=dict)
    """Content type → type or JSON Schema of the body; empty: no body."""
    answers: dict[int, tuple[str, Any]] = field(default_factory=dict)
    """Status → what it means and the type (or schema, or content type) of the answer."""
    params: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The JSON Schema of each path parameter."""
    query: dict[str, dict[str, Any]] = field(default_factory=dict)
    max_body: int = 1024 * 1024
    streams: bool = False
    """Its answer goes on."""
    error_form: ErrorForm = problem_form


@dataclass(frozen=True, slots=True)
class AdmittedCall:
    """A request that may be made, without its body."""

    route: Route
    params: dict[str, str]
    query: dict[str, str]
    content_type: str
    principal: Principal | None
    user_agent: str
    last_event_id: str = ""
    host: str = ""
    content_encoding: str = ""
    key: str = field(default="", repr=False)

    def with_body(self, body: bytes) -> Request:
        return Request(
            self.params,
            self.query,
            body,
            self.content_type,
            self.principal,
            self.user_agent,
            self.last_event_id,
            self.host,
            self.content_encoding,
        )


class Router:
    """The routes, and who may call them."""

    def __init__(self, routes: Sequence[Route], keys: Keys | None) -> None:
        """`keys` is None where every route is open."""
        self.routes = tuple(routes)
        self.open = not any(route.scopes for route in routes)
        """Nobody is asked for a key here."""
        self._keys = keys
        self._table = RouteTable((route.method, route.path, route) for route in routes)

    def admit(
        self, method: str, target: str, headers: Mapping[bytes, bytes]
    ) -> AdmittedCall | Response:
        """What is to be done with the body, or an answer for which none is needed."""
        path, _, query = target.partition("?")
        found = self._table.find(method, path)
        if isinstance(found, NoRoute):
            return _no_route(method, found.allowed)
        route = found.endpoint
        kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if kind == FORM:
            kind = JSON
        try:
            principal = self._authorise(route, headers)
        except Forbidden as error:
            return route.error_form(problem(403, "forbidden", str(error)), kind)
        except Denied as error:
            return route.error_form(problem(401, "unauthorized", str(error)), kind)
        if route.takes and kind and kind not in route.takes:
            refusal = problem(415, "media_type", f"Send {' or '.join(route.takes)}.")
            return route.error_form(refusal, kind)
        asked = _parse_query(query)
        if isinstance(asked, Response):
            return route.error_form(asked, kind)
        return AdmittedCall(
            route,
            dict(found.parameters),
            asked,
            kind or JSON,
            principal,
            headers.get(b"user-agent", b"").decode("latin-1"),
            headers.get(b"last-event-id", b"").decode("latin-1")[:200],
            headers.get(b"host", b"").decode("latin-1"),
            headers.get(b"content-encoding", b"").decode("latin-1").strip().lower(),
            _key_in(headers),
        )

    def still_admits(self, call: AdmittedCall) -> bool:
        """Whether it may go on: its key may have been revoked while it is answered."""
        try:
            self._check_key(call.route, call.key)
        except Denied:
            return False
        return True

    async def answer(self, call: AdmittedCall, body: bytes) -> Response | StreamingAnswer:
        try:
            return await _call_handler(call.route, call.with_body(body))
        except Exception:
            log.exception("request failed", extra={"action": "request_failed"})
            refusal = problem(500, "internal", "Something of ours broke; the log says what.")
            return call.route.error_form(refusal, call.content_type)

    def _authorise(self, route: Route, headers: Mapping[bytes, bytes]) -> Principal | None:
        found = self._check_key(route, _key_in(headers))
        if found is None or _ASSISTANT_KEY not in headers:
            return found
        return replace(found, asked_by=self._assistant_behind(headers))

    def _check_key(self, route: Route, key: str) -> Principal | None:
        if not route.scopes:
            return None
        if not key:
            raise Denied(
                "Send a key: `Authorization: Bearer …`; `upswing info --show-secrets` shows one."
            )
        found = self._keys.find(key) if self._keys else None
        if found is None:
            raise Denied("This key is not known; `upswing keys add` makes one.")
        if found.revoked is not None:
            raise Denied(
                "This key was revoked. An operator makes another with `upswing keys add`; where it was the operator's "
                "own, the next start of the loop makes one, or takes AGENTGYM_RL_API_KEY."
            )
        if found.scope not in route.scopes:
            raise Forbidden(
                f"This needs a key with scope {' or '.join(sorted(route.scopes))}, not {found.scope}."
            )
        return Principal(found.key_id, found.scope, found.many)

    def _assistant_behind(self, headers: Mapping[bytes, bytes]) -> str:
        """Who asked for what is done with another key: it shows its own, so that nobody is named who did not."""
        key = headers[_ASSISTANT_KEY].decode("latin-1").strip()
        found = self._keys.find(key) if self._keys else None
        if found is None or found.revoked is not None:
            raise Denied(
                "The assistant's key is not known, or was revoked: nothing is done for it."
            )
        return found.key_id


def _key_in(headers: Mapping[bytes, bytes]) -> str:
    """The key of a request; empty: it has none."""
    kind, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return key.strip() if kind.lower() == "bearer" else ""


async def _call_handler(route: Route, request: Request) -> Response | StreamingAnswer:
    try:
        return await route.handler(request)
    except Rejected as error:
        refusal = problem(status_of(error.reason), error.reason, error.detail)
    except Misuse as error:
        refusal = problem(404, "not_found", str(error))
    except Transient as error:
        unavailable = problem(503, "unavailable", str(error))
        refusal = Response(503, unavailable.body, headers=((b"retry-after", b"1"),))
    return route.error_form(refusal, request.content_type)


def _no_route(method: str, allowed: str) -> Response:
    if not allowed:
        return problem(404, "not_found", "There is no such path; GET /openapi.json lists them.")
    headers = ((b"allow", allowed.encode()),)
    if method == "OPTIONS":
        return Response(204, b"", headers=headers)
    refusal = problem(405, "method_not_allowed", f"This path takes {allowed}.")
    return Response(405, refusal.body, headers=headers)


def _parse_query(raw: str) -> dict[str, str] | Response:
    """Name → value; a refusal where a name is said twice, since nobody knows which of them was meant."""
    found: dict[str, str] = {}
    for item in filter(None, raw.split("&")):
        key, _, value = item.partition("=")
        if (name := unquote(key)) in found:
            return problem(422, Reason.SCHEMA, f"`{name[:50]}` is said twice: say it once.")
        found[name] = unquote(value.replace("+", " "))
    return found
