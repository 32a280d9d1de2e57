"""What do the curves look like? Options of ECharts as values; colours are the theme's own variables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from upswing.dashboard.answers import (
    ApiCurves,
    ApiMark,
    ApiRewardSeries,
    ApiTrafficSeries,
)
from upswing.dashboard.core.wording import score

Option = dict[str, Any]
GREY = "var(--series-2)"
FONT = "Roboto, system-ui, sans-serif"
"""Named: ECharts puts it into a shorthand, where `inherit` means nothing."""
_COLOURS = tuple(f"var(--series-{n})" for n in (1, 3, 4, 5, 6))
MARKS = {
    "trained": ("●", "trained", "var(--ink-3)"),
    "canary": ("◆", "canary", "var(--accent)"),
    "promoted": ("▲", "promoted", "var(--good)"),
    "rolled_back": ("▼", "rolled back", "var(--bad)"),
    "failed": ("✕", "failed", "var(--warn)"),
}
"""Kind → its sign, what it is called, and its colour."""
_MOST_MARKS = 40
"""The newest; more would be a fence."""


def model_colours(models: Iterable[str], grey: Collection[str] = ()) -> dict[str, str]:
    """A colour for each model, in their order; bases are grey.

    >>> model_colours(["base", "m1", "m2"], {"base"})
    {'base': 'var(--series-2)', 'm1': 'var(--series-1)', 'm2': 'var(--series-3)'}
    """
    colours, used = {}, 0
    for model in dict.fromkeys(models):
        if model in grey or model == "other":
            colours[model] = GREY
        else:
            colours[model] = _COLOURS[used % len(_COLOURS)]
            used += 1
    return colours


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def framed(**more: Any) -> Option:
    """What all charts have in common: calm axes, one tooltip, no movement."""
    return {
        "animation": False,
        "useUTC": True,
        "textStyle": {"fontFamily": FONT},
        "grid": {"left": 44, "right": 12, "top": 18, "bottom": 30},
        "tooltip": {
            "trigger": "axis",
            "confine": True,
            "backgroundColor": "var(--surface)",
            "borderColor": "var(--line-strong)",
            "textStyle": {"color": "var(--ink)", "fontSize": 12.5},
            "axisPointer": {"lineStyle": {"color": "var(--line-strong)"}},
        },
        **more,
    }


def plain_axis(kind: str, **more: Any) -> Option:
    label: Option = {"color": "var(--ink-3)", "fontSize": 11.5, "hideOverlap": True}
    return {
        "type": kind,
        "axisLine": {"show": kind != "value", "lineStyle": {"color": "var(--line)"}},
        "axisTick": {"show": False},
        "axisLabel": label,
        "splitLine": {"show": kind == "value", "lineStyle": {"color": "var(--line)"}},
        "splitNumber": 4,
        **more,
    }


def range_axis(since: datetime | None, until: datetime | None, series: Sequence[Option]) -> Option:
    """From the beginning to the end of what was asked for; two charts of the same time lie below each other."""
    first, last = time_span(series)
    if since is None or until is None:
        return time_axis(first, last)
    begin, end = milliseconds(since), milliseconds(until)
    return time_axis(begin, end) | {"min": begin, "max": end}


def time_axis(first: int, last: int) -> Option:
    """Hours for a day or two, days for longer; the first label would lie over the other axis's."""
    days = last - first > 2.5 * 86_400_000
    label = {
        "color": "var(--ink-3)",
        "fontSize": 11.5,
        "hideOverlap": True,
        "showMinLabel": False,
        "margin": 13,
        "formatter": "{d} {MMM}"
        if days
        else "{HH}:{mm}"
        if last - first > 300_000
        else "{HH}:{mm}:{ss}",
    }
    return plain_axis("time", axisLabel=label)


def time_span(series: Sequence[Option]) -> tuple[int, int]:
    times = [point[0] for each in series for point in each.get("data", ())]
    return (min(times), max(times)) if times else (0, 0)


def line_of(name: str, colour: str, data: Sequence[Any], **more: Any) -> Option:
    return {
        "name": name,
        "type": "line",
        "data": list(data),
        "showSymbol": len(data) < 2,
        "symbolSize": 5,
        "lineStyle": {"color": colour, "width": 2},
        "itemStyle": {"color": colour},
        "emphasis": {"disabled": True},
        **more,
    }


