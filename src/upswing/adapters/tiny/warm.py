"""How does `tiny` learn to speak? It reads a few thousand conversations, the short ones first.

The target of an answer is every word that was offered, alike: one drawn answer would teach the same,
but slower. Only answers train, so that the same pass that reads a prompt computes no logits for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch.nn.functional import log_softmax, pad

from upswing.adapters.tiny.corpus import Talk, talk
from upswing.adapters.tiny.recipe import Warmth


@dataclass(frozen=True, slots=True)
class _Batch:
    ids_BT: torch.Tensor
    rows_A: torch.Tensor
    columns_A: torch.Tensor
    """Where an answer's tokens are predicted."""
    targets_AV: torch.Tensor
    """What should be predicted there, as a distribution."""


def warm_up(model: Any, tokenizer: Any, warmth: Warmth, seed: int) -> float:
    """Train the model in place; its last loss."""
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=warmth.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=True,
    )
    model.train()
    loss = torch.zeros(())
    for step, batch in enumerate(_batches(tokenizer, warmth, Random(f"tiny/{seed}"))):  # noqa: S311
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, warmth)
        hidden_BTH = model.model(batch.ids_BT).last_hidden_state
        logits_AV = model.lm_head(hidden_BTH[batch.rows_A, batch.columns_A])
        loss = -(batch.targets_AV * log_softmax(logits_AV, -1)).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # theirs has no types
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    return float(loss.detach())


def hardness(step: int, warmth: Warmth) -> float:
    """How much of a conversation is beside the point at this step, from 0 to 1.

    >>> [round(hardness(step, Warmth(steps=100)), 1) for step in (0, 20, 45, 70, 99)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    share = (step / warmth.steps - warmth.easy) / (warmth.hardest - warmth.easy)
    return min(1.0, max(0.0, share))


def _rate(step: int, warmth: Warmth) -> float:
    """Ten steps up, then half a cosine down."""
    fall = 0.5 * (1 + math.cos(math.pi * step / warmth.steps))
    return warmth.learning_rate * min(1.0, (step + 1) / 10) * max(0.05, fall)


def _batches(tokenizer: Any, warmth: Warmth, chance: Random) -> Iterator[_Batch]:
    shelf: list[list[tuple[list[int], Talk]]] = []
    for step in range(warmth.steps):
        if not shelf:
            hard = hardness(step, warmth)
            talks = [talk(chance, hard) for _ in range(warmth.batch * warmth.shelf)]
            texts = [one.text for one in talks]
            ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
            ordered = sorted(zip(ids, talks, strict=True), key=lambda pair: len(pair[0]))
            shelf = [
                ordered[start : start + warmth.batch]
                for start in range(0, len(ordered), warmth.batch)
            ]
            chance.shuffle(shelf)
        yield _batch(shelf.pop(), tokenizer)


def _batch(pairs: list[tuple[list[int], Talk]], tokenizer: Any) -> _Batch:
    """Padded at the end, where a causal model does not look."""
    cue, end = tokenizer.convert_tokens_to_ids(["<|assistant|>", tokenizer.eos_token])
    longest = max(len(ids) for ids, _ in pairs)
    ids_BT = torch.stack([pad(torch.tensor(ids), (0, longest - len(ids))) for ids, _ in pairs])
    rows_C, columns_C = (ids_BT == cue).nonzero(as_tuple=True)
    words_BV = torch.zeros(len(pairs), len(tokenizer))
    for row, (_, one) in enumerate(pairs):
        words_BV[row, tokenizer.convert_tokens_to_ids(list(one.options))] = 1 / len(one.options)
    ends_CV = torch.zeros(len(rows_C), len(tokenizer))
    ends_CV[:, end] = 1.0
    return _Batch(
        ids_BT=ids_BT,
        rows_A=torch.cat([rows_C, rows_C]),
        columns_A=torch.cat([columns_C, columns_C + 1]),
        targets_AV=torch.cat([words_BV[rows_C], ends_CV]),
    )
