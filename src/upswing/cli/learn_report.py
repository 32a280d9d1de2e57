"""What did the loop learn, cycle by cycle? Reward by model, what each cycle learned on, what was rejected and why."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from upswing.cli.learn_view import Cycle, History, ModelEarnings, draw_chart, render
from upswing.cli.training import read_store
from upswing.contracts.steps import finite_number_or_none
from upswing.errors import count_phrase
from upswing.train.core.policy_change import policy_change

if TYPE_CHECKING:
    from upswing.contracts.validation import DifferenceInterval, ValidationReport
    from upswing.infra.sql.database import Database, Row
    from upswing.records import Decision


def learn_report(arguments: argparse.Namespace) -> int:
    """Print it; with --chart, draw it too."""
    from upswing.config import defaults, read_settings, read_surroundings

    settings, surroundings = (
        read_settings(arguments.data, os.environ),
        read_surroundings(os.environ),
    )
    base = defaults(settings, surroundings).base_model
    history = read_store(arguments.data, lambda database: gather(database, base))
    if arguments.chart:
        draw_chart(history, arguments.chart)
    if arguments.json:
        print(json.dumps(asdict(history), indent=2, default=str))
    else:
        print("\n".join(render(history)))
    return 0


async def gather(database: Database, base: str | None = None) -> History:
    """Everything from the store, which is only read; `base` is what training starts from at first."""
    from upswing.deploy.repository import RolloutRepository
    from upswing.infra.sql.earnings import BY_MODEL
    from upswing.infra.sql.models import Models
    from upswing.train.jobs.repository import JobRepository
    from upswing.trigger.signals import SignalReader
    from upswing.validate.repository import Validations

    jobs, models = JobRepository(database), Models(database)
    rollouts, validations = RolloutRepository(database), Validations(database)
    rows = await database.read(lambda tx: tx.rows(BY_MODEL))
    earned = dict(database.bad_rows.read_each("report", "scored", rows, _earnings_row))
    incidents = await rollouts.incidents(1000)
    evidence = await _decision_reasons(database)
    cycles: list[Cycle] = []
    for number_of_cycle, job in enumerate(reversed(await jobs.list(limit=1000)), 1):
        about = job.status.metadata if isinstance(job.status.metadata, dict) else {}
        model = await models.by_job(job.job_id)
        name = model.model_id if model else None
        run = await validations.of_candidate(name) if name else None
        report = run.report if run else None
        reasons = [each.sentence for each in incidents if each.model_id == name] if name else []
        cycles.append(
            Cycle(
                number_of_cycle,
                job.job_id,
                job.created,
                job.request.training_config.algorithm,
                job.state,
                _number_at(job.status.resource_usage, "total_training_time_seconds"),
                _shares(about.get("policy_versions")),
                _count(about.get("examples")),
                _count(about.get("groups")) - _count(about.get("groups_without_variance")),
                name,
                model.parent if model else None,
                model.state if model else None,
                policy_change(job.request.training_config.algorithm, about),
                _interval(report.improvement) if report else None,
                report.verdict if report else "",
                (*_failure_reasons(job.status.error), *dict.fromkeys(reasons)),
                earned.get(name) if name else None,
                evidence.get(name or "") or (tuple(report.reasons) if report else ()),
                _compared_on(report) if report else "",
            )
        )
    trained = {cycle.model_id for cycle in cycles}
    there = await SignalReader(database).learnable(base)
    others = {n: e for n, e in earned.items() if n not in trained}
    return History(others, tuple(cycles), there.tasks.sentence)


def _compared_on(report: ValidationReport) -> str:
    """How many tasks of which suites the improvement is over."""
    names = ", ".join(suite.name for suite in report.suites if suite.counted)
    if report.improvement is None or not names:
        return ""
    return f"{count_phrase(report.improvement.tasks, 'task')} of {names}"


def _count(value: Any) -> int:
    return int(finite_number_or_none(value) or 0)


def _shares(value: Any) -> dict[str, float]:
    items = value.items() if isinstance(value, dict) else ()
    return {
        str(name): share
        for name, each in items
        if (share := finite_number_or_none(each)) is not None
    }


def _earnings_row(row: Row) -> tuple[str, ModelEarnings]:
    return str(row[0]), ModelEarnings(int(row[1]), float(row[2]), finite_number_or_none(row[3]))


async def _decision_reasons(database: Database) -> dict[str, tuple[str, ...]]:
    """Model → the reasons of the newest verdict on it, as the journal has them."""
    from upswing.infra.sql.decisions import Decisions

    found: dict[str, tuple[str, ...]] = {}

    def read_decision(decision: Decision) -> None:
        inputs = json.loads(decision.inputs)
        if isinstance(inputs, dict) and inputs.get("type") == "judged":
            found.setdefault(str(inputs["model_id"]), tuple(map(str, inputs["reasons"])))

    journal = await Decisions(database).list("deploy", limit=5000)
    database.bad_rows.read_each(
        "report", "decisions", journal, read_decision, key=lambda each: each.decision_id
    )
    return found


def _interval(found: DifferenceInterval | None) -> tuple[float, float, float] | None:
    """Estimate and bounds, where all of them are numbers."""
    if found is None or found.estimate is None or found.lower is None or found.upper is None:
        return None
    return found.estimate, found.lower, found.upper


def _number_at(part: Any, name: str) -> float | None:
    value = getattr(part, name, None)
    return float(value) if isinstance(value, int | float) else None


def _failure_reasons(error: Any) -> tuple[str, ...]:
    message = getattr(error, "message", None)
    return (message,) if isinstance(message, str) else ()
