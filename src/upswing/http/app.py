"""Who is asking, for what, and may they? The ASGI application: find the route, check the key, call.

A route is a value. From the same values come the checks of every request and the OpenAPI document,
so the document cannot say one thing while the server does another.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec

from upswing.errors import Denied, Misuse, Reason, Rejected, Transient

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

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


class App:
    """The ASGI application."""

    def __init__(self, routes: Sequence[Route], keys: FindsKeys) -> None:
        self.routes = tuple(routes)
        self._keys = keys
        self._plain = {route.path: {} for route in routes if "{" not in route.path}  # type: dict[str, dict[str, Route]]
        self._patterns: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
        for route in routes:
            if "{" in route.path:
                pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path) + r"\Z")
                self._patterns.setdefault(route.path, (pattern, {}))[1][route.method] = route
            else:
                self._plain[route.path][route.method] = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await self._respond(scope, receive)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("request failed", extra={"action": "request_failed"})
            response = problem(500, "internal", "Something of ours broke; the log says what.")
        headers = list(response.headers)
        if response.status != 204:  # which has no content, so nothing is said about it
            headers += [
                (b"content-type", response.content_type.encode()),
                (b"content-length", str(len(response.body)).encode()),
            ]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        methods, params = self._match(scope)
        if methods is None:
            return problem(404, "not_found", "There is no such path; GET /openapi.json lists them.")
        route = methods.get(scope["method"])
        if route is None:
            allowed = ", ".join(sorted(methods))
            refusal = problem(405, "method_not_allowed", f"This path takes {allowed}.")
            return Response(405, refusal.body, headers=((b"allow", allowed.encode()),))
        headers = dict(scope["headers"])
        try:
            principal = self._authorise(route, headers)
        except Denied as error:
            status = 403 if "scope" in str(error) else 401
            return problem(status, "forbidden" if status == 403 else "unauthorized", str(error))
        kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if route.takes and kind and kind not in route.takes:
            return problem(415, "media_type", f"Send {' or '.join(route.takes)}.")
        if (body := await _body(receive, headers, route.max_body)) is None:
            return problem(413, Reason.TOO_LARGE, f"The body may have {route.max_body} bytes.")
        query = _query(scope["query_string"])
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        return await _handled(route, Request(params, query, body, kind or JSON, principal, agent))

    def _match(self, scope: Scope) -> tuple[dict[str, Route] | None, dict[str, str]]:
        path = scope["path"]
        if (methods := self._plain.get(path)) is not None:
            return methods, {}
        # Matched before decoding, so that an encoded slash is part of a name and not of the path.
        raw = scope.get("raw_path") or path.encode()
        for pattern, methods in self._patterns.values():
            if found := pattern.match(raw.decode("latin-1").partition("?")[0]):
                return methods, {name: unquote(value) for name, value in found.groupdict().items()}
        return None, {}

    def _authorise(self, route: Route, headers: dict[bytes, bytes]) -> Principal | None:
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
            raise Denied("This key was revoked; ask an operator for another.")
        if found.scope not in route.scopes:
            raise Denied(
                f"This needs a key with scope {' or '.join(sorted(route.scopes))}, not {found.scope}."
            )
        return Principal(found.key_id, found.scope)


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


async def _body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes | None:
    """The whole body, or None when it is larger than `limit`."""
    declared = headers.get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > limit:
        return None
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise asyncio.CancelledError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _query(raw: bytes) -> dict[str, str]:
    pairs = (item.partition("=") for item in raw.decode("latin-1").split("&") if item)
    return {unquote(key): unquote(value.replace("+", " ")) for key, _, value in pairs}
