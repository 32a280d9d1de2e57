"""Who is asking, for what, and may they? Find the route, check the key, and only then read the body.

A route is a value. From the same values come the checks of every request and the OpenAPI document,
so the document cannot say one thing while the server does another.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from upswing.errors import Denied, Misuse, Reason, Rejected, Transient

log = logging.getLogger(__name__)

JSON = "application/json"
LINES = "application/x-ndjson"
STATUS_OF = {
    Reason.MALFORMED: 400,
    Reason.NOT_A_NUMBER: 400,
    Reason.TOO_DEEP: 400,
    Reason.TOO_LARGE: 413,
    Reason.CONFLICT: 409,
    Reason.NOT_YOURS: 403,
}
"""The HTTP status of each reason; the others are 422."""


def status_of(reason: Reason) -> int:
    return STATUS_OF.get(reason, 422)


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


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler gets to see."""

    params: dict[str, str]
    query: dict[str, str]
    body: bytes
    content_type: str
    principal: Principal | None
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()


def answer(status: int, value: Any) -> Response:
    return Response(status, msgspec.json.encode(value))


def problem(status: int, error: str, detail: str) -> Response:
    headers = ((b"www-authenticate", b"Bearer"),) if status == 401 else ()
    return Response(status, msgspec.json.encode(Problem(error, detail)), headers=headers)


Handler = Callable[[Request], Awaitable[Response]]


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


class FindsKeys(Protocol):
    def find(self, key: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may be made, without its body."""

    route: Route
    params: dict[str, str]
    query: dict[str, str]
    content_type: str
    principal: Principal | None
    user_agent: str

    def with_body(self, body: bytes) -> Request:
        return Request(
            self.params, self.query, body, self.content_type, self.principal, self.user_agent
        )


class App:
    """The routes, and who may call them."""

    def __init__(self, routes: Sequence[Route], keys: FindsKeys) -> None:
        self.routes = tuple(routes)
        self.open = not any(route.scopes for route in routes)
        """Nobody is asked for a key here."""
        self._keys = keys
        self._plain = {route.path: {} for route in routes if "{" not in route.path}  # type: dict[str, dict[str, Route]]
        self._patterns: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
        for route in routes:
            if "{" in route.path:
                pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path) + r"\Z")
                self._patterns.setdefault(route.path, (pattern, {}))[1][route.method] = route
            else:
                self._plain[route.path][route.method] = route

    def admit(self, method: str, target: str, headers: Mapping[bytes, bytes]) -> Call | Response:
        """What is to be done with the body, or an answer for which none is needed."""
        path, _, query = target.partition("?")
        methods, params = self._match(path)
        if methods is None:
            return problem(404, "not_found", "There is no such path; GET /openapi.json lists them.")
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            return _not_taken(method, methods)
        try:
            principal = self._authorise(route, headers)
        except Denied as error:
            status = 403 if "scope" in str(error) else 401
            return problem(status, "forbidden" if status == 403 else "unauthorized", str(error))
        kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if route.takes and kind and kind not in route.takes:
            return problem(415, "media_type", f"Send {' or '.join(route.takes)}.")
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        return Call(route, params, _query(query), kind or JSON, principal, agent)

    async def answer(self, call: Call, body: bytes) -> Response:
        try:
            return await _handled(call.route, call.with_body(body))
        except Exception:
            log.exception("request failed", extra={"action": "request_failed"})
            return problem(500, "internal", "Something of ours broke; the log says what.")

    def _match(self, path: str) -> tuple[dict[str, Route] | None, dict[str, str]]:
        if (methods := self._plain.get(unquote(path))) is not None:
            return methods, {}
        # Matched before decoding, so that an encoded slash is part of a name and not of the path.
        for pattern, methods in self._patterns.values():
            if found := pattern.match(path):
                return methods, {name: unquote(value) for name, value in found.groupdict().items()}
        return None, {}

    def _authorise(self, route: Route, headers: Mapping[bytes, bytes]) -> Principal | None:
        if not route.scopes:
            return None
        kind, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer" or not key:
            raise Denied(
                "Send a key: `Authorization: Bearer …`; `upswing info --show-secrets` shows one."
            )
        found = self._keys.find(key.strip())
        if found is None:
            raise Denied("This key is not known; `upswing keys add` makes one.")
        if found.revoked is not None:
            raise Denied(
                "This key was revoked. An operator makes another with `upswing keys add`; where it was the operator's "
                "own, the next start of the loop makes one, or takes AGENTGYM_RL_API_KEY."
            )
        if found.scope not in route.scopes:
            raise Denied(
                f"This needs a key with scope {' or '.join(sorted(route.scopes))}, not {found.scope}."
            )
        return Principal(found.key_id, found.scope, getattr(found, "many", False))


async def _handled(route: Route, request: Request) -> Response:
    try:
        return await route.handler(request)
    except Rejected as error:
        return problem(status_of(error.reason), error.reason, error.detail)
    except Misuse as error:
        return problem(404, "not_found", str(error))
    except Transient as error:
        refusal = problem(503, "unavailable", str(error))
        return Response(503, refusal.body, headers=((b"retry-after", b"1"),))


def _not_taken(method: str, methods: Mapping[str, Route]) -> Response:
    heads = {"HEAD"} if "GET" in methods else set()
    allowed = ", ".join(sorted({*methods, *heads, "OPTIONS"}))
    headers = ((b"allow", allowed.encode()),)
    if method == "OPTIONS":
        return Response(204, b"", headers=headers)
    refusal = problem(405, "method_not_allowed", f"This path takes {allowed}.")
    return Response(405, refusal.body, headers=headers)


def _query(raw: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in raw.split("&") if item)
    return {unquote(key): unquote(value.replace("+", " ")) for key, _, value in pairs}
