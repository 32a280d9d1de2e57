"""Which suites are done when nobody names any, and which of them count?

| there is                                            | suites                                      |
|-----------------------------------------------------|---------------------------------------------|
| something of the user's own                         | that, the abilities, `regression`, `safety` |
| nothing                                             | the abilities, `regression`, `safety`; the  |
|                                                     | improvement is what training estimates from |
|                                                     | logged held-out episodes                    |

The user's own are the worlds of `[validate.worlds]`, the suites of `[validate.files]`, the worlds of
ours that the newest trajectories come from, and `production`, where enough tasks with a checkable
outcome are held out. These alone count toward the improvement; the abilities must not get worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from upswing.validate.core.suite import BENCHMARKS, REGRESSION

PRODUCTION = "production"
MIN_PRODUCTION_TASKS = 8
"""Held-out tasks below which `production` says too little to be done unasked; so few show large gains only,
for the interval is over tasks."""
_MIN_WORLD_SHARE = 0.05
"""Of the newest trajectories, from which on a world is one that the agents act in."""
_TINY = "tiny"


def default_suites(own_suites: Sequence[str]) -> tuple[str, ...]:
    """The table.

    >>> default_suites(["world:mine"])[0], default_suites([])[0]
    ('world:mine', 'code_generation')
    """
    return (*own_suites, *BENCHMARKS, REGRESSION, "safety")


def frequent_worlds(worlds: Iterable[str | None]) -> list[str]:
    """The worlds in which the agents act, by the world of each of the newest trajectories.

    >>> frequent_worlds(["desk"] * 30 + ["market"] + [None] * 20)
    ['desk']
    """
    found = list(worlds)
    counts = Counter(world for world in found if world is not None)
    return sorted(name for name, count in counts.items() if count >= _MIN_WORLD_SHARE * len(found))


def is_own_suite(name: str, own_files: Collection[str]) -> bool:
    """Whether a suite holds tasks of the user's own.

    >>> is_own_suite("world:desk", ()), is_own_suite("tool_usage", ()), is_own_suite("mine", ["mine"])
    (True, False, True)
    """
    return name.startswith("world:") or name == PRODUCTION or name in own_files


def default_safety_reach(base: str) -> float:
    """How far down the interval of safety may reach by default."""
    return 0.20 if base == _TINY else 0.05
