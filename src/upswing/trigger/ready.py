"""Is there enough to train on?

| rule               | what it asks for                                                          |
|--------------------|---------------------------------------------------------------------------|
| `min_trajectories` | scored trajectories without an infrastructure fault, evaluations left out |
| `min_groups`       | windows and scenarios in which `min_agents` different agents acted        |
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from upswing.ports import Pool

COMPARING = frozenset({"grpo", "rloo", "dpo"})
"""Algorithms that compare agents of the same group; the others learn from single trajectories."""


@dataclass(frozen=True, slots=True)
class Minimums:
    """What the config asks for."""

    trajectories: int = 100
    groups: int = 1
    agents: int = 5


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer, and what is missing."""

    ready: bool
    reason: str


def readiness(pool: Pool, minimums: Minimums) -> Readiness:
    """Whether all rules are met.

    >>> readiness(Pool(trajectories=250, groups=15), Minimums())
    Readiness(ready=True, reason='Ready to train!')
    >>> readiness(Pool(trajectories=40, groups=0), Minimums()).reason
    '40 of 100 trajectories; 0 of 1 group with 5 or more agents.'
    """
    missing = []
    if not pool.trajectories >= minimums.trajectories:
        missing.append(f"{pool.trajectories} of {minimums.trajectories} trajectories")
    if not pool.groups >= minimums.groups:
        groups = "group" if minimums.groups == 1 else "groups"
        missing.append(
            f"{pool.groups} of {minimums.groups} {groups} with {minimums.agents} or more agents"
        )
    return Readiness(False, "; ".join(missing) + ".") if missing else Readiness(True, "Ready to train!")  # fmt: skip


def minimums_for(algorithm: str, minimums: Minimums) -> Minimums:
    """An algorithm that compares nobody needs no groups."""
    return minimums if algorithm in COMPARING else replace(minimums, groups=0)
