"""What does a loss read, what does it give back, and whose share is how large?

A step's loss is a weighted sum over its tokens (sequences, pairs, turns). The weights are made once
over the whole step, so the losses and figures of its micro-batches simply add up to the step's,
however it is cut. Nothing here divides by the size of what it happens to see.

    B sequences   T tokens   K turns   P pairs
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

import torch
from torch import Tensor

LossReduction = Literal["sequence", "token", "constant"]

MAX_LOG_RATIO = 20.0
"""Nats between two policies beyond which a ratio is not told apart: exp(20) is half a billion. It
keeps a ratio of whole sequences, a sum over hundreds of tokens, from overflowing into NaN."""

_TENFOLD = 2.302585
"""ln 10. In the reported KL a token counts as at most ten times likelier: one rare token that was
learned would otherwise weigh exp(15) and look like a policy that blew up."""


@dataclass(frozen=True, slots=True)
class LossInputs:
    """A micro-batch of a step. Where a token is not trained, mask, advantages and weights are 0."""

    logps_BT: Tensor
    """The current policy's logprobs; the gradient flows through them."""
    old_BT: Tensor
    """The behaviour policy's logprobs."""
    mask_BT: Tensor
    """1.0 on trained tokens."""
    advantages_BT: Tensor
    weights_BT: Tensor
    """Each token's share in the step's loss: `token_weights` of the whole step."""
    sequence_weights_B: Tensor
    """Each sequence's share: 1 / sequences of the step."""
    start_BT: Tensor | None = None
    """Logprobs of the policy that training starts from: ratios are to it, and `importance_weights` corrects
    for what acted. None: ratios are to `old_BT`, as if that were the start."""
    ref_BT: Tensor | None = None
    """The reference's logprobs: the start, or the base without the adapter."""
    entropies_BT: Tensor | None = None
    values_BK: Tensor | None = None
    """PPO: what the value head expects at each turn."""
    old_values_BK: Tensor | None = None
    """What it expected when the returns were made; only a clipped value loss reads it."""
    returns_BK: Tensor | None = None
    turn_mask_BK: Tensor | None = None
    """1.0 where a sequence has that turn."""
    turn_weights_BK: Tensor | None = None
    """Each turn's share in the step: `token_weights(turn_mask_BK, "token")` of the whole step."""
    shares_BT: Tensor | None = None
    """Each token's share among the step's trained tokens: `token_weights(mask_BT, "token")`.
    Figures are means over tokens whatever `reduce` says. None: `weights_BT` are those shares
    already."""

    @property
    def token_shares(self) -> Tensor:
        return self.weights_BT if self.shares_BT is None else self.shares_BT

    @property
    def anchor_BT(self) -> Tensor:
        """What ratios are to, and what the clip is around."""
        return self.old_BT if self.start_BT is None else self.start_BT


@dataclass(frozen=True, slots=True)
class LossTerms:
    """A micro-batch's part of the step."""

    loss: Tensor
    """A scalar; the parts of a step add up to its loss."""
    stats: dict[str, float]
    """Figures for people and guards; the parts add up too."""


def token_weights(mask_BT: Tensor, reduce: LossReduction, *, max_tokens: int = 1) -> Tensor:
    """Each token's share in the loss of the step whose whole mask this is.

    | reduce     | one token's share           | so that                          | elsewhere  |
    |------------|-----------------------------|----------------------------------|------------|
    | `sequence` | 1 / its sequence's, / B     | each sequence counts alike       | GRPO       |
    | `token`    | 1 / trained tokens          | each token counts alike          | DAPO       |
    | `constant` | 1 / (B × `max_tokens`)      | no length is favoured            | Dr. GRPO   |

    >>> mask_BT = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> token_weights(mask_BT, "sequence").tolist()
    [[0.25, 0.25, 0.0], [0.0, 0.0, 0.5]]
    >>> token_weights(mask_BT, "constant", max_tokens=4).tolist()
    [[0.125, 0.125, 0.0], [0.0, 0.0, 0.125]]
    """
    if not bool(mask_BT.sum() > 0):
        raise ValueError("A step needs at least one trained token, and a mask that is a number.")
    sequences = mask_BT.shape[0]
    match reduce:
        case "sequence":
            return mask_BT / mask_BT.sum(1, keepdim=True).clamp(min=1.0) / sequences
        case "token":
            return mask_BT / mask_BT.sum()
        case "constant":
            return mask_BT / (sequences * max_tokens)
    assert_never(reduce)


