"""PPO: was this turn better than the value head expected of it?

Tokens carry the advantage of their turn (`upswing.train.learn.gae`); the clip per token is GRPO's, by
default symmetric. The value head gives one number per turn and learns the turn's return. Its loss
is plain unless `value_clip` says how far a value may move from what it was: studies find no gain in
clipping values, and it slows a head that starts from nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from upswing.train.learn.losses.grpo import grpo_loss
from upswing.train.learn.losses.terms import LossInputs, LossTerms


def ppo_loss(
    tokens: LossInputs,
    *,
    clip_low: float,
    clip_high: float,
    value_weight: float,
    value_clip: float | None = None,
    kl_beta: float = 0.0,
    entropy: float = 0.0,
    dual_clip: float | None = None,
    cap: float | None = None,
) -> LossTerms:
    """The clipped objective per token and the value head's error per turn."""
    policy = grpo_loss(
        tokens,
        clip_low=clip_low,
        clip_high=clip_high,
        kl_beta=kl_beta,
        entropy=entropy,
        dual_clip=dual_clip,
        cap=cap,
    )
    error = value_loss(tokens, value_clip)
    return LossTerms(
        policy.loss + value_weight * error, {**policy.stats, "value_loss": float(error.detach())}
    )


def value_loss(tokens: LossInputs, clip: float | None) -> Tensor:
    """Half the squared error, weighted over turns; clipped: the larger of the two errors."""
    values_BK, returns_BK = tokens.values_BK, tokens.returns_BK
    mask_BK, weights_BK = tokens.turn_mask_BK, tokens.turn_weights_BK
    if values_BK is None or returns_BK is None or mask_BK is None or weights_BK is None:
        raise ValueError("PPO needs values, returns, mask and weights per turn.")
    error_BK = (values_BK - returns_BK).square()
    if clip is not None:
        if tokens.old_values_BK is None:
            raise ValueError("A clipped value loss needs the old values.")
        old_BK = tokens.old_values_BK
        near_BK = old_BK + (values_BK - old_BK).clamp(-clip, clip)
        error_BK = torch.max(error_BK, (near_BK - returns_BK).square())
    return 0.5 * (weights_BK * mask_BK * error_BK).sum()
