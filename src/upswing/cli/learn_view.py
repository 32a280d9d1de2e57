"""How is what was learned shown? As text, and as a chart."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from upswing.cli.training import printable
from upswing.dataset.select import GROUPED
from upswing.errors import Misuse
from upswing.train.movement import Movement
from upswing.wording import counted

_INK = "#2f6fb0"


@dataclass(frozen=True, slots=True)
class Earned:
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
    movement: Movement
    """How far the policy moved, and what that brought."""
    improvement: tuple[float, float, float] | None
    """Validation: estimate and bounds."""
    verdict: str
    why: tuple[str, ...]
    """Why it was rejected, rolled back or failed; empty when it was not."""
    earned: Earned | None = None
    decided: tuple[str, ...] = ()
    """The evidence by which it shipped or did not."""


@dataclass(frozen=True, slots=True)
class History:
    """All cycles, oldest first, and what the base earned."""

    base: dict[str, Earned] = field(default_factory=dict)
    cycles: tuple[Cycle, ...] = ()
    tasks: str = ""
    """How many tasks the model that answers solves always, sometimes, never."""


def render(history: History) -> list[str]:
    """The report for a person."""
    lines = []
    for name, earned in history.base.items():
        lines.append(f"{printable(name)}: {_earned(earned)}")
    for cycle in history.cycles:
        lines += ["", *_cycle(cycle)]
    if not history.cycles:
        lines.append("Nothing was trained yet; `upswing train --dry-run` says what would be.")
    return [*lines, "", history.tasks] if history.tasks else lines


def _cycle(cycle: Cycle) -> list[str]:
    lines = [f"cycle {cycle.number}: {_head(cycle)}"]
    if cycle.learned_on:
        shares = ", ".join(f"{share:.0%} {name}" for name, share in cycle.learned_on.items())
        lines.append(f"  learned on   {_material(cycle)}: {shares}")
    lines += [f"  {name:<12} {printable(told)}" for name, told in cycle.movement.lines()]
    lines += _validation(cycle)
    if cycle.earned is not None:
        lines.append(f"  in use       {_earned(cycle.earned)}")
    lines += [f"  why not      {reason}" for reason in cycle.why]
    return lines


def _head(cycle: Cycle) -> str:
    """What became of the job, so far.

    A job that goes on has made no model yet; one that failed never will.
    """
    took = f", {cycle.seconds:.0f} s" if cycle.seconds is not None else ""
    if cycle.model_id is None:
        ended = cycle.state in {"failed", "cancelled", "completed"}
        return f"{cycle.algorithm} is {cycle.state}{' and made no model' if ended else ''}{took}"
    parent = f" from {cycle.parent}" if cycle.parent else ""
    return f"{cycle.algorithm} made {cycle.model_id}{parent} ({cycle.model_state or cycle.state}){took}"


def _material(cycle: Cycle) -> str:
    """What was learned on: groups, where attempts of a group are compared, else single attempts."""
    if cycle.algorithm in GROUPED:
        return f"{cycle.trajectories} trajectories, {cycle.groups} groups with a difference"
    return f"{cycle.trajectories} attempts"


def _validation(cycle: Cycle) -> list[str]:
    """The verdict, the interval where one was measured, and which evidence decided."""
    if not cycle.verdict and not cycle.decided:
        return []
    told = cycle.verdict or "none"
    if cycle.improvement is not None:
        estimate, lower, upper = cycle.improvement
        told += f", {estimate:+.3f} [{lower:+.3f}, {upper:+.3f}]"
    return [
        f"  validation   {told}",
        *(f"  decided by   {printable(reason)}" for reason in cycle.decided),
    ]


def _earned(earned: Earned) -> str:
    told = "" if earned.outcome is None else f", outcome {earned.outcome:.3f}"
    many = counted(earned.trajectories, "trajectory", "trajectories")
    return f"{many}, reward {earned.reward:.3f}{told}"


def draw(history: History, path: Path) -> None:
    """Outcome (else reward) by cycle as PNG; what was rejected is hollow."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    points = [(0, name, earned, True) for name, earned in history.base.items()]
    points += [
        (cycle.number, cycle.model_id or "", cycle.earned, cycle.model_state in ("deployed", "retired"))
        for cycle in history.cycles
        if cycle.earned is not None
    ]  # fmt: skip
    if not points:
        raise Misuse("There is nothing to draw yet: no trajectory is scored.")
    figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    kept = [(at, _height(earned)) for at, _, earned, stays in points if stays]
    axis.plot([at for at, _ in kept], [height for _, height in kept], color=_INK, linewidth=2)
    for at, name, earned, stays in points:
        face = _INK if stays else "white"
        axis.plot(at, _height(earned), "o", color=_INK, markerfacecolor=face, markersize=8)
        axis.annotate(name, (at, _height(earned)), textcoords="offset points", xytext=(0, 10), ha="center", fontsize=8)  # fmt: skip
    axis.set(xlabel="cycle", ylabel="mean outcome", ylim=(0, 1), title="What was learned, by cycle")
    axis.set_xticks(range(max(at for at, *_ in points) + 1))
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _height(earned: Earned) -> float:
    return earned.reward if earned.outcome is None else earned.outcome
