"""How much better is the candidate, and how sure is that? A paired bootstrap by task.

The unit is the task: both models have done it with the same seeds, the difference of the two scores
is averaged over the seeds, and tasks are drawn with replacement. Seeds of one task are no
independent evidence, and so do not narrow the interval by themselves.

With every task two more are drawn from: one that the candidate has won outright and one that it has
lost. Without them a bootstrap of tasks that all came out even would claim to be certain; with them
twenty such tasks still leave ±0.13 open, as they should (the rule of three says 0.14). They widen
the interval and do not touch the estimate. [After Agresti and Min, who add half an observation to
each cell of a paired table.]

Chance is a stream of hash bytes from the seed: the same tasks and seed give the same interval on
every machine, and swapping the two models turns it exactly around. Raising a score never lowers a
bound, because which tasks are drawn does not depend on their scores.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import shake_256

from upswing.contracts.validation import SIDES, SampleScore, Side

BOOTSTRAP_RESAMPLES = 1000
"""Draws; each counts twice, with the two added tasks one way and the other way round."""
LEVEL = 0.95
ERROR = 0.05
"""The share of models that are not better and may be called better, over all looks."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate − current, from −1 to 1. NaN when a score was not a number."""

    estimate: float
    lower: float
    upper: float
    tasks: int


def confidence_level(looks: int) -> float:
    """The level of each look's interval.

    >>> round(confidence_level(3), 4), confidence_level(1)
    (0.9833, 0.95)
    """
    return 1 - ERROR / max(1, looks)


def paired_scores(sample_scores: Iterable[SampleScore]) -> dict[str, tuple[float, float]]:
    """Task → (candidate's mean, current's mean) over the seeds that both have a score for."""
    scores: dict[tuple[str, int], dict[str, float]] = {}
    for sample_score in sample_scores:
        if sample_score.score is not None and sample_score.side in SIDES:
            scores.setdefault((sample_score.task_id, sample_score.seed), {})[sample_score.side] = (
                sample_score.score
            )
    pairs: dict[str, list[tuple[float, float]]] = {}
    for (task_id, _), sides in sorted(scores.items()):
        if len(sides) == 2:
            pairs.setdefault(task_id, []).append((sides["candidate"], sides["current"]))
    return {
        task_id: (_mean([one for one, _ in both]), _mean([other for _, other in both]))
        for task_id, both in pairs.items()
    }


def scores_beside(
    sample_scores: Iterable[SampleScore], other_side: Side
) -> dict[str, tuple[float, float]]:
    """Task → (candidate's mean, the other's mean), each over all the seeds that it has a score for."""
    scores: dict[str, dict[str, list[float]]] = {}
    for sample_score in sorted(sample_scores, key=lambda each: (each.task_id, each.seed)):
        if sample_score.score is not None and sample_score.side in {"candidate", other_side}:
            scores.setdefault(sample_score.task_id, {}).setdefault(sample_score.side, []).append(
                sample_score.score
            )
    return {
        task_id: (_mean(sides["candidate"]), _mean(sides[other_side]))
        for task_id, sides in scores.items()
        if len(sides) == 2
    }


def bootstrap_difference(
    groups: Sequence[Mapping[str, tuple[float, float]]],
    seed: int,
    *,
    resamples: int = BOOTSTRAP_RESAMPLES,
    level: float = LEVEL,
) -> Difference | None:
    """The mean difference of each group of tasks, and of these the mean; None without any task.

    Every group counts the same, however many tasks it has; tasks are drawn within their group.

    >>> even = {f"t{i}": (1.0, 1.0) for i in range(20)}
    >>> even_so = bootstrap_difference([even], seed=0)
    >>> even_so.estimate, round(even_so.lower, 1), round(even_so.upper, 1)
    (0.0, -0.1, 0.1)
    """
    delta_groups = [
        [one - other for _, (one, other) in sorted(group.items())] for group in groups if group
    ]
    if not delta_groups:
        return None
    tasks = sum(map(len, delta_groups))
    estimate = _mean([_mean(deltas) for deltas in delta_groups])
    if not all(math.isfinite(delta) for deltas in delta_groups for delta in deltas):
        return Difference(math.nan, math.nan, math.nan, tasks)
    resampled = [
        _resampled_means(deltas, f"{seed}/{index}", resamples)
        for index, deltas in enumerate(delta_groups)
    ]
    means = sorted(math.fsum(each) / len(each) for each in zip(*resampled, strict=True))
    cut = int(len(means) * (1 - level) / 2)
    return Difference(estimate, means[cut], means[-1 - cut], tasks)


def _resampled_means(deltas: Sequence[float], seed: str, resamples: int) -> list[float]:
    """Means of tasks drawn with replacement, the two added ones among them."""
    count = len(deltas) + 2
    random_words = array("I", shake_256(seed.encode()).digest(4 * count * resamples))
    if sys.byteorder == "big":
        random_words.byteswap()
    won_first = [*deltas, 1.0, -1.0].__getitem__
    lost_first = [*deltas, -1.0, 1.0].__getitem__
    means = []
    for start in range(0, len(random_words), count):
        indices = [
            (random_word * count) >> 32 for random_word in random_words[start : start + count]
        ]
        means.append(math.fsum(map(won_first, indices)) / count)
        means.append(math.fsum(map(lost_first, indices)) / count)
    return means


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan
