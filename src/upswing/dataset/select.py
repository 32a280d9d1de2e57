"""Which trajectories does a job learn from, and why not the others?

    candidates ─▶ sift ─▶ units, each scored ─▶ order ─▶ choose ─▶ split
                   │          │                            │
                   └──────────┴────────────────────────────┴──▶ left out, counted by reason

A unit is what is taken or left whole: for the relative algorithms a group, for the others a single
trajectory.

| algorithm            | unit                             | scored by                                 |
|----------------------|----------------------------------|-------------------------------------------|
| grpo, rloo           | a group (`upswing.dataset.groups`) | the group's one source                  |
| dpo                  | a group of two or more           | the same                                  |
| ppo, reinforce       | one trajectory                   | the best source that says anything of it  |
| kto                  | one trajectory                   | the same, users' feedback first           |
| sft, rft             | one trajectory that succeeded, or whose right answer somebody showed | the same; the agent's own word only when configured |

What the policy did that training starts from comes first, and of that the newest first. Other
models' work follows when there is too little of it, then that of earlier versions, up to `fill`, as far back as
`max_age` allows. Whatever order the candidates come in, the same seed selects the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from upswing.dataset.balance import UNBALANCED, domain_quotas
from upswing.dataset.filtering import (
    ExclusionReason,
    SelectionSpec,
    TrajectoryCandidate,
    filter_candidates,
)
from upswing.dataset.groups import CONFIRMED, AttemptGroup, compare_group, split_into_groups
from upswing.dataset.scoring import (
    MIN_SPREAD,
    PRECEDENCE,
    ScoreSource,
    SingleScore,
    single_scores,
    spread,
)
from upswing.dataset.split import deterministic_draw, is_held_out, split_held_out

GROUPED = frozenset({"grpo", "rloo", "dpo"})
IMITATING = frozenset({"sft", "rft"})
DEMONSTRATION = "demonstration"
"""Who scores a trajectory for which somebody showed what would have been right."""
UNKNOWN_POLICY_AGE = 1
"""The age of a policy that nobody knows: neither our own newest nor a version of ours."""
_FEEDBACK_FIRST = (
    ScoreSource.FEEDBACK,
    ScoreSource.VERIFIED,
    ScoreSource.JUDGE,
    ScoreSource.REPORTED,
)


@dataclass(frozen=True, slots=True)
class SelectionUnit:
    """What is taken or left whole."""

    key: str
    members: tuple[TrajectoryCandidate, ...]
    scores: Mapping[str, float]
    """By trajectory, from 0 to 1."""
    source: str
    """Who gave the scores."""
    domain: str
    """Of most members."""
    seen: float
    """The share of members that an ancestor was trained on."""
    age: int
    """Of the oldest policy in it: 0 is the one that training starts from."""
    newest: float
    """When its newest member ended, in seconds."""
    flat: bool = False
    """Nobody did better than another; it is only measured with."""
    scale: str = ""
    """Of a single trajectory: whom its score may be compared with in its domain."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The data set: its members in order, which tasks are held out, and what was left out."""

    members: tuple[TrajectoryCandidate, ...]
    held_out: frozenset[str]
    left_out: Mapping[ExclusionReason, int]
    notes: tuple[str, ...]
    """What did not go as asked."""
    split: str
    """What is held out, or why nothing is."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """What each member learns from, by trajectory."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Trajectory → whom it is compared with."""
    scales: Mapping[str, str] = field(default_factory=dict)
    """Trajectory → the scale of its score, where it stands alone: it is compared with none of another."""
    sources: Mapping[str, int] = field(default_factory=dict)
    """Who scored how many groups (single trajectories: how many of them)."""

    def is_held_out(self, member: TrajectoryCandidate) -> bool:
        return member.task in self.held_out


def select(candidates: Iterable[TrajectoryCandidate], spec: SelectionSpec) -> Selection:
    """The data set that a spec gets from these candidates."""
    left_out: Counter[ExclusionReason] = Counter()
    sound = filter_candidates(candidates, spec, left_out)
    units = build_units(sound, spec, left_out)
    chosen, notes = _choose_units(_sort_units(units, spec.seed), spec)
    split = split_held_out(
        [_tasks_of_unit(unit) for unit in chosen],
        spec.holdout,
        useful_tasks={task for unit in chosen if not unit.flat for task in _tasks_of_unit(unit)},
    )
    split = replace(split, held_out=_with_same_requests(chosen, split.held_out))
    kept = [
        unit
        for unit in _drop_unreached(chosen, split.held_out, spec)
        if not unit.flat or unit.members[0].task in split.held_out
    ]
    left_out[ExclusionReason.SURPLUS] += _count_members(units) - _count_members(kept)
    members = tuple(member for unit in kept for member in unit.members)
    counts = {reason: left_out[reason] for reason in ExclusionReason if left_out[reason]}
    return Selection(
        members,
        split.held_out,
        counts,
        notes,
        split.sentence,
        scores={name: score for unit in kept for name, score in unit.scores.items()},
        groups={member.trajectory_id: unit.key for unit in kept for member in unit.members},
        scales={
            member.trajectory_id: unit.scale
            for unit in kept
            if unit.scale
            for member in unit.members
        },
        sources=dict(sorted(Counter(unit.source for unit in kept).items())),
    )


