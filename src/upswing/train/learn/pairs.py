"""Which trajectories of a group make a preference: this one rather than that one?

Both sides come from the same group and did the same task (a window's group may hold several), and
the better one is better by at least `min_spread`. No trajectory takes part in more than `max_pairs`, so that one outlier does not
rule its group. Among the pairs that are possible, chance decides, from the seed and the group's
name alone: a group gives the same pairs whatever else is in the batch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from upswing.train.learn.advantages import members_by_group, require_finite
from upswing.train.learn.example import Example

_LARGE = 256
"""Members of a group beyond which it is cut at random, since all pairs of a thousand are too many."""


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Places of the two sides in what was given."""

    chosen: int
    rejected: int


def preference_pairs(
    rewards: Sequence[float],
    groups: Sequence[str],
    tasks: Sequence[str],
    *,
    max_pairs: int,
    min_spread: float,
    seed: int,
) -> list[PreferencePair]:
    """The pairs of a batch, group by group.

    >>> preference_pairs([1, 0, 0], ["a", "a", "a"], ["t", "t", "u"], max_pairs=4, min_spread=0.02, seed=0)
    [PreferencePair(chosen=0, rejected=1)]
    """
    require_finite(rewards)
    pairs: list[PreferencePair] = []
    for group, members in members_by_group(groups).items():
        chance = random.Random(f"pairs/{seed}/{group}")  # noqa: S311 - a draw, not a secret
        for some in _shuffled_chunks(members, chance):
            possible = list(_candidate_pairs(some, rewards, tasks, min_spread))
            chance.shuffle(possible)
            pairs += _sample_pairs(possible, max_pairs)
    return pairs


def _shuffled_chunks(members: list[int], rng: random.Random) -> Iterator[list[int]]:
    if len(members) > _LARGE:
        members = rng.sample(members, len(members))
    for start in range(0, len(members), _LARGE):
        yield members[start : start + _LARGE]


def _candidate_pairs(
    members: Sequence[int], rewards: Sequence[float], tasks: Sequence[str], min_difference: float
) -> Iterator[PreferencePair]:
    for one, other in combinations(members, 2):
        if tasks[one] != tasks[other]:
            continue
        better, worse = (one, other) if rewards[one] > rewards[other] else (other, one)
        if rewards[better] > rewards[worse] and rewards[better] - rewards[worse] >= min_difference:
            yield PreferencePair(better, worse)


def _sample_pairs(pairs: Sequence[PreferencePair], count: int) -> Iterator[PreferencePair]:
    """The first ones in which no trajectory appears more often."""
    used: Counter[int] = Counter()
    for pair in pairs:
        if max(used[pair.chosen], used[pair.rejected]) < count:
            used.update((pair.chosen, pair.rejected))
            yield pair


def mismatched_answers(examples: Sequence[Example], max_tokens: int) -> list[Example | None]:
    """Each prompt with somebody else's answer: where KTO looks how far the policy has moved.

    The answer is that of the nearest example before it, round and round, that answered another
    prompt; None where there is none.
    """
    firsts = [next((at for at, own in enumerate(e.trained) if own), 0) for e in examples]
    prompts = [e.ids[:first] for e, first in zip(examples, firsts, strict=True)]
    found: list[Example | None] = []
    for i, example in enumerate(examples):
        others = ((i - back) % len(examples) for back in range(1, len(examples)))
        j = next((j for j in others if firsts[j] and prompts[j] != prompts[i]), None)
        if j is None or not firsts[i]:
            found.append(None)
            continue
        other, first = examples[j], firsts[j]
        room = slice(first, first + max(1, max_tokens - firsts[i]))
        answer, own = other.ids[room], other.trained[room]
        found.append(
            replace(
                example,
                ids=prompts[i] + answer,
                trained=(False,) * firsts[i] + own,
                turns=(0,) * (firsts[i] + len(answer)),
                logps=None,
                turn_rewards=None,
            )
        )
    return found
