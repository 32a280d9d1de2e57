"""What came of it? The rows of a finished run, as a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from upswing.demo.heldout import Measured, held_out_interval, measured_improvement
from upswing.demo.plan import DemoPlan
from upswing.demo.summary import ModelLine, Summary
from upswing.demo.view import Line
from upswing.records import ModelRow
from upswing.validate.repository import ValidationRow

Rollouts = Sequence[dict[str, Any]]
_STATES = {"deployed": "promoted", "retired": "retired", "rolled_back": "rolled back"}


def summarise_demo(
    plan: DemoPlan,
    measured: Sequence[Measured],
    *,
    models: Sequence[ModelRow],
    rollouts: Rollouts,
    validations: Sequence[ValidationRow],
    stages: Mapping[str, float],
    seconds: float,
    episodes: int,
    rollback_seconds: float | None,
    memory_gb: float | None,
    files: Mapping[str, str],
    log: Sequence[Line],
) -> Summary:
    """The whole; `measured` has at least one measurement, the base's."""
    first, last = (
        held_out_interval(measured[0], plan.seed),
        held_out_interval(measured[-1], plan.seed),
    )
    change = measured_improvement(measured[0], measured[-1], plan.seed)
    improved = change.lower > 0
    rolled_back = tuple(
        dict.fromkeys(each["model_id"] for each in rollouts if each["state"] == "rolled_back")
    )
    return Summary(
        world=plan.world,
        model=plan.model,
        seed=plan.seed,
        heldout_before=first.mean,
        heldout_before_interval=(first.low, first.high),
        heldout_after=last.mean,
        heldout_after_interval=(last.low, last.high),
        heldout_tasks=change.tasks,
        improved=improved,
        difference=change.estimate,
        difference_interval=(change.lower, change.upper),
        measured=tuple(held_out_interval(each, plan.seed) for each in measured),
        rolled_back=rolled_back,
        taken_back_seconds=rollback_seconds,
        seconds=round(seconds, 1),
        stages=dict(stages),
        models=_model_lines(plan, models, rollouts, validations),
        episodes=episodes,
        peak_memory_gb=memory_gb,
        files=dict(files),
        decisions=tuple(log),
        sentence=_result_sentence(first.mean, last.mean, improved, rolled_back),
    )


def _model_lines(
    plan: DemoPlan,
    models: Sequence[ModelRow],
    rollouts: Rollouts,
    validations: Sequence[ValidationRow],
) -> tuple[ModelLine, ...]:
    validation_by_model = {row.candidate: row for row in reversed(validations)}
    rollout_by_model = {each["model_id"]: each for each in reversed(rollouts)}
    lines = [ModelLine(plan.model, None, "base", "What everything began with.")]
    for row in sorted(models, key=lambda row: row.version):
        validation, rollout = (
            validation_by_model.get(row.model_id),
            rollout_by_model.get(row.model_id),
        )
        why = (rollout or {}).get("sentence") or (validation.sentence if validation else None) or ""
        lines.append(
            ModelLine(
                row.model_id,
                row.parent,
                _STATES.get(row.state, row.state),
                why,
                validation.improvement if validation else None,
            )
        )
    return tuple(lines)


def _result_sentence(
    before: float, after: float, improved: bool, rolled_back: Sequence[str]
) -> str:
    """The result in words.

    >>> _result_sentence(0.25, 0.8, True, ["sabotage-1"])
    'The agents score 0.80 on held-out tasks, from 0.25. The loop rolled back sabotage-1.'
    """
    gain = (
        f"The agents score {after:.2f} on held-out tasks, from {before:.2f}."
        if improved
        else f"Training did not help: {after:.2f} on held-out tasks, from {before:.2f}."
    )
    rollback = (
        f"The loop rolled back {', '.join(rolled_back)}."
        if rolled_back
        else "No model was rolled back."
    )
    return f"{gain} {rollback}"
