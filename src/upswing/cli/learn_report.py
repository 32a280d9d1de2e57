"""What did the loop learn, cycle by cycle? Reward by model, what each cycle learned on, what was rejected and why."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from upswing.cli.learn_view import Cycle, Earned, History, draw, render
from upswing.cli.training import read
from upswing.contracts.steps import number
from upswing.train.movement import movement_of

if TYPE_CHECKING:
    from upswing.adapters.sql.database import Database, Row
    from upswing.contracts.validation import Interval
    from upswing.ports import Decision


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
    from upswing.adapters.sql.earnings import BY_MODEL
    from upswing.adapters.sql.jobs import Jobs
    from upswing.adapters.sql.models import Models
    from upswing.adapters.sql.rollouts import Rollouts
    from upswing.adapters.sql.signals import SignalReader
    from upswing.adapters.sql.validations import Validations

    jobs, models = Jobs(database), Models(database)
    rollouts, validations = Rollouts(database), Validations(database)
    rows = await database.read(lambda tx: tx.rows(BY_MODEL))
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
            movement_of(job.request.training_config.algorithm, about),
            _interval(report.improvement) if report else None,
            report.word if report else "",
            (*_failure(job.status.error), *dict.fromkeys(reasons)),
            earned.get(name) if name else None,
            evidence.get(name or "") or (tuple(report.reasons) if report else ()),
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