def band_of(name: str, colour: str, lower: Sequence[Any], upper: Sequence[Any]) -> list[Option]:
    """Between two lines, as a stack of an invisible and a light area."""
    quiet = {
        "type": "line",
        "stack": name,
        "symbol": "none",
        "lineStyle": {"width": 0},
        "silent": True,
        "tooltip": {"show": False},
        "emphasis": {"disabled": True},
        "stackStrategy": "all",
    }
    height = [[low[0], high[1] - low[1]] for low, high in zip(lower, upper, strict=True)]
    area = {"areaStyle": {"color": colour, "opacity": 0.14}, "itemStyle": {"color": colour}}
    return [
        {**quiet, "name": f"{name} lower", "data": list(lower)},
        {**quiet, "name": f"{name} band", "data": height, **area},
    ]


def mark_lines(marks: Sequence[ApiMark]) -> Option:
    """What happened, as thin lines with a sign at the top."""
    data = []
    for mark in list(marks)[-_MOST_MARKS:]:
        sign, _, colour = MARKS.get(mark.kind, ("·", mark.kind, "var(--ink-3)"))
        label = {"formatter": sign, "color": colour, "fontSize": 12, "distance": 2}
        style = {"color": colour, "type": "dashed", "width": 1, "opacity": 0.55}
        data.append({"xAxis": milliseconds(mark.at), "label": label, "lineStyle": style})
    return {"symbol": "none", "silent": True, "animation": False, "data": data}


def reward_chart(found: ApiRewardSeries, colours: Mapping[str, str]) -> Option:
    """Reward by model over time, with what happened meanwhile."""
    series = []
    for line in found.series:
        points = [p for p in line.points if p.mean is not None]
        data = [[milliseconds(p.at), round(p.mean or 0.0, 4)] for p in points]
        colour = colours.get(line.model, GREY)
        banded = [p for p in points if p.lower is not None and p.upper is not None]
        if len(banded) > 1:
            lower = [[milliseconds(p.at), round(p.lower or 0.0, 4)] for p in banded]
            upper = [[milliseconds(p.at), round(p.upper or 0.0, 4)] for p in banded]
            series += band_of(line.model, colour, lower, upper)
        series.append(line_of(line.model, colour, data, smooth=0.15))
    marked = {"type": "line", "name": "marks", "data": [], "markLine": mark_lines(found.marks)}
    return framed(
        xAxis=range_axis(found.since, found.until, series),
        yAxis=plain_axis("value", scale=True),
        series=[*series, {**marked, "tooltip": {"show": False}}],
    )


def traffic_chart(found: ApiTrafficSeries, colours: Mapping[str, str]) -> Option:
    """Who answered which share, as the plan had it: stacked steps that fill the height."""
    models = list(dict.fromkeys(name for step in found.planned for name in step.shares))
    times = [milliseconds(step.at) for step in found.planned]
    end = milliseconds(found.until) if found.until else 0
    percents = {"color": "var(--ink-3)", "formatter": "{value} %", "fontSize": 11.5}
    series = []
    for model in models:
        data = [
            [at, round(step.shares.get(model, 0.0), 2)]
            for at, step in zip(times, found.planned, strict=True)
        ]
        if data and end > data[-1][0]:
            data.append([end, data[-1][1]])
        colour = colours.get(model, GREY)
        area = {"areaStyle": {"color": colour, "opacity": 0.55}, "lineStyle": {"width": 0}}
        series.append(
            line_of(model, colour, data, step="end", stack="share", symbol="none", **area)
        )
    return framed(
        xAxis=range_axis(found.since, found.until, series),
        yAxis=plain_axis("value", min=0, max=100, interval=25, axisLabel=percents),
        series=series,
    )


def curve_chart(found: ApiCurves, name: str, colour: str = "var(--series-1)") -> Option:
    """One curve of a job over its steps."""
    steps, values = found.series.get("step", []), found.series.get(name, [])
    data = [
        [step, value]
        for step, value in zip(steps, values, strict=False)
        if step is not None and value is not None
    ]
    return framed(
        xAxis=plain_axis(
            "value",
            min="dataMin",
            max="dataMax",
            splitLine={"show": False},
            axisLine={"show": True, "lineStyle": {"color": "var(--line)"}},
        ),
        yAxis=plain_axis("value", scale=True),
        series=[line_of(name, colour, data)],
    )


def reward_words(mean: float | None, count: int) -> str:
    """A mean and what it rests on.

    >>> reward_words(0.5, 12), reward_words(None, 0)
    ('0.500 over 12', 'no rewards yet')
    """
    return "no rewards yet" if mean is None or not count else f"{score(mean)} over {count:,}"
