"""May this trajectory be trained on, and does the job ask for it?

The first reason against it is the one that counts. What a trajectory is comes before what the job
wants of it: an opted-out user's trajectory is left out as such, whatever its date.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from upswing.contracts.training import Algorithm
from upswing.dataset.balance import AS_IT_COMES, Balance
from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS, group_key


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
    STALE = "stale"
    """A policy too far back made it, or an earlier one too long ago."""
    SMALL_GROUP = "small_group"
    """Too few others to compare it with."""
    NO_OUTCOME = "no_outcome"
    """Nobody says how well it went, or not in the way that its group is scored."""
    FLAT = "flat_group"
    """Nobody in its group did better than another."""
    NO_SUCCESS = "no_success"
    """It is not good enough to be imitated."""
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
    LeftOut.STALE: "stale (of policies too far back or too long ago, or of models that were given up)",
    LeftOut.SMALL_GROUP: "with too few others to compare",
    LeftOut.NO_OUTCOME: "whose outcome nobody states",
    LeftOut.FLAT: "in groups where nobody did better than another",
    LeftOut.NO_SUCCESS: "not good enough to imitate",
    LeftOut.SURPLUS: "not needed (more than was asked for)",
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
    """The total; None until it is scored. What it learns from is the group's score instead."""
    raw_total: float = 0.0
    model: str = ""
    """The policy that acted."""
    continuous: bool = False
    """It happened in a window and scenario of a continuous world."""
    verified: float | None = None
    pnl: float | None = None
    judged: float | None = None
    reported: float | None = None
    feedback: float | None = None
    """What was said of it, by source: `upswing.dataset.scoring`."""
    answers: str = ""
    """A hash of what the agent did."""
    demonstrated: bool = False
    """Somebody has shown what would have been right: that is imitated instead of what was done."""

    @property
    def group(self) -> str:
        return group_key(
            self.task, self.model, self.window_id, self.scenario_id, continuous=self.continuous
        )

    @property
    def order(self) -> float:
        return self.ended.timestamp()

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
    verified: float | None = None
    pnl: float | None = None
    judged: float | None = None
    reported: float | None = None
    feedback: float | None = None


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

    algorithm: Algorithm
    sample_size: int
    """The most trajectories, held-out ones included."""
    seed: int = 0
    holdout: float = 0.0
    min_agents: int = MIN_AGENTS
    """Different agents that make a group in a continuous world."""
    min_attempts: int = MIN_ATTEMPTS
    """Attempts at a task that make a group."""
    ages: Mapping[str, int] = field(default_factory=dict)
    """Policy → how many versions back it is from the one that training starts from, which is 0.
    Those that are not named are foreign: nobody knows their age."""
    max_age: int = 2
    """Versions back beyond which a trajectory is stale."""
    stale_before: datetime | None = None
    """When an earlier version's trajectory must have ended at the earliest; None: whenever."""
    fill: int | None = None
    """Trajectories that older policies may fill up to when the newest policy has fewer; None: as
    many as are asked for."""
    self_reported: bool = False
    """Imitation: whether success by the agent's own word counts."""
    min_score: float = 0.5
    """Imitation: what counts as a success."""
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
    ages, oldest = wish.ages, wish.max_age
    if ages:
        tests.append((LeftOut.STALE, lambda c: ages.get(c.model, 0) > oldest))
        if (first := wish.stale_before) is not None:
            tests.append((LeftOut.STALE, lambda c: ages.get(c.model, 0) > 0 and c.ended < first))
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
