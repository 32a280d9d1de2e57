"""Which loss does a recipe ask for? One loss a file, each a pure function of tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import assert_never

from upswing.train.losses.grpo import grpo
from upswing.train.losses.ppo import ppo
from upswing.train.losses.reinforce import reinforce
from upswing.train.losses.rloo import rloo
from upswing.train.losses.terms import Terms, Tokens
from upswing.train.recipe import Recipe

Loss = Callable[[Tokens], Terms]


def loss_for(recipe: Recipe) -> Loss:
    """The loss over tokens with the recipe's knobs.

    | knob                   | reinforce          | rloo               | grpo, ppo         |
    |------------------------|--------------------|--------------------|-------------------|
    | `clip_low`             | –                  | of sequence ratios | of token ratios   |
    | `clip_high`            | weights ≤ 1 + this | of sequence ratios | of token ratios   |
    | `kl_beta`              | in the loss        | in the reward      | in the loss       |
    | `reduce`               | yes                | – (sequences)      | yes               |
    | `entropy`              | per trained token  | per trained token  | per trained token |
    | `value_weight`         | –                  | –                  | ppo               |
    """
    low, high, beta, entropy = recipe.clip_low, recipe.clip_high, recipe.kl_beta, recipe.entropy
    match recipe.algorithm:
        case "reinforce":
            return partial(reinforce, truncate=1 + high, kl_beta=beta, entropy=entropy)
        case "rloo":
            return partial(rloo, clip_low=low, clip_high=high, entropy=entropy)
        case "grpo":
            return partial(grpo, clip_low=low, clip_high=high, kl_beta=beta, entropy=entropy)
        case "ppo":
            return partial(
                ppo,
                clip_low=low,
                clip_high=high,
                value_weight=recipe.value_weight,
                kl_beta=beta,
                entropy=entropy,
            )
        case "dpo":
            raise ValueError("DPO compares pairs, not tokens: call upswing.train.losses.dpo.")
    assert_never(recipe.algorithm)
