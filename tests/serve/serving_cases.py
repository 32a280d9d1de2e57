"""Checkpoints of `tiny` that say something else than it does, and ways to ask."""

from datetime import UTC, datetime

import torch

from upswing.serve.core.engine import GenerationRequest
from upswing.train.bases.loading import load_base, make_trainable
from upswing.train.checkpoints.manifest import CheckpointInfo
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Lora, Recipe

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def checkpoint(base, folder, name, *, full, seed=1):
    """A checkpoint of this base whose trained weights are shaken; and the model that it came from."""
    recipe = Recipe(full=full, lora=Lora(rank=4), seed=seed)
    model = make_trainable(load_base(base)[0], recipe)
    chance = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.05 * torch.randn(weight.shape, generator=chance))
    facts = CheckpointInfo(base_model=base.name, job_id="job-1", step=1, created=AT, recipe=recipe)
    return save_checkpoint(folder, name, model, info=facts, base_folder=base.folder), model.eval()


def ask(text="Which is it: refund or sell?", model="tiny", **changes):
    told = {"max_tokens": 12, "temperature": 0.0, **changes}
    return GenerationRequest(model=model, messages=[{"role": "user", "content": text}], **told)


async def said(engine, prompt):
    return [piece async for piece in engine.generate(prompt)]


def ids_of(pieces):
    return tuple(token for piece in pieces for token in piece.token_ids)


def logprobs_of(pieces):
    return [logprob for piece in pieces for logprob in piece.logprobs]


def text_of(pieces):
    return "".join(piece.text for piece in pieces)
