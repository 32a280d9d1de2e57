"""How good is a model on tasks that neither training nor validation saw, and is it better than another?

    measure(world, policy)  ─▶ scores by task ─▶ mean_interval(after), gain_interval(before, after)

Every task is sampled several times, with the same chances for every model, and two models are
compared task by task: what makes a task hard is the same for both and falls out of the difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from upswing.worlds.world import T, World, third_split

if TYPE_CHECKING:
    from upswing.worlds.sampler import SamplingPolicy

SAMPLES = 4
"""Attempts at each task."""
TASKS = 300
Z = 1.959964
"""Standard errors on either side of a mean that hold it in 95 of 100 cases."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over tasks, and where it lies in 95 of 100 cases."""

    mean: float
    lower: float
    upper: float
    tasks: int

    def to_json(self) -> dict[str, float]:
        return {
            "mean": round(self.mean, 4),
            "lower": round(self.lower, 4),
            "upper": round(self.upper, 4),
            "tasks": self.tasks,
        }


def measure_policy(
    world: World[T, Any],
    policy: SamplingPolicy,
    *,
    tasks: Sequence[T] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, float]:
    """Task → the mean score of its samples, on the third split unless other tasks are given.

    What a fault of the world spoiled says nothing.
    """
    from upswing.worlds.sampler import play_episodes  # noqa: PLC0415 - brings torch

    chosen = third_split(world)[:TASKS] if tasks is None else tasks
    scores: dict[str, list[float]] = {}
    for episode in play_episodes(world, chosen, policy, group=samples, seed=seed):
        if not episode.outcome.fault:
            scores.setdefault(episode.task.task_id, []).append(episode.outcome.score)
    return {task: fmean(some) for task, some in scores.items()}


def mean_interval(scores: Mapping[str, float]) -> Interval:
    """The mean score.

    >>> mean_interval({"a": 0.0, "b": 1.0}).mean
    0.5
    """
    return _confidence_interval(list(scores.values()))


def gain_interval(before: Mapping[str, float], after: Mapping[str, float]) -> Interval:
    """After − before, on the tasks that both have done.

    >>> found = gain_interval({"a": 0.1, "b": 0.4, "c": 0.0}, {"a": 0.35, "b": 0.65, "d": 1.0})
    >>> round(found.mean, 2), round(found.lower, 2), found.tasks
    (0.25, 0.25, 2)
    """
    return _confidence_interval([after[task] - before[task] for task in before if task in after])


def _confidence_interval(values: list[float]) -> Interval:
    if len(values) < 2:
        raise ValueError("an interval needs two tasks at least")
    mean = fmean(values)
    half = Z * stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))
