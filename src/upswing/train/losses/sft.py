"""SFT: how likely does the policy find what it should imitate?"""

from __future__ import annotations

from torch import Tensor

from upswing.train.losses.terms import Terms, with_figures


def sft(logps_BT: Tensor, mask_BT: Tensor, weights_BT: Tensor) -> Terms:
    """The negative log-likelihood of the trained tokens; its figure is the loss itself."""
    loss = -(weights_BT * mask_BT * logps_BT).sum()
    return with_figures(loss, {"nll": loss})
