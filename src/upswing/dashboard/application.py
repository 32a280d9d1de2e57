"""How do the parts become the page's application? Gate, login, frame, and the pages in it.

request ──▶ Gate ──▶ /login, /logout, /health, /static
              └────▶ nicegui: one page with its frame; the pages inside it change without loading anew
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from nicegui import Client, app, ui
from nicegui.elements.sub_pages import SubPages
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from upswing.config import DashboardConfig
from upswing.dashboard.client import LoopClients
from upswing.dashboard.core.origin import OwnHosts
from upswing.dashboard.core.sessions import (
    LoginAttempts,
    LoginLimits,
    Session,
    SessionTable,
)
from upswing.dashboard.gate import SESSION, CookieJar, Gate, ScriptNonces
from upswing.dashboard.live import LiveFeeds
from upswing.dashboard.login import LoginRoutes
from upswing.dashboard.pages import ROUTES
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, button
from upswing.dashboard.widgets.frame import Frame, page_head

_STATIC = Path(__file__).parent / "static"
_HEAD = (
    '<link rel="icon" href="/static/favicon.svg" type="image/svg+xml">'
    '<link rel="stylesheet" href="/static/upswing.css"><script src="/static/theme.js"></script>'
)
_TICK_SECONDS = 1.0


class OwnPages(SubPages):
    """The pages, and what is said where there is none."""

    def _render_404(self) -> None:
        with page_head("There is no such page"):
            button("Overview", lambda: ui.navigate.to("/"), icon="arrow_back")
        Tag(
            "p",
            "The address is none of this page’s; the way to all of them is on the left.",
            "soft",
        )


def make_application(
    url: str, hosts: OwnHosts, port: int, config: DashboardConfig, *, clock: Callable[[], float]
) -> Gate:
    """The whole page for the loop at `url`."""
    clients = LoopClients(url, clock=clock)
    feeds = LiveFeeds(clients)
    sessions = SessionTable(LoginLimits(seconds=config.session_hours * 3600))
    cookies = CookieJar(f"upswing_session_{port}", secure=config.https)
    login = LoginRoutes(
        clients, sessions, LoginAttempts(), cookies, clock=clock, on_logout=_leave_pages
    )
    _serve_pages(clients, feeds, sessions, clock)
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for route in login.routes():
        outer.router.routes.append(route)
    outer.router.routes.append(Route("/session", _session, methods=["GET"]))
    outer.router.routes.append(Route("/favicon.ico", _icon, methods=["GET"]))
    outer.router.routes.append(Mount("/static", StaticFiles(directory=_STATIC)))
    app.add_middleware(ScriptNonces)
    ui.run_with(
        outer,
        title="Upswing",
        favicon=_STATIC / "favicon.svg",
        dark=None,
        language="en-US",
        tailwind=False,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=20.0,
    )
    return Gate(outer, sessions, hosts, cookies, clock=clock)


async def _session(_: Request) -> Response:
    """For a page that cannot connect: is it still logged in? Whoever is not does not get here."""
    return PlainTextResponse("ok\n")


async def _icon(_: Request) -> Response:
    return FileResponse(_STATIC / "favicon.svg")


def _serve_pages(
    clients: LoopClients, feeds: LiveFeeds, sessions: SessionTable, clock: Callable[[], float]
) -> None:
    ui.add_head_html(_HEAD, shared=True)

    def build(client: Client) -> None:
        session = client.request.scope[SESSION]
        loop = clients.of(session.key).while_open(lambda: sessions.is_open(session, clock()))
        page = PageContext(session, loop, feeds.of(session.key))
        client.storage["session"] = session
        theme = client.request.cookies.get("upswing_theme", "auto")
        theme = theme if theme in {"light", "dark"} else "auto"
        _build_page(client, page, theme, lambda: sessions.use(session, clock()))

    for path in ("/", "/{rest:path}"):
        ui.page(path)(build)


def _build_page(
    client: Client, page: PageContext, theme: str, is_logged_in: Callable[[], bool]
) -> None:
    """`is_logged_in` is asked once a second: an open page counts as use, until the login is over."""
    frame = Frame(page, theme)
    router = client.sub_pages_router
    router.on_path_changed(frame.mark)
    frame.mark(router.current_path)
    with frame.content:
        OwnPages(dict(ROUTES), data={"page": page})

    async def tick() -> None:
        if not is_logged_in():
            client.open("/login")
            return
        frame.say_live()
        await frame.count_alerts()
        await page.look()

    client.on_connect(page.feed.open_page)
    client.on_disconnect(page.feed.close_page)
    client.on_delete(page.leave)
    ui.timer(_TICK_SECONDS, tick)


def _leave_pages(session: Session) -> None:
    """Whoever logs out in one tab is logged out in all."""
    for client in list(Client.instances.values()):
        if client.storage.get("session") is session and client.has_socket_connection:
            client.open("/login")
