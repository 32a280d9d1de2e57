"""Who learns from what? From rewards and groups to advantages, pairs, and what stays together.

The advantage of a trajectory is fixed before the first step, against its whole group. So a group
larger than a step may be cut: its members stay near each other only because they share a prefix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import assert_never

import torch
from torch import Tensor

from upswing.train.advantages import (
    Relative,
    insist_on_numbers,
    members_of,
    penalised,
    turn_credit,
)
from upswing.train.example import Example
from upswing.train.gae import gae, rewards_by_turn, standardised
from upswing.train.pairs import preference_pairs
from upswing.train.recipe import Recipe
from upswing.train.schedule import Cluster
from upswing.train.tracks import Track


@dataclass(frozen=True, slots=True)
class Signal:
    """What there is to learn."""

    tracks: tuple[Track, ...]
    clusters: tuple[Cluster, ...]
    """Indices that stand together in a step; none at all means there is nothing to learn."""
    groups: int
    flat_groups: int
    """Groups from which nothing is learned: nobody did better than another, or succeeded."""


def signal_of(examples: Sequence[Example], tracks: Sequence[Track], recipe: Recipe) -> Signal:
    """The signal that the recipe's algorithm finds in these examples.

    | algorithm             | learns from                                                         |
    |-----------------------|---------------------------------------------------------------------|
    | grpo, rloo, reinforce | what was better or worse than those it is compared with             |
    | ppo                   | everything, against what the value head expects                     |
    | dpo                   | two attempts at the same task, one better                           |
    | sft                   | everything: it was selected to be imitated                          |
    | rft                   | successes: a reward of at least `success` and of the group's mean   |
    | kto                   | everything: at least `success` is desirable, the rest is not        |

    What is masked is compared with, and is in no cluster.
    """
    groups = [example.group for example in examples]
    rewards = [example.reward for example in examples]
    usable = [index for index, example in enumerate(examples) if not example.masked]
    count = len(set(groups))
    match recipe.algorithm:
        case "grpo" | "rloo" | "reinforce":
            return _relative(examples, tracks, recipe, recipe.algorithm)
        case "ppo":
            kept = ([i for i in m if not examples[i].masked] for m in members_of(groups).values())
            clusters = [cluster for some in kept for cluster in _cut(some, recipe.batch_size)]
            return Signal(tuple(tracks), tuple(clusters), count, 0)
        case "dpo":
            return _preferences(examples, tracks, recipe)
        case "sft" | "rft":
            if recipe.algorithm == "rft":
                insist_on_numbers(rewards)
                good = successes(rewards, groups, recipe.success)
                usable = [i for i in usable if i in good]
            praised = tuple(track.credited([1.0] * track.turns) for track in tracks)
            learned = {groups[index] for index in usable}
            return Signal(praised, tuple((i,) for i in usable), count, count - len(learned))
        case "kto":
            insist_on_numbers(rewards)
            return Signal(tuple(tracks), tuple((i,) for i in usable), count, 0)
    assert_never(recipe.algorithm)


def nothing_to_learn(signal: Signal, recipe: Recipe) -> str | None:
    """The sentence to give up with, where no cluster was found."""
    if signal.clusters:
        return None
    match recipe.algorithm:
        case "rft":
            return f"in none of {signal.groups} groups did an attempt reach a reward of {recipe.success:g}, so there is nothing to imitate"
        case "sft" | "kto" | "ppo":
            return "every trajectory is longer than `max_tokens`, so there is nothing to learn"
        case "dpo":
            return f"in none of {signal.groups} groups was one attempt at a task better than another at the same task, so there is nothing to learn"
        case "grpo" | "rloo" | "reinforce":
            return f"in none of {signal.groups} groups did one agent do better than another, so there is nothing to learn"
    assert_never(recipe.algorithm)


def successes(rewards: Sequence[float], groups: Sequence[str], least: float) -> frozenset[int]:
    """The places of what is worth imitating: good in itself, and no worse than its group's mean.

    The second keeps an attempt that just passes from being imitated beside better ones.

    >>> sorted(successes([1.0, 0.6, 0.2, 0.6], ["a", "a", "a", "b"], 0.5))
    [0, 1, 3]
    >>> sorted(successes([1.0, 0.6, 1.0], ["a", "a", "a"], 0.5))
    [0, 2]
    """
    return frozenset(
        i
        for members in members_of(groups).values()
        for i in members
        if rewards[i] >= max(least, fsum(rewards[j] for j in members) / len(members) - 1e-9)
    )


def sides(rewards: Sequence[float], recipe: Recipe) -> tuple[float, float]:
    """KTO: what desirable and undesirable answers weigh; unless told, both sides weigh the same.

    >>> sides([1.0, 0.0, 0.0, 0.0], Recipe())
    (3.0, 1.0)
    >>> sides([1.0, 1.0, 0.0], Recipe(desirable_weight=0.5))
    (0.5, 2.0)
    """
    good = sum(reward >= recipe.success for reward in rewards)
    bad = len(rewards) - good
    evened = (max(1.0, bad / good), max(1.0, good / bad)) if good and bad else (1.0, 1.0)
    told = (recipe.desirable_weight, recipe.undesirable_weight)
    liked, disliked = (e if t is None else t for e, t in zip(evened, told, strict=True))
    return liked, disliked


def _preferences(examples: Sequence[Example], tracks: Sequence[Track], recipe: Recipe) -> Signal:
    """Pairs of a group, and of those that stand alone in theirs, pairs of a task."""
    sizes = Counter(example.group for example in examples)
    groups = [e.group if sizes[e.group] > 1 else f"task {e.task}" for e in examples]
    usable = [index for index, example in enumerate(examples) if not example.masked]
    pairs = preference_pairs(
        [examples[i].reward for i in usable],
        [groups[i] for i in usable],
        [examples[i].task for i in usable],
        max_pairs=recipe.max_pairs,
        min_spread=recipe.min_spread,
        seed=recipe.seed,
    )
    both = tuple((usable[pair.chosen], usable[pair.rejected]) for pair in pairs)
    count = len(set(groups))
    return Signal(tuple(tracks), both, count, count - len({groups[i] for i, _ in both}))


def _relative(
    examples: Sequence[Example], tracks: Sequence[Track], recipe: Recipe, algorithm: Relative
) -> Signal:
    rewards = [example.reward for example in examples]
    groups = [example.group for example in examples]
    if algorithm == "rloo" and recipe.kl_beta:
        old, ref = ([float(t.sum()) for t in _refs(tracks, name)] for name in ("old", "ref"))
        rewards = penalised(rewards, old, ref, beta=recipe.kl_beta)
    by_turn = recipe.credit == "turn"
    found = turn_credit(
        rewards,
        [_dense(e, t) if by_turn else None for e, t in zip(examples, tracks, strict=True)],
        [track.turns for track in tracks],
        groups,
        algorithm=algorithm,
        scale=recipe.scale_rewards,
        min_spread=recipe.min_spread,
        gamma=recipe.gamma,
        domains=[example.domain for example in examples],
    )
    pairs = zip(tracks, found.values, strict=True)
    credited = tuple(track.credited(values) for track, values in pairs)
    clusters = [
        cluster
        for members in members_of(groups).values()
        for cluster in _cut(
            [m for m in members if found.kept[m] and not examples[m].masked], recipe.batch_size
        )
    ]
    return Signal(credited, tuple(clusters), len(set(groups)), found.flat_groups)


def returns_of(example: Example, track: Track, recipe: Recipe) -> tuple[float, ...]:
    """What really came of each turn: the discounted sum of its own and all later rewards."""
    dense = _dense(example, track) if recipe.credit == "turn" else None
    earned = rewards_by_turn(example.reward, dense, track.turns)
    return gae(earned, (0.0,) * track.turns, gamma=recipe.gamma, lam=1.0)[1]


def ppo_targets(
    examples: Sequence[Example], tracks: Sequence[Track], values: Sequence[Tensor], recipe: Recipe
) -> list[Track]:
    """Advantages and returns per turn, from what the value head expects now."""
    found = []
    for example, track, expected in zip(examples, tracks, values, strict=True):
        dense = _dense(example, track) if recipe.credit == "turn" else None
        earned = rewards_by_turn(example.reward, dense, track.turns)
        found.append(gae(earned, expected.tolist(), gamma=recipe.gamma, lam=recipe.gae_lambda))
    scaled = standardised([surplus for surplus, _ in found])
    return [
        replace(
            track.credited(surplus), returns_K=torch.tensor(returns), old_values_K=expected
        )
        for track, surplus, (_, returns), expected in zip(tracks, scaled, found, values, strict=True)
    ]  # fmt: skip


def _dense(example: Example, track: Track) -> tuple[float, ...] | None:
    """The rewards of the turns that train, where every turn was rewarded."""
    if example.turn_rewards is None or example.masked:
        return None
    acted = dict.fromkeys(
        turn for turn, trained in zip(example.turns, example.trained, strict=True) if trained
    )
    if len(acted) != track.turns or max(acted) >= len(example.turn_rewards):
        return None
    return tuple(example.turn_rewards[turn] for turn in acted)


def _refs(tracks: Sequence[Track], name: str) -> Iterator[Tensor]:
    for track in tracks:
        tensor = track.old_T if name == "old" else track.ref_T
        if tensor is None:
            raise ValueError("A KL term needs the reference's logprobs.")
        yield tensor


def _cut(members: Sequence[int], size: int) -> Iterator[Cluster]:
    for first in range(0, len(members), size):
        yield tuple(members[first : first + size])
