"""Which token comes next, and how likely was it?

A logprob is that of the raw logits at temperature 1, whatever the token was drawn with: that is what
training compares with. A token is drawn by inverting the summed probabilities at one number between
0 and 1, so that what a sequence says depends on its own chances and not on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one sequence draws."""

    temperature: float = 1.0
    """0: the likeliest token."""
    top_p: float = 1.0


def logprobs(logits_BV: Tensor) -> Tensor:
    return logits_BV.float().log_softmax(-1)


def sample_tokens(
    logps_BV: Tensor,
    params: Sequence[SamplingParams],
    uniforms: Sequence[float],
) -> list[int]:
    """A token for each row; a row's chance is a number in [0, 1)."""
    tokens_by_row: list[int] = logps_BV.argmax(-1).tolist()
    sampled_rows = [row for row, each in enumerate(params) if each.temperature > 0]
    if not sampled_rows:
        return tokens_by_row
    temperatures = torch.tensor(
        [params[row].temperature for row in sampled_rows], dtype=torch.double
    )
    weights_DV = (logps_BV[sampled_rows] / temperatures[:, None].to(logps_BV)).double().softmax(-1)
    for at, row in enumerate(sampled_rows):
        if params[row].top_p < 1:
            weights_DV[at] = _keep_nucleus(weights_DV[at], params[row].top_p)
    tokens = inverse_cdf(weights_DV, [uniforms[row] for row in sampled_rows])
    for row, token in zip(sampled_rows, tokens, strict=True):
        tokens_by_row[row] = token
    return tokens_by_row


def inverse_cdf(weights_BV: Tensor, uniforms: Sequence[float]) -> list[int]:
    """The token at which the summed weight passes each row's chance.

    >>> inverse_cdf(torch.tensor([[1.0, 3.0]]), [0.2]), inverse_cdf(torch.tensor([[1.0, 3.0]]), [0.3])
    ([0], [1])
    """
    summed_BV = weights_BV.double().cumsum(-1)
    chance_B1 = torch.tensor(uniforms, dtype=torch.double, device=weights_BV.device)[:, None]
    total_B1 = summed_BV[:, -1:]
    below_B1 = torch.nextafter(total_B1, torch.zeros_like(total_B1))
    found_B1 = torch.searchsorted(summed_BV, (chance_B1 * total_B1).minimum(below_B1), right=True)
    tokens: list[int] = found_B1[:, 0].tolist()
    return tokens


def top_tokens(logps_V: Tensor, count: int) -> list[tuple[int, float]]:
    """The likeliest tokens with their logprobs, the likeliest first."""
    if not count:
        return []
    top = logps_V.topk(min(count, logps_V.shape[-1]))
    return list(zip(top.indices.tolist(), top.values.tolist(), strict=True))


def _keep_nucleus(weights_V: Tensor, top_p: float) -> Tensor:
    """Only the likeliest tokens, as many as it takes to reach `top_p`; at least one.

    >>> _keep_nucleus(torch.tensor([0.1, 0.6, 0.3], dtype=torch.double), 0.7).tolist()
    [0.0, 0.6, 0.3]
    """
    ordered = weights_V.sort(descending=True, stable=True)
    before = ordered.values.cumsum(-1) - ordered.values
    kept = torch.zeros_like(weights_V)
    chosen = ordered.indices[before < top_p]
    kept[chosen] = weights_V[chosen]
    return kept
