"""SFT: how likely does the policy find what it should imitate?"""

from __future__ import annotations

import torch
from torch import Tensor

from upswing.train.learn.losses.terms import LossInputs, LossTerms, with_regularisers, with_stats


def sft_loss(logps_BT: Tensor, mask_BT: Tensor, weights_BT: Tensor) -> LossTerms:
    """The negative log-likelihood of the trained tokens; its figure is the loss itself."""
    loss = -(weights_BT * mask_BT * logps_BT).sum()
    return with_stats(loss, {"nll": loss})


def imitation_loss(tokens: LossInputs, *, kl_beta: float = 0.0, entropy: float = 0.0) -> LossTerms:
    """The same of a step, with the KL term, the entropy bonus and the figures of the others.

    Whoever said it: a demonstration is imitated as it stands, so nothing weighs who acted.
    """
    imitation = sft_loss(tokens.logps_BT, tokens.mask_BT, tokens.weights_BT)
    nothing_B1 = torch.zeros_like(tokens.mask_BT[:, :1])
    terms = with_regularisers(
        tokens, imitation.loss, nothing_B1, kl_beta=kl_beta, entropy=entropy, cap=1.0
    )
    return LossTerms(terms.loss, {**terms.stats, **imitation.stats})
