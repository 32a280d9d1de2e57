"""What is known of one model: its card, its curves, how it was validated, rolled out, and what it cost?"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from nicegui import ui

from upswing.dashboard.answers import (
    ApiCard,
    ApiCosts,
    ApiCurves,
    ApiModelCost,
    ApiModelDetail,
    ApiRollouts,
)
from upswing.dashboard.core.wording import count, moment, money, plural, score, short_id
from upswing.dashboard.pages.failures import failure_panel
from upswing.dashboard.pages.job import CurveCharts
from upswing.dashboard.pages.parts import (
    ROLLOUT_COLUMNS,
    VALIDATION_COLUMNS,
    decision_feed,
    draw_markdown,
    model_link,
    rollout_row,
    validation_row,
)
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge, box, button, fact_list, link
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, drawn_panel, table_panel


class ModelDetailView:
    """One model."""

    def __init__(self, page: PageContext, model_id: str) -> None:
        self.page, self.id = page, model_id

    async def detail(self) -> ApiModelDetail:
        return await self.page.loop.get("/v1/models/{model_id}", ApiModelDetail, model_id=self.id)

    def draw(self) -> None:
        with page_head(self.id):
            button("All models", lambda: ui.navigate.to("/models"), icon="arrow_back")
        with box("grid main-side"):
            with box("stack wide"):
                self._curves()
                drawn_panel(self.page, "Model card", self._card, draw_card, seconds=3600)
            with box("stack wide"):
                drawn_panel(
                    self.page,
                    "About",
                    self.detail,
                    draw_facts,
                    topics=("model", "decision", "reward"),
                    seconds=3.0,
                    least_height=200,
                )
                drawn_panel(self.page, "Cost", self._cost, draw_cost, seconds=30.0)
                failure_panel(self.page, self.id)
        self._tables()

    async def _card(self) -> ApiCard:
        return (await self.detail()).card

    async def _cost(self) -> ApiModelCost | None:
        found = await self.page.loop.get("/v1/costs", ApiCosts)
        return next((each for each in found.models if each.model_id == self.id), None)

    def _curves(self) -> None:
        panel = Panel(
            self.page, "How it was trained", topics=("job",), seconds=4.0, least_height=250
        )
        with panel:
            elsewhere = Tag(
                "p", "It was not trained here: it is a base, or was registered.", "soft"
            )
            charts = CurveCharts()

        async def load() -> None:
            job, found = (await self.detail()).job, ApiCurves()
            if job is not None:
                path = "/v1/jobs/{job_id}/curves"
                found = await self.page.loop.get(path, ApiCurves, job_id=job.training_job_id)
            elsewhere.set_visibility(job is None)
            charts.show(found)

        panel.loads(load)

    def _tables(self) -> None:
        async def validations() -> list[dict[str, object]]:
            return [validation_row(each, self.page) for each in (await self.detail()).validations]

        async def rollouts() -> list[dict[str, object]]:
            query: dict[str, str | int | float | None] = {"model": self.id, "limit": 20}
            found = await self.page.loop.get("/v1/rollouts", ApiRollouts, query)
            return [rollout_row(each, self.page) for each in found.rollouts]

        table_panel(
            self.page,
            "Validations",
            VALIDATION_COLUMNS,
            validations,
            lambda: Tag("p", "It was not validated yet.", "soft"),
            topics=("validation", "decision"),
            least_height=0,
        )
        table_panel(
            self.page,
            "Rollouts",
            ROLLOUT_COLUMNS,
            rollouts,
            lambda: Tag("p", "It was not rolled out yet.", "soft"),
            topics=("rollout", "decision"),
            least_height=0,
        )
        drawn_panel(
            self.page,
            "Decisions about it",
            self.detail,
            lambda found: decision_feed(found.decisions[:20], self.page.now),
            topics=("decision",),
            seconds=3.0,
        )


def draw_card(card: ApiCard) -> None:
    if card.text:
        draw_markdown(card.text)
    else:
        Tag("p", "It has no card.", "soft")


def draw_cost(mine: ApiModelCost | None) -> None:
    if mine is None:
        Tag("p", "Nothing was spent on it yet.", "soft")
        return
    fact_list(
        (
            ("Training", money(mine.training_usd)),
            ("Judge", money(mine.judge_usd)),
            ("Serving", money(mine.serving_usd)),
            ("Together", money(mine.total_usd)),
            ("For a trajectory", money(mine.usd_per_trajectory)),
        )
    )


def draw_facts(found: ApiModelDetail) -> None:
    model, reward = found.model, found.model.reward
    badge(model.state)
    parents = [each.model_id for each in found.lineage[1:]]

    def lineage() -> None:
        with box("row"):
            for name in parents[:6]:
                model_link(name)
            if not parents:
                Tag("span", "the base")

    earned = f"{score(reward.mean)} over {count(reward.count)}" if reward and reward.count else "–"
    fact_list(
        (
            ("Trained from", lineage),
            ("Reward in production", earned),
            ("Held-out reward", score(model.final_reward)),
            ("Baseline’s, held out", score(model.baseline_reward)),
            ("Learned from", plural(model.samples or 0, "trajectory", "trajectories")),
            ("Made", moment(model.created)),
            ("Got all traffic", moment(model.deployed)),
        )
    )
    _draw_links(found, parents)


def _draw_links(found: ApiModelDetail, parents: list[str]) -> None:
    name = found.model.model_id
    with box("row"):
        if found.job is not None:
            job_id = found.job.training_job_id
            link(f"Job {short_id(job_id)}", f"/jobs/{quote(job_id, safe='')}")
        if parents:
            pair = urlencode({"a": name, "b": parents[0]})
            link(f"Compare with {parents[0]}", f"/compare?{pair}")
        link("Its trajectories", f"/trajectories?{urlencode({'model': name})}")


def model_page(page: PageContext, id: str = "") -> None:  # noqa: A002 - as the address has it
    view = ModelDetailView(page, id)
    with page.begin(view.detail):
        view.draw()