# ── units ────────────────────────────────────────────────────────────────────────────────────


def build_units(
    candidates: Sequence[TrajectoryCandidate],
    spec: SelectionSpec,
    left_out: Counter[ExclusionReason],
) -> list[SelectionUnit]:
    """What is taken or left whole, scored; what makes no unit is counted."""
    if spec.algorithm not in GROUPED:
        return _single_units(candidates, spec, left_out)
    units = []
    for key, everybody in split_into_groups(candidates):
        members = _prefer_start_policy(everybody, spec)
        left_out[ExclusionReason.STALE] += len(everybody) - len(members)
        group = _compare_members(key, members, spec)
        if not group.enough:
            left_out[ExclusionReason.SMALL_GROUP] += len(members)
        elif group.scored is None:
            left_out[ExclusionReason.NO_OUTCOME] += len(members)
        else:
            scores = group.scored.scores
            known = [each for each in members if each.trajectory_id in scores]
            left_out[ExclusionReason.NO_OUTCOME] += len(members) - len(known)
            if group.scored.flat and not _all_held_out(known, spec):
                left_out[ExclusionReason.FLAT] += len(known)
            else:
                units.append(
                    _build_unit(key, known, scores, group.scored.source, spec, group.scored.flat)
                )
    return units


def _compare_members(
    key: str, members: Sequence[TrajectoryCandidate], spec: SelectionSpec
) -> AttemptGroup:
    least = 2 if spec.algorithm == "dpo" else None
    return compare_group(
        key, members, min_agents=least or spec.min_agents, min_attempts=least or spec.min_attempts
    )


def _prefer_start_policy(
    members: list[TrajectoryCandidate], spec: SelectionSpec
) -> list[TrajectoryCandidate]:
    """In a window several policies act; those of the newest are enough if they are many enough."""
    own = [each for each in members if spec.policy_ages.get(each.model) == 0]
    if not own or len(own) == len(members) or not members[0].continuous:
        return members
    return own if _compare_members("", own, spec).enough else members


def _all_held_out(members: Sequence[TrajectoryCandidate], spec: SelectionSpec) -> bool:
    """Held-out tasks are measured whole: those that everybody does alike say something too."""
    return all(is_held_out(member.task, spec.holdout) for member in members)


def _single_units(
    candidates: Sequence[TrajectoryCandidate],
    spec: SelectionSpec,
    left_out: Counter[ExclusionReason],
) -> list[SelectionUnit]:
    by_domain: dict[str, list[TrajectoryCandidate]] = {}
    for each in candidates:
        by_domain.setdefault(each.domain, []).append(each)
    units = []
    for members in by_domain.values():
        scored = _domain_scores(members, spec)
        scales = _scales_by_group(members, scored)
        for each in members:
            found = scored.get(each.trajectory_id)
            if each.demonstrated and spec.algorithm in IMITATING:
                units.append(
                    _build_unit(
                        each.trajectory_id, [each], {each.trajectory_id: 1.0}, DEMONSTRATION, spec
                    )
                )
            elif found is None:
                left_out[ExclusionReason.NO_OUTCOME] += 1
            elif spec.algorithm in IMITATING and not found.score >= spec.min_score:
                left_out[ExclusionReason.NO_SUCCESS] += 1
            else:
                key = each.trajectory_id
                if spec.algorithm == "reinforce":  # which compares within a group: on one scale
                    several = len(scales[each.group]) > 1
                    key = f"{each.group} ({found.scale})" if several else each.group
                unit = _build_unit(
                    key, [each], {each.trajectory_id: found.score}, found.source, spec
                )
                units.append(replace(unit, scale=found.scale))
    return units


def _scales_by_group(
    members: Sequence[TrajectoryCandidate], scored: Mapping[str, SingleScore]
) -> dict[str, set[str]]:
    scales: dict[str, set[str]] = {}
    for each in members:
        if each.trajectory_id in scored:
            scales.setdefault(each.group, set()).add(scored[each.trajectory_id].scale)
    return scales


def _domain_scores(
    members: Sequence[TrajectoryCandidate], spec: SelectionSpec
) -> dict[str, SingleScore]:
    """The scores of a domain; where users gave thumbs both up and down, kto learns from these alone."""
    if spec.algorithm == "kto":
        thumbs = single_scores(members, (ScoreSource.FEEDBACK,))
        if spread(each.score for each in thumbs.values()) >= MIN_SPREAD:
            return thumbs
    return single_scores(members, _source_precedence(spec))


def _source_precedence(spec: SelectionSpec) -> Sequence[ScoreSource]:
    if spec.algorithm == "kto":
        return _FEEDBACK_FIRST
    if spec.algorithm in IMITATING and not spec.self_reported:
        return CONFIRMED
    return PRECEDENCE


