"""GRPO: which of the things that were tried on the same task should become likelier?

Advantages come from the group, so no value head is needed. The clip is asymmetric: a rare good
action may grow by `clip_high` before its gradient stops, a bad one shrink by `clip_low`. It is
around the policy that training starts from; for what another policy recorded, each token weighs
`importance` besides (decoupled PPO). The KL to the reference is a term of the loss, by the k3
estimate. With `reduce` this is also DAPO's loss (`token`) and Dr. GRPO's (`constant`, with
advantages that are not scaled); with `ratio="sequence"` it is GSPO's: all tokens of a sequence share
one ratio, the geometric mean of theirs, and are clipped as one.
"""

from __future__ import annotations

from typing import Literal

from upswing.train.learn.losses.terms import (
    LossInputs,
    LossTerms,
    clipped_objective,
    importance_weights,
    log_ratio,
    sequence_log_ratio,
    with_regularisers,
)

Ratio = Literal["token", "sequence"]


def grpo_loss(
    tokens: LossInputs,
    *,
    clip_low: float,
    clip_high: float,
    kl_beta: float = 0.0,
    entropy: float = 0.0,
    dual_clip: float | None = None,
    cap: float | None = None,
    ratio: Ratio = "token",
) -> LossTerms:
    """The clipped objective per token."""
    if ratio == "token":
        ratio_BT = log_ratio(tokens.logps_BT, tokens.anchor_BT).exp()
    else:
        logs_B = sequence_log_ratio(tokens.logps_BT, tokens.anchor_BT, tokens.mask_BT)
        ratio_BT = logs_B.exp()[:, None]
    gain_BT, stopped_BT = clipped_objective(
        ratio_BT, tokens.advantages_BT, clip_low, clip_high, dual_clip
    )
    trusted_BT = importance_weights(tokens, cap) * gain_BT
    loss = -(tokens.weights_BT * tokens.mask_BT * trusted_BT).sum()
    return with_regularisers(tokens, loss, stopped_BT, kl_beta=kl_beta, entropy=entropy, cap=cap)
