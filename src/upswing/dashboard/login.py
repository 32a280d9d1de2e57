"""How does somebody log in? With a key of the loop, on a page of its own that runs no script.

The key is checked by the loop, stays in this process, and is never sent to the browser again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable
from html import escape
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from upswing.dashboard.client import LoopClients
from upswing.dashboard.core.sessions import LoginAttempts, Session, SessionTable
from upswing.dashboard.gate import SESSION, CookieJar
from upswing.errors import Denied, UpswingError

log = logging.getLogger(__name__)
_MOST_BYTES = 8192
_MAY_READ = {"reader", "operator", "assistant"}
_LOGO = (
    '<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9"/>'
    '<path d="M7 20.5c3.2 0 4.6-1.8 6-4.2 1.9-3.3 4-5.8 11-5.8"/><path d="M20.6 7.2 24.4 10.5 21 14.1"/></svg>'
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in · Upswing</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="/static/favicon.svg" type="image/svg+xml"><link rel="stylesheet" href="/static/upswing.css"></head>
<body class="login"><main><form method="post" action="/login" class="login-card">
{logo}<h1>Upswing</h1><p class="quiet">Agents get better while they work.</p>
<input type="hidden" name="next" value="{next}">
<label for="key">Key</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus spellcheck="false"
 maxlength="500" aria-describedby="help problem"{invalid}>
<p id="problem" class="problem" role="alert">{problem}</p>
<button type="submit" class="button primary">Log in</button>
<p id="help" class="quiet small">On the loop’s machine, <code>upswing info --show-secrets</code> shows the operator’s key.
 <code>upswing keys add NAME --scope reader</code> makes one that only reads.</p>
</form></main></body></html>
"""


class LoginRoutes:
    """The handlers, and who is logged in."""

    def __init__(
        self,
        clients: LoopClients,
        sessions: SessionTable,
        attempts: LoginAttempts,
        cookies: CookieJar,
        *,
        clock: Callable[[], float],
        on_logout: Callable[[Session], None],
    ) -> None:
        self._clients, self._sessions, self._attempts = clients, sessions, attempts
        self._cookies, self._clock, self._on_logout = cookies, clock, on_logout
        self._one_at_a_time = asyncio.Lock()

    def routes(self) -> list[Route]:
        return [
            Route("/login", self.show, methods=["GET"]),
            Route("/login", self.log_in, methods=["POST"]),
            Route("/logout", self.log_out, methods=["POST"]),
            Route("/health", self.health, methods=["GET"]),
        ]

    async def health(self, _: Request) -> Response:
        """For whoever keeps the process running; it says nothing of the loop."""
        return PlainTextResponse("ok\n")

    async def show(self, request: Request) -> Response:
        wanted = _own_path(request.query_params.get("next", "/"))
        if request.scope.get(SESSION) is not None:
            return RedirectResponse(wanted, 303)
        return _page(wanted)

    async def log_in(self, request: Request) -> Response:
        form = await _read_form(request)
        wanted, key = _own_path(form.get("next", "/")), form.get("key", "").strip()
        address = request.client.host if request.client else ""
        async with self._one_at_a_time:
            if wait := self._attempts.seconds_until_next(address, self._clock()):
                seconds = math.ceil(wait)
                sentence = f"Too many wrong keys came from here. Try again in {seconds} seconds."
                return _page(wanted, sentence, 429, {"Retry-After": str(seconds)})
            return await self._try_key(key, wanted, address)

    async def _try_key(self, key: str, wanted: str, address: str) -> Response:
        if not key.isascii() or not key.isprintable() or not key:
            self._attempts.fail(address, self._clock())
            return _page(
                wanted, "This is no key: a key has letters, digits, dashes and underscores.", 401
            )
        try:
            holder = await self._clients.fresh(key).identify()
        except Denied:
            self._attempts.fail(address, self._clock())
            log.warning("a wrong key was tried at the page", extra={"action": "login_refused"})
            return _page(wanted, "The loop does not know this key, or it was revoked.", 401)
        except UpswingError as error:
            return _page(wanted, f"The key could not be checked. {error}", 503)
        if holder.scope not in _MAY_READ:
            sentence = f"This is a key of scope {holder.scope}: it may record, not read. Use one of a reader or operator."
            return _page(wanted, sentence, 403)
        token = secrets.token_urlsafe(32)
        self._sessions.open(token, key, holder, self._clock())
        log.info("key %s logged in at the page", holder.key_id, extra={"action": "login"})
        return RedirectResponse(wanted, 303, {"Set-Cookie": self._cookies.header(token)})

    async def log_out(self, request: Request) -> Response:
        token = self._cookies.token(dict(request.scope["headers"]))
        if token and (session := self._sessions.close(token)):
            self._on_logout(session)
        return RedirectResponse("/login", 303, {"Set-Cookie": self._cookies.header("")})


def _page(
    wanted: str, problem: str = "", status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    invalid = ' aria-invalid="true"' if problem else ""
    text = _PAGE.format(logo=_LOGO, next=escape(wanted), problem=escape(problem), invalid=invalid)
    return HTMLResponse(text, status, headers)


def _own_path(text: str) -> str:
    r"""Where to go after the login: a path of ours, nothing that leads elsewhere.

    >>> [_own_path(text) for text in ("/models?a=1", "//evil.example", "https://evil.example", "/\\evil", "/a\nb")]
    ['/models?a=1', '/', '/', '/', '/']
    """
    elsewhere = text.startswith(("//", "/\\")) or not text.startswith("/")
    return "/" if elsewhere or not text.isprintable() or len(text) > 2000 else text


async def _read_form(request: Request) -> dict[str, str]:
    """The fields of a small form; what is larger is cut off, and then no key."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            return {}
    try:
        parsed = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
    except ValueError:  # more fields than a form of ours has
        return {}
    return {name: values[0] for name, values in parsed.items()}
