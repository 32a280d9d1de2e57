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
class Taste:
    """How one sequence draws."""

    temperature: float = 1.0
    """0: the likeliest token."""
    top_p: float = 1.0


def logprobs(logits_BV: Tensor) -> Tensor:  # noqa: N803 - tensor names carry their axes
    return logits_BV.float().log_softmax(-1)


def draw(
    logps_BV: Tensor,  # noqa: N803 - as above
    tastes: Sequence[Taste],
    chances: Sequence[float],
) -> list[int]:
    """A token for each row; a row's chance is a number in [0, 1)."""
    likeliest: list[int] = logps_BV.argmax(-1).tolist()
    drawing = [row for row, taste in enumerate(tastes) if taste.temperature > 0]
    if not drawing:
        return likeliest
    heat = torch.tensor([tastes[row].temperature for row in drawing], dtype=torch.double)
    weights_DV = (logps_BV[drawing] / heat[:, None].to(logps_BV)).double().softmax(-1)  # noqa: N806
    for at, row in enumerate(drawing):
        if tastes[row].top_p < 1:
            weights_DV[at] = _nucleus(weights_DV[at], tastes[row].top_p)
    tokens = invert(weights_DV, [chances[row] for row in drawing])
    for row, token in zip(drawing, tokens, strict=True):
        likeliest[row] = token
    return likeliest


def invert(weights_BV: Tensor, chances: Sequence[float]) -> list[int]:  # noqa: N803 - as above
    """The token at which the summed weight passes each row's chance.

    >>> invert(torch.tensor([[1.0, 3.0]]), [0.2]), invert(torch.tensor([[1.0, 3.0]]), [0.3])
    ([0], [1])
    """
    summed_BV = weights_BV.double().cumsum(-1)  # noqa: N806 - as above
    chance_B1 = torch.tensor(chances, dtype=torch.double, device=weights_BV.device)[:, None]  # noqa: N806
    total_B1 = summed_BV[:, -1:]  # noqa: N806 - as above
    below_B1 = torch.nextafter(total_B1, torch.zeros_like(total_B1))  # noqa: N806 - as above
    found_B1 = torch.searchsorted(summed_BV, (chance_B1 * total_B1).minimum(below_B1), right=True)  # noqa: N806
    tokens: list[int] = found_B1[:, 0].tolist()
    return tokens


def likeliest(logps_V: Tensor, count: int) -> list[tuple[int, float]]:  # noqa: N803 - as above
    """The likeliest tokens with their logprobs, the likeliest first."""
    if not count:
        return []
    top = logps_V.topk(min(count, logps_V.shape[-1]))
    return list(zip(top.indices.tolist(), top.values.tolist(), strict=True))


def _nucleus(weights_V: Tensor, top_p: float) -> Tensor:  # noqa: N803 - as above
    """Only the likeliest tokens, as many as it takes to reach `top_p`; at least one.

    >>> _nucleus(torch.tensor([0.1, 0.6, 0.3], dtype=torch.double), 0.7).tolist()
    [0.0, 0.6, 0.3]
    """
    ordered = weights_V.sort(descending=True, stable=True)
    before = ordered.values.cumsum(-1) - ordered.values
    kept = torch.zeros_like(weights_V)
    chosen = ordered.indices[before < top_p]
    kept[chosen] = weights_V[chosen]
    return kept
