"""How did training go, at a glance? Six curves on one page, as a PNG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from upswing.train.core.report import StepReport

_INK, _FAINT, _GRID = "#1f2430", "#6b7280", "#e5e7eb"
_FEW_STEPS = 30
"""Steps up to which every point is shown, instead of a smoothed line over a faint one."""
_SMOOTHING_WINDOW = 100.0
"""From this ratio of largest to smallest on, an axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class CurvePanel:
    title: str
    about: str
    value: Callable[[StepReport], float]
    colour: str
    spread: Callable[[StepReport], float] | None = None
    """Half the width of the band around the line."""
    share: bool = False
    from_zero: bool = True


PANELS = (
    CurvePanel(
        "Reward",
        "mean of a step ± its deviation",
        lambda s: s.reward_mean,
        "#0f766e",
        spread=lambda s: s.reward_std,
        from_zero=False,
    ),
    CurvePanel("Loss", "what the optimizer lowers", lambda s: s.loss, "#1d4ed8", from_zero=False),
    CurvePanel(
        "KL divergence", "nats per token, from the behaviour policy", lambda s: s.kl, "#b45309"
    ),
    CurvePanel("Entropy", "nats per token", lambda s: s.entropy, "#7c3aed"),
    CurvePanel(
        "Clipped share", "of the trained tokens", lambda s: s.clipped, "#be123c", share=True
    ),
    CurvePanel("Gradient norm", "before clipping", lambda s: s.grad_norm, "#334155"),
)


def draw_curves(curves: Sequence[StepReport], path: Path, title: str) -> None:
    """Draw the curves of a job; of a step that was taken again, the last time counts."""
    steps = [step for _, step in sorted({each.step: each for each in curves}.items())]
    figure = Figure(figsize=(12, 6.9), dpi=120, facecolor="white")
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.055, right=0.985, top=0.82, bottom=0.07, wspace=0.22, hspace=0.5)
    figure.text(0.012, 0.955, _plain_text(title), fontsize=14, color=_INK, weight="bold")
    figure.text(0.012, 0.918, _summary_of_steps(steps), fontsize=9.5, color=_FAINT)
    for panel, axes in zip(PANELS, figure.subplots(2, 3).flat, strict=True):
        _draw_frame(panel, axes)
        if steps:
            _draw_lines(panel, axes, [step.step for step in steps], steps)
        else:
            axes.set(xticks=[], yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": "upswing"})


def _plain_text(text: str) -> str:
    """What the font has; and dollar signs, which would begin a formula, as such."""
    known = "".join(each if each.isprintable() and each < "\u0530" else "?" for each in text)
    return known.replace("$", r"\$")


def _summary_of_steps(steps: Sequence[StepReport]) -> str:
    if not steps:
        return "no step was taken"
    minutes = sum(step.seconds for step in steps) / 60
    return (
        f"{len(steps)} steps · {steps[-1].tokens:,} trained tokens · {minutes:.1f} minutes of steps"
        " · number at the right: where the line ends"
    )


def _draw_frame(panel: CurvePanel, axes: Any) -> None:
    axes.set_title(panel.title, loc="left", fontsize=11.5, color=_INK, pad=19)
    axes.text(0, 1.035, panel.about, transform=axes.transAxes, fontsize=8.5, color=_FAINT)
    axes.set_xlabel("step", loc="right", fontsize=8.5, color=_FAINT, labelpad=0)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)
    axes.tick_params(which="both", colors=_FAINT, labelsize=9, length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _draw_lines(
    panel: CurvePanel, axes: Any, numbers: Sequence[int], steps: Sequence[StepReport]
) -> None:
    values = [_finite_or_nan(panel.value(step)) for step in steps]
    line = _moving_average(values) if len(steps) > _FEW_STEPS else values
    if panel.spread is not None:
        half = [_finite_or_nan(panel.spread(step)) for step in steps]
        low = [value - each for value, each in zip(values, half, strict=True)]
        high = [value + each for value, each in zip(values, half, strict=True)]
        axes.fill_between(numbers, low, high, color=panel.colour, alpha=0.10, linewidth=0)
    if len(steps) > _FEW_STEPS:
        axes.plot(numbers, values, color=panel.colour, alpha=0.3, linewidth=0.9)
    dots = {"marker": "o", "markersize": 3.5} if len(steps) <= _FEW_STEPS else {}
    axes.plot(numbers, line, color=panel.colour, linewidth=2, solid_capstyle="round", **dots)
    _set_scale(panel, axes, [value for value in values if not math.isnan(value)])
    missing = [number for number, value in zip(numbers, values, strict=True) if math.isnan(value)]
    if missing:
        axes.plot(
            missing,
            [0.02] * len(missing),
            "x",
            color=_INK,
            markersize=6,
            clip_on=False,
            transform=axes.get_xaxis_transform(),
        )
        axes.text(0.02, 0.05, "× no number", transform=axes.transAxes, fontsize=8.5, color=_INK)
    if not math.isnan(line[-1]):
        label = f"{line[-1]:.1%}" if panel.share else f"{line[-1]:.3g}".replace("-", "−")
        axes.text(
            1,
            1.035,
            label,
            transform=axes.transAxes,
            ha="right",
            fontsize=10,
            color=panel.colour,
            weight="bold",
        )


def _set_scale(panel: CurvePanel, axes: Any, values: Sequence[float]) -> None:
    if panel.share:
        axes.yaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if not values or not panel.from_zero:
        return
    positive = sorted(value for value in values if value > 0)
    middle = positive[len(positive) // 2] if positive else 0.0
    if not panel.share and positive and positive[-1] > _SMOOTHING_WINDOW * middle:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, *values), top=None if positive else 1.0)


def _finite_or_nan(value: float) -> float:
    """What cannot be drawn is a gap."""
    return value if abs(value) < 1e15 else math.nan


def _moving_average(values: Sequence[float]) -> list[float]:
    """A moving average over a twentieth of the run; gaps do not spread.

    >>> _moving_average([1.0, 2.0, 3.0])
    [1.0, 2.0, 3.0]
    """
    half = len(values) // 40
    made = []
    for at in range(len(values)):
        near = [v for v in values[max(0, at - half) : at + half + 1] if not math.isnan(v)]
        made.append(sum(near) / len(near) if near else math.nan)
    return made