def _build_unit(
    key: str,
    members: Sequence[TrajectoryCandidate],
    scores: Mapping[str, float],
    source: str,
    spec: SelectionSpec,
    flat: bool = False,
) -> SelectionUnit:
    counts = Counter(member.domain for member in members)
    return SelectionUnit(
        key,
        tuple(sorted(members, key=lambda each: each.trajectory_id)),
        {each.trajectory_id: scores[each.trajectory_id] for each in members},
        source,
        min(counts, key=lambda domain: (-counts[domain], domain)),
        sum(member.seen for member in members) / len(members),
        max(spec.policy_ages.get(member.model, UNKNOWN_POLICY_AGE) for member in members)
        if spec.policy_ages
        else 0,
        max(member.order for member in members),
        flat,
    )


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def _sort_units(units: Iterable[SelectionUnit], seed: int) -> list[SelectionUnit]:
    """The newest policy's first, unseen ones first, the newest first."""
    return sorted(
        units,
        key=lambda unit: (
            unit.age,
            unit.seen,
            -unit.newest,
            deterministic_draw("select", seed, unit.key),
            unit.key,
            unit.members[0].trajectory_id,
        ),
    )


def _choose_units(
    units: Sequence[SelectionUnit], spec: SelectionSpec
) -> tuple[list[SelectionUnit], tuple[str, ...]]:
    """Whole units, as long as they fit."""
    have: Counter[str] = Counter()
    for unit in units:
        have[unit.domain] += len(unit.members)
    size, most = _size_limits(units, spec)
    asked = domain_quotas(have, size, spec.balance)
    chosen: list[SelectionUnit] = []
    taken: Counter[str] = Counter()
    total = teaching = 0
    for unit in units:
        domain = unit.domain if asked else ""
        limit = asked.max_per_domain.get(domain, 0) if asked else size
        if unit.age > 0 and spec.fill_up_to is not None and total >= spec.fill_up_to:
            break  # the rest is older still
        if taken[domain] + len(unit.members) <= limit and (unit.flat or teaching < most):
            taken[domain] += len(unit.members)
            total += len(unit.members)
            teaching += not unit.flat
            chosen.append(unit)
    notes = asked.notes if asked else ()
    return chosen, (
        *notes,
        *_oversized_group_notes(units, chosen, asked.max_per_domain if asked else None, size),
    )


def _oversized_group_notes(
    units: Sequence[SelectionUnit],
    chosen: Sequence[SelectionUnit],
    most: Mapping[str, int] | None,
    size: int,
) -> list[str]:
    """Whose groups are all larger than what is asked for."""
    limits = {"": size} if most is None else most
    given = {"" if most is None else unit.domain for unit in chosen}
    found = []
    for domain, limit in limits.items():
        sizes = [len(unit.members) for unit in units if domain in ("", unit.domain)]
        if sizes and limit and domain not in given and min(sizes) > limit:
            whose = f" of {domain}" if domain else ""
            found.append(
                f"The smallest group{whose} has {min(sizes)} trajectories: it does not fit into {limit}."
            )
    return found


def _size_limits(units: Sequence[SelectionUnit], spec: SelectionSpec) -> tuple[int, int]:
    """The most trajectories, and the most units that teach something."""
    if not _limits_groups(spec):
        return spec.sample_size, len(units)
    most = ceil((spec.max_groups or 0) / max(0.01, 1 - spec.holdout))
    if spec.balance == UNBALANCED:
        return spec.sample_size, most
    usual = _count_members(units) / max(1, len(units))
    return min(spec.sample_size, ceil(most * usual)), most


def _limits_groups(spec: SelectionSpec) -> bool:
    return spec.max_groups is not None and spec.algorithm in GROUPED


def _drop_unreached(
    units: Sequence[SelectionUnit], held_out: frozenset[str], spec: SelectionSpec
) -> list[SelectionUnit]:
    """The units without groups that training would never come to."""
    if not _limits_groups(spec):
        return list(units)
    training = [
        unit.key for unit in units if not unit.flat and unit.members[0].task not in held_out
    ]
    late = frozenset(training[spec.max_groups :])
    return [unit for unit in units if unit.key not in late]


def _with_same_requests(units: Sequence[SelectionUnit], held_out: frozenset[str]) -> frozenset[str]:
    """The held-out tasks, and those that ask the same under another name, unless nothing were left to train on."""
    held = held_out
    while True:
        asked = {each.request for unit in units for each in unit.members if each.task in held}
        same = [
            unit for unit in units if any(m.request and m.request in asked for m in unit.members)
        ]
        more = held.union(*map(_tasks_of_unit, same))
        if more == held:
            break
        held = more
    trained = (unit for unit in units if not unit.flat and not _tasks_of_unit(unit) <= held)
    return held if any(trained) else held_out


def _tasks_of_unit(unit: SelectionUnit) -> frozenset[str]:
    return frozenset(member.task for member in unit.members)


def _count_members(units: Iterable[SelectionUnit]) -> int:
    return sum(len(unit.members) for unit in units)
