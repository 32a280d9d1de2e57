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
| ppo, reinforce       | one trajectory                   | its domain's one source                   |
| kto                  | one trajectory                   | its domain's, users' feedback first       |
| sft, rft             | one trajectory that succeeded, or whose right answer somebody showed | its domain's; the agent's own word only when configured |

What the policy did that training starts from comes first, and of that the newest first. Other
models' work follows when there is too little of it, then that of earlier versions, up to `fill`, as far back as
`max_age` allows. Whatever order the candidates come in, the same seed selects the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from upswing.dataset.balance import AS_IT_COMES, quotas
from upswing.dataset.groups import CONFIRMED, Group, compared, gathered
from upswing.dataset.scoring import PRECEDENCE, GroupScores, Source, single_scores
from upswing.dataset.sift import Candidate, LeftOut, Wish, sift
from upswing.dataset.split import hold_out, is_held_out, lot

GROUPED = frozenset({"grpo", "rloo", "dpo"})
IMITATING = frozenset({"sft", "rft"})
SHOWN = "demonstration"
"""Who scores a trajectory for which somebody showed what would have been right."""
FOREIGN = 1
"""The age of a policy that nobody knows: neither our own newest nor a version of ours."""
_FEEDBACK_FIRST = (Source.FEEDBACK, Source.VERIFIED, Source.JUDGE, Source.REPORTED)


@dataclass(frozen=True, slots=True)
class Unit:
    """What is taken or left whole."""

    key: str
    members: tuple[Candidate, ...]
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


@dataclass(frozen=True, slots=True)
class Selection:
    """The data set: its members in order, which tasks are held out, and what was left out."""

    members: tuple[Candidate, ...]
    held_out: frozenset[str]
    left_out: Mapping[LeftOut, int]
    notes: tuple[str, ...]
    """What did not go as asked."""
    split: str
    """What is held out, or why nothing is."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """What each member learns from, by trajectory."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Trajectory → whom it is compared with."""
    sources: Mapping[str, int] = field(default_factory=dict)
    """Who scored how many groups (single trajectories: how many of them)."""

    def is_held_out(self, member: Candidate) -> bool:
        return member.task in self.held_out


def select(candidates: Iterable[Candidate], wish: Wish) -> Selection:
    """The data set that a wish gets from these candidates."""
    left_out: Counter[LeftOut] = Counter()
    sound = sift(candidates, wish, left_out)
    units = units_of(sound, wish, left_out)
    chosen, notes = _choose(_ordered(units, wish.seed), wish)
    split = hold_out(
        [_tasks(unit) for unit in chosen], wish.holdout,
        teaching={task for unit in chosen if not unit.flat for task in _tasks(unit)},
    )  # fmt: skip
    kept = [
        unit
        for unit in _timely(chosen, split.held_out, wish)
        if not unit.flat or unit.members[0].task in split.held_out
    ]
    left_out[LeftOut.SURPLUS] += _size(units) - _size(kept)
    members = tuple(member for unit in kept for member in unit.members)
    counts = {reason: left_out[reason] for reason in LeftOut if left_out[reason]}
    return Selection(
        members, split.held_out, counts, notes, split.sentence,
        scores={name: score for unit in kept for name, score in unit.scores.items()},
        groups={member.trajectory_id: unit.key for unit in kept for member in unit.members},
        sources=dict(sorted(Counter(unit.source for unit in kept).items())),
    )  # fmt: skip


# ── units ────────────────────────────────────────────────────────────────────────────────────


def units_of(candidates: Sequence[Candidate], wish: Wish, left_out: Counter[LeftOut]) -> list[Unit]:
    """What is taken or left whole, scored; what makes no unit is counted."""
    if wish.algorithm not in GROUPED:
        return _singles(candidates, wish, left_out)
    units = []
    for key, everybody in gathered(candidates):
        members = _of_the_start(everybody, wish)
        left_out[LeftOut.STALE] += len(everybody) - len(members)
        group = _compared(key, members, wish)
        if not group.enough:
            left_out[LeftOut.SMALL_GROUP] += len(members)
        elif group.scored is None:
            left_out[LeftOut.NO_OUTCOME] += len(members)
        else:
            scores = group.scored.scores
            known = [each for each in members if each.trajectory_id in scores]
            left_out[LeftOut.NO_OUTCOME] += len(members) - len(known)
            if group.scored.flat and not _measured(known, wish):
                left_out[LeftOut.FLAT] += len(known)
            else:
                units.append(_unit(key, known, scores, group.scored.source, wish, group.scored.flat))  # fmt: skip
    return units


def _compared(key: str, members: Sequence[Candidate], wish: Wish) -> Group:
    least = 2 if wish.algorithm == "dpo" else None
    return compared(
        key, members, min_agents=least or wish.min_agents, min_attempts=least or wish.min_attempts
    )  # fmt: skip


def _of_the_start(members: list[Candidate], wish: Wish) -> list[Candidate]:
    """In a window several policies act; those of the newest are enough if they are many enough."""
    own = [each for each in members if wish.ages.get(each.model) == 0]
    if not own or len(own) == len(members) or not members[0].continuous:
        return members
    return own if _compared("", own, wish).enough else members


