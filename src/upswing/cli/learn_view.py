"""How is what was learned shown? As text, and as a chart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from upswing.cli.training import printable
from upswing.dataset.select import GROUPED
from upswing.errors import Misuse, count_phrase
from upswing.train.core.policy_change import PolicyChange

_INK = "#2f6fb0"
ENOUGH_IN_USE = 50
"""Trajectories from which on what a model earned in use says something."""
WIDE_GAP = 0.15
"""Between training's estimate and what was earned in use: beyond it, a remark."""


@dataclass(frozen=True, slots=True)
class ModelEarnings:
    """What a model's trajectories came to."""

    trajectories: int
    reward: float
    outcome: float | None
    """How well its tasks went, where somebody says so."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """One training, and what became of it."""

    number: int
    job_id: str
    began: datetime
    algorithm: str
    state: str
    """Of the job."""
    seconds: float | None
    learned_on: dict[str, float]
    """Policy version → its share of what was learned from."""
    trajectories: int
    groups: int
    model_id: str | None
    parent: str | None
    model_state: str | None
    movement: PolicyChange
    """How far the policy moved, and what that brought."""
    improvement: tuple[float, float, float] | None
    """Validation: estimate and bounds."""
    verdict: str
    why: tuple[str, ...]
    """Why it was rejected, rolled back or failed; empty when it was not."""
    earned: ModelEarnings | None = None
    decided: tuple[str, ...] = ()
    """The evidence by which it shipped or did not."""
    compared_on: str = ""
    """Validation: how many tasks of which suites the improvement is over."""


@dataclass(frozen=True, slots=True)
class History:
    """All cycles, oldest first, and what the base earned."""

    base: dict[str, ModelEarnings] = field(default_factory=dict)
    cycles: tuple[Cycle, ...] = ()
    tasks: str = ""
    """How many tasks the model that answers solves always, sometimes, never."""


def render(history: History) -> list[str]:
    """The report for a person."""
    lines = []
    for name, earned in history.base.items():
        lines.append(f"{printable(name)}: {_earnings_line(earned)}")
    for cycle in history.cycles:
        lines += ["", *_cycle(cycle)]
    if not history.cycles:
        lines.append("Nothing was trained yet; `upswing train --dry-run` says what would be.")
    return [*lines, "", history.tasks] if history.tasks else lines


def _cycle(cycle: Cycle) -> list[str]:
    lines = [f"cycle {cycle.number}: {_cycle_heading(cycle)}"]
    if cycle.learned_on:
        shares = ", ".join(f"{share:.0%} {name}" for name, share in cycle.learned_on.items())
        lines.append(f"  learned on   {_training_data_line(cycle)}: {shares}")
    lines += [f"  {name:<12} {printable(figures)}" for name, figures in cycle.movement.lines()]
    lines += _validation_lines(cycle)
    if cycle.earned is not None:
        lines.append(f"  in use       {_earnings_line(cycle.earned)}")
        lines += [f"  note         {note}" for note in _gap_lines(cycle.movement, cycle.earned)]
    lines += [f"  why not      {reason}" for reason in cycle.why]
    return lines


def _cycle_heading(cycle: Cycle) -> str:
    """What became of the job, so far.

    A job that goes on has made no model yet; one that failed never will.
    """
    took = f", {cycle.seconds:.0f} s" if cycle.seconds is not None else ""
    if cycle.model_id is None:
        ended = cycle.state in {"failed", "cancelled", "completed"}
        return f"{cycle.algorithm} is {cycle.state}{' and made no model' if ended else ''}{took}"
    parent = f" from {cycle.parent}" if cycle.parent else ""
    return f"{cycle.algorithm} made {cycle.model_id}{parent} ({cycle.model_state or cycle.state}){took}"


def _training_data_line(cycle: Cycle) -> str:
    """What was learned on: groups, where attempts of a group are compared, else single attempts."""
    if cycle.algorithm in GROUPED:
        return f"{count_phrase(cycle.trajectories, 'trajectory', 'trajectories')}, {count_phrase(cycle.groups, 'group')} with a difference"
    return f"{cycle.trajectories} attempts"


def _validation_lines(cycle: Cycle) -> list[str]:
    """The verdict, the interval where one was measured, and which evidence decided."""
    if not cycle.verdict and not cycle.decided:
        return []
    verdict = cycle.verdict or "none"
    if cycle.improvement is not None:
        estimate, lower, upper = cycle.improvement
        verdict += f", {estimate:+.3f} [{lower:+.3f}, {upper:+.3f}]"
        verdict += f" over {printable(cycle.compared_on)}" if cycle.compared_on else ""
    return [
        f"  validation   {verdict}",
        *(f"  decided by   {printable(reason)}" for reason in cycle.decided),
    ]


def _gap_lines(movement: PolicyChange, earned: ModelEarnings) -> Iterator[str]:
    """A remark where training's estimate and what the model earned in use are far apart."""
    _, estimate = movement.held_out
    if estimate is None or earned.trajectories < ENOUGH_IN_USE:
        return
    measured = [each for each in (earned.reward, earned.outcome) if each is not None]
    in_use = min(measured, key=lambda each: abs(each - estimate))
    if abs(gap := estimate - in_use) > WIDE_GAP:
        how = "played by the trainer" if movement.played else "estimated from logged episodes"
        where = "above" if gap > 0 else "below"
        yield (
            f"the held-out {estimate:.3f} is {how}, {abs(gap):.3f} {where} the {in_use:.3f} in use: "
            "trust the figure in use"
        )


def _earnings_line(earned: ModelEarnings) -> str:
    outcome = "" if earned.outcome is None else f", outcome {earned.outcome:.3f}"
    many = count_phrase(earned.trajectories, "trajectory", "trajectories")
    return f"{many}, reward {earned.reward:.3f}{outcome}"


def draw_chart(history: History, path: Path) -> None:
    """Outcome (else reward) by cycle as PNG; what was rejected is hollow."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    points = [(0, name, earned, True) for name, earned in history.base.items()]
    points += [
        (
            cycle.number,
            cycle.model_id or "",
            cycle.earned,
            cycle.model_state in ("deployed", "retired"),
        )
        for cycle in history.cycles
        if cycle.earned is not None
    ]
    if not points:
        raise Misuse("There is nothing to draw yet: no trajectory is scored.")
    figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    kept = [(at, _bar_height(earned)) for at, _, earned, stays in points if stays]
    axis.plot([at for at, _ in kept], [height for _, height in kept], color=_INK, linewidth=2)
    for at, name, earned, stays in points:
        face = _INK if stays else "white"
        axis.plot(at, _bar_height(earned), "o", color=_INK, markerfacecolor=face, markersize=8)
        axis.annotate(
            name,
            (at, _bar_height(earned)),
            textcoords="offset points",
            xytext=(0, 10),
            ha="center",
            fontsize=8,
        )
    axis.set(xlabel="cycle", ylabel="mean outcome", ylim=(0, 1), title="What was learned, by cycle")
    axis.set_xticks(range(max(at for at, *_ in points) + 1))
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _bar_height(earned: ModelEarnings) -> float:
    return earned.reward if earned.outcome is None else earned.outcome
