"""GRPO: which of the things that were tried on the same task should become likelier?

Advantages come from the group, so no value head is needed. The clip is asymmetric: a rare good
action may grow by `clip_high` before its gradient stops, a bad one shrink by `clip_low`. The KL to
the reference is a term of the loss, by the k3 estimate. With `reduce` this is also DAPO's loss
(`token`) and Dr. GRPO's (`constant`, with advantages that are not scaled).
"""

from __future__ import annotations

from upswing.train.losses.terms import (
    Terms,
    Tokens,
    clipped_objective,
    log_ratio,
    regularised,
)


def grpo(
    tokens: Tokens,
    *,
    clip_low: float,
    clip_high: float,
    kl_beta: float = 0.0,
    entropy: float = 0.0,
) -> Terms:
    """The clipped objective per token."""
    ratio_BT = log_ratio(tokens.logps_BT, tokens.old_BT).exp()
    gain_BT, stopped_BT = clipped_objective(ratio_BT, tokens.advantages_BT, clip_low, clip_high)
    loss = -(tokens.weights_BT * tokens.mask_BT * gain_BT).sum()
    return regularised(tokens, loss, stopped_BT, kl_beta=kl_beta, entropy=entropy)
