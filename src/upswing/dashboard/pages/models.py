"""Which models are there, and who came from whom?"""

from __future__ import annotations

from nicegui import ui
from nicegui.events import EChartPointClickEventArguments

from upswing.dashboard.answers import ApiCosts, ApiLineage, ApiModel, ApiModels
from upswing.dashboard.core.lineage import lineage_chart, size_of
from upswing.dashboard.core.wording import ago, money, plural, score, signed
from upswing.dashboard.pages.compare import CompareForm
from upswing.dashboard.pages.parts import model_path
from upswing.dashboard.widgets.charts import Chart
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge_cell, empty_state
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, table_panel

_COLUMNS = (
    ("model", "Model"),
    ("state", "State", "slim"),
    ("reward", "Reward in production", "num"),
    ("held", "Held out", "num"),
    ("cost", "Cost", "num"),
    ("made", "Made", "slim"),
)


def models_page(page: PageContext) -> None:
    with page.begin():
        page_head("Models", "The base, and every model that training made of what agents did.")
        _lineage_panel(page)
        _list_panel(page)


def _lineage_panel(page: PageContext) -> None:
    panel = Panel(page, "Lineage", topics=("model", "decision"), seconds=5.0, least_height=160)

    def opened(event: EChartPointClickEventArguments) -> None:
        ui.navigate.to(model_path(str(event.name)))

    with panel:
        label = "Which model was trained from which; the table below has the same"
        chart = Chart(label, on_click=opened)
        none = Tag("p", "The family begins with the first training.", "soft")
        none.set_visibility(False)

    async def load() -> None:
        found = await page.loop.get("/v1/lineage", ApiLineage)
        none.set_visibility(not found.nodes)
        chart.set_visibility(bool(found.nodes))
        chart.set_size(*size_of(found.nodes))
        chart.show(lineage_chart(found.nodes))

    panel.loads(load)


def _list_panel(page: PageContext) -> None:
    async def rows() -> list[dict[str, object]]:
        found = (await page.loop.get("/v1/models", ApiModels, {"limit": 100})).models
        costs = await _costs(page)
        form.offer([each.model_id for each in found])
        return [model_row(each, page, costs) for each in found]

    panel = table_panel(
        page,
        "All models",
        _COLUMNS,
        rows,
        lambda: empty_state(
            "hub",
            "No model was trained yet",
            "What the next job would learn from:",
            "upswing train --dry-run",
        ),
        topics=("model", "decision", "reward"),
        least_height=200,
    )
    with panel:
        form = CompareForm()


async def _costs(page: PageContext) -> dict[str, float | None]:
    """By model; nothing where the loop does not tell."""
    if not await page.loop.offers("GET", "/v1/costs"):
        return {}
    found = await page.loop.get("/v1/costs", ApiCosts)
    return {each.model_id: each.total_usd for each in found.models}


def model_row(
    each: ApiModel, page: PageContext, costs: dict[str, float | None]
) -> dict[str, object]:
    reward, origin = each.reward, each.parent or each.base_model
    gained = None
    if each.final_reward is not None and each.baseline_reward is not None:
        gained = each.final_reward - each.baseline_reward
    return {
        "id": each.model_id,
        "model": {
            "text": each.model_id,
            "href": model_path(each.model_id),
            "sub": "the base" if origin == each.model_id else f"from {origin}",
        },
        "state": badge_cell(each.state),
        "reward": {
            "text": score(reward.mean) if reward else "–",
            "sub": plural(reward.count, "trajectory", "trajectories")
            if reward and reward.count
            else "",
        },
        "held": {
            "text": score(each.final_reward),
            "sub": signed(gained) if gained is not None else "",
        },
        "cost": money(costs.get(each.model_id)),
        "made": ago(each.created, page.now),
    }