def log_ratio(logps: Tensor, old: Tensor) -> Tensor:
    """How much likelier the current policy finds what was done, in nats, within `MAX_LOG_RATIO`."""
    return (logps - old).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def sequence_log_ratio(
    logps_BT: Tensor, old_BT: Tensor, mask_BT: Tensor, *, normalise: bool = True
) -> Tensor:
    """The same of whole sequences, per trained token unless `normalise` is off."""
    sums_B = ((logps_BT - old_BT) * mask_BT).sum(1)
    if normalise:
        sums_B = sums_B / mask_BT.sum(1).clamp(min=1.0)
    return sums_B.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)


def kl_k3(log_ratio: Tensor) -> Tensor:
    """Schulman's estimate of KL(p ‖ q) at samples of p, from log q − log p. Never below 0."""
    return log_ratio.exp() - log_ratio - 1


def importance_weights(tokens: LossInputs, cap: float | None) -> Tensor:
    """How much a recorded token counts: min(cap, start / recorded), 1 where both are the same.

    The clip bounds how far training moves from its start; this weight corrects for what acted being
    another policy, or the same one computed by another engine. It is a number per token, not a path
    for the gradient. A product over a whole sequence would be unbiased, but the smallest
    differences of hundreds of tokens add up in it until few sequences carry the step; with `cap`,
    what bias is left is bounded.
    """
    if tokens.start_BT is None:
        return torch.ones_like(tokens.old_BT)
    return truncate_weights(log_ratio(tokens.start_BT, tokens.old_BT).exp(), cap)


def truncate_weights(weights: Tensor, cap: float | None) -> Tensor:
    return weights if cap is None else weights.clamp(max=cap)


def clipped_objective(
    ratio: Tensor, advantages: Tensor, low: float, high: float, dual: float | None = None
) -> tuple[Tensor, Tensor]:
    """The worse of the plain and the clipped gain, and where that stops the gradient.

    A bad action that became likelier has no bound in the plain gain: its loss grows with the ratio.
    `dual` is the ratio beyond which it grows no more (dual-clip PPO; `delta` in trl).
    """
    gain = torch.min(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)
    stopped = ((ratio < 1 - low) & (advantages < 0)) | ((ratio > 1 + high) & (advantages > 0))
    if dual is not None:
        beyond = (ratio > dual) & (advantages < 0)
        gain, stopped = torch.where(beyond, dual * advantages, gain), stopped | beyond
    return gain, stopped


def with_regularisers(
    tokens: LossInputs,
    loss: Tensor,
    stopped: Tensor,
    *,
    kl_beta: float,
    entropy: float,
    cap: float | None = None,
    weights_BT: Tensor | None = None,
) -> LossTerms:
    """The loss with its KL term and its entropy bonus, and the figures all losses have.

    `stopped` says per token (or per sequence, as B×1) where a clip took hold. The KL to the
    reference is one under the current policy but was sampled by the behaviour policy, so each token
    of it weighs its ratio; its gradient is unbiased only with that.

    KL term and entropy bonus are reduced as the loss is, by `weights_BT` (`tokens.weights_BT` unless
    the loss has others): a bonus that is a mean over tokens beside a loss that is divided by a fixed
    length, hundreds of times smaller, would decide alone where the policy goes.
    """
    weights_BT = (tokens.weights_BT if weights_BT is None else weights_BT) * tokens.mask_BT
    shares_BT = tokens.token_shares * tokens.mask_BT
    moved_BT = log_ratio(tokens.logps_BT, tokens.anchor_BT)
    trust_BT = importance_weights(tokens, cap)
    figures = {
        "kl": (shares_BT * kl_k3(moved_BT.detach().clamp(max=_TENFOLD))).sum(),
        "clipped": (shares_BT * stopped).sum(),
        "importance": (shares_BT * trust_BT).sum(),
    }
    if tokens.ref_BT is not None:
        away_BT = trust_BT * moved_BT.exp() * kl_k3(tokens.ref_BT - tokens.logps_BT)
        if kl_beta:
            loss = loss + kl_beta * (weights_BT * away_BT).sum()
        figures["ref_kl"] = (shares_BT * away_BT).sum()
    elif kl_beta:
        raise ValueError("A KL term needs the reference's logprobs.")
    if tokens.entropies_BT is not None:
        figures["entropy"] = (shares_BT * tokens.entropies_BT).sum()
        if entropy:
            loss = loss - entropy * (weights_BT * tokens.entropies_BT).sum()
    elif entropy:
        raise ValueError("An entropy bonus needs the entropies.")
    return with_stats(loss, figures)


def with_stats(loss: Tensor, figures: Mapping[str, Tensor]) -> LossTerms:
    """The terms. A figure that is not finite makes the loss NaN too: nobody trains on past it."""
    together = torch.stack([each.detach().to(loss.dtype) for each in figures.values()])
    numbers = dict(zip(figures, together.tolist(), strict=True))
    return LossTerms(loss + 0.0 * together.sum(), numbers)
