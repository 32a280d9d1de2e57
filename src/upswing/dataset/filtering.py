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
from upswing.dataset.balance import UNBALANCED, DomainBalance
from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS, group_key


class ExclusionReason(StrEnum):
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
    OTHER_MODEL = "other_model"
    """A model made it that the trained one does not descend from: a canary, say."""
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


_REASON_TEXT = {
    ExclusionReason.ERASED: "erased",
    ExclusionReason.OPTED_OUT: "of users who opted out",
    ExclusionReason.INFRA_ERROR: "spoiled by the infrastructure",
    ExclusionReason.EVALUATION: "made to measure",
    ExclusionReason.FOUND_BAD: "found to be bad before",
    ExclusionReason.UNREADABLE: "unreadable",
    ExclusionReason.NOT_TAKEN: "not taken from the stream yet",
    ExclusionReason.NO_REWARD: "without a reward",
    ExclusionReason.DATE: "outside the dates",
    ExclusionReason.DOMAIN: "of other domains",
    ExclusionReason.LENGTH: "too long",
    ExclusionReason.PROFILE: "of excluded profiles",
    ExclusionReason.STALE: "stale (of policies too far back or too long ago)",
    ExclusionReason.OTHER_MODEL: "of models that are no ancestors of the trained one (a canary that is being rolled out, or one that was given up)",
    ExclusionReason.SMALL_GROUP: "with too few others to compare",
    ExclusionReason.NO_OUTCOME: "whose outcome nobody states",
    ExclusionReason.FLAT: "in groups where nobody did better than another",
    ExclusionReason.NO_SUCCESS: "not good enough to imitate",
    ExclusionReason.SURPLUS: "not needed (more than was asked for)",
}


def describe_exclusions(counts: Mapping[ExclusionReason, int]) -> str:
    """The reasons for a person.

    >>> describe_exclusions({ExclusionReason.NO_REWARD: 3, ExclusionReason.EVALUATION: 1})
    '1 made to measure, 3 without a reward'
    """
    return ", ".join(
        f"{counts[each]} {_REASON_TEXT[each]}" for each in ExclusionReason if counts.get(each)
    )


@dataclass(frozen=True, slots=True)
class TrajectoryCandidate:
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
    key_id: str = ""
    """The key that it came with, where that may not speak for many users."""
    request: str = ""
    """A hash of what was asked and shown; empty: nobody knows."""

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
class RewardRecord:
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
class TrajectoryRecords:
    """What is known of trajectories whose text the store does not hold."""

    erased: frozenset[str]
    scored: Mapping[str, RewardRecord]
    seen: frozenset[str]
    """Trajectories that an ancestor of the model was trained on."""
    optouts: frozenset[str]
    """Users that do not want to be recorded."""


UNRELATED_AGE = 1_000_000
"""The age of a model that is no ancestor: what it did says nothing about the policy that is trained."""


@dataclass(frozen=True, slots=True)
class SelectionSpec:
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
    policy_ages: Mapping[str, int] = field(default_factory=dict)
    """Policy → how many versions back it is from the one that training starts from, which is 0.
    Those that are not named are foreign: nobody knows their age."""
    max_age: int = 2
    """Versions back beyond which a trajectory is stale."""
    stale_before: datetime | None = None
    """When an earlier version's trajectory must have ended at the earliest; None: whenever."""
    fill_up_to: int | None = None
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
    balance: DomainBalance = UNBALANCED
    max_groups: int | None = None
    """Groups to train on, for an algorithm that compares; what it never comes to is not taken."""
    excluded_ids: Collection[str] = ()
    """Trajectories that were found to be bad."""


def filter_candidates(
    candidates: Iterable[TrajectoryCandidate],
    spec: SelectionSpec,
    left_out: Counter[ExclusionReason],
) -> list[TrajectoryCandidate]:
    """Those that may be trained on and that the spec asks for; the others are counted."""
    tests = _exclusion_checks(spec)
    sound = []
    for candidate in candidates:
        reason = next((reason for reason, fails in tests if fails(candidate)), None)
        if reason is None:
            sound.append(candidate)
        else:
            left_out[reason] += 1
    return sound


def _exclusion_checks(
    spec: SelectionSpec,
) -> list[tuple[ExclusionReason, Callable[[TrajectoryCandidate], bool]]]:
    """The first that fails is the reason; those that the spec does not ask for are not made."""
    drop, domains = frozenset(spec.excluded_ids), frozenset(spec.domains)
    profiles, start, end, longest = (
        frozenset(spec.excluded_profiles),
        spec.start,
        spec.end,
        spec.max_turns,
    )
    tests: list[tuple[ExclusionReason, Callable[[TrajectoryCandidate], bool]]] = [
        (ExclusionReason.OPTED_OUT, lambda c: c.opted_out),
        (ExclusionReason.INFRA_ERROR, lambda c: c.infra_error),
        (ExclusionReason.EVALUATION, lambda c: c.evaluation),
        (ExclusionReason.NO_REWARD, lambda c: c.reward is None or not math.isfinite(c.reward)),
    ]
    if drop:
        tests.append((ExclusionReason.FOUND_BAD, lambda c: c.trajectory_id in drop))
    ages, oldest = spec.policy_ages, spec.max_age
    if ages:
        tests.append((ExclusionReason.OTHER_MODEL, lambda c: ages.get(c.model, 0) >= UNRELATED_AGE))
        tests.append((ExclusionReason.STALE, lambda c: ages.get(c.model, 0) > oldest))
        if (first := spec.stale_before) is not None:
            tests.append(
                (ExclusionReason.STALE, lambda c: ages.get(c.model, 0) > 0 and c.ended < first)
            )
    if start is not None:
        tests.append((ExclusionReason.DATE, lambda c: c.ended < start))
    if end is not None:
        tests.append((ExclusionReason.DATE, lambda c: c.ended > end))
    if domains:
        tests.append((ExclusionReason.DOMAIN, lambda c: c.domain not in domains))
    if longest is not None:
        tests.append((ExclusionReason.LENGTH, lambda c: c.turns > longest))
    if profiles:
        tests.append((ExclusionReason.PROFILE, lambda c: c.profile in profiles))
    return tests
