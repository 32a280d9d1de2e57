"""RLOO: was this whole answer better than what the others on the same task managed?

The action is the sequence: its ratio is that of the whole sequence and is clipped as one. The ratio
is the geometric mean of its tokens' ratios unless `normalise` is off: the plain product of hundreds
of tokens leaves any clip after one step, and long sequences first. What another policy recorded
weighs, in the same measure, how much likelier the start finds it (`cap` at most).

The advantage is the trajectory's; where turns have their own, their mean over the trained tokens is
taken, so credit by turn has no effect inside a sequence. The KL to the reference belongs to the
reward here, not to the loss: `upswing.train.learn.advantages.kl_penalised_rewards` takes it off before the others
are compared.
"""

from __future__ import annotations

from upswing.train.learn.losses.terms import (
    LossInputs,
    LossTerms,
    clipped_objective,
    sequence_log_ratio,
    truncate_weights,
    with_regularisers,
)


def rloo_loss(
    tokens: LossInputs,
    *,
    clip_low: float,
    clip_high: float,
    entropy: float = 0.0,
    dual_clip: float | None = None,
    cap: float | None = None,
    normalise: bool = True,
) -> LossTerms:
    """The clipped objective per sequence."""
    mask_BT, old_BT, anchor_BT = tokens.mask_BT, tokens.old_BT, tokens.anchor_BT
    lengths_B = mask_BT.sum(1).clamp(min=1.0)
    advantages_B = (tokens.advantages_BT * mask_BT).sum(1) / lengths_B
    moved_B = sequence_log_ratio(tokens.logps_BT, anchor_BT, mask_BT, normalise=normalise)
    gain_B, stopped_B = clipped_objective(
        moved_B.exp(), advantages_B, clip_low, clip_high, dual_clip
    )
    trust_B = truncate_weights(sequence_log_ratio(anchor_BT, old_BT, mask_BT).exp(), cap)
    loss = -(tokens.sequence_weights_B * trust_B * gain_B).sum()
    return with_regularisers(
        tokens,
        loss,
        stopped_B[:, None],
        kl_beta=0.0,
        entropy=entropy,
        cap=cap,
        weights_BT=(tokens.sequence_weights_B / lengths_B)[:, None] * mask_BT,
    )
