"""How good is the model that answers now, on tasks that nobody learned from? And is that better?

The score of every task is kept, so that two models are compared task by task. Intervals are a paired
bootstrap over tasks, the one that validation uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from msgspec import Struct

from upswing.demo.summary import HeldOut
from upswing.validate.core.compare import Difference, bootstrap_difference
from upswing.worlds.agent_episodes import EpisodeResult


class Measured(Struct, frozen=True):
    """One measurement."""

    model_id: str
    scores: dict[str, float]
    """Task → score."""

    @property
    def mean(self) -> float:
        return sum(self.scores.values()) / len(self.scores)


def mean_scores(results: Iterable[EpisodeResult]) -> dict[str, float]:
    """Task → the mean score of its samples; what a fault spoiled says nothing.

    >>> mean_scores([EpisodeResult("m", "t", "a", score, False, False, 1) for score in (0.0, 1.0)])
    {'t': 0.5}
    """
    scores: dict[str, list[float]] = {}
    for each in results:
        if each.model and not each.fault:
            scores.setdefault(each.task_id, []).append(each.score)
    return {task: fmean(some) for task, some in scores.items()}


def held_out_interval(measured: Measured, seed: int) -> HeldOut:
    """The mean with its interval, which stays within the scores that there are.

    >>> held_out_interval(Measured("tiny", {"a": 0.0, "b": 1.0}), 0).mean
    0.5
    """
    found = _difference_of_scores({}, measured.scores, seed)
    return HeldOut(
        measured.model_id, found.estimate, max(0.0, found.lower), min(1.0, found.upper), found.tasks
    )


def measured_improvement(before: Measured, after: Measured, seed: int) -> Difference:
    """After − before, on the tasks that both have done.

    >>> same = Measured("tiny", {f"t{i}": 0.5 for i in range(40)})
    >>> measured_improvement(same, same, 0).estimate
    0.0
    """
    return _difference_of_scores(
        before.scores, {k: v for k, v in after.scores.items() if k in before.scores}, seed
    )


def _difference_of_scores(
    before: Mapping[str, float], after: Mapping[str, float], seed: int
) -> Difference:
    pairs = {task: (score, before.get(task, 0.0)) for task, score in after.items()}
    found = bootstrap_difference([pairs], seed)
    if found is None:
        raise ValueError("no task was done by both, so there is nothing to compare")
    return found
