"""Which tasks are worth trying next? Those at which attempts still differ.

Attempts at a task that is always solved, or never, are all alike: there is nothing to compare and
nothing to learn. So a task weighs as much as the chance that the next four attempts at it differ,
given what the current policy has done with it:

| attempts, successes | 0, 0 | 4, 0 | 4, 1 | 4, 2 | 4, 4 | 20, 20 |
|---------------------|------|------|------|------|------|--------|
| weight              | 0.45 | 0.28 | 0.63 | 0.74 | 0.28 | 0.09   |

No task weighs less than `MIN_WEIGHT`, so that none is given up: a later policy may solve it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from random import Random

GROUP_SIZE = 4
"""Attempts that are compared with each other."""
PRIOR_ATTEMPTS = 0.5
"""Successes, and failures, that every task is taken to have had before the first attempt."""
MIN_WEIGHT = 0.05


@dataclass(frozen=True, slots=True)
class TaskAttempts:
    """What one policy did with one task."""

    attempts: int = 0
    successes: int = 0


def sampling_weight(attempts: TaskAttempts) -> float:
    """The chance that the next attempts differ.

    >>> [round(sampling_weight(TaskAttempts(*each)), 2) for each in ((0, 0), (4, 0), (4, 1), (4, 2), (20, 20))]
    [0.45, 0.28, 0.63, 0.74, 0.09]
    """
    good = PRIOR_ATTEMPTS + attempts.successes
    bad = PRIOR_ATTEMPTS + attempts.attempts - attempts.successes
    return max(
        MIN_WEIGHT,
        1
        - _identical_group_probability(good, good + bad)
        - _identical_group_probability(bad, good + bad),
    )


def choose_tasks(
    stats: Mapping[str, TaskAttempts], tasks: Sequence[str], count: int, seed: int | str
) -> list[str]:
    """`n` different tasks (all of them, if there are fewer), drawn by their weights.

    The same arguments give the same tasks.

    >>> known = {"easy": TaskAttempts(40, 40), "hard": TaskAttempts(40, 0), "fit": TaskAttempts(8, 4)}
    >>> drawn = [choose_tasks(known, ("easy", "hard", "fit"), 1, seed)[0] for seed in range(300)]
    >>> drawn.count("fit") > 200, drawn.count("easy") > 0, drawn.count("hard") > 0
    (True, True, True)
    """
    chance = Random(f"curriculum/{seed}")  # noqa: S311 - a draw, not a secret
    keys = {
        task: chance.random() ** (1 / sampling_weight(stats.get(task, TaskAttempts())))
        for task in tasks
    }
    return sorted(keys, key=lambda task: (-keys[task], task))[:count]


def _identical_group_probability(good: float, both: float) -> float:
    """The chance that a whole group goes one way, over what may be believed of the task."""
    return prod((good + place) / (both + place) for place in range(GROUP_SIZE))
