"""How does a chart come onto a page? As ECharts draws it, in the theme's colours, with a legend that is text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.events import EChartPointClickEventArguments

from upswing.dashboard.widgets.elements import Tag, box


class Chart:
    """A chart whose option changes; it keeps its size."""

    def __init__(
        self,
        label: str,
        classes: str = "",
        on_click: Callable[[EChartPointClickEventArguments], Any] | None = None,
    ) -> None:
        """`label` says to a screen reader what is drawn."""
        empty: dict[str, Any] = {"animation": False, "series": []}
        with box(role="img", aria_label=label) as self._box:
            self._chart = ui.echart(empty, on_point_click=on_click, renderer="svg")
            self._chart.classes(f"chart {classes}")
        self._shown: Mapping[str, Any] = empty

    def show(self, option: Mapping[str, Any]) -> None:
        """Nothing happens when it is the same."""
        if option != self._shown:
            self._shown = option
            self._chart._props["options"] = dict(option)  # noqa: SLF001 - its own door compares every point
            self._chart.update()

    def set_size(self, height: int, least_width: int = 0) -> None:
        """In pixels; where the page is narrower, the chart is scrolled."""
        self._box.classes("scroll-x")
        self._chart.style(f"height:{height}px;min-width:{least_width}px")

    def set_visibility(self, visible: bool) -> None:
        self._box.set_visibility(visible)


class Legend:
    """Names and their colours."""

    def __init__(self) -> None:
        self._box = box("legend")
        self._shown: object = None

    def show(self, colours: Mapping[str, str], signs: Sequence[tuple[str, str, str]] = ()) -> None:
        wanted = (dict(colours), tuple(signs))
        if wanted == self._shown:
            return
        self._shown = wanted
        self._box.clear()
        with self._box:
            for name, colour in colours.items():
                with box(tag="span"):
                    box("dot", "i").style(f"background:{colour}")
                    Tag("span", name)
            for sign, name, colour in signs:
                with box(tag="span"):
                    Tag("span", sign).style(f"color:{colour}")
                    Tag("span", name, "quiet")


def progress_bar(percent: float, label: str) -> tuple[Element, Element]:
    """The bar and its filled part."""
    with box("bar", role="progressbar", aria_label=label) as bar:
        filled = box(tag="i").style(f"width:{percent:.1f}%")
    return bar, filled
