"""KTO: people said good or bad of single answers; does the policy find the good ones likelier?

A preference needs two answers to the same task; a thumb needs one. What an answer gained, its
logprob against the reference, is compared with what any answer gained: the KL of the policy from the
reference, estimated on answers that belong to other prompts. Losing more than that is no worse than
a full loss, so an outlier cannot rule a step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from upswing.train.learn.losses.terms import LossTerms, with_stats


def kto_loss(
    logps_B: Tensor,
    ref_B: Tensor,
    desirable_B: Tensor,
    weights_B: Tensor,
    *,
    kl: float,
    beta: float,
    desirable_weight: float = 1.0,
    undesirable_weight: float = 1.0,
) -> LossTerms:
    """The loss on logprobs summed over each answer's trained tokens.

    `desirable_B` is true for the good ones, `weights_B` are the answers' shares in the step, and
    `kl` is `kl_reference` of the whole step.
    """
    gained_B = logps_B - ref_B
    sign_B = torch.where(desirable_B, 1.0, -1.0).to(gained_B.dtype)
    side_B = torch.where(desirable_B, desirable_weight, undesirable_weight).to(gained_B.dtype)
    lost_B = 1 - torch.sigmoid(beta * sign_B * (gained_B - kl))
    loss = (weights_B * side_B * lost_B).sum()
    figures = {
        "accuracy": (weights_B * (sign_B * (gained_B - kl) > 0)).sum(),
        "margin": (weights_B * beta * sign_B * gained_B).sum(),
    }
    return with_stats(loss, figures)


def kl_reference(logps_B: Tensor, ref_B: Tensor) -> float:
    """How far the policy has moved from the reference, from answers to other prompts; at least 0.

    >>> kl_reference(torch.tensor([-1.0, -2.0]), torch.tensor([-2.0, -2.0]))
    0.5
    >>> kl_reference(torch.tensor([-3.0]), torch.tensor([-2.0]))
    0.0
    """
    return max(0.0, float((logps_B - ref_B).mean())) if len(logps_B) else 0.0
