"""What would a job do, before it does anything? The figures of `upswing train --dry-run`.

Seconds and memory are those of the newest completed job of the same base, in proportion to what there
is to pass; before there is one, a rough guess from the base's size, and it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.dataset.filtering import ExclusionReason, describe_exclusions
from upswing.dataset.select import GROUPED
from upswing.dataset.snapshot import Snapshot
from upswing.errors import count_phrase
from upswing.train.core.fit import FittedRecipe

_PASS_SECONDS, _PER_WEIGHT = 0.004, 1.3e-9
"""Of one trajectory, without and by the base's weights: `tiny` and `smollm2` on one core."""
_BYTES, _BYTES_FULL, _AT_REST = 6.0, 20.0, 0.35e9
"""Of memory for each weight with an adapter, with all weights trained, and for the libraries."""


class TrainingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would be trained on, how it was chosen, and with which settings."""

    algorithm: str
    base_model: str
    starts_from: str
    """The model whose weights are taken: the one that answers, or the base."""
    trajectories: int
    """Trained on."""
    held_out: int
    """Measured, and not trained on."""
    usable_groups: int
    sources: dict[str, int]
    """Who scored how many groups; where single attempts are learned from, how many of these."""
    policies: dict[str, int]
    """Trajectories by the policy that acted."""
    off_policy: float
    left_out: dict[str, int]
    notes: list[str]
    settings: dict[str, Any]
    why: dict[str, str]
    """Of settings that nobody made."""
    seconds: float
    memory_gb: float
    estimated_from: str
    ready: bool = True
    """Whether that is as much as it takes; without it, only a person who insists gets a job."""
    verdict: str = ""
    """What is missing, and how many tasks are always solved, sometimes or never."""


@dataclass(frozen=True, slots=True)
class CompletedJob:
    """A job that was completed."""

    job_id: str
    passes: int
    """Trajectories times epochs."""
    seconds: float
    memory_gb: float


def build_plan(
    snapshot: Snapshot,
    fitted: FittedRecipe,
    *,
    base_model: str,
    starts_from: str,
    parameters: int,
    full: bool,
    earlier: Sequence[CompletedJob],
) -> TrainingPlan:
    """The plan of a job with this data and these settings."""
    recipe, trained = fitted.recipe, len(snapshot.trained())
    held = len(snapshot.entries) - trained
    passes = trained * recipe.epochs * recipe.iterations
    seconds, memory, estimated_from = _estimate_cost(passes, parameters, full, earlier)
    settings = {
        "learning_rate": recipe.learning_rate,
        "batch_size": recipe.batch_size,
        "epochs": recipe.epochs,
        "clip": [recipe.clip_low, recipe.clip_high],
        "kl_beta": recipe.kl_beta,
        "warmup": recipe.warmup,
        "weights": "all" if full else f"an adapter of rank {recipe.lora.rank}",
    }
    return TrainingPlan(
        algorithm=recipe.algorithm,
        base_model=base_model,
        starts_from=starts_from,
        trajectories=trained,
        held_out=held,
        usable_groups=snapshot.trained_groups,
        sources=snapshot.sources,
        policies=snapshot.policies,
        off_policy=snapshot.off_policy,
        left_out=snapshot.left_out,
        notes=snapshot.notes,
        settings=settings,
        why=dict(fitted.reasons),
        seconds=round(seconds, 1),
        memory_gb=round(memory, 2),
        estimated_from=estimated_from,
    )


def _estimate_cost(
    passes: int, parameters: int, full: bool, earlier: Sequence[CompletedJob]
) -> tuple[float, float, str]:
    known = next((job for job in earlier if job.passes > 0 and job.seconds > 0), None)
    if known is not None:
        return known.seconds * passes / known.passes, known.memory_gb, f"job {known.job_id}"
    seconds = 10 + passes * (_PASS_SECONDS + _PER_WEIGHT * parameters)
    memory = (_AT_REST + parameters * (_BYTES_FULL if full else _BYTES)) / 1e9
    return seconds, memory, "the size of the base, roughly: no job of it was completed yet"


def plan_lines(plan: TrainingPlan) -> list[str]:
    """The plan for a person."""
    share = f"{plan.off_policy:.0%}".replace("%", " %")
    grouped = plan.algorithm in GROUPED
    on = count_phrase(plan.trajectories, "attempt")
    if grouped:
        many = count_phrase(plan.trajectories, "trajectory", "trajectories")
        on = f"{many} in {count_phrase(plan.usable_groups, 'group')}"
    lines = [
        f"{plan.algorithm} would train {plan.starts_from} on {on}; {plan.held_out} more {'is' if plan.held_out == 1 else 'are'} only measured with.",
        f"  made by      {_counts_text(plan.policies)}; {share} off-policy",
        f"  scored by    {_scored_text(plan.sources, 'group' if grouped else 'attempt')}",
        f"  left out     {describe_exclusions(_known_reasons(plan.left_out)) or 'nothing'}",
        f"  takes        about {plan.seconds:.0f} s and {plan.memory_gb:.1f} GB (from {plan.estimated_from})",
    ]
    lines += [f"  note         {note}" for note in plan.notes]
    lines.append("  settings")
    for name, value in plan.settings.items():
        why = f"  ({plan.why[name]})" if name in plan.why else ""
        lines.append(f"    {name:<14} {value}{why}")
    if not plan.ready:
        lines.append(f"Not ready to train: {plan.verdict} `upswing train --force` trains anyway.")
    elif plan.verdict:
        lines.append(plan.verdict)
    return lines


def _known_reasons(counts: Mapping[str, int]) -> dict[ExclusionReason, int]:
    """Those reasons that have words."""
    return {
        ExclusionReason(name): count
        for name, count in counts.items()
        if name in set(ExclusionReason)
    }


def _scored_text(sources: Mapping[str, int], unit: str) -> str:
    """Who scored how many.

    >>> _scored_text({"judge": 1, "verified": 9}, "group")
    'judge 1 group, verified 9 groups'
    """
    return ", ".join(
        f"{name} {count} {unit}{'' if count == 1 else 's'}" for name, count in sources.items()
    )


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
