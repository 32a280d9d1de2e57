"""DPO: of two that did the same task, does the policy prefer the better one more than the reference?

The preference alone can be met by lowering both sides, the rejected one faster; `sft_weight` also
imitates the chosen side, which keeps its likelihood from sinking. "chosen_shift" shows whether it
sinks.
"""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - the name everybody knows
from torch import Tensor

from upswing.train.learn.losses.terms import LossTerms, with_stats


def dpo_loss(
    chosen_P: Tensor,
    rejected_P: Tensor,
    ref_chosen_P: Tensor,
    ref_rejected_P: Tensor,
    weights_P: Tensor,
    *,
    beta: float,
    sft_weight: float = 0.0,
    chosen_mean_P: Tensor | None = None,
) -> LossTerms:
    """The sigmoid loss on logprobs summed over each side's trained tokens.

    `weights_P` are the pairs' shares in the step; `chosen_mean_P` is the chosen side's logprob per
    token, which `sft_weight` needs.
    """
    chosen_shift_P, rejected_shift_P = chosen_P - ref_chosen_P, rejected_P - ref_rejected_P
    margin_P = beta * (chosen_shift_P - rejected_shift_P)
    loss = -(weights_P * F.logsigmoid(margin_P)).sum()
    figures = {
        "accuracy": (weights_P * (margin_P > 0)).sum(),
        "margin": (weights_P * margin_P).sum(),
        "chosen_shift": (weights_P * chosen_shift_P).sum(),
        "rejected_shift": (weights_P * rejected_shift_P).sum(),
    }
    if chosen_mean_P is not None:
        imitation = -(weights_P * chosen_mean_P).sum()
        loss = loss + sft_weight * imitation if sft_weight else loss
        figures["nll"] = imitation
    elif sft_weight:
        raise ValueError("Imitating the chosen side needs its logprob per token.")
    return with_stats(loss, figures)
