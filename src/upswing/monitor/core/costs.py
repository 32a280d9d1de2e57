"""What has each model version cost? One figure: training it, judging its work, and serving its tokens.

| part     | is                                                                                       |
|----------|------------------------------------------------------------------------------------------|
| training | what its job states; of a job that ran without a price, its hours × `[costs] training_hour` |
| judge    | what the judge was paid for its groups: each group's price is shared by its members       |
| serving  | its tokens × `[costs] models`, else `million_tokens`                                       |

What belongs to no version stands apart: jobs that made no model, and judging whose group nobody knows any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from msgspec import Struct

from upswing.monitor.core.model_figures import MOST_MODELS, OTHER

_MILLION = 1_000_000
NOBODY = ""
"""The model of what belongs to none."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """US dollars."""

    training_hour: float = 0.0
    million_tokens: float = 0.0
    models: Mapping[str, float] = field(default_factory=dict)
    """Model → its own price for a million tokens."""

    def serving_usd(self, model: str, tokens: float) -> float:
        """What these tokens of a model cost.

        >>> PriceList(million_tokens=2.0, models={"large": 10.0}).serving_usd("large", 500_000)
        5.0
        """
        return tokens / _MILLION * self.models.get(model, self.million_tokens)


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What a model has used."""

    model: str
    trajectories: int = 0
    uncounted: int = 0
    """Trajectories that do not say how many tokens they took."""
    tokens: float = 0.0
    judge_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class TrainedJob:
    """What a job has used, and the model that it made."""

    model: str
    """Empty: it made none."""
    seconds: float
    usd: float
    """As the job states it."""


class ModelCost(Struct, frozen=True, kw_only=True):
    """One model version's cost, in US dollars."""

    model_id: str
    training_usd: float
    judge_usd: float
    serving_usd: float
    total_usd: float
    tokens: float
    trajectories: int
    uncounted: int
    usd_per_trajectory: float | None


class CostTable(Struct, frozen=True, kw_only=True):
    """What everything has cost."""

    models: tuple[ModelCost, ...] = ()
    """The dearest first; of very many, all others together."""
    without_model: dict[str, float] = {}
    """`training_usd` and `judge_usd` that belong to no version."""
    total_usd: float = 0.0


def cost_table(
    usage: Iterable[ModelUsage], jobs: Iterable[TrainedJob], prices: PriceList
) -> CostTable:
    """One figure for each model version."""
    used = {each.model: each for each in usage}
    trained: dict[str, list[float]] = {}
    for job in jobs:
        trained.setdefault(job.model, []).append(job_usd(job, prices))
    names = sorted((used.keys() | trained.keys()) - {NOBODY})
    costs = [_model_cost(name, used.get(name), trained.get(name, ()), prices) for name in names]
    apart = {
        "training_usd": _cents(fsum(trained.get(NOBODY, ()))),
        "judge_usd": _cents(used[NOBODY].judge_usd) if NOBODY in used else 0.0,
    }
    return CostTable(
        models=_told_by_name(costs),
        without_model=apart,
        total_usd=_cents(fsum((*(each.total_usd for each in costs), *apart.values()))),
    )


def _told_by_name(costs: Sequence[ModelCost]) -> tuple[ModelCost, ...]:
    """The dearest and most used, and all others together: anybody can name a model."""
    ordered = sorted(
        costs,
        key=lambda each: (
            each.model_id == OTHER,
            -each.total_usd,
            -each.trajectories,
            each.model_id,
        ),
    )
    rest = ordered[MOST_MODELS:]
    if len(rest) > 1:
        ordered = [*ordered[:MOST_MODELS], _together(rest)]
    return tuple(sorted(ordered, key=lambda each: (-each.total_usd, each.model_id)))


def _together(costs: Sequence[ModelCost]) -> ModelCost:
    trajectories = sum(each.trajectories for each in costs)
    total = fsum(each.total_usd for each in costs)
    return ModelCost(
        model_id=OTHER,
        training_usd=_cents(fsum(each.training_usd for each in costs)),
        judge_usd=_cents(fsum(each.judge_usd for each in costs)),
        serving_usd=_cents(fsum(each.serving_usd for each in costs)),
        total_usd=_cents(total),
        tokens=fsum(each.tokens for each in costs),
        trajectories=trajectories,
        uncounted=sum(each.uncounted for each in costs),
        usd_per_trajectory=total / trajectories if trajectories else None,
    )


def job_usd(job: TrainedJob, prices: PriceList) -> float:
    """What a job cost."""
    return job.usd or job.seconds / 3600 * prices.training_hour


def _model_cost(
    name: str, used: ModelUsage | None, trained: Sequence[float], prices: PriceList
) -> ModelCost:
    used = used or ModelUsage(name)
    training, serving = fsum(trained), prices.serving_usd(name, used.tokens)
    total = fsum((training, used.judge_usd, serving))
    return ModelCost(
        model_id=name,
        training_usd=_cents(training),
        judge_usd=_cents(used.judge_usd),
        serving_usd=_cents(serving),
        total_usd=_cents(total),
        tokens=used.tokens,
        trajectories=used.trajectories,
        uncounted=used.uncounted,
        usd_per_trajectory=total / used.trajectories if used.trajectories else None,
    )


def _cents(usd: float) -> float:
    """To a hundredth of a cent: sums of many small prices end in noise."""
    return round(usd, 4)


@dataclass(frozen=True, slots=True)
class JudgedMembers:
    """What a judged group was paid, and how many of its members each model has."""

    usd: float
    members: Mapping[str, int]


def share_judge_costs(spent_usd: float, groups: Iterable[JudgedMembers]) -> dict[str, float]:
    """Who the money was spent for, by model: in the end it is all of `spent_usd`.

    A group may have been asked about several times, of which its row has the last: its price only says how the
    whole is shared. What no group accounts for is nobody's.

    >>> share_judge_costs(3.0, [JudgedMembers(1.0, {"a": 3, "b": 1}), JudgedMembers(1.0, {"b": 4})])
    {'a': 1.125, 'b': 1.875}
    >>> share_judge_costs(3.0, [])
    {'': 3.0}
    """
    shares: dict[str, float] = {}
    for group in groups:
        whole = sum(group.members.values())
        for model, count in group.members.items():
            shares[model] = shares.get(model, 0.0) + group.usd * count / whole
    known = fsum(shares.values())
    if not known > 0:
        return {NOBODY: spent_usd} if spent_usd else {}
    return {model: spent_usd * share / known for model, share in sorted(shares.items())}
