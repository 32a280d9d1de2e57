"""Where does a difference lie, and what does that say? Intervals as a drawing and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from upswing.dashboard.answers import ApiEvidence
from upswing.dashboard.core.charts import (
    Option,
    band_of,
    framed,
    line_of,
    milliseconds,
    plain_axis,
    time_axis,
    time_span,
)
from upswing.dashboard.core.wording import signed


@dataclass(frozen=True, slots=True)
class Bounds:
    """A difference and the interval in which it lies, as far as both are known."""

    name: str
    middle: float | None
    lower: float | None
    upper: float | None

    @property
    def colour(self) -> str:
        if self.lower is not None and self.lower > 0:
            return "var(--good)"
        if self.upper is not None and self.upper < 0:
            return "var(--bad)"
        return "var(--series-2)"


def interval_chart(rows: Sequence[Bounds]) -> Option:
    """One below the other, around zero."""
    points = [
        {"value": [each.middle, place], "itemStyle": {"color": each.colour}}
        for place, each in enumerate(rows)
        if each.middle is not None
    ]
    lines = [
        line_of(each.name, each.colour, [[each.lower, place], [each.upper, place]], symbol="none")
        for place, each in enumerate(rows)
        if each.lower is not None and each.upper is not None
    ]
    middles = {
        "type": "scatter",
        "symbolSize": 10,
        "data": points,
        "markLine": zero_line("xAxis"),
        "emphasis": {"disabled": True},
    }
    return framed(
        grid={"left": 110, "right": 16, "top": 8, "bottom": 26},
        tooltip={"show": False},
        xAxis=plain_axis("value"),
        yAxis=plain_axis("category", data=[each.name for each in rows], inverse=True),
        series=[*lines, middles],
    )


def evidence_chart(history: Sequence[ApiEvidence]) -> Option:
    """Candidate minus baseline, and the interval in which it lies, shrinking as evidence comes."""
    known = [p for p in history if p.lower is not None and p.upper is not None]
    colour = "var(--series-1)"
    lower = [[milliseconds(p.at), round(p.lower or 0.0, 4)] for p in known]
    upper = [[milliseconds(p.at), round(p.upper or 0.0, 4)] for p in known]
    middle = [
        [milliseconds(p.at), round(p.difference, 4)] for p in known if p.difference is not None
    ]
    series = [
        *(band_of("interval", colour, lower, upper) if known else []),
        line_of("difference", colour, middle, markLine=zero_line("yAxis")),
    ]
    return framed(
        xAxis=time_axis(*time_span(series)),
        yAxis=plain_axis("value", splitNumber=2),
        series=series,
    )


def zero_line(axis: str) -> Option:
    """Where neither is better."""
    return {
        "symbol": "none",
        "silent": True,
        "label": {"show": False},
        "lineStyle": {"color": "var(--ink-3)", "type": "dashed", "width": 1},
        "data": [{axis: 0}],
    }


def difference_words(difference: float | None, lower: float | None, upper: float | None) -> str:
    """What an interval says, in a sentence.

    >>> difference_words(0.05, 0.01, 0.09)
    'Better: +0.050, and with the evidence so far between +0.010 and +0.090.'
    >>> difference_words(0.01, -0.02, 0.04)
    'Not decided: +0.010, and with the evidence so far between −0.020 and +0.040.'
    >>> difference_words(None, None, None)
    'No evidence yet.'
    """
    if difference is None or lower is None or upper is None:
        return "No evidence yet."
    verdict = "Better" if lower > 0 else "Worse" if upper < 0 else "Not decided"
    return f"{verdict}: {signed(difference)}, and with the evidence so far between {signed(lower)} and {signed(upper)}."
