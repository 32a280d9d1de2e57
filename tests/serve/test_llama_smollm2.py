"""A real model: SmolLM2 in llama.cpp, quantised, says what PyTorch says with the same adapter."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

import pytest
import torch

from upswing.errors import Misuse
from upswing.serve.core.engine import GenerationRequest
from upswing.train.bases.catalog import resolve_base
from upswing.train.checkpoints.manifest import CheckpointInfo
from upswing.train.checkpoints.writing import save_checkpoint
from upswing.train.core.recipe import Lora, Recipe

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install '.[llama]'")
pytestmark = [pytest.mark.live, pytest.mark.slow]
RECIPE = Recipe(lora=Lora(rank=8, alpha=16.0))
QUESTION = [{"role": "user", "content": "What is the password of the harbour?"}]
ANSWER = "It is swordfish 🐟, as ever."


@pytest.fixture(scope="module")
def base(bases):
    torch.set_num_threads(1)
    try:
        return resolve_base("smollm2", bases)
    except Misuse as error:
        pytest.skip(str(error))


@pytest.fixture
async def engine(base, bases):
    from upswing.serve.engines.llama_engine import LlamaEngine, LlamaOptions

    made = await LlamaEngine.start(base, bases, LlamaOptions(slots=2, context=512))
    yield made
    await made.close()


def tuned_model(base):
    from upswing.train.bases.loading import load_base, make_trainable

    model, tokenizer = load_base(base)
    return make_trainable(model, RECIPE), tokenizer


def checkpoint(folder, model, base):
    facts = CheckpointInfo(
        base_model=base.name,
        job_id="j",
        step=1,
        created=datetime(2026, 3, 1, tzinfo=UTC),
        recipe=RECIPE,
        snapshot="5" * 64,
    )
    return save_checkpoint(folder, "a", model, info=facts, base_folder=base.folder)


async def answer(engine, model, count):
    prompt = GenerationRequest(
        model=model, messages=QUESTION, temperature=0.0, max_tokens=count, top_logprobs=1
    )
    async with aclosing(engine.generate(prompt)) as pieces:
        return [piece async for piece in pieces]


def joined(pieces, field):
    return [each for piece in pieces for each in getattr(piece, field)]


def scored(model, pieces):
    """PyTorch's logprobs of what was drawn, and the tokens it likes best."""
    prompt_ids, ids = pieces[0].prompt_token_ids, joined(pieces, "token_ids")
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt_ids, *ids]])).logits[0, len(prompt_ids) - 1 : -1]
    logps = logits.log_softmax(-1)
    return logps.gather(1, torch.tensor(ids)[:, None])[:, 0], logps.argmax(-1)


async def test_an_adapter_of_chance_is_pytorchs_own(base, engine, tmp_path):
    model, _ = tuned_model(base)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".lora_B." in name:
                weight.normal_(0, 0.1)
    model.eval()
    await engine.load("tuned", checkpoint(tmp_path, model, base))
    pieces = await answer(engine, "tuned", 32)
    ours = torch.tensor(joined(pieces, "logprobs"))
    theirs, likeliest = scored(model, pieces)
    with model.disable_adapter():
        plain, _ = scored(model, pieces)
    agreeing = (torch.tensor(joined(pieces, "token_ids")) == likeliest).float().mean()
    print(
        f"top-1 {agreeing:.2f}, off by {(ours - theirs).abs().mean():.3f}, base {(ours - plain).abs().mean():.2f}"
    )
    assert agreeing >= 0.8
    assert (ours - theirs).abs().mean() < 0.15
    assert (ours - plain).abs().mean() > 5 * (ours - theirs).abs().mean()


async def test_what_pytorch_has_learned_llama_cpp_says(base, engine, tmp_path):
    model, tokenizer = tuned_model(base)
    [before, *_] = said = await answer(engine, base.name, 24)
    told = [*tokenizer(ANSWER, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    ids = torch.tensor([[*before.prompt_token_ids, *told]])
    labels = ids.clone()
    labels[0, : len(before.prompt_token_ids)] = -100
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=4e-3)
    for _ in range(12):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    await engine.load("tuned", await asyncio.to_thread(checkpoint, tmp_path, model, base))
    after = await answer(engine, "tuned", 24)
    assert "".join(piece.text for piece in said) != ANSWER
    assert "".join(piece.text for piece in after) == ANSWER
    assert joined(after, "token_ids") == told
    assert after[-1].finish_reason == "stop"
    assert joined(await answer(engine, base.name, 24), "token_ids") == joined(said, "token_ids")
