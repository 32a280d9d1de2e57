"""How is a series drawn without anybody's library? As SVG in a page, and as a line of bars in plain text.

Colours are Okabe and Ito's, which everybody can tell apart; what a chart says stands in words beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite

from upswing.logs import printable

COLOURS = ("#0072b2", "#b7791f", "#007a5a", "#a8508a", "#c2410c", "#6b7280")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 220, 52, 28, 10
_BARS = "▁▂▃▄▅▆▇█"
MOST_SERIES = 6
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Series:
    """One line or one set of bars; None: nothing is known there."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ReportChart:
    """Series over the same places, such as days."""

    title: str
    places: tuple[str, ...]
    series: tuple[Series, ...]
    bars: bool = False


def sparkline(values: Sequence[float | None]) -> str:
    """The values as bars of text; a gap where nothing is known.

    >>> sparkline([0.0, 0.5, None, 1.0]), sparkline([3.0, 3.0]), sparkline([])
    ('▁▄ █', '▄▄', '')
    """
    known = [value for value in values if value is not None and isfinite(value)]
    if not known:
        return " " * len(values)
    low, high = min(known), max(known)
    return "".join(
        " " if value is None or not isfinite(value) else _BARS[_bar(value, low, high)]
        for value in values
    )


def _bar(value: float, low: float, high: float) -> int:
    return len(_BARS) // 2 - 1 if high <= low else int((value - low) / (high - low) * 7)


def svg_chart(chart: ReportChart) -> str:
    """The chart as a self-contained SVG element."""
    series = chart.series[:MOST_SERIES]
    values = [
        value for each in series for value in each.values if value is not None and isfinite(value)
    ]
    low, high = _range(values, from_zero=chart.bars)
    scale = _Scale(len(chart.places), low, high)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_text(chart.title)}">',
        *_grid(scale),
        *_place_labels(chart.places, scale),
    ]
    for number, each in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        draw = _bar_marks if chart.bars else _line_marks
        parts += draw(each, colour, scale, number, len(series))
    return "\n".join([*parts, "</svg>"])


def legend(chart: ReportChart) -> list[tuple[str, str]]:
    """Name and colour of every series that is drawn."""
    return [(each.name, COLOURS[at]) for at, each in enumerate(chart.series[:MOST_SERIES])]


@dataclass(frozen=True, slots=True)
class _Scale:
    places: int
    low: float
    high: float

    def x(self, at: float) -> float:
        return _LEFT + (at + 0.5) * (_WIDTH - _LEFT) / max(1, self.places)

    def y(self, value: float) -> float:
        inside = _HEIGHT - _BOTTOM - _TOP
        return _TOP + inside * (1 - (value - self.low) / (self.high - self.low))

    @property
    def step(self) -> float:
        return (_WIDTH - _LEFT) / max(1, self.places)


def _range(values: Sequence[float], *, from_zero: bool) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if from_zero:
        low, high = min(0.0, low), max(0.0, high)
    if not high > low:
        return low - 0.5, high + 0.5
    room = 0.0 if from_zero else (high - low) * 0.08
    return low - room, high + room


def _grid(scale: _Scale) -> list[str]:
    lines = []
    for tick in range(_TICKS + 1):
        value = scale.low + (scale.high - scale.low) * tick / _TICKS
        y = scale.y(value)
        lines.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}"/>')
        lines.append(
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>'
        )
    return lines


def _place_labels(places: Sequence[str], scale: _Scale) -> list[str]:
    every = max(1, -(-len(places) // 10))
    return [
        f'<text class="tick" x="{scale.x(at):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{_text(place)}</text>'
        for at, place in enumerate(places)
        if at % every == 0
    ]


def _line_marks(series: Series, colour: str, scale: _Scale, _: int, __: int) -> list[str]:
    points = [
        (scale.x(at), scale.y(value))
        for at, value in enumerate(series.values)
        if value is not None and isfinite(value)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _bar_marks(series: Series, colour: str, scale: _Scale, number: int, of: int) -> list[str]:
    width = scale.step * 0.7 / of
    marks = []
    for at, value in enumerate(series.values):
        if value is None or not isfinite(value):
            continue
        left = scale.x(at) - scale.step * 0.35 + number * width
        top, foot = sorted((scale.y(value), scale.y(0.0)))
        marks.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{max(0.5, foot - top):.1f}" fill="{colour}"/>'
        )
    return marks


def _text(text: str) -> str:
    return escape(printable(" ".join(text.split()))[:120])
