"""Which trajectories are there? A search over everything that agents did."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from nicegui import ui

from upswing.dashboard.answers import ApiTrajectories, ApiTrajectory
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import ago, count, score, short_id
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Field,
    Rows,
    Tag,
    badge_cell,
    box,
    button,
    empty_state,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel

PAGE = 50
_TRIES = 20
"""Pages without a match that are passed over at once; then somebody is asked whether to look further back."""
_SINCE = (
    ("", "any time"),
    ("1h", "last hour"),
    ("24h", "last day"),
    ("7d", "last week"),
    ("30d", "last month"),
)
_OUTCOMES = (
    ("", "any"),
    ("success", "success"),
    ("partial", "partial"),
    ("failure", "failure"),
    ("unknown", "unknown"),
)
_DOMAINS = ("coding", "research", "data_analysis", "general", "debugging", "writing")


class TrajectorySearchView:
    """The filters, and what matches them."""

    def __init__(self, page: PageContext, filters: dict[str, str]) -> None:
        self.page, self.filters = page, filters
        self.found: list[ApiTrajectory] = []
        self.next: str | None = None
        self.scanned = 0

    def draw(self) -> None:
        page_head(
            "Trajectories",
            "Everything that agents did, newest first. Secrets were replaced before anything was stored.",
        )
        self._draw_filters()
        self.panel = Panel(
            self.page, topics=("counts",) if not self.filters else (), seconds=3.0, least_height=320
        )
        with self.panel:
            self.rows = Rows(
                "Trajectories",
                (
                    ("what", "Task"),
                    ("agent", "Agent"),
                    ("model", "Model"),
                    ("outcome", "Outcome", "slim"),
                    ("turns", "Turns", "num"),
                    ("reward", "Reward", "num"),
                    ("when", "When", "slim"),
                ),
            )
            self.nothing = box()
            with box("row"):
                self.more = button("Show more", self.load_more)
                self.summary = Tag("span", "", "note")
        self.panel.loads(self.load_first)

    def _draw_filters(self) -> None:
        given = self.filters.get
        with box("card"), box("filters", role="search"):
            fields = {
                "text": Field(
                    "Text",
                    "search",
                    given("text", ""),
                    placeholder="in turns and instructions",
                    wide=True,
                    most=200,
                    on_enter=self.search,
                ),
                "model": Field("Model", value=given("model", ""), on_enter=self.search),
                "agent": Field("Agent", value=given("agent", ""), on_enter=self.search),
                "user": Field("User", value=given("user", ""), on_enter=self.search),
                "domain": Field(
                    "Domain",
                    "select",
                    given("domain", ""),
                    options=[("", "any"), *((d, d.replace("_", " ")) for d in _DOMAINS)],
                ),
                "outcome": Field("Outcome", "select", given("outcome", ""), options=_OUTCOMES),
                "min_reward": Field(
                    "Reward from", "number", given("min_reward", ""), on_enter=self.search
                ),
                "max_reward": Field("to", "number", given("max_reward", ""), on_enter=self.search),
                "since": Field("Stored in", "select", given("since", ""), options=_SINCE),
            }
            with box("row"):
                button("Search", self.search, "primary")
                if self.filters:
                    button("Clear", lambda: ui.navigate.to("/trajectories"), "plain")
        self.fields = fields

    def search(self) -> None:
        chosen = {name: field.text for name, field in self.fields.items() if field.text}
        ui.navigate.to(f"/trajectories?{urlencode(chosen)}" if chosen else "/trajectories")

    async def load_first(self) -> None:
        if len(self.found) > PAGE:
            return  # somebody reads further down: it stays as it is
        self.found, self.next, self.scanned = [], None, 0
        await self._load_page()

    async def load_more(self) -> None:
        await self._load_page()

    async def _load_page(self) -> None:
        wanted = len(self.found) + PAGE
        for _ in range(_TRIES):
            query = {**self.filters, "limit": str(PAGE), "cursor": self.next}
            got = await self.page.loop.get("/v1/trajectories", ApiTrajectories, query)
            self.found += got.trajectories
            self.next, self.scanned = got.next, self.scanned + got.scanned
            if self.next is None or len(self.found) >= wanted:
                break
        self._show()

    def _show(self) -> None:
        self.rows.show([trajectory_row(each, self.page) for each in self.found])
        self.rows.set_visibility(bool(self.found))
        self.more.set_visibility(self.next is not None)
        self.summary.set_text(f"{count(len(self.found))} shown" if self.found else "")
        self.nothing.clear()
        if self.found:
            return
        with self.nothing:
            if self.next is not None:
                empty_state(
                    "search",
                    "Nothing found so far",
                    f"{count(self.scanned)} were looked through; “Show more” looks further back.",
                )
            elif self.filters:
                empty_state(
                    "search_off", "Nothing matches", "Leave a filter out, or look further back."
                )
            else:
                empty_state(
                    "forum",
                    "No trajectory yet",
                    "Let an agent work through the gateway, or try it with",
                    "upswing agents spawn",
                )


def trajectory_row(each: ApiTrajectory, page: PageContext) -> dict[str, object]:
    """One row of a table of trajectories."""
    name = one_line(each.task_id or short_id(each.trajectory_id), 60)
    sub = one_line(each.excerpt, 160) if each.excerpt else (each.domain or "")
    revised = f"revision {each.revision}" if each.revision else ""
    return {
        "id": each.trajectory_id,
        "what": {
            "text": name,
            "href": f"/trajectories/{quote(each.trajectory_id, safe='')}",
            "sub": sub,
        },
        "agent": {"text": one_line(each.agent_id, 40), "sub": one_line(each.user_id or "", 40)},
        "model": one_line(each.model, 40),
        "outcome": badge_cell(each.outcome),
        "turns": count(each.turns),
        "reward": {"text": score(each.reward), "sub": revised},
        "when": ago(each.stored, page.now),
    }


def trajectories_page(
    page: PageContext,
    text: str = "",
    model: str = "",
    agent: str = "",
    user: str = "",
    domain: str = "",
    outcome: str = "",
    min_reward: str = "",
    max_reward: str = "",
    since: str = "",
    task: str = "",
) -> None:
    given = {
        "text": text,
        "model": model,
        "agent": agent,
        "user": user,
        "domain": domain,
        "outcome": outcome,
        "min_reward": min_reward,
        "max_reward": max_reward,
        "since": since,
        "task": task,
    }
    with page.begin():
        TrajectorySearchView(page, {name: value for name, value in given.items() if value}).draw()
