"""What did the loop learn, cycle by cycle? Reward by model, what each cycle learned on, what was rejected and why."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upswing.cli.training import printable, read
from upswing.contracts.steps import number
from upswing.dataset.select import GROUPED, IMITATING
from upswing.errors import Misuse
from upswing.wording import counted

if TYPE_CHECKING:
    from upswing.adapters.sql.database import Database, Row
    from upswing.contracts.validation import Interval
    from upswing.ports import Decision

_INK = "#2f6fb0"
_EARNED = (
    "SELECT model, COUNT(*), AVG(raw_total), AVG(COALESCE(verified, reported)) FROM scored "
    "WHERE infra_error = 0 AND trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE evaluation = 1) "
    "AND trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE practice = 1) GROUP BY model"
)
"""Evaluations and practice say nothing about how a model does: their tasks were chosen."""


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
    stopped: str
    kl: float | None
    held_out: tuple[float | None, float | None]
    """Reward before and after."""
    improvement: tuple[float, float, float] | None
    """Validation: estimate and bounds."""
    verdict: str
    why: tuple[str, ...]
    """Why it was rejected, rolled back or failed; empty when it was not."""
    earned: Earned | None = None
    decided: tuple[str, ...] = ()
    """The evidence by which it shipped or did not."""
    held_out_by: str = "logged"
    """Whether held-out tasks were played afresh, or estimated from logged episodes."""


@dataclass(frozen=True, slots=True)
class History:
    """All cycles, oldest first, and what the base earned."""

    base: dict[str, Earned] = field(default_factory=dict)
    cycles: tuple[Cycle, ...] = ()
    tasks: str = ""
    """How many tasks the model that answers solves always, sometimes, never."""


def learn_report(arguments: argparse.Namespace) -> int:
    """Print it; with --chart, draw it too."""
    from upswing.config import defaults, read_settings, read_surroundings

    settings, surroundings = (
        read_settings(arguments.data, os.environ),
        read_surroundings(os.environ),
    )
    base = defaults(settings, surroundings).base_model
    history = read(arguments.data, lambda database: gather(database, base))
    if arguments.chart:
        draw(history, arguments.chart)
    if arguments.json:
        print(json.dumps(asdict(history), indent=2, default=str))
    else:
        print("\n".join(render(history)))
    return 0


async def gather(database: Database, base: str | None = None) -> History:
    """Everything from the store, which is only read; `base` is what training starts from at first."""
    from upswing.adapters.sql.jobs import Jobs
    from upswing.adapters.sql.models import Models
    from upswing.adapters.sql.rollouts import Rollouts
    from upswing.adapters.sql.signals import SignalReader
    from upswing.adapters.sql.validations import Validations

    jobs, models = Jobs(database), Models(database)
    rollouts, validations = Rollouts(database), Validations(database)
    rows = await database.read(lambda tx: tx.rows(_EARNED))
    earned = dict(database.aside.sound("report", "scored", rows, _earned_of))
    incidents = await rollouts.incidents(1000)
    evidence = await _evidence(database)
    cycles: list[Cycle] = []
    for place, job in enumerate(reversed(await jobs.list(limit=1000)), 1):
        about = job.status.metadata if isinstance(job.status.metadata, dict) else {}
        model = await models.by_job(job.job_id)
        name = model.model_id if model else None
        run = await validations.of_candidate(name) if name else None
        report = run.report if run else None
        reasons = [each.sentence for each in incidents if each.model_id == name] if name else []
        cycles.append(Cycle(
            place, job.job_id, job.created, job.request.training_config.algorithm, job.state,
            _number(job.status.resource_usage, "total_training_time_seconds"),
            _shares(about.get("policy_versions")), _count(about.get("examples")),
            _count(about.get("groups")) - _count(about.get("groups_without_variance")),
            name, model.parent if model else None, model.state if model else None,
            str(about.get("stopped") or ""), number(about.get("kl_from_parent")),
            _held_out(job.request.training_config.algorithm, about),
            _interval(report.improvement) if report else None,
            report.word if report else "",
            (*_failure(job.status.error), *dict.fromkeys(reasons)),
            earned.get(name) if name else None,
            evidence.get(name or "") or (tuple(report.reasons) if report else ()),
            str(about.get("holdout_measured_by") or "logged"),
        ))  # fmt: skip
    trained = {cycle.model_id for cycle in cycles}
    there = await SignalReader(database).learnable(base)
    others = {n: e for n, e in earned.items() if n not in trained}
    return History(others, tuple(cycles), there.tasks.sentence)


def _count(value: Any) -> int:
    return int(number(value) or 0)


def _shares(value: Any) -> dict[str, float]:
    told = value.items() if isinstance(value, dict) else ()
    return {str(name): share for name, each in told if (share := number(each)) is not None}


def _earned_of(row: Row) -> tuple[str, Earned]:
    return str(row[0]), Earned(int(row[1]), float(row[2]), number(row[3]))


async def _evidence(database: Database) -> dict[str, tuple[str, ...]]:
    """Model → the reasons of the newest verdict on it, as the journal has them."""
    from upswing.adapters.sql.decisions import Decisions

    found: dict[str, tuple[str, ...]] = {}

    def read(decision: Decision) -> None:
        inputs = json.loads(decision.inputs)
        if isinstance(inputs, dict) and inputs.get("type") == "judged":
            found.setdefault(str(inputs["model_id"]), tuple(map(str, inputs["reasons"])))

    journal = await Decisions(database).list("deploy", limit=5000)
    database.aside.sound("report", "decisions", journal, read, key=lambda each: each.decision_id)
    return found


def _held_out(algorithm: str, about: dict[str, Any]) -> tuple[float | None, float | None]:
    """Before and after; what was selected for its success says nothing about a model."""
    value = about.get("holdout_reward")
    chosen = algorithm in IMITATING and about.get("holdout_measured_by") != "fresh"
    if chosen or not isinstance(value, list) or len(value) != 2:
        return None, None
    return number(value[0]), number(value[1])


def _interval(found: Interval | None) -> tuple[float, float, float] | None:
    """Estimate and bounds, where all of them are numbers."""
    if found is None or found.estimate is None or found.lower is None or found.upper is None:
        return None
    return found.estimate, found.lower, found.upper


def _number(part: Any, name: str) -> float | None:
    value = getattr(part, name, None)
    return float(value) if isinstance(value, int | float) else None


def _failure(error: Any) -> tuple[str, ...]:
    message = getattr(error, "message", None)
    return (message,) if isinstance(message, str) else ()


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
    before, after = cycle.held_out
    if before is not None and after is not None:
        how = "played afresh" if cycle.held_out_by == "fresh" else "estimated from logged episodes"
        lines.append(f"  held out     {before:.3f} → {after:.3f}, {how}")
    if cycle.kl is not None:
        stopped = f", stopped by {cycle.stopped}" if cycle.stopped else ""
        lines.append(f"  moved        {cycle.kl:.2f} nats a reply{stopped}")
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
