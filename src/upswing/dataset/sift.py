"""May this trajectory be trained on, and does the job ask for it?

The first reason against it is the one that counts. What a trajectory is comes before what the job
wants of it: an opted-out user's trajectory is left out as such, whatever its date.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from upswing.dataset.balance import AS_IT_COMES, Balance


class LeftOut(StrEnum):
    """Why a trajectory is not in the data set."""

    ERASED = "erased"
    """Its user had it erased."""
    OPTED_OUT = "opted_out"
    """Its user does not want to be recorded."""
    INFRA_ERROR = "infra_error"
    """What went wrong was not the agent's fault."""
    EVALUATION = "evaluation"
    """It was made to measure."""
    FOUND_BAD = "found_bad"
    """An earlier attempt at this job could not use it."""
    UNREADABLE = "unreadable"
    """What its source holds is no trajectory."""
    NOT_TAKEN = "not_taken"
    """It waits in the stream: nothing unredacted is trained on."""
    NO_REWARD = "no_reward"
    DATE = "date_range"
    DOMAIN = "task_domains"
    LENGTH = "max_trajectory_length"
    PROFILE = "exclude_subordinate_profiles"
    SMALL_GROUP = "small_group"
    """Too few others to compare it with."""
    SURPLUS = "not_needed"
    """More than was asked for, of its domain or altogether."""


_SAID = {
    LeftOut.ERASED: "erased",
    LeftOut.OPTED_OUT: "of users who opted out",
    LeftOut.INFRA_ERROR: "spoiled by the infrastructure",
    LeftOut.EVALUATION: "made to measure",
    LeftOut.FOUND_BAD: "found to be bad before",
    LeftOut.UNREADABLE: "unreadable",
    LeftOut.NOT_TAKEN: "not taken from the stream yet",
    LeftOut.NO_REWARD: "without a reward",
    LeftOut.DATE: "outside the dates",
    LeftOut.DOMAIN: "of other domains",
    LeftOut.LENGTH: "too long",
    LeftOut.PROFILE: "of excluded profiles",
    LeftOut.SMALL_GROUP: "with too few others to compare",
    LeftOut.SURPLUS: "more than asked for",
}


def said(counts: Mapping[LeftOut, int]) -> str:
    """The reasons for a person.

    >>> said({LeftOut.NO_REWARD: 3, LeftOut.EVALUATION: 1})
    '1 made to measure, 3 without a reward'
    """
    return ", ".join(f"{counts[each]} {_SAID[each]}" for each in LeftOut if counts.get(each))


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is known of a trajectory without reading it."""

    trajectory_id: str
    agent_id: str
    profile: str
    domain: str
    task_id: str
    window_id: str
    scenario_id: str
    ended: datetime
    turns: int
    infra_error: bool = False
    evaluation: bool = False
    opted_out: bool = False
    seen: bool = False
    """Whether an ancestor of the model was trained on it."""
    revision: int = 0
    reward: float | None = None
    """The judge's score where the group was judged, else the total; None until it is scored."""
    raw_total: float = 0.0

    @property
    def group(self) -> str:
        return f"{self.window_id}/{self.scenario_id}"

    @property
    def task(self) -> str:
        """Whoever names no task has one of its own."""
        return self.task_id or self.trajectory_id


@dataclass(frozen=True, slots=True)
class Scored:
    """What rewarding remembers of a trajectory."""

    agent_id: str
    domain: str
    window_id: str
    scenario_id: str
    turns: int
    infra_error: bool
    revision: int
    reward: float
    raw_total: float


@dataclass(frozen=True, slots=True)
class Remains:
    """What is known of trajectories whose text the store does not hold."""

    erased: frozenset[str]
    scored: Mapping[str, Scored]
    seen: frozenset[str]
    """Trajectories that an ancestor of the model was trained on."""
    optouts: frozenset[str]
    """Users that do not want to be recorded."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What a job asks for."""

    algorithm: str
    sample_size: int
    """The most trajectories, held-out ones included."""
    seed: int = 0
    holdout: float = 0.0
    min_agents: int = 5
    start: datetime | None = None
    end: datetime | None = None
    """Of the time at which a trajectory ended; both ends belong to it."""
    domains: Collection[str] = ()
    """None named means all."""
    max_turns: int | None = None
    excluded_profiles: Collection[str] = ()
    balance: Balance = AS_IT_COMES
    most_groups: int | None = None
    """Groups to train on, for an algorithm that compares; what it never comes to is not taken."""
    drop: Collection[str] = ()
    """Trajectories that were found to be bad."""


def sift(
    candidates: Iterable[Candidate], wish: Wish, left_out: Counter[LeftOut]
) -> list[Candidate]:
    """Those that may be trained on and that the wish asks for; the others are counted."""
    tests = _tests(wish)
    sound = []
    for candidate in candidates:
        reason = next((reason for reason, fails in tests if fails(candidate)), None)
        if reason is None:
            sound.append(candidate)
        else:
            left_out[reason] += 1
    return sound


def _tests(wish: Wish) -> list[tuple[LeftOut, Callable[[Candidate], bool]]]:
    """The first that fails is the reason; those that the wish does not ask for are not made."""
    drop, domains = frozenset(wish.drop), frozenset(wish.domains)
    profiles, start, end, longest = (
        frozenset(wish.excluded_profiles), wish.start, wish.end, wish.max_turns,
    )  # fmt: skip
    tests: list[tuple[LeftOut, Callable[[Candidate], bool]]] = [
        (LeftOut.OPTED_OUT, lambda c: c.opted_out),
        (LeftOut.INFRA_ERROR, lambda c: c.infra_error),
        (LeftOut.EVALUATION, lambda c: c.evaluation),
        (LeftOut.NO_REWARD, lambda c: c.reward is None or not math.isfinite(c.reward)),
    ]
    if drop:
        tests.append((LeftOut.FOUND_BAD, lambda c: c.trajectory_id in drop))
    if start is not None:
        tests.append((LeftOut.DATE, lambda c: c.ended < start))
    if end is not None:
        tests.append((LeftOut.DATE, lambda c: c.ended > end))
    if domains:
        tests.append((LeftOut.DOMAIN, lambda c: c.domain not in domains))
    if longest is not None:
        tests.append((LeftOut.LENGTH, lambda c: c.turns > longest))
    if profiles:
        tests.append((LeftOut.PROFILE, lambda c: c.profile in profiles))
    return tests
