"""Who learns from what? From rewards and groups to advantages, pairs, and what stays together.

The advantage of a trajectory is fixed before the first step, against its whole group. So a group
larger than a step may be cut: its members stay near each other only because they share a prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import torch
from torch import Tensor

from upswing.train.advantages import Relative, members_of, penalised, turn_credit
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
    """Groups in which nobody did better than another."""


def signal_of(examples: Sequence[Example], tracks: Sequence[Track], recipe: Recipe) -> Signal:
    """The signal that the recipe's algorithm finds in these examples."""
    groups = [example.group for example in examples]
    rewards = [example.reward for example in examples]
    count = len(set(groups))
    match recipe.algorithm:
        case "grpo" | "rloo" | "reinforce":
            return _relative(examples, tracks, recipe, recipe.algorithm)
        case "ppo":
            size = recipe.batch_size
            clusters = [c for m in members_of(groups).values() for c in _cut(m, size)]
            return Signal(tuple(tracks), tuple(clusters), count, 0)
        case "dpo":
            pairs = preference_pairs(
                rewards, groups, max_pairs=recipe.max_pairs, min_spread=recipe.min_spread, seed=recipe.seed
            )  # fmt: skip
            found = {groups[pair.chosen] for pair in pairs}
            both = tuple((pair.chosen, pair.rejected) for pair in pairs)
            return Signal(tuple(tracks), both, count, count - len(found))
    assert_never(recipe.algorithm)


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
    )
    pairs = zip(tracks, found.values, strict=True)
    credited = tuple(track.credited(values) for track, values in pairs)
    clusters = [
        cluster
        for members in members_of(groups).values()
        for cluster in _cut([m for m in members if found.kept[m]], recipe.batch_size)
    ]
    return Signal(credited, tuple(clusters), len(set(groups)), found.flat_groups)


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
    if example.turn_rewards is None:
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
