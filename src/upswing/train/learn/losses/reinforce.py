"""REINFORCE with a baseline: do more of what went better than expected.

A fixed batch that is passed several times is off-policy from the second pass on, and the plain
gradient then pushes what went badly towards probability 0 without end. With `truncate`, a token
weighs its ratio to the behaviour policy, at most `truncate`: what has already been pushed down
weighs less and less, and on the first pass, where every ratio is 1, nothing differs. None is the
textbook's gradient.

The weight is a number, not a path for the gradient, so no token ever stops learning as it does
under GRPO's clip; "clipped" reports the share of tokens whose weight was cut.
"""

from __future__ import annotations

import torch

from upswing.train.learn.losses.terms import LossInputs, LossTerms, log_ratio, with_regularisers


def reinforce_loss(
    tokens: LossInputs,
    *,
    truncate: float | None,
    kl_beta: float = 0.0,
    entropy: float = 0.0,
    cap: float | None = None,
) -> LossTerms:
    """The policy gradient, with truncated importance weights."""
    ratio_BT = log_ratio(tokens.logps_BT, tokens.old_BT).exp().detach()
    trust_BT = torch.ones_like(ratio_BT) if truncate is None else ratio_BT.clamp(max=truncate)
    gain_BT = trust_BT * tokens.advantages_BT * tokens.logps_BT
    loss = -(tokens.weights_BT * tokens.mask_BT * gain_BT).sum()
    cut_BT = trust_BT < ratio_BT if truncate is not None else torch.zeros_like(ratio_BT)
    return with_regularisers(tokens, loss, cut_BT, kl_beta=kl_beta, entropy=entropy, cap=cap)
