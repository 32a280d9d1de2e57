"""How are models rolled out, and what may an operator do about it?"""

from __future__ import annotations

from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element

from upswing.dashboard.answers import ApiRollout, ApiRolloutDetail, ApiRollouts
from upswing.dashboard.core.intervals import evidence_chart
from upswing.dashboard.core.rollout_moves import MOVES, RolloutMove, moves_for
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import count, interval, moment, percent, signed, spoken
from upswing.dashboard.pages.parts import (
    ROLLOUT_COLUMNS,
    decision_feed,
    model_link,
    rollout_row,
    rollout_steps,
    tree_details,
)
from upswing.dashboard.widgets.actions import READ_ONLY, action_button, confirm
from upswing.dashboard.widgets.charts import Chart
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Tag,
    badge,
    box,
    button,
    empty_state,
    fact_list,
    link,
    set_badge,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, drawn_panel, table_panel

_ACTIVE = ("awaiting_approval", "ramping", "paused", "queued")


class RolloutCard:
    """One rollout with its evidence and its buttons; changes in place."""

    def __init__(self, page: PageContext, panel: Panel) -> None:
        self.page, self.panel = page, panel
        self.drawn_moves: tuple[str, ...] = ("not yet",)
        with box("spread"):
            with box("row"):
                self.name = link("–", "/rollouts", "strong")
                self.state = badge("")
            self.buttons = box("row")
        self.steps = box()
        self.waits = Tag("p", "", "soft wrap-anywhere")
        with box("grid main-side"):
            with box():
                Tag("h3", "Candidate minus baseline, and the interval in which it lies")
                self.chart = Chart("The interval shrinks as evidence comes", "low")
            self.facts = box()

    def show(self, found: ApiRolloutDetail) -> None:
        rollout = found.rollout
        self.name.set_text(rollout.model_id)
        self.name._props["href"] = f"/rollouts/{rollout.rollout_id}"  # noqa: SLF001 - an attribute of HTML
        self.name.update()
        set_badge(self.state, rollout.state)
        self.steps.clear()
        with self.steps:
            rollout_steps(rollout)
        self.waits.set_text(found.waits_for or rollout.sentence)
        self.chart.show(evidence_chart(found.evidence))
        self.facts.clear()
        with self.facts:
            draw_figures(found)
        self._show_buttons(rollout)

    def _show_buttons(self, rollout: ApiRollout) -> None:
        names = moves_for(rollout.state)
        if (rollout.model_id, *names) == self.drawn_moves:
            return
        self.drawn_moves = (rollout.model_id, *names)
        self.buttons.clear()
        with self.buttons:
            for name in names:
                self._button(MOVES[name], rollout)

    def _button(self, move: RolloutMove, rollout: ApiRollout) -> None:
        async def act(reason: str) -> str:
            done = await self.page.loop.move_rollout(rollout.model_id, move.action, reason)
            return f"{done.model_id}: {spoken(done.state)}, {percent(done.traffic_percentage)}. {done.sentence}"

        question = move.question.format(model=rollout.model_id, baseline=rollout.baseline_id)
        action_button(
            self.page,
            move.verb,
            lambda: confirm(
                f"{move.verb}: {rollout.model_id}?",
                question,
                act,
                verb=move.verb,
                danger=move.danger,
                after=self.panel.refresh,
            ),
            "danger" if move.danger else "primary" if move.action == "approve" else "",
        )


def draw_figures(found: ApiRolloutDetail) -> None:
    """What the verdict rests on."""
    rollout, figures = found.rollout, found.figures or {}
    fact_list(
        (
            ("Baseline", lambda: model_link(rollout.baseline_id)),
            ("Traffic", percent(rollout.traffic_percentage)),
            ("Difference", signed(figures.get("difference"))),
            ("Interval", interval(figures.get("lower"), figures.get("upper"))),
            (
                "Rewards",
                f"{count(figures.get('rewards'))}, baseline {count(figures.get('baseline_rewards'))}",
            ),
            ("Errors", _share(figures.get("error_share"), figures.get("baseline_error_share"))),
            (
                "Complaints",
                f"{count(figures.get('complaints'))}, baseline {count(figures.get('baseline_complaints'))}",
            ),
            ("Began", moment(rollout.began)),
        )
    )


