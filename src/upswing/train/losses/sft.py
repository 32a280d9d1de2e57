"""SFT: how likely does the policy find what it should imitate?"""

from __future__ import annotations

import torch
from torch import Tensor

from upswing.train.losses.terms import Terms, Tokens, regularised, with_figures


def sft(logps_BT: Tensor, mask_BT: Tensor, weights_BT: Tensor) -> Terms:
    """The negative log-likelihood of the trained tokens; its figure is the loss itself."""
    loss = -(weights_BT * mask_BT * logps_BT).sum()
    return with_figures(loss, {"nll": loss})


def imitation(tokens: Tokens, *, kl_beta: float = 0.0, entropy: float = 0.0) -> Terms:
    """The same of a step, with the KL term, the entropy bonus and the figures of the others.

    Whoever said it: a demonstration is imitated as it stands, so nothing weighs who acted.
    """
    told = sft(tokens.logps_BT, tokens.mask_BT, tokens.weights_BT)
    nothing_B1 = torch.zeros_like(tokens.mask_BT[:, :1])
    terms = regularised(tokens, told.loss, nothing_B1, kl_beta=kl_beta, entropy=entropy, cap=1.0)
    return Terms(terms.loss, {**terms.stats, **told.stats})
