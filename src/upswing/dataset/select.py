"""Which trajectories does a job learn from, and why not the others?

    candidates ─▶ sift ─▶ units ─▶ order ─▶ choose ─▶ split
                   │        │                  │
                   └────────┴──────────────────┴──▶ left out, counted by reason

A unit is what is taken or left whole: for the relative algorithms a group, for the others a single
trajectory.

| algorithm       | unit                          | needs                            |
|-----------------|-------------------------------|----------------------------------|
| grpo, rloo      | the same window and scenario  | `min_agents` different agents    |
| dpo             | the same window and scenario, | two trajectories                 |
|                 | or for what is alone there,   |                                  |
|                 | the same task                 |                                  |
| ppo, reinforce  | one trajectory                | nothing                          |

Units come in the order of their lots, those that the model's ancestors have not trained on first.
Whatever order the candidates come in, the same seed selects the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from upswing.dataset.balance import AS_IT_COMES, quotas
from upswing.dataset.sift import Candidate, LeftOut, Wish, sift
from upswing.dataset.split import hold_out, lot

GROUPED = frozenset({"grpo", "rloo", "dpo"})


@dataclass(frozen=True, slots=True)
class Unit:
    """What is taken or left whole."""

    key: str
    members: tuple[Candidate, ...]
    domain: str
    """Of most members."""
    seen: float
    """The share of members that an ancestor was trained on."""


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

    def is_held_out(self, member: Candidate) -> bool:
        return member.task in self.held_out


def select(candidates: Iterable[Candidate], wish: Wish) -> Selection:
    """The data set that a wish gets from these candidates."""
    left_out: Counter[LeftOut] = Counter()
    sound = sift(candidates, wish, left_out)
    units = units_of(sound, wish)
    left_out[LeftOut.SMALL_GROUP] += len(sound) - _size(units)
    chosen, notes = _choose(_ordered(units, wish.seed), wish)
    split = hold_out(
        [{member.task for member in unit.members} for unit in chosen], wish.holdout, wish.seed
    )
    kept = _timely(chosen, split.held_out, wish)
    left_out[LeftOut.SURPLUS] += _size(units) - _size(kept)
    members = tuple(member for unit in kept for member in unit.members)
    counts = {reason: left_out[reason] for reason in LeftOut if left_out[reason]}
    return Selection(members, split.held_out, counts, notes, split.sentence)


def units_of(candidates: Sequence[Candidate], wish: Wish) -> list[Unit]:
    """What is taken or left whole; what makes no unit is left out."""
    if wish.algorithm not in GROUPED:
        return [_single(each) for each in candidates]
    groups = _by(candidates, lambda each: each.group)
    if wish.algorithm != "dpo":
        return [unit for unit in groups if _agents(unit) >= wish.min_agents]
    alone = [unit.members[0] for unit in groups if len(unit.members) == 1]
    by_task = _by(alone, lambda each: f"task {each.task}")
    return [unit for unit in (*groups, *by_task) if len(unit.members) > 1]


def _by(candidates: Iterable[Candidate], key: Callable[[Candidate], str]) -> list[Unit]:
    found: dict[str, list[Candidate]] = {}
    for each in candidates:
        found.setdefault(key(each), []).append(each)
    return [_unit(name, members) for name, members in found.items()]


def _single(each: Candidate) -> Unit:
    return Unit(each.trajectory_id, (each,), each.domain, float(each.seen))


def _unit(key: str, members: Sequence[Candidate]) -> Unit:
    counts = Counter(member.domain for member in members)
    return Unit(
        key,
        tuple(sorted(members, key=lambda each: each.trajectory_id)),
        min(counts, key=lambda domain: (-counts[domain], domain)),
        sum(member.seen for member in members) / len(members),
    )


def _ordered(units: Iterable[Unit], seed: int) -> list[Unit]:
    """Unseen ones first; otherwise as chance will have it."""
    return sorted(units, key=lambda unit: (unit.seen, lot("select", seed, unit.key), unit.key))


def _choose(units: Sequence[Unit], wish: Wish) -> tuple[list[Unit], tuple[str, ...]]:
    """Whole units, as long as they fit."""
    have: Counter[str] = Counter()
    for unit in units:
        have[unit.domain] += len(unit.members)
    size, most = _room(units, wish)
    asked = quotas(have, size, wish.balance)
    chosen: list[Unit] = []
    taken: Counter[str] = Counter()
    for unit in units:
        domain = unit.domain if asked else ""
        limit = asked.most.get(domain, 0) if asked else size
        if taken[domain] + len(unit.members) <= limit and len(chosen) < most:
            taken[domain] += len(unit.members)
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
    """The most trajectories and the most units."""
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
    training = [unit.key for unit in units if unit.members[0].task not in held_out]
    late = frozenset(training[wish.most_groups :])
    return [unit for unit in units if unit.key not in late]


def _agents(unit: Unit) -> int:
    return len({member.agent_id for member in unit.members})


def _size(units: Iterable[Unit]) -> int:
    return sum(len(unit.members) for unit in units)
