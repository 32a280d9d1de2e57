"""Who gets past the front of the page? Every request and socket goes through here first.

    Host ours? ──▶ Origin ours, where something may change? ──▶ logged in, or a public path? ──▶ the page
      │ no: 421         │ no: 403                                  │ no: to the login, or 401

Whatever is answered carries the headers that keep a page to itself: what may run in it (CSP, with a nonce for the
page's own scripts), who may frame it (nobody), who may read it (nobody else).
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from upswing.dashboard.core.origin import OwnHosts, may_change
from upswing.dashboard.core.sessions import Session, SessionTable

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION, NONCE = "upswing.session", "upswing.nonce"
"""Where a request's scope has its session and the nonce of its scripts."""
PUBLIC, PUBLIC_FOLDER = frozenset({"/login", "/health", "/favicon.ico"}), "/static/"
"""What somebody may see who is not logged in: how to do so."""
_SOCKET = "/_nicegui_ws/"
_POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""`unsafe-eval`: Vue compiles the framework's templates in the browser. No text of a trajectory is ever a template,
and a script that got into the page could not run without the nonce."""
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


@dataclass(frozen=True, slots=True)
class CookieJar:
    """What the session's cookie is called and how it is set."""

    name: str
    """Cookies know no ports: each page of a machine needs a name of its own."""
    secure: bool = False
    """Only over https; then browsers send it nowhere else."""

    def token(self, headers: MutableMapping[bytes, bytes]) -> str | None:
        """Whatever else is there: cookies know no ports, so those of other pages come along, in any shape."""
        said = headers.get(b"cookie", b"").decode("latin-1")
        pairs = (each.partition("=") for each in said.split(";"))
        return next((value.strip() for name, _, value in pairs if name.strip() == self.name), None)

    def header(self, token: str) -> str:
        """No `Max-Age`: it ends with the browser, and before that when the session does."""
        secure = "; Secure" if self.secure else ""
        gone = "" if token else "; Max-Age=0"
        return f"{self.name}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{gone}"


class Gate:
    """The outermost part of the page's application."""

    def __init__(
        self,
        app: App,
        sessions: SessionTable,
        hosts: OwnHosts,
        cookies: CookieJar,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._app, self._sessions, self._hosts = app, sessions, hosts
        self._cookies, self._clock = cookies, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        scope[NONCE] = secrets.token_urlsafe(16)
        if (refusal := self._refusal(scope, headers)) is not None:
            await _refuse(scope, send, *refusal)
            return
        session = self._session(headers)
        path = scope["path"]
        if session is None and path not in PUBLIC and not path.startswith(PUBLIC_FOLDER):
            await _ask_to_log_in(scope, send)
            return
        scope[SESSION] = session
        await self._pass_on(scope, receive, _with_headers(scope, send))

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The framework reports an error when a browser leaves before its answer: that is none."""
        gone = False

        async def receive_watched() -> Message:
            nonlocal gone
            message = await receive()
            gone = gone or message["type"] == "http.disconnect"
            return message

        try:
            await self._app(scope, receive_watched, send)
        except RuntimeError:
            if not gone:
                raise

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._hosts.includes(host):
            sentence = (
                "This page does not answer under this name: add it to `hosts` in [dashboard]."
            )
            return 421, sentence
        origin = headers.get(b"origin", b"").decode("latin-1")
        socket = scope["type"] == "websocket" or scope["path"].startswith(_SOCKET)
        polled = socket and scope.get("method") == "GET" and not origin
        if polled and headers.get(b"sec-fetch-site") == b"same-origin":
            return None  # a browser that polls its own page names no origin
        if not may_change(scope.get("method", "GET"), host, origin, socket=socket):
            return 403, "This request does not come from the page itself."
        return None

    def _session(self, headers: dict[bytes, bytes]) -> Session | None:
        token = self._cookies.token(headers)
        return self._sessions.find(token, self._clock()) if token else None


async def _refuse(scope: Scope, send: Send, status: int, sentence: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": sentence[:120]})
        return
    plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    await _with_headers(scope, send)(
        {"type": "http.response.start", "status": status, "headers": plain}
    )
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})


async def _ask_to_log_in(scope: Scope, send: Send) -> None:
    """A person is led to the login; a script is told that it is not logged in."""
    accepts = dict(scope["headers"]).get(b"accept", b"")
    if scope["type"] == "websocket" or b"text/html" not in accepts:
        await _refuse(scope, send, 401, "Log in first.")
        return
    query = scope["query_string"].decode("latin-1")
    wanted = scope["path"] + (f"?{query}" if query else "")
    target = "/login" if wanted == "/" else f"/login?next={quote(wanted, safe='/')}"
    headers = [(b"location", target.encode("latin-1", "replace")), (b"cache-control", b"no-store")]
    await _with_headers(scope, send)(
        {"type": "http.response.start", "status": 303, "headers": headers}
    )
    await send({"type": "http.response.body", "body": b""})


def _with_headers(scope: Scope, send: Send) -> Send:
    policy = _POLICY.format(nonce=scope[NONCE]).encode()

    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), *_HEADERS, (b"content-security-policy", policy)]
            names = {name.lower() for name, _ in headers}
            if b"cache-control" not in names:
                headers.append((b"cache-control", b"no-store"))
            message["headers"] = headers
        await send(message)

    return send_guarded


class ScriptNonces:
    """Between the page and its compression: the page's own scripts get the nonce of their request.

    The framework escapes every `<` of what it is told to show, so that each `<script` in a page is the page's own.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        nonce = scope.get(NONCE)
        if scope["type"] != "http" or nonce is None:
            await self._app(scope, receive, send)
            return
        begun: Message | None = None
        body = b""

        async def send_marked(message: Message) -> None:
            nonlocal begun, body
            if message["type"] == "http.response.start":
                begun = message if _is_page(message) else None
            if begun is None:
                await send(message)
                return
            if message["type"] != "http.response.body":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                marked = body.replace(b"<script", f'<script nonce="{nonce}"'.encode())
                headers = [each for each in begun["headers"] if each[0] != b"content-length"]
                begun["headers"] = [*headers, (b"content-length", str(len(marked)).encode())]
                await send(begun)
                await send({"type": "http.response.body", "body": marked})

        await self._app(scope, receive, send_marked)


def _is_page(message: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/html")
        for name, value in message.get("headers", ())
    )
