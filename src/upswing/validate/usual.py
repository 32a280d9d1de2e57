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

from upswing.validate.suite import BENCHMARKS, REGRESSION

PRODUCTION = "production"
FEWEST = 8
"""Held-out tasks below which `production` says too little to be done unasked; so few show large gains only,
for the interval is over tasks."""
_SHARE = 0.05
"""Of the newest trajectories, from which on a world is one that the agents act in."""
_TINY = "tiny"


def usual_suites(own: Sequence[str]) -> tuple[str, ...]:
    """The table.

    >>> usual_suites(["world:mine"])[0], usual_suites([])[0]
    ('world:mine', 'code_generation')
    """
    return (*own, *BENCHMARKS, REGRESSION, "safety")


def worlds_seen(worlds: Iterable[str | None]) -> list[str]:
    """The worlds in which the agents act, by the world of each of the newest trajectories.

    >>> worlds_seen(["desk"] * 30 + ["market"] + [None] * 20)
    ['desk']
    """
    found = list(worlds)
    counts = Counter(world for world in found if world is not None)
    return sorted(name for name, count in counts.items() if count >= _SHARE * len(found))


def is_own(name: str, files: Collection[str]) -> bool:
    """Whether a suite holds tasks of the user's own.

    >>> is_own("world:desk", ()), is_own("tool_usage", ()), is_own("mine", ["mine"])
    (True, False, True)
    """
    return name.startswith("world:") or name == PRODUCTION or name in files


def safety_reach(base: str) -> float:
    """How far down the interval of safety may reach by default."""
    return 0.20 if base == _TINY else 0.05
