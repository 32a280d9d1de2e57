"""Which of two models is better, and how sure is that?"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from nicegui import ui

from upswing.dashboard.answers import ApiComparison, ApiModels
from upswing.dashboard.core.charts import reward_words
from upswing.dashboard.core.intervals import Bounds, interval_chart
from upswing.dashboard.core.wording import interval, score, signed
from upswing.dashboard.widgets.charts import Chart
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Field, Rows, Tag, box, button
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel

_COLUMNS = (
    ("what", "Where"),
    ("a", "First", "num"),
    ("b", "Second", "num"),
    ("difference", "Difference", "num"),
    ("interval", "95 % interval", "num"),
)


class CompareForm:
    """Two models to choose; there from the moment that two are known."""

    def __init__(self, a: str = "", b: str = "") -> None:
        self._chosen = a, b
        self._place = box("row")
        self._offered: list[str] = []

    def offer(self, models: Sequence[str]) -> None:
        if list(models) == self._offered or len(models) < 2:
            return
        self._offered = list(models)
        options = [(name, name) for name in models]
        first, second = (chosen or models[place] for place, chosen in enumerate(self._chosen))
        self._place.clear()
        with self._place:
            a = Field("Compare", "select", first, options=options)
            b = Field("with", "select", second, options=options)

            def go() -> None:
                ui.navigate.to(f"/compare?{urlencode({'a': a.text, 'b': b.text})}")

            button("Compare", go).style("align-self:end")


def compare_page(page: PageContext, a: str = "", b: str = "") -> None:
    """Two models side by side, with intervals."""
    with page.begin():
        lead = "What they earned where they answered in the same time, and how they were validated."
        page_head("Compare two models", lead)
        choosing = Panel(page, seconds=3600, least_height=60)
        with choosing:
            form = CompareForm(a, b)
        panel = Panel(page, "Side by side", topics=("reward",), seconds=5.0, least_height=220)
        with panel:
            view = ComparisonView()

        async def load_models() -> None:
            found = await page.loop.get("/v1/models", ApiModels, {"limit": 100})
            form.offer([each.model_id for each in found.models])

        async def load() -> None:
            if not a or not b or a == b:
                view.words.set_text("Choose two different models.")
                return
            view.show(await page.loop.get("/v1/compare", ApiComparison, {"a": a, "b": b}))

        choosing.loads(load_models)
        panel.loads(load)


class ComparisonView:
    """A sentence, both means, a drawing of the intervals, and the numbers."""

    def __init__(self) -> None:
        self.words = Tag("p", "", "strong wrap-anywhere")
        with box("grid two"):
            self.arms = [self._arm() for _ in range(2)]
        self.chart = Chart("Differences with their intervals", "low")
        self.rows = Rows("Differences", _COLUMNS)

    @staticmethod
    def _arm() -> tuple[Tag, Tag]:
        with box("stat"):
            name = Tag("div", "–", "label wrap-anywhere")
            value = Tag("div", "–", "value").style("font-size:19px")
        return name, value

    def show(self, found: ApiComparison) -> None:
        self.words.set_text(found.sentence)
        for (name, value), arm in zip(self.arms, (found.a, found.b), strict=True):
            name.set_text(arm.model_id)
            value.set_text(reward_words(arm.mean, arm.trajectories))
        bounds = [
            Bounds(each.suite, each.difference, each.lower, each.upper) for each in found.suites
        ]
        if (made := found.production) is not None:
            bounds.insert(0, Bounds("production", made.difference, made.lower, made.upper))
        self.chart.show(interval_chart(bounds))
        self.chart.set_visibility(bool(bounds))
        scores = {each.suite: (each.a, each.b) for each in found.suites}
        scores["production"] = (found.a.mean, found.b.mean)
        self.rows.show([_row(each, *scores[each.name]) for each in bounds])


def _row(each: Bounds, a: float | None, b: float | None) -> dict[str, object]:
    return {
        "id": each.name,
        "what": each.name,
        "a": score(a),
        "b": score(b),
        "difference": signed(each.middle),
        "interval": interval(each.lower, each.upper),
    }
