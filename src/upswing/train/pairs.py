"""Which trajectories of a group make a preference: this one rather than that one?

Both sides come from the same group, so they did the same task, and the better one is better by at
least `min_spread`. No trajectory takes part in more than `max_pairs`, so that one outlier does not
rule its group. Among the pairs that are possible, chance decides, from the seed and the group's
name alone: a group gives the same pairs whatever else is in the batch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from upswing.train.advantages import insist_on_numbers, members_of

_LARGE = 256
"""Members of a group beyond which it is cut at random, since all pairs of a thousand are too many."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Places of the two sides in what was given."""

    chosen: int
    rejected: int


def preference_pairs(
    rewards: Sequence[float],
    groups: Sequence[str],
    *,
    max_pairs: int,
    min_spread: float,
    seed: int,
) -> list[Pair]:
    """The pairs of a batch, group by group.

    >>> preference_pairs([1, 0, 0.5], ["a", "a", "b"], max_pairs=4, min_spread=0.02, seed=0)
    [Pair(chosen=0, rejected=1)]
    """
    insist_on_numbers(rewards)
    pairs: list[Pair] = []
    for group, members in members_of(groups).items():
        chance = random.Random(f"pairs/{seed}/{group}")  # noqa: S311 - a draw, not a secret
        for some in _cut(members, chance):
            possible = list(_possible(some, rewards, min_spread))
            chance.shuffle(possible)
            pairs += _at_most(possible, max_pairs)
    return pairs


def _cut(members: list[int], chance: random.Random) -> Iterator[list[int]]:
    if len(members) > _LARGE:
        members = chance.sample(members, len(members))
    for start in range(0, len(members), _LARGE):
        yield members[start : start + _LARGE]


def _possible(members: Sequence[int], rewards: Sequence[float], gap: float) -> Iterator[Pair]:
    for one, other in combinations(members, 2):
        better, worse = (one, other) if rewards[one] > rewards[other] else (other, one)
        if rewards[better] > rewards[worse] and rewards[better] - rewards[worse] >= gap:
            yield Pair(better, worse)


def _at_most(pairs: Sequence[Pair], number: int) -> Iterator[Pair]:
    """The first ones in which no trajectory appears more often."""
    used: Counter[int] = Counter()
    for pair in pairs:
        if max(used[pair.chosen], used[pair.rejected]) < number:
            used.update((pair.chosen, pair.rejected))
            yield pair
