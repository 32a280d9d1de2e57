"""What does the model say next, and how likely was that? Exact tokens, exact logprobs.

Prompts of the same length run together, so nothing is padded and every logprob is the one that an
ordinary forward pass gives. A prompt that several samples share is read once; samples that have
ended leave the batch. Each sample has chances of its own, so what it says does not depend on who
else is in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random
from typing import Any

import torch
from torch import Tensor

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SampledCompletion:
    """One completion."""

    ids: Ids
    """The end token is the last one, if it was reached."""
    logprobs: tuple[float, ...]
    """Under the model at temperature 1, whatever the temperature was."""
    ended: bool


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """How tokens are sampled."""

    ends: frozenset[int]
    max_new: int
    temperature: float = 1.0
    batch: int = 256


def generate_completions(
    model: Any, prompts: Sequence[Ids], chances: Sequence[Random] | None, params: GenerationParams
) -> list[SampledCompletion]:
    """One completion per prompt, in their order. Without chances the likeliest tokens are taken."""
    completions: dict[int, SampledCompletion] = {}
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for rows in _batches_of_equal_length(prompts, params.batch):
                chosen = [chances[row] for row in rows] if chances is not None else None
                batch = _Batch(model, [prompts[row] for row in rows], chosen, params)
                completions.update(zip(rows, batch.run(), strict=True))
    finally:
        model.train(was_training)
    return [completions[row] for row in range(len(prompts))]


def _batches_of_equal_length(prompts: Sequence[Ids], size: int) -> Iterator[list[int]]:
    """Rows with prompts of one length; equal prompts stand together."""
    order = sorted(range(len(prompts)), key=lambda row: (len(prompts[row]), prompts[row], row))
    for _, same in groupby(order, key=lambda row: len(prompts[row])):
        rows = list(same)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


class _Batch:
    """Samples that grow together, token by token."""

    def __init__(
        self,
        model: Any,
        prompts: Sequence[Ids],
        chances: Sequence[Random] | None,
        params: GenerationParams,
    ) -> None:
        self._model, self._chances, self._params = model, chances, params
        self._ids: list[list[int]] = [[] for _ in prompts]
        self._logprobs: list[list[float]] = [[] for _ in prompts]
        self._open = list(range(len(prompts)))
        self._prompts = prompts

    def run(self) -> list[SampledCompletion]:
        logits_BV, cache = self._prefill()
        for _ in range(self._params.max_new):
            tokens_B = self._sample_tokens(logits_BV)
            left = [
                at for at, token in enumerate(tokens_B.tolist()) if token not in self._params.ends
            ]
            if len(left) < len(self._open):
                keep_B = torch.tensor(left, dtype=torch.long, device=tokens_B.device)
                self._open = [self._open[at] for at in left]
                if not left:
                    break
                tokens_B = tokens_B[keep_B]
                cache.batch_select_indices(keep_B)
            out = self._model(input_ids=tokens_B[:, None], past_key_values=cache, use_cache=True)
            logits_BV, cache = out.logits[:, -1], out.past_key_values
        closed = [bool(ids) and ids[-1] in self._params.ends for ids in self._ids]
        return [
            SampledCompletion(tuple(ids), tuple(logprobs), ended)
            for ids, logprobs, ended in zip(self._ids, self._logprobs, closed, strict=True)
        ]

    def _prefill(self) -> tuple[Tensor, Any]:
        """Each different prompt once; then a copy of what was read for each sample."""
        different = {ids: at for at, ids in enumerate(dict.fromkeys(self._prompts))}
        device = self._model.device
        prompts_UT = torch.tensor(list(different), dtype=torch.long, device=device)
        out = self._model(input_ids=prompts_UT, use_cache=True, logits_to_keep=1)
        owner_B = torch.tensor([different[ids] for ids in self._prompts], device=device)
        out.past_key_values.batch_select_indices(owner_B)
        return out.logits[owner_B, -1], out.past_key_values

    def _sample_tokens(self, logits_BV: Tensor) -> Tensor:
        logps_BV = logits_BV.float().log_softmax(-1)
        if self._chances is None:
            tokens_B = logps_BV.argmax(-1)
        else:
            chances = [self._chances[row].random() for row in self._open]
            tokens_B = _sample_by_inversion(logps_BV / self._params.temperature, chances)
        taken = logps_BV.gather(-1, tokens_B[:, None])[:, 0]
        for row, token, logp in zip(self._open, tokens_B.tolist(), taken.tolist(), strict=True):
            self._ids[row].append(token)
            self._logprobs[row].append(logp)
        return tokens_B


def _sample_by_inversion(scores_BV: Tensor, chances: Sequence[float]) -> Tensor:
    """The token at which the summed probability passes each row's chance."""
    summed_BV = scores_BV.double().softmax(-1).cumsum(-1)
    chance_B1 = torch.tensor(chances, dtype=torch.double, device=scores_BV.device)[:, None]
    found_B1 = torch.searchsorted(summed_BV, chance_B1 * summed_BV[:, -1:], right=True)
    return found_B1[:, 0].clamp(max=scores_BV.shape[-1] - 1)