def _measured(members: Sequence[Candidate], wish: Wish) -> bool:
    """Held-out tasks are measured whole: those that everybody does alike say something too."""
    return all(is_held_out(member.task, wish.holdout) for member in members)


def _singles(candidates: Sequence[Candidate], wish: Wish, left_out: Counter[LeftOut]) -> list[Unit]:
    by_domain: dict[str, list[Candidate]] = {}
    for each in candidates:
        by_domain.setdefault(each.domain, []).append(each)
    units = []
    for members in by_domain.values():
        scored = _beside_each_other(members, wish)
        for each in members:
            score = None if scored is None else scored.scores.get(each.trajectory_id)
            if each.demonstrated and wish.algorithm in IMITATING:
                units.append(_unit(each.trajectory_id, [each], {each.trajectory_id: 1.0}, SHOWN, wish))  # fmt: skip
            elif scored is None or score is None:
                left_out[LeftOut.NO_OUTCOME] += 1
            elif wish.algorithm in IMITATING and not score >= wish.min_score:
                left_out[LeftOut.NO_SUCCESS] += 1
            else:
                key = each.group if wish.algorithm == "reinforce" else each.trajectory_id
                units.append(_unit(key, [each], {each.trajectory_id: score}, scored.source, wish))
    return units


def _beside_each_other(members: Sequence[Candidate], wish: Wish) -> GroupScores | None:
    """The scores of a domain; where users gave thumbs both up and down, kto learns from these."""
    if wish.algorithm == "kto":
        thumbs = single_scores(members, (Source.FEEDBACK,))
        if thumbs is not None and not thumbs.flat:
            return thumbs
    return single_scores(members, _order(wish))


def _order(wish: Wish) -> Sequence[Source]:
    if wish.algorithm == "kto":
        return _FEEDBACK_FIRST
    if wish.algorithm in IMITATING and not wish.self_reported:
        return CONFIRMED
    return PRECEDENCE


def _unit(
    key: str, members: Sequence[Candidate], scores: Mapping[str, float], source: str, wish: Wish, flat: bool = False
) -> Unit:  # fmt: skip
    counts = Counter(member.domain for member in members)
    return Unit(
        key,
        tuple(sorted(members, key=lambda each: each.trajectory_id)),
        {each.trajectory_id: scores[each.trajectory_id] for each in members},
        source,
        min(counts, key=lambda domain: (-counts[domain], domain)),
        sum(member.seen for member in members) / len(members),
        max(wish.ages.get(member.model, FOREIGN) for member in members) if wish.ages else 0,
        max(member.order for member in members),
        flat,
    )


# ── choosing ─────────────────────────────────────────────────────────────────────────────────


def _ordered(units: Iterable[Unit], seed: int) -> list[Unit]:
    """The newest policy's first, unseen ones first, the newest first."""
    return sorted(
        units,
        key=lambda unit: (
            unit.age, unit.seen, -unit.newest, lot("select", seed, unit.key), unit.key,
            unit.members[0].trajectory_id,
        ),
    )  # fmt: skip


def _choose(units: Sequence[Unit], wish: Wish) -> tuple[list[Unit], tuple[str, ...]]:
    """Whole units, as long as they fit."""
    have: Counter[str] = Counter()
    for unit in units:
        have[unit.domain] += len(unit.members)
    size, most = _room(units, wish)
    asked = quotas(have, size, wish.balance)
    chosen: list[Unit] = []
    taken: Counter[str] = Counter()
    total = teaching = 0
    for unit in units:
        domain = unit.domain if asked else ""
        limit = asked.most.get(domain, 0) if asked else size
        if unit.age > 0 and wish.fill is not None and total >= wish.fill:
            break  # the rest is older still
        if taken[domain] + len(unit.members) <= limit and (unit.flat or teaching < most):
            taken[domain] += len(unit.members)
            total += len(unit.members)
            teaching += not unit.flat
            chosen.append(unit)
    notes = asked.notes if asked else ()
    return chosen, (*notes, *_too_large(units, chosen, asked.most if asked else None, size))


def _too_large(
    units: Sequence[Unit], chosen: Sequence[Unit], most: Mapping[str, int] | None, size: int
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


def _room(units: Sequence[Unit], wish: Wish) -> tuple[int, int]:
    """The most trajectories, and the most units that teach something."""
    if not _is_bounded(wish):
        return wish.sample_size, len(units)
    most = ceil((wish.most_groups or 0) / max(0.01, 1 - wish.holdout))
    if wish.balance == AS_IT_COMES:
        return wish.sample_size, most
    usual = _size(units) / max(1, len(units))
    return min(wish.sample_size, ceil(most * usual)), most


def _is_bounded(wish: Wish) -> bool:
    return wish.most_groups is not None and wish.algorithm in GROUPED


def _timely(units: Sequence[Unit], held_out: frozenset[str], wish: Wish) -> list[Unit]:
    """The units without groups that training would never come to."""
    if not _is_bounded(wish):
        return list(units)
    training = [
        unit.key for unit in units if not unit.flat and unit.members[0].task not in held_out
    ]
    late = frozenset(training[wish.most_groups :])
    return [unit for unit in units if unit.key not in late]


def _tasks(unit: Unit) -> frozenset[str]:
    return frozenset(member.task for member in unit.members)


def _size(units: Iterable[Unit]) -> int:
    return sum(len(unit.members) for unit in units)
