"""What came of it? The rows of a finished run, as a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from upswing.adapters.sql.validations import ValidationRow
from upswing.demo.heldout import Measured, better, told
from upswing.demo.plan import Plan
from upswing.demo.summary import ModelLine, Summary
from upswing.demo.view import Line
from upswing.ports import ModelRow

Rollouts = Sequence[dict[str, Any]]
_STATES = {"deployed": "promoted", "retired": "retired", "rolled_back": "rolled back"}


def summarise(
    plan: Plan, measured: Sequence[Measured], *, models: Sequence[ModelRow], rollouts: Rollouts,
    validations: Sequence[ValidationRow], stages: Mapping[str, float], seconds: float, episodes: int,
    taken_back: float | None, memory_gb: float | None, files: Mapping[str, str], log: Sequence[Line],
) -> Summary:  # fmt: skip
    """The whole; `measured` has at least one measurement, the base's."""
    first, last = told(measured[0], plan.seed), told(measured[-1], plan.seed)
    change = better(measured[0], measured[-1], plan.seed)
    improved = change.lower > 0
    back = tuple(
        dict.fromkeys(each["model_id"] for each in rollouts if each["state"] == "rolled_back")
    )
    return Summary(
        world=plan.world, model=plan.model, seed=plan.seed,
        heldout_before=first.mean, heldout_before_interval=(first.low, first.high),
        heldout_after=last.mean, heldout_after_interval=(last.low, last.high),
        heldout_tasks=change.tasks, improved=improved,
        difference=change.estimate, difference_interval=(change.lower, change.upper),
        measured=tuple(told(each, plan.seed) for each in measured),
        rolled_back=back, taken_back_seconds=taken_back, seconds=round(seconds, 1),
        stages=dict(stages), models=_lines(plan, models, rollouts, validations), episodes=episodes,
        peak_memory_gb=memory_gb, files=dict(files), decisions=tuple(log),
        sentence=_sentence(first.mean, last.mean, improved, back),
    )  # fmt: skip


def _lines(
    plan: Plan, models: Sequence[ModelRow], rollouts: Rollouts, validations: Sequence[ValidationRow]
) -> tuple[ModelLine, ...]:
    proofs = {row.candidate: row for row in reversed(validations)}
    ways = {each["model_id"]: each for each in reversed(rollouts)}
    lines = [ModelLine(plan.model, None, "base", "What everything began with.")]
    for row in sorted(models, key=lambda row: row.version):
        proof, way = proofs.get(row.model_id), ways.get(row.model_id)
        why = (way or {}).get("sentence") or (proof.sentence if proof else None) or ""
        lines.append(
            ModelLine(
                row.model_id, row.parent, _STATES.get(row.state, row.state), why,
                proof.improvement if proof else None,
            )
        )  # fmt: skip
    return tuple(lines)


def _sentence(before: float, after: float, improved: bool, back: Sequence[str]) -> str:
    """The result in words.

    >>> _sentence(0.25, 0.8, True, ["sabotage-1"])
    'The agents score 0.80 on held-out tasks, from 0.25. The loop took back sabotage-1.'
    """
    gain = (
        f"The agents score {after:.2f} on held-out tasks, from {before:.2f}."
        if improved
        else f"Training did not help: {after:.2f} on held-out tasks, from {before:.2f}."
    )
    taken = f"The loop took back {', '.join(back)}." if back else "No model was taken back."
    return f"{gain} {taken}"