def _share(own: float | None, other: float | None) -> str:
    own_share = None if own is None else own * 100
    other_share = None if other is None else other * 100
    return f"{percent(own_share, 1)}, baseline {percent(other_share, 1)}"


def rollouts_page(page: PageContext) -> None:
    with page.begin():
        with page_head(
            "Rollouts",
            "A new model gets traffic in steps, and loses it by itself when it is worse.",
        ):
            button("Backtest", lambda: ui.navigate.to("/backtest"))
        if not page.may_act:
            Tag("p", READ_ONLY, "note")
        _current_panel(page)
        _list_panel(page)


def _current_panel(page: PageContext) -> None:
    panel = Panel(page, "Now", topics=("rollout", "decision"), least_height=120)
    cards: dict[str, tuple[Element, RolloutCard]] = {}
    with panel:
        nothing = empty_state(
            "alt_route",
            "No rollout is under way",
            "The next begins when training has made a model and validation passed it.",
        )
        place = box("stack wide")

    async def load() -> None:
        rows = (await page.loop.get("/v1/rollouts", ApiRollouts, {"limit": 50})).rollouts
        answering = [each.rollout_id for each in rows if each.state == "promoted"][:1]
        active = [each.rollout_id for each in rows if each.state in _ACTIVE][:5] or answering
        nothing.set_visibility(not active)
        for gone in cards.keys() - set(active):
            cards.pop(gone)[0].delete()
        for rollout_id in active:
            if rollout_id not in cards:
                with place, box("stack") as part:
                    cards[rollout_id] = (part, RolloutCard(page, panel))
            path = "/v1/rollouts/{rollout_id}"
            found = await page.loop.get(path, ApiRolloutDetail, rollout_id=rollout_id)
            cards[rollout_id][1].show(found)

    panel.loads(load)


def _list_panel(page: PageContext) -> None:
    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/rollouts", ApiRollouts, {"limit": 50})
        return [rollout_row(each, page) for each in found.rollouts]

    table_panel(
        page,
        "All rollouts",
        ROLLOUT_COLUMNS,
        rows,
        lambda: Tag("p", "No model was rolled out yet.", "soft"),
        topics=("rollout", "decision"),
    )


def rollout_page(page: PageContext, rollout_id: str) -> None:
    """One rollout, from its first step to its end."""

    async def detail() -> ApiRolloutDetail:
        path = "/v1/rollouts/{rollout_id}"
        return await page.loop.get(path, ApiRolloutDetail, rollout_id=rollout_id)

    async def load() -> None:
        card.show(await detail())

    with page.begin(detail):
        page_head("Rollout", one_line(rollout_id, 80))
        panel = Panel(page, topics=("rollout", "decision"), least_height=300)
        with panel:
            card = RolloutCard(page, panel)
        panel.loads(load)
        drawn_panel(
            page,
            "Every decision, in words",
            detail,
            lambda found: decision_feed(found.steps[:50], page.now),
            topics=("decision",),
        )
        drawn_panel(page, "Incidents", detail, draw_incidents, topics=("decision",), seconds=5.0)


def draw_incidents(found: ApiRolloutDetail) -> None:
    if not found.incidents:
        Tag("p", "None.", "soft")
    for each in found.incidents:
        Tag("p", str(each.get("sentence") or each.get("reason") or ""), "wrap-anywhere")
        tree_details("Figures", each.get("metrics"))
    with box("row"):
        model_link(found.rollout.model_id)
        if validation := found.rollout.validation_id:
            link("Its validation", f"/validations/{quote(validation, safe='')}")
