"""RLOO: was this whole answer better than what the others on the same task managed?

The action is the sequence: its ratio is that of the whole sequence and is clipped as one. The
advantage is the trajectory's; where turns have their own, their mean over the trained tokens is
taken, so credit by turn has no effect inside a sequence. The KL to the reference belongs to the
reward here, not to the loss: `upswing.train.advantages.penalised` takes it off before the others
are compared.
"""

from __future__ import annotations

from upswing.train.losses.terms import Terms, Tokens, clipped_objective, log_ratio, regularised


def rloo(tokens: Tokens, *, clip_low: float, clip_high: float, entropy: float = 0.0) -> Terms:
    """The clipped objective per sequence."""
    mask_BT = tokens.mask_BT
    advantages_B = (tokens.advantages_BT * mask_BT).sum(1) / mask_BT.sum(1).clamp(min=1.0)
    sums_B, old_sums_B = (tokens.logps_BT * mask_BT).sum(1), (tokens.old_BT * mask_BT).sum(1)
    ratio_B = log_ratio(sums_B, old_sums_B).exp()
    gain_B, stopped_B = clipped_objective(ratio_B, advantages_B, clip_low, clip_high)
    loss = -(tokens.sequence_weights_B * gain_B).sum()
    return regularised(tokens, loss, stopped_B[:, None], kl_beta=0.0, entropy=entropy)
