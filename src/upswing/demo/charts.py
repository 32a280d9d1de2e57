"""How did the scores, the held-out tasks and the traffic change? Three charts, as PNGs.

Each is drawn twice, on white and on dark (`NAME-dark.png`), so that a page can follow its reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from upswing.demo.bars import format_elapsed, moving_mean, shorten_middle
from upswing.demo.panels import decision_sign
from upswing.demo.record import DemoHistory
from upswing.demo.summary import HeldOut, Summary
from upswing.demo.view import Line

_SIGN_MEANINGS = {"◆": "trains", "▲": "promoted", "▼": "rolled back"}


@dataclass(frozen=True, slots=True)
class Theme:
    """Paper, ink and the models' colours: Okabe and Ito's, which everybody can tell apart."""

    suffix: str
    paper: str
    ink: str
    faint: str
    grid: str
    models: tuple[str, ...]
    bad: str


LIGHT = Theme(
    "",
    "#ffffff",
    "#1f2430",
    "#6b7280",
    "#e5e7eb",
    ("#6b7280", "#0072b2", "#b7791f", "#007a5a", "#a8508a"),
    "#c2410c",
)
DARK = Theme(
    "-dark",
    "#161922",
    "#e5e7eb",
    "#9aa3b2",
    "#2b3040",
    ("#9aa3b2", "#56b4e9", "#e6b450", "#2fbf94", "#d68bb8"),
    "#f0743e",
)


def draw_charts(folder: Path, summary: Summary, history: DemoHistory) -> list[Path]:
    """Draw them all; the light ones' paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for theme in (DARK, LIGHT):
        colours = _colours_of_models(summary, history, theme)
        drawn = {
            "scores": score_chart(history, colours, theme),
            "heldout": held_out_chart(summary.measured, colours, theme),
            "traffic": traffic_chart(history, colours, theme),
        }
        made = [
            _save_figure(figure, folder / f"{name}{theme.suffix}.png")
            for name, figure in drawn.items()
        ]
    return made


def _save_figure(figure: Figure, path: Path) -> Path:
    figure.savefig(path, format="png", metadata={"Software": "upswing"})
    return path


def _colours_of_models(summary: Summary, history: DemoHistory, theme: Theme) -> dict[str, str]:
    """Each model's own, in the order in which they came; what was rolled back has the colour for it."""
    answered = [model for share in history.shares for model in share.traffic]
    models = dict.fromkeys(
        [
            *(each.model_id for each in summary.measured),
            *answered,
            *(e.model_id for e in history.scored),
        ]
    )
    good = [model for model in models if model not in summary.rolled_back]
    known = {model: theme.models[at % len(theme.models)] for at, model in enumerate(good)}
    return {**known, **dict.fromkeys(summary.rolled_back, theme.bad)}


def _empty_figure(theme: Theme, height: float, title: str, about: str) -> tuple[Figure, Any]:
    """An empty chart of 8 inches at 200 points: sharp at 800 pixels."""
    figure = Figure(figsize=(8, height), dpi=200, facecolor=theme.paper)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.062, 0.38 / height, 0.725, 1 - 1.3 / height))
    axes.set_facecolor(theme.paper)
    figure.text(0.012, 1 - 0.32 / height, title, fontsize=13, color=theme.ink, weight="bold")
    figure.text(0.012, 1 - 0.56 / height, about, fontsize=9, color=theme.faint)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(theme.faint)
    axes.tick_params(which="both", colors=theme.faint, labelsize=9, length=0)
    axes.set_axisbelow(True)
    return figure, axes


def _time_axis(axes: Any, seconds: float, theme: Theme) -> None:
    axes.set_xlim(0, max(1.0, seconds))
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 1.5, 3, 6, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda second, _: format_elapsed(second)))
    axes.grid(axis="y", color=theme.grid, linewidth=0.8)


def score_chart(history: DemoHistory, colours: dict[str, str], theme: Theme) -> Figure:
    """Every score, a moving mean for each model, and what was decided when."""
    about = "scores by the model that answered, means of two seconds; the line is a moving mean"
    figure, axes = _empty_figure(theme, 4.4, "What the agents earned", about)
    _time_axis(axes, history.seconds, theme)
    line_ends: list[tuple[float, str, str]] = []
    for model, colour in colours.items():
        mine = [each for each in history.scored if each.model_id == model]
        if not mine:
            continue
        seconds = [each.second for each in mine]
        means = [mean for _, mean in moving_mean([(each.second, each.score) for each in mine])]
        axes.plot(
            seconds,
            [e.score for e in mine],
            "o",
            color=colour,
            markersize=2.6,
            alpha=0.35,
            markeredgewidth=0,
            zorder=2,
        )
        axes.plot(seconds, means, color=colour, linewidth=2.2, solid_capstyle="round", zorder=3)
        mean = sum(each.score for each in mine) / len(mine)
        line_ends.append((means[-1], f"{_printable_text(model)}  {mean:.2f}", colour))
    low = min([0.0, *(each.score for each in history.scored)])
    high = max([1.0, *(each.score for each in history.scored)])
    axes.set_ylim(low - 0.03 * (high - low), high * 1.02)
    _mark_decisions(axes, history.log, theme)
    _label_line_ends(axes, line_ends, (low, high))
    return figure


