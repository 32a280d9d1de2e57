"""Which loss does a recipe ask for? One loss a file, each a pure function of tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, assert_never

from upswing.train.core.recipe import Recipe
from upswing.train.learn.losses.grpo import grpo_loss
from upswing.train.learn.losses.ppo import ppo_loss
from upswing.train.learn.losses.reinforce import reinforce_loss
from upswing.train.learn.losses.rloo import rloo_loss
from upswing.train.learn.losses.sft import imitation_loss
from upswing.train.learn.losses.terms import LossInputs, LossTerms

Loss = Callable[[LossInputs], LossTerms]


def loss_for(recipe: Recipe) -> Loss:
    """The loss over tokens with the recipe's knobs.

    | knob             | reinforce          | rloo               | grpo, ppo        | sft, rft    |
    |------------------|--------------------|--------------------|------------------|-------------|
    | `clip_low`       | –                  | of sequence ratios | of token ratios¹ | –           |
    | `clip_high`      | weights ≤ 1 + this | of sequence ratios | of token ratios¹ | –           |
    | `dual_clip`      | –                  | of sequence ratios | of token ratios¹ | –           |
    | `importance_cap` | of the KL term     | of sequences       | of tokens        | –           |
    | `kl_beta`        | in the loss        | in the reward      | in the loss      | in the loss |
    | `reduce`         | yes                | – (sequences)      | yes              | yes         |
    | `entropy`        | as the loss        | as the loss        | as the loss      | as the loss |
    | `value_weight`   | –                  | –                  | ppo              | –           |

    ¹ grpo with `ratio = "sequence"` (GSPO): of sequence ratios.
    """
    clip: dict[str, Any] = {
        "clip_low": recipe.clip_low,
        "clip_high": recipe.clip_high,
        "dual_clip": recipe.dual_clip,
    }
    calm: dict[str, Any] = {"kl_beta": recipe.kl_beta, "entropy": recipe.entropy}
    cap = recipe.importance_cap
    match recipe.algorithm:
        case "reinforce":
            return partial(reinforce_loss, truncate=1 + recipe.clip_high, cap=cap, **calm)
        case "rloo":
            return partial(rloo_loss, **clip, cap=cap, entropy=recipe.entropy)
        case "grpo":
            return partial(grpo_loss, **clip, **calm, cap=cap, ratio=recipe.ratio)
        case "ppo":
            return partial(ppo_loss, **clip, **calm, cap=cap, value_weight=recipe.value_weight)
        case "sft" | "rft":
            return partial(imitation_loss, **calm)
        case "dpo":
            raise ValueError("DPO compares pairs, not tokens: call upswing.train.learn.losses.dpo.")
        case "kto":
            raise ValueError("KTO judges answers, not tokens: call upswing.train.learn.losses.kto.")
    assert_never(recipe.algorithm)
