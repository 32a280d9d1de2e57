"""Who learns from what? From rewards and groups to advantages, pairs, and what stays together.

The advantage of a trajectory is fixed before the first step, against its whole group. So a group
larger than a step may be cut: its members stay near each other only because they share a prefix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import TypeVar, assert_never

import torch
from torch import Tensor

from upswing.train.core.recipe import Recipe
from upswing.train.learn.advantages import (
    RelativeAlgorithm,
    kl_penalised_rewards,
    members_by_group,
    require_finite,
    turn_credit,
)
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import ExampleTensors
from upswing.train.learn.gae import compute_gae, rewards_by_turn, standardised_advantages
from upswing.train.learn.pairs import preference_pairs
from upswing.train.learn.schedule import Cluster

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class LearningSignal:
    """What there is to learn."""

    tracks: tuple[ExampleTensors, ...]
    clusters: tuple[Cluster, ...]
    """Indices that stand together in a step; none at all means there is nothing to learn."""
    groups: int
    flat_groups: int
    """Groups from which nothing is learned: nobody did better than another, or succeeded."""


def learning_signal(
    examples: Sequence[Example], tensors: Sequence[ExampleTensors], recipe: Recipe
) -> LearningSignal:
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
            return _relative_signal(examples, tensors, recipe, recipe.algorithm)
        case "ppo":
            kept = (
                [i for i in m if not examples[i].masked] for m in members_by_group(groups).values()
            )
            clusters = [
                cluster for some in kept for cluster in _split_into_chunks(some, recipe.batch_size)
            ]
            return LearningSignal(tuple(tensors), tuple(clusters), count, 0)
        case "dpo":
            return _preference_signal(examples, tensors, recipe)
        case "sft" | "rft":
            if recipe.algorithm == "rft":
                require_finite(rewards)
                good = imitable_indices(rewards, groups, recipe.success)
                usable = [i for i in usable if i in good]
            praised = tuple(track.with_advantages([1.0] * track.turns) for track in tensors)
            learned = {groups[index] for index in usable}
            return LearningSignal(praised, tuple((i,) for i in usable), count, count - len(learned))
        case "kto":
            require_finite(rewards)
            return LearningSignal(tuple(tensors), tuple((i,) for i in usable), count, 0)
    assert_never(recipe.algorithm)


def no_signal_reason(signal: LearningSignal, recipe: Recipe) -> str | None:
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


def imitable_indices(
    rewards: Sequence[float], groups: Sequence[str], min_reward: float
) -> frozenset[int]:
    """The places of what is worth imitating: good in itself, and no worse than its group's mean.

    The second keeps an attempt that just passes from being imitated beside better ones.

    >>> sorted(imitable_indices([1.0, 0.6, 0.2, 0.6], ["a", "a", "a", "b"], 0.5))
    [0, 1, 3]
    >>> sorted(imitable_indices([1.0, 0.6, 1.0], ["a", "a", "a"], 0.5))
    [0, 2]
    """
    return frozenset(
        i
        for members in members_by_group(groups).values()
        for i in members
        if rewards[i] >= max(min_reward, fsum(rewards[j] for j in members) / len(members) - 1e-9)
    )


def kto_weights(rewards: Sequence[float], recipe: Recipe) -> tuple[float, float]:
    """KTO: what desirable and undesirable answers weigh; unless told, both sides weigh the same.

    >>> kto_weights([1.0, 0.0, 0.0, 0.0], Recipe())
    (3.0, 1.0)
    >>> kto_weights([1.0, 1.0, 0.0], Recipe(desirable_weight=0.5))
    (0.5, 2.0)
    """
    good = sum(reward >= recipe.success for reward in rewards)
    bad = len(rewards) - good
    evened = (max(1.0, bad / good), max(1.0, good / bad)) if good and bad else (1.0, 1.0)
    configured = (recipe.desirable_weight, recipe.undesirable_weight)
    liked, disliked = (e if t is None else t for e, t in zip(evened, configured, strict=True))
    return liked, disliked


def _preference_signal(
    examples: Sequence[Example], tensors: Sequence[ExampleTensors], recipe: Recipe
) -> LearningSignal:
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
    return LearningSignal(tuple(tensors), both, count, count - len({groups[i] for i, _ in both}))


def _relative_signal(
    examples: Sequence[Example],
    tensors: Sequence[ExampleTensors],
    recipe: Recipe,
    algorithm: RelativeAlgorithm,
) -> LearningSignal:
    rewards = [example.reward for example in examples]
    groups = [example.group for example in examples]
    if algorithm == "rloo" and recipe.kl_beta:
        old, ref = (
            [float(t.sum()) for t in _logprob_tensors(tensors, name)] for name in ("old", "ref")
        )
        rewards = kl_penalised_rewards(rewards, old, ref, beta=recipe.kl_beta)
    by_turn = recipe.credit == "turn"
    found = turn_credit(
        rewards,
        [
            _dense_turn_rewards(e, t) if by_turn else None
            for e, t in zip(examples, tensors, strict=True)
        ],
        [track.turns for track in tensors],
        groups,
        algorithm=algorithm,
        scale=recipe.scale_rewards,
        min_spread=recipe.min_spread,
        gamma=recipe.gamma,
        domains=[f"{example.domain}/{example.score_scale}" for example in examples],
    )
    pairs = zip(tensors, found.values, strict=True)
    credited = tuple(track.with_advantages(values) for track, values in pairs)
    clusters = [
        cluster
        for members in members_by_group(groups).values()
        for cluster in _split_into_chunks(
            [m for m in members if found.kept[m] and not examples[m].masked], recipe.batch_size
        )
    ]
    return LearningSignal(credited, tuple(clusters), len(set(groups)), found.flat_groups)


def turn_returns(example: Example, tensors: ExampleTensors, recipe: Recipe) -> tuple[float, ...]:
    """What really came of each turn: the discounted sum of its own and all later rewards."""
    dense = _dense_turn_rewards(example, tensors) if recipe.credit == "turn" else None
    earned = rewards_by_turn(example.reward, dense, tensors.turns)
    return compute_gae(earned, (0.0,) * tensors.turns, gamma=recipe.gamma, lam=1.0)[1]


def on_one_scale(examples: Sequence[Example]) -> tuple[Example, ...]:
    """PPO: rewards without the difference between sources, which a value head cannot see.

    Where several sources score a domain, the rewards of each are moved to the domain's mean.
    """
    of_domain = _mean_rewards(examples, [each.domain for each in examples])
    of_scale = _mean_rewards(examples, [(each.domain, each.score_scale) for each in examples])
    scales = Counter(domain for domain, _ in of_scale)
    return tuple(
        replace(
            each,
            reward=each.reward + of_domain[each.domain] - of_scale[each.domain, each.score_scale],
        )
        if scales[each.domain] > 1
        else each
        for each in examples
    )


def _mean_rewards(examples: Sequence[Example], keys: Sequence[K]) -> dict[K, float]:
    rewards: dict[K, list[float]] = {}
    for example, key in zip(examples, keys, strict=True):
        rewards.setdefault(key, []).append(example.reward)
    return {key: fsum(values) / len(values) for key, values in rewards.items()}


def ppo_targets(
    examples: Sequence[Example],
    tensors: Sequence[ExampleTensors],
    values: Sequence[Tensor],
    recipe: Recipe,
) -> list[ExampleTensors]:
    """Advantages and returns per turn, from what the value head expects now."""
    found = []
    for example, track, expected in zip(examples, tensors, values, strict=True):
        dense = _dense_turn_rewards(example, track) if recipe.credit == "turn" else None
        earned = rewards_by_turn(example.reward, dense, track.turns)
        found.append(
            compute_gae(earned, expected.tolist(), gamma=recipe.gamma, lam=recipe.gae_lambda)
        )
    scaled = standardised_advantages([surplus for surplus, _ in found])
    return [
        replace(
            track.with_advantages(surplus), returns_K=torch.tensor(returns), old_values_K=expected
        )
        for track, surplus, (_, returns), expected in zip(
            tensors, scaled, found, values, strict=True
        )
    ]


def _dense_turn_rewards(example: Example, tensors: ExampleTensors) -> tuple[float, ...] | None:
    """The rewards of the turns that train, where every turn was rewarded."""
    if example.turn_rewards is None or example.masked:
        return None
    acted = dict.fromkeys(
        turn for turn, trained in zip(example.turns, example.trained, strict=True) if trained
    )
    if len(acted) != tensors.turns or max(acted) >= len(example.turn_rewards):
        return None
    return tuple(example.turn_rewards[turn] for turn in acted)


def _logprob_tensors(tensors: Sequence[ExampleTensors], source: str) -> Iterator[Tensor]:
    for track in tensors:
        tensor = track.old_T if source == "old" else track.ref_T
        if tensor is None:
            raise ValueError("A KL term needs the reference's logprobs.")
        yield tensor


def _split_into_chunks(members: Sequence[int], size: int) -> Iterator[Cluster]:
    for first in range(0, len(members), size):
        yield tuple(members[first : first + size])
