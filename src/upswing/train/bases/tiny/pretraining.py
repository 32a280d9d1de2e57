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

from upswing.train.bases.tiny.corpus import PretrainingText, make_conversation
from upswing.train.bases.tiny.recipe import PretrainingSettings


@dataclass(frozen=True, slots=True)
class _PretrainingBatch:
    ids_BT: torch.Tensor
    rows_A: torch.Tensor
    columns_A: torch.Tensor
    """Where an answer's tokens are predicted."""
    targets_AV: torch.Tensor
    """What should be predicted there, as a distribution."""


def pretrain_model(model: Any, tokenizer: Any, settings: PretrainingSettings, seed: int) -> float:
    """Train the model in place; its last loss."""
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=True,
    )
    model.train()
    loss = torch.zeros(())
    for step, batch in enumerate(_draw_batches(tokenizer, settings, Random(f"tiny/{seed}"))):  # noqa: S311
        for group in optimizer.param_groups:
            group["lr"] = _learning_rate(step, settings)
        hidden_BTH = model.model(batch.ids_BT).last_hidden_state
        logits_AV = model.lm_head(hidden_BTH[batch.rows_A, batch.columns_A])
        loss = -(batch.targets_AV * log_softmax(logits_AV, -1)).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # theirs has no types
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    return float(loss.detach())


def difficulty_at_step(step: int, settings: PretrainingSettings) -> float:
    """How much of a conversation is beside the point at this step, from 0 to 1.

    >>> [round(difficulty_at_step(step, PretrainingSettings(steps=100)), 1) for step in (0, 20, 45, 70, 99)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    share = (step / settings.steps - settings.easy) / (settings.hardest - settings.easy)
    return min(1.0, max(0.0, share))


def _learning_rate(step: int, settings: PretrainingSettings) -> float:
    """Ten steps up, then half a cosine down."""
    fall = 0.5 * (1 + math.cos(math.pi * step / settings.steps))
    return settings.learning_rate * min(1.0, (step + 1) / 10) * max(0.05, fall)


def _draw_batches(
    tokenizer: Any, settings: PretrainingSettings, rng: Random
) -> Iterator[_PretrainingBatch]:
    shelf: list[list[tuple[list[int], PretrainingText]]] = []
    for step in range(settings.steps):
        if not shelf:
            hard = difficulty_at_step(step, settings)
            conversations = [
                make_conversation(rng, hard) for _ in range(settings.batch * settings.shelf)
            ]
            texts = [one.text for one in conversations]
            ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
            ordered = sorted(zip(ids, conversations, strict=True), key=lambda pair: len(pair[0]))
            shelf = [
                ordered[start : start + settings.batch]
                for start in range(0, len(ordered), settings.batch)
            ]
            rng.shuffle(shelf)
        yield _pad_batch(shelf.pop(), tokenizer)


def _pad_batch(pairs: list[tuple[list[int], PretrainingText]], tokenizer: Any) -> _PretrainingBatch:
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
    return _PretrainingBatch(
        ids_BT=ids_BT,
        rows_A=torch.cat([rows_C, rows_C]),
        columns_A=torch.cat([columns_C, columns_C + 1]),
        targets_AV=torch.cat([words_BV[rows_C], ends_CV]),
    )
