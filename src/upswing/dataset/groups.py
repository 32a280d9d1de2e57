"""Which attempts are compared with each other, and is there something to learn from them?

| the trajectory                                        | its group                    | needs          |
|-------------------------------------------------------|------------------------------|----------------|
| says in which window or scenario it was (a continuous world, such as a market) | the same window and scenario | `min_agents` different agents, 5 |
| anything else                                         | the same task by the same policy | `min_attempts` attempts, 4, by one agent or many |

A task is `task_id`; a trajectory that names none, or whose recorder made one up, has a hash of its
redacted first request instead. A scenario that is the task itself makes no continuous world. Many
attempts at one task make several groups of at most 16, in the order of time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol, TypeVar

from upswing.dataset.scoring import (
    PRECEDENCE,
    Evidence,
    GroupScores,
    Source,
    group_scores,
    single_scores,
)

MIN_AGENTS = 5
MIN_ATTEMPTS = 4
MOST = 16
"""Attempts of one group: as many as give a fair baseline; more of them make another group."""
ENOUGH_GROUPS = 32
"""Groups with a difference in them that make comparing attempts worthwhile; with fewer, a batch is a
handful of comparisons, and single attempts say more."""


class Attempt(Evidence, Protocol):
    """What grouping needs to know of a trajectory."""

    @property
    def agent_id(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def continuous(self) -> bool: ...
    @property
    def order(self) -> float:
        """Rises with time."""
        ...

    @property
    def domain(self) -> str: ...

    @property
    def answers(self) -> str:
        """A hash of everything that the agent did; empty when it is not known."""
        ...


A = TypeVar("A", bound=Attempt)


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts that are compared, and how."""

    key: str
    size: int
    agents: int
    scored: GroupScores | None
    """None: no source has a word on enough of them."""
    enough: bool
    """Whether it has as many members as it needs."""
    identical: bool
    """Everybody did exactly the same: nothing was tried."""

    @property
    def usable(self) -> bool:
        """There is something to learn from it."""
        return self.enough and self.scored is not None and not self.scored.flat


def group_key(task: str, policy: str, window_id: str, scenario_id: str, *, continuous: bool) -> str:
    """Whom a trajectory is compared with.

    >>> group_key("t-1", "tiny", "2026-01-01T10:00", "s", continuous=True)
    '2026-01-01T10:00/s'
    >>> group_key("t-1", "tiny", "2026-01-01T10:00", "s", continuous=False)
    'task t-1 by tiny'
    >>> group_key("t", "tiny", "a/b", "c", continuous=True), group_key("t", "tiny", "a", "b/c", continuous=True)
    ('a%2Fb/c', 'a/b/c')
    """
    return (
        f"{window_id.replace('/', '%2F')}/{scenario_id}"
        if continuous
        else f"task {task} by {policy}"
    )


def gathered(
    attempts: Iterable[A], key: Callable[[A], str] = lambda each: each.group
) -> list[tuple[str, list[A]]]:
    """The attempts of each group, oldest first; large task groups in several parts of nearly equal size."""
    found: dict[str, list[A]] = {}
    for each in attempts:
        found.setdefault(key(each), []).append(each)
    parts = []
    for name, members in found.items():
        members.sort(key=lambda each: (each.order, each.trajectory_id))
        if members[0].continuous:
            parts.append((name, members))
            continue
        count = ceil(len(members) / MOST)
        cuts = [round(part * len(members) / count) for part in range(count + 1)]
        parts += [
            (name if count == 1 else f"{name} #{part + 1}", members[cuts[part] : cuts[part + 1]])
            for part in range(count)
        ]
    return parts


def compared(
    key: str,
    members: Sequence[Attempt],
    *,
    min_agents: int = MIN_AGENTS,
    min_attempts: int = MIN_ATTEMPTS,
    order: Sequence[Source] = PRECEDENCE,
) -> Group:
    """One group: whether it is large enough, who scores it, whether anybody did better."""
    continuous = members[0].continuous
    agents = len({each.agent_id for each in members})
    least = min_agents if continuous else min_attempts
    scored = group_scores(members, max(2, least), order)
    answers = {each.answers for each in members}
    return Group(
        key=key,
        size=len(members),
        agents=agents,
        scored=scored,
        enough=(agents if continuous else len(members)) >= least,
        identical=len(members) > 1 and len(answers) == 1 and "" not in answers,
    )


@dataclass(frozen=True, slots=True)
class Learnable:
    """What there is to learn from, counted."""

    trajectories: int = 0
    """Scored, sound, and no evaluations."""
    groups: int = 0
    """Large enough to compare."""
    usable: int = 0
    """Of these, those in which somebody did better than another."""
    flat: int = 0
    unscored: int = 0
    """Large enough, but nobody says how well they went."""
    identical: int = 0
    """Flat because everybody did exactly the same."""
    told: int = 0
    """Trajectories whose outcome somebody states, one by one, by the one source of their domain."""
    varied: bool = False
    """Whether those outcomes differ within a domain."""
    thumbs_up: int = 0
    thumbs_down: int = 0
    successes: int = 0
    """Verified, judged or confirmed by a user."""


def learnable(
    attempts: Sequence[Attempt],
    *,
    min_agents: int = MIN_AGENTS,
    min_attempts: int = MIN_ATTEMPTS,
) -> Learnable:
    """What these attempts can teach."""
    groups = [
        compared(key, members, min_agents=min_agents, min_attempts=min_attempts)
        for key, members in gathered(attempts)
    ]
    enough = [group for group in groups if group.enough]
    said = singles(attempts)
    thumbs = [each.feedback for each in attempts if each.feedback is not None]
    sure = singles(attempts, CONFIRMED)
    return Learnable(
        trajectories=len(attempts),
        groups=len(enough),
        usable=sum(group.usable for group in enough),
        flat=sum(group.scored is not None and group.scored.flat for group in enough),
        unscored=sum(group.scored is None for group in enough),
        identical=sum(
            group.identical and group.scored is not None and group.scored.flat for group in enough
        ),
        told=sum(map(len, said)),
        varied=any(min(some) < max(some) for some in said),
        thumbs_up=sum(value >= 0.5 for value in thumbs),
        thumbs_down=sum(value < 0.5 for value in thumbs),
        successes=sum(value >= 0.5 for some in sure for value in some),
    )


CONFIRMED = (Source.VERIFIED, Source.JUDGE, Source.FEEDBACK)
"""Sources whose success is more than the agent's own word."""


def singles(attempts: Sequence[Attempt], order: Sequence[Source] = PRECEDENCE) -> list[list[float]]:
    """What is stated of single trajectories, by domain, as far as it is of the domain's one source."""
    by_domain: dict[str, list[Attempt]] = {}
    for each in attempts:
        if stated(each, order) is not None:
            by_domain.setdefault(each.domain, []).append(each)
    found = [single_scores(members, order) for members in by_domain.values()]
    return [list(scored.scores.values()) for scored in found if scored is not None]


def stated(each: Evidence, order: Sequence[Source] = PRECEDENCE) -> float | None:
    """What is said of a single trajectory, by the best source that says anything."""
    found = group_scores([each], 1, order)
    return None if found is None else next(iter(found.scores.values()), None)


def sources_of(groups: Iterable[Group]) -> dict[str, int]:
    """How many groups each source scores."""
    counts = Counter(str(group.scored.source) for group in groups if group.scored is not None)
    return dict(sorted(counts.items()))
