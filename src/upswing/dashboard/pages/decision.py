"""Why did the loop decide that, and would it decide the same today?"""

from __future__ import annotations

from nicegui import ui

from upswing.dashboard.answers import ApiDecision, ApiDecisions
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import moment, short_id, spoken
from upswing.dashboard.pages.parts import decision_feed, model_link, tree_details
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge, box, button, empty_state, fact_list
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel


def decisions_page(page: PageContext) -> None:
    with page.begin():
        page_head("Decisions", "Everything the loop decided by itself, with its reasons.")
        panel = Panel(page, topics=("decision",), least_height=300)
        with panel:
            place = box()

        async def load() -> None:
            found = (await page.loop.get("/v1/decisions", ApiDecisions, {"limit": 100})).decisions
            place.clear()
            with place:
                if found:
                    decision_feed(found, page.now)
                else:
                    empty_state(
                        "gavel",
                        "Nothing was decided yet",
                        "The first decision comes when there is something to train on.",
                    )

        panel.loads(load)


def decision_page(page: PageContext, decision_id: str) -> None:
    async def decision() -> ApiDecision:
        path = "/v1/decisions/{decision_id}/explain"
        return await page.loop.get(path, ApiDecision, decision_id=decision_id)

    with page.begin(decision):
        with page_head(f"Decision {one_line(short_id(decision_id), 40)}"):
            button("Back", ui.navigate.back, icon="arrow_back")
        panel = Panel(page, seconds=3600, least_height=240)
        with panel:
            place = box("stack")

        async def load() -> None:
            found = await decision()
            place.clear()
            with place:
                draw_decision(found)

        panel.loads(load)


def draw_decision(found: ApiDecision) -> None:
    with box("row"):
        badge(found.stage, "")
        badge(spoken(found.kind), "accent")
    Tag("p", found.sentence, "wrap-anywhere").style("font-size:16px")
    fact_list(
        (
            ("Decided", moment(found.decided)),
            ("Model", lambda: model_link(found.model_id) if found.model_id else Tag("span", "–")),
        )
    )
    today = found.today or {}
    if today:
        with box("row"):
            same = today.get("same")
            badge(
                "the same today"
                if same
                else "cannot be tried"
                if same is None
                else "differs today",
                "good" if same else "" if same is None else "warn",
            )
            Tag("span", str(today.get("sentence") or ""), "soft wrap-anywhere")
    tree_details("What it rested on", found.inputs)
    tree_details("What came of it", found.outcome)
    tree_details("Today", today.get("outcome"))
