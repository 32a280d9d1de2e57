"""Which attempts are compared with each other, and is there something to learn from them?

| the trajectory                                        | its group                    | needs          |
|-------------------------------------------------------|------------------------------|----------------|
| says in which window or scenario it was (a continuous world, such as a market) | the same window and scenario | `min_agents` different agents, 5 |
| anything else                                         | the same task by the same policy | `min_attempts` attempts, 4, by one agent or many |

A task is `task_id`; a trajectory that names none, or whose recorder made one up, has a hash of its
redacted first request instead. A scenario that is the task itself makes no continuous world. Many
attempts at one task make several groups of at most 16, in the order of time. Where the keys of a group have no source
of scores in common, those of each source are compared by themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol, TypeVar, assert_never

import msgspec

from upswing.contracts.training import Algorithm
from upswing.dataset.attempts import (
    SUCCESS_SCORE,
    ScoredAttempt,
    TaskCounts,
    count_comparable,
    count_imitable,
    count_tasks,
)
from upswing.dataset.scoring import (
    PRECEDENCE,
    GroupScores,
    ScoreEvidence,
    ScoreSource,
    covers,
    group_scores,
    single_scores,
)

MIN_AGENTS = 5
MIN_ATTEMPTS = 4
MAX_GROUP_SIZE = 16
"""Attempts of one group: as many as give a fair baseline; more of them make another group."""
ENOUGH_GROUPS = 32
"""Groups with a difference in them that make comparing attempts worthwhile; with fewer, a batch is a
handful of comparisons, and single attempts say more."""


class GroupMember(ScoreEvidence, Protocol):
    """What grouping needs to know of a trajectory."""

    @property
    def agent_id(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def continuous(self) -> bool: ...
    @property
    def key_id(self) -> str:
        """The key that it came with, where that may not speak for many users."""
        ...

    @property
    def order(self) -> float:
        """Rises with time."""
        ...

    @property
    def domain(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def model(self) -> str: ...

    @property
    def answers(self) -> str:
        """A hash of everything that the agent did; empty when it is not known."""
        ...


A = TypeVar("A", bound=GroupMember)


@dataclass(frozen=True, slots=True)
class AttemptGroup:
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


def split_into_groups(
    attempts: Iterable[A], key: Callable[[A], str] = lambda each: each.group
) -> list[tuple[str, list[A]]]:
    """The attempts of each group, oldest first; large task groups in several parts of nearly equal size."""
    found: dict[str, list[A]] = {}
    for each in attempts:
        found.setdefault(key(each), []).append(each)
    parts = []
    apart = (part for name, members in found.items() for part in _apart_by_claims(name, members))
    for name, members in apart:
        members.sort(key=lambda each: (each.order, each.trajectory_id))
        if members[0].continuous:
            parts.append((name, members))
            continue
        count = ceil(len(members) / MAX_GROUP_SIZE)
        cuts = [round(part * len(members) / count) for part in range(count + 1)]
        parts += [
            (name if count == 1 else f"{name} #{part + 1}", members[cuts[part] : cuts[part + 1]])
            for part in range(count)
        ]
    return parts


def _apart_by_claims(name: str, members: list[A]) -> list[tuple[str, list[A]]]:
    """The group as it is, or, where its keys have no source in common, the keys of each source by themselves.

    Else a few attempts of one key with a claim of a better source would leave out all others'.
    """
    by_key: dict[str, list[A]] = {}
    for each in members:
        by_key.setdefault(each.key_id, []).append(each)
    if len(by_key) < 2 or any(covers(members, source) for source in PRECEDENCE):
        return [(name, members)]
    by_source: dict[str, list[A]] = {}
    for mine in by_key.values():
        own = next((source for source in PRECEDENCE if covers(mine, source)), "")
        by_source.setdefault(own, []).extend(mine)
    first = max(by_source, key=lambda source: len(by_source[source]))
    return [
        (name if source == first else f"{name} ({source or 'nobody reports on all'})", some)
        for source, some in by_source.items()
    ]


def compare_group(
    key: str,
    members: Sequence[GroupMember],
    *,
    min_agents: int = MIN_AGENTS,
    min_attempts: int = MIN_ATTEMPTS,
    precedence: Sequence[ScoreSource] = PRECEDENCE,
) -> AttemptGroup:
    """One group: whether it is large enough, who scores it, whether anybody did better."""
    continuous = members[0].continuous
    agents = len({each.agent_id for each in members})
    least = min_agents if continuous else min_attempts
    scored = group_scores(members, max(2, least), precedence)
    answers = {each.answers for each in members}
    return AttemptGroup(
        key=key,
        size=len(members),
        agents=agents,
        scored=scored,
        enough=(agents if continuous else len(members)) >= least,
        identical=len(members) > 1 and len(answers) == 1 and "" not in answers,
    )


class Learnable(msgspec.Struct, frozen=True):
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
    """Groups of two or more that are flat because everybody did exactly the same."""
    with_outcome: int = msgspec.field(default=0, name="told")
    """Trajectories whose outcome somebody states, one by one."""
    varied: bool = False
    """Whether those outcomes differ within a domain."""
    thumbs_up: int = 0
    thumbs_down: int = 0
    successes: int = 0
    """Verified, judged or confirmed by a user."""
    singles: int = 0
    """Of those that are told, those that reinforce can tell from others."""
    imitable: int = 0
    """Of the successes, those that are news to the policy that is trained; and what people showed."""
    pairs: int = 0
    """Groups of two attempts or more in which one did better: what dpo learns from."""
    good: int = 0
    """Of those that are told, the successes."""
    tasks: TaskCounts = msgspec.field(default_factory=TaskCounts)

    def usable_by(self, algorithm: Algorithm) -> int:
        """How much this algorithm has to learn from: groups where it compares them, else attempts.

        For kto these are the attempts of the rarer kind, good or bad.
        """
        match algorithm:
            case "grpo" | "rloo":
                return self.usable
            case "dpo":
                return self.pairs
            case "reinforce":
                return self.singles
            case "rft" | "sft":
                return self.imitable
            case "ppo":
                return self.with_outcome if self.varied else 0
            case "kto":
                thumbs = min(self.thumbs_up, self.thumbs_down)
                return max(thumbs, min(self.good, self.with_outcome - self.good))
        assert_never(algorithm)

    def reasons(self) -> list[str]:
        """What becomes of that which teaches nothing, and what to do about it."""
        found = []
        if self.with_outcome and self.good == self.with_outcome:
            found.append(
                f"everything is solved already: all {self.with_outcome} outcomes are successes"
            )
        if self.with_outcome and not self.good:
            found.append(
                f"nothing was solved: all {self.with_outcome} outcomes are failures; {_NOTHING_SOLVED_HINT}"
            )
        if self.flat > self.identical:
            found.append(f"{groups_text(self.flat - self.identical)} flat: all attempts went alike")
        if self.identical:
            found.append(f"{groups_text(self.identical)} with {IDENTICAL_ANSWERS_HINT}")
        if self.unscored:
            found.append(f"{groups_text(self.unscored)} of which nobody says how well they went")
        elif self.with_outcome < self.trajectories:
            found.append(
                f"of {self.trajectories - self.with_outcome} nobody says how well they went"
            )
        return found


IDENTICAL_ANSWERS_HINT = (
    "the same answer again and again: are agents asking at temperature 0? Ask at 1, or let "
    "`explore` in [gateway] try others"
)
_NOTHING_SOLVED_HINT = "take easier tasks, or show what would have been right"


def groups_text(groups: int) -> str:
    return f"{groups} group" if groups == 1 else f"{groups} groups"


def count_learnable(
    attempts: Sequence[GroupMember],
    *,
    min_agents: int = MIN_AGENTS,
    min_attempts: int = MIN_ATTEMPTS,
    own_policies: Collection[str] | None = None,
    demonstrated_ids: Collection[str] = (),
    self_reported: bool = False,
) -> Learnable:
    """What these attempts can teach the policies that are `own_policies`; None: all are.

    `demonstrated_ids` are trajectories for which somebody showed what would have been right; `self_reported`
    says whether a success by the agent's own word is imitated too.

    Readiness, the trigger, `upswing windows check`, the dry run and the job all ask this.
    """
    groups = [
        compare_group(key, members, min_agents=min_agents, min_attempts=min_attempts)
        for key, members in split_into_groups(attempts)
    ]
    enough = [group for group in groups if group.enough]
    twos = [
        group
        for key, members in split_into_groups(attempts)
        if (group := compare_group(key, members, min_agents=2, min_attempts=2)).enough
    ]
    by_domain = scored_singles(attempts)
    scores = [each.score for some in by_domain for each in some]
    thumbs = [each.feedback for each in attempts if each.feedback is not None]
    sure = scored_singles(attempts, PRECEDENCE if self_reported else CONFIRMED)
    right = frozenset(demonstrated_ids)
    return Learnable(
        trajectories=len(attempts),
        groups=len(enough),
        usable=sum(group.usable for group in enough),
        flat=sum(group.scored is not None and group.scored.flat for group in enough),
        unscored=sum(group.scored is None for group in enough),
        identical=sum(
            group.identical and group.scored is not None and group.scored.flat for group in twos
        ),
        with_outcome=len(scores),
        varied=any(len({each.score for each in some}) > 1 for some in by_domain),
        thumbs_up=sum(value >= 0.5 for value in thumbs),
        thumbs_down=sum(value < 0.5 for value in thumbs),
        successes=sum(each.success for some in sure for each in some),
        singles=sum(map(count_comparable, by_domain)),
        imitable=sum(count_imitable(some, own_policies, right) for some in sure)
        + sum(each.trajectory_id in right for each in attempts),
        pairs=sum(group.usable for group in twos),
        good=sum(score >= SUCCESS_SCORE for score in scores),
        tasks=count_tasks(each for some in by_domain for each in some),
    )


CONFIRMED = (ScoreSource.VERIFIED, ScoreSource.JUDGE, ScoreSource.FEEDBACK)
"""Sources whose success is more than the agent's own word."""


def scored_singles(
    attempts: Sequence[GroupMember], precedence: Sequence[ScoreSource] = PRECEDENCE
) -> list[list[ScoredAttempt]]:
    """What is stated of single trajectories, by domain."""
    by_domain: dict[str, list[GroupMember]] = {}
    for each in attempts:
        by_domain.setdefault(each.domain, []).append(each)
    return [_score_attempts(members, precedence) for members in by_domain.values()]


def _score_attempts(
    members: Sequence[GroupMember], precedence: Sequence[ScoreSource]
) -> list[ScoredAttempt]:
    scores = single_scores(members, precedence)
    return [
        ScoredAttempt(
            each.trajectory_id,
            each.group,
            each.domain,
            each.task_id or each.group,
            each.model,
            scores[each.trajectory_id].score,
            scores[each.trajectory_id].scale,
        )
        for each in members
        if each.trajectory_id in scores
    ]


def count_sources(groups: Iterable[AttemptGroup]) -> dict[str, int]:
    """How many groups each source scores."""
    counts = Counter(str(group.scored.source) for group in groups if group.scored is not None)
    return dict(sorted(counts.items()))
