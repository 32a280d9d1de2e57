"""What surrounds every page? The way to the others, who is logged in, whether the loop is heard, and the theme."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from urllib.parse import urlsplit

from nicegui import ui
from nicegui.element import Element

from upswing.dashboard.answers import ApiAlerts
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, box, button
from upswing.errors import UpswingError

LOGO = (
    ("rect", {"width": 32, "height": 32, "rx": 9}),
    ("path", {"d": "M7 20.5c3.2 0 4.6-1.8 6-4.2 1.9-3.3 4-5.8 11-5.8"}),
    ("path", {"d": "M20.6 7.2 24.4 10.5 21 14.1"}),
)
_THEMES = {
    "auto": ("light", "light_mode"),
    "light": ("dark", "dark_mode"),
    "dark": ("auto", "contrast"),
}
"""Theme → the next one, and the icon that leads there."""


@dataclass(frozen=True, slots=True)
class NavEntry:
    path: str
    text: str
    icon: str
    new_group: bool = False
    also: tuple[str, ...] = ()
    """Other pages that belong to it."""


NAVIGATION = (
    NavEntry("/", "Overview", "insights", also=("/decisions",)),
    NavEntry("/trajectories", "Trajectories", "forum"),
    NavEntry("/models", "Models", "hub", also=("/model", "/compare", "/validations")),
    NavEntry("/rollouts", "Rollouts", "alt_route", also=("/backtest",)),
    NavEntry("/jobs", "Data and jobs", "model_training"),
    NavEntry("/alerts", "Alerts", "notifications_none", new_group=True),
    NavEntry("/reports", "Reports", "summarize"),
    NavEntry("/keys", "Keys", "vpn_key", new_group=True),
    NavEntry("/users", "Users", "people_outline"),
    NavEntry("/settings", "Settings", "tune"),
)


class Frame:
    """The sidebar, the bar on top of narrow screens, and where a page stands."""

    def __init__(self, page: PageContext, theme: str) -> None:
        self._page, self._theme = page, theme
        self._links: dict[str, Tag] = {}
        self._alerts_seen = 0
        Tag("a", "Skip to the content", "skip", href="#content")
        with box("topbar"):
            button("", self._toggle, "plain icon-button", icon="menu", aria_label="Menu")
            self._brand()
            ui.space()
            self._small_live = Tag("span", "", "live")
        with box("side", "nav", aria_label="Pages") as self._side:
            self._brand()
            with box("nav"):
                for entry in NAVIGATION:
                    self._entry(entry)
            self._foot()
        box("scrim").on("click", self._toggle)
        with box("main", "main", id="content", tabindex=-1):
            self.banner = Tag("div", "", "banner", role="status")
            self.banner.set_visibility(False)
            self.content = box()

    def _brand(self) -> None:
        with box("brand", "a", href="/", aria_label="Upswing: overview"):
            with box("logo", "svg", viewBox="0 0 32 32", aria_hidden="true"):
                for tag, attributes in LOGO:
                    Tag(tag, "", **attributes)
            Tag("span", "Upswing")

    def _entry(self, entry: NavEntry) -> None:
        if entry.new_group:
            box(tag="hr")
        with Tag("a", "", href=entry.path) as made:
            ui.icon(entry.icon)
            Tag("span", entry.text)
            if entry.path == "/alerts":
                self._alerts = Tag("span", "", "badge bad count")
                self._alerts.set_visibility(False)
        self._links[entry.path] = made

    def _foot(self) -> None:
        holder = self._page.session.holder
        with box("side-foot"):
            with box("whoami"):
                Tag("div", holder.name, "name", title=holder.name)
                own = "" if holder.key_id == holder.scope else f" {holder.key_id}"
                Tag("div", f"{holder.scope}’s key{own}", "small quiet")
            with box("side-tools"):
                self._live = Tag("span", "", "live", role="status")
                icon = _THEMES[self._theme][1]
                self._theme_button = button(
                    "", self._next_theme, "plain icon-button", icon=icon, aria_label="Light or dark"
                )
                with (
                    box(tag="form", method="post", action="/logout"),
                    Tag(
                        "button",
                        "",
                        "button plain icon-button",
                        type="submit",
                        aria_label="Log out",
                    ),
                ):
                    ui.icon("logout")

    def _toggle(self) -> None:
        self._side.classes(toggle="open")

    def _next_theme(self) -> None:
        self._theme = _THEMES[self._theme][0]
        ui.run_javascript(f"window.upswingTheme('{self._theme}')")
        self._theme_button.clear()
        with self._theme_button:
            ui.icon(_THEMES[self._theme][1])

    def mark(self, path: str) -> None:
        """Another page is shown."""
        place = urlsplit(path).path
        self._side.classes(remove="open")
        for entry in NAVIGATION:
            made = self._links[entry.path]
            here = any(_belongs(place, own) for own in (entry.path, *entry.also))
            made._props["aria-current"] = "page" if here else "false"  # noqa: SLF001
            made.update()

    def say_live(self) -> None:
        """Whether the loop is heard."""
        trouble = self._page.feed.trouble
        text, tone = ("live", "on") if trouble is None else ("waiting for the loop", "off")
        for made in (self._live, self._small_live):
            made.set_text(text)
            made.classes(replace=f"live {tone}")
        lost = trouble is not None and self._page.feed.versions["hello"] > 0
        self.banner.set_visibility(lost)
        if lost:
            self.banner.set_text(f"The loop does not answer; what you see may be old. {trouble}")

    async def count_alerts(self) -> None:
        """How many fire, beside the way to them; asked when one has changed."""
        version = self._page.feed.version(("alert", "hello"))
        if version == self._alerts_seen or not version:
            return
        self._alerts_seen = version
        with contextlib.suppress(UpswingError):  # a loop without alerts, or one that is away
            query: dict[str, str | int | float | None] = {"state": "firing", "limit": 100}
            found = await self._page.loop.get("/v1/alerts", ApiAlerts, query)
            self._alerts.set_text(str(len(found.alerts)))
            self._alerts.set_visibility(bool(found.alerts))


def _belongs(place: str, path: str) -> bool:
    """Whether this address is part of that page.

    >>> _belongs("/jobs/7", "/jobs"), _belongs("/jobs", "/"), _belongs("/", "/")
    (True, False, True)
    """
    return place == path or (path != "/" and place.startswith(f"{path}/"))


def page_head(title: str, lead: str = "") -> Element:
    """The title; whatever is drawn in what this returns stands right of it."""
    ui.page_title(f"{title} · Upswing")
    with box("page-head"):
        with box("grow"):
            made = Tag("h1", title)
            made._props["tabindex"] = -1  # noqa: SLF001
            if lead:
                Tag("p", lead, "lead")
        return box("row")