def _mark_decisions(axes: Any, log: Sequence[Line], theme: Theme) -> None:
    """A thin line where the course changed, with its sign above, and its word where there is room."""
    marked = [(line, sign) for line in log if (sign := decision_sign(line)) in _SIGN_MEANINGS]
    room = 0.12 * float(axes.get_xlim()[1])
    for (line, sign), before in zip(marked, [None, *marked], strict=False):
        close = before is not None and line.second - before[0].second < room
        label = sign if close else f"{sign} {_SIGN_MEANINGS[sign]}"
        colour = theme.bad if sign == "▼" else theme.faint
        axes.axvline(line.second, color=colour, linewidth=0.9, alpha=0.7, zorder=1)
        axes.text(
            line.second,
            1.015,
            label,
            transform=axes.get_xaxis_transform(),
            fontsize=7.5,
            color=colour,
            ha="center",
            family="DejaVu Sans",
        )


def _label_line_ends(
    axes: Any, line_ends: Sequence[tuple[float, str, str]], span: tuple[float, float]
) -> None:
    """Names at the right, at the height of their lines' ends, none over another."""
    apart = 0.062 * (span[1] - span[0])
    below = span[0] - apart
    for height, name, colour in sorted(line_ends):
        below = max(height, below + apart)
        axes.annotate(
            name,
            (1.012, below),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=colour,
            weight="bold",
            va="center",
            annotation_clip=False,
        )


def held_out_chart(measured: Sequence[HeldOut], colours: dict[str, str], theme: Theme) -> Figure:
    """A row for each measurement: the mean and its interval."""
    rows = max(1, len(measured))
    tasks = measured[0].tasks if measured else 0
    about = f"mean score on {tasks} tasks that nobody learned from, with its 95 % interval"
    figure, axes = _empty_figure(theme, height := 1.1 + 0.4 * rows, "Held-out tasks", about)
    axes.set_position((0.19, 0.38 / height, 0.68, 0.4 * rows / height))
    axes.grid(axis="x", color=theme.grid, linewidth=0.8)
    for row, each in enumerate(measured):
        colour = colours.get(each.model_id, theme.ink)
        axes.plot(
            (each.low, each.high),
            (row, row),
            color=colour,
            linewidth=5,
            alpha=0.35,
            solid_capstyle="butt",
        )
        axes.plot(each.mean, row, "o", color=colour, markersize=8)
        axes.annotate(
            f"{each.mean:.2f}",
            (1.012, row),
            xycoords=("axes fraction", "data"),
            fontsize=10,
            color=colour,
            weight="bold",
            va="center",
            annotation_clip=False,
        )
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xlim(min([0.0, *(e.low for e in measured)]), max([1.0, *(e.high for e in measured)]))
    axes.set_yticks(range(len(measured)), [_printable_text(each.model_id) for each in measured])
    axes.tick_params(axis="y", labelcolor=theme.ink)
    return figure


def traffic_chart(history: DemoHistory, colours: dict[str, str], theme: Theme) -> Figure:
    """Who answered how much, stacked to the whole."""
    about = "share of new episodes by model, as the gateway divided them"
    figure, axes = _empty_figure(theme, 3.0, "Who answers", about)
    axes.set_position((0.075, 0.127, 0.9, 0.567))
    _time_axis(axes, history.seconds, theme)
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0f} %"))
    if not history.shares:
        return figure
    seconds = [
        *(share.second for share in history.shares),
        max(history.seconds, history.shares[-1].second),
    ]
    below = [0.0] * len(seconds)
    for model, colour in colours.items():
        mine = [share.traffic.get(model, 0.0) for share in history.shares]
        if not any(mine):
            continue
        top = [low + share for low, share in zip(below, [*mine, mine[-1]], strict=True)]
        axes.fill_between(seconds, below, top, step="post", color=colour, linewidth=0)
        first, last = _longest_stretch(mine, seconds)
        room = (max(below[first:last]), min(top[first:last]))
        at = ((seconds[first] + seconds[last]) / 2, sum(room) / 2)
        wide = (seconds[last] - seconds[first]) / max(1.0, history.seconds)
        _label_area(axes, _printable_text(model), at, wide, (colour, theme))
        below = top
    return figure


def _longest_stretch(shares: Sequence[float], seconds: Sequence[float]) -> tuple[int, int]:
    """The longest time with at least half of its greatest share: from which change to which.

    >>> _longest_stretch([0, 10, 50, 100, 0, 100], [0, 5, 10, 20, 40, 45, 50])
    (2, 4)
    """
    held = [share >= max(shares) / 2 for share in shares]
    found, begin = [], None
    for at, high in enumerate([*held, False]):
        if high and begin is None:
            begin = at
        elif not high and begin is not None:
            found.append((begin, at))
            begin = None
    return max(found, key=lambda each: seconds[each[1]] - seconds[each[0]])


def _label_area(
    axes: Any, name: str, at: tuple[float, float], wide: float, style: tuple[str, Theme]
) -> None:
    """The name in its area, or above the chart where the area is too narrow for it."""
    colour, theme = style
    if wide >= 0.014 * len(name):
        axes.text(
            *at, name, fontsize=8.5, color=theme.paper, weight="bold", ha="center", va="center"
        )
    else:
        axes.annotate(
            name,
            (at[0], 1.02),
            xycoords=("data", "axes fraction"),
            fontsize=8.5,
            color=colour,
            weight="bold",
            ha="center",
            annotation_clip=False,
        )


def _printable_text(text: str) -> str:
    """What the font has; a dollar sign begins no formula."""
    known = shorten_middle("".join(each if each < "\u0530" else "?" for each in text), 18)
    return known.replace("$", r"\$")
