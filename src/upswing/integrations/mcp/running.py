"""How does the server run? As a child of a user's program, or on a port."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from upswing.errors import Denied, UpswingError
from upswing.integrations.mcp.access import LoopAccess, open_access
from upswing.integrations.mcp.confirmation import ConfirmationCheck
from upswing.integrations.mcp.server import AssistantServer, Context
from upswing.integrations.operations.loop_port import LoopPort

PATH = "/mcp"
_KNOWN_SECONDS = 15.0
"""For which a key that the loop knew is not asked about again: a revoked one is refused that soon."""
_MOST_KEYS = 10_000
_LOOPBACK_HOSTS = ("127.0.0.1:*", "localhost:*", "[::1]:*")
_LOOPBACK_ORIGINS = ("http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where the server listens, and whom it lets ask."""

    host: str = "127.0.0.1"
    port: int = 8102
    hosts: Sequence[str] = ()
    """Names by which clients reach it, beside its own address."""
    origins: Sequence[str] = ()
    """Pages whose scripts may ask it."""
    believe_forms: bool = False
    """Whether a form in a client's program is a person's word."""


async def serve_stdio(data: Path, environment: Mapping[str, str]) -> None:
    """Until standard input ends. The loop is looked for at each request, so it may start later."""

    async def access_of(_: Context) -> LoopAccess:
        return await open_access(data, environment)

    server = AssistantServer(access_of, ConfirmationCheck(time.time), believe_forms=True).build()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_app(data: Path, environment: Mapping[str, str], options: HttpOptions) -> ASGIApp:
    """The server as an ASGI application."""

    async def access_of(context: Context) -> LoopAccess:
        own = await open_access(data, environment)
        key = _bearer(dict(context.request.headers) if context.request is not None else {})
        return LoopAccess(own.url, key, own.operator_key)

    check = ConfirmationCheck(time.time)
    server = AssistantServer(access_of, check, believe_forms=options.believe_forms).build()
    app = server.streamable_http_app(
        streamable_http_path=PATH, host=options.host, transport_security=security_of(options)
    )
    return KeyedApp(app, data, environment)


def security_of(options: HttpOptions) -> TransportSecuritySettings:
    """Which `Host` and `Origin` a request may have: so no page of a stranger's can ask by a rebound name."""
    local = options.host in {"127.0.0.1", "localhost", "::1"}
    own = [f"{options.host}:*"] if options.host not in {"0.0.0.0", "::"} else []  # noqa: S104 - compared, not bound
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*own, *(_LOOPBACK_HOSTS if local else ()), *options.hosts],
        allowed_origins=[*(_LOOPBACK_ORIGINS if local else ()), *options.origins],
    )


class KeyedApp:
    """Lets in whoever sends a key that the loop knows, and passes their requests on."""

    def __init__(self, app: ASGIApp, data: Path, environment: Mapping[str, str]) -> None:
        self._app, self._data, self._environment = app, data, environment
        self._known: dict[bytes, float] = {}
        """Hash of a key → until when it is known."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
            }
            try:
                await self._check(_bearer(headers))
            except Denied as error:
                await _refuse(send, 401, "unauthorized", str(error))
                return
            except UpswingError as error:
                await _refuse(send, 503, "unavailable", str(error))
                return
        await self._app(scope, receive, send)

    async def _check(self, key: str) -> None:
        """`Denied` for a key that may not even read."""
        hashed, now = sha256(key.encode()).digest(), time.monotonic()
        if self._known.get(hashed, 0.0) > now:
            return
        own = await open_access(self._data, self._environment)
        await LoopPort(own.url, key).get("/v1/status")
        if len(self._known) >= _MOST_KEYS:
            self._known.clear()
        self._known[hashed] = now + _KNOWN_SECONDS


def _bearer(headers: Mapping[str, str]) -> str:
    kind, _, key = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not key.strip():
        raise Denied(
            "Send a key of the loop: `Authorization: Bearer …`; `upswing keys add NAME --scope assistant` makes one."
        )
    return key.strip()


async def _refuse(send: Send, status: int, error: str, detail: str) -> None:
    body = json.dumps({"error": error, "detail": detail}).encode()
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
