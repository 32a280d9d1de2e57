"""Any causal language model of Hugging Face is served as it is, or refused with a sentence."""

import asyncio
import shutil

import pytest
import torch
from serving_cases import ids_of, logprobs_of, said
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    Lfm2Config,
    LlamaConfig,
    MistralConfig,
)
from transformers.utils import logging as transformers_logging

from upswing.errors import Misuse, Rejected
from upswing.serve.core.engine import GenerationRequest
from upswing.serve.engines.batch_check import eos_token_ids
from upswing.serve.engines.selection import choose_engine, open_engine
from upswing.serve.engines.torch_engine import TorchEngine
from upswing.train.bases.catalog import resolve_base
from upswing.train.bases.loading import load_base
from upswing.worlds.generate import GenerationParams, generate_completions

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": None,
    "eos_token_id": 1,
    "pad_token_id": 0,
}
KINDS = {
    "shared heads": lambda size: LlamaConfig(vocab_size=size, max_position_embeddings=256, **SMALL),
    "a sliding window": lambda size: MistralConfig(vocab_size=size, sliding_window=64, **SMALL),
    "learned positions": lambda size: GPT2Config(
        vocab_size=size,
        n_positions=256,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=None,
        eos_token_id=1,
    ),
    "two kinds of layers": lambda size: Gemma3TextConfig(
        vocab_size=size,
        sliding_window=64,
        head_dim=16,
        layer_types=["sliding_attention", "full_attention"],
        **SMALL,
    ),
}


def folder_of(tiny, folder, config, template=None):
    """A model of random weights with `tiny`'s tokenizer."""
    transformers_logging.disable_progress_bar()
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    for file in tiny.folder.iterdir():
        if "token" in file.name or "template" in file.name:
            shutil.copy(file, folder)
    if template:
        (folder / "chat_template.jinja").write_text(template)
    return resolve_base(str(folder), folder)


@pytest.fixture
def size(tiny):
    return len(load_base(tiny)[1])


@pytest.mark.parametrize("kind", KINDS)
async def test_it_says_in_a_batch_what_it_says_alone(tiny, tmp_path, size, kind):
    base = folder_of(tiny, tmp_path / "base", KINDS[kind](size))
    engine = await TorchEngine.start(base, threads=1, prefill_budget=8)
    try:
        prompts = [
            GenerationRequest(
                model=base.name,
                messages=[{"role": "user", "content": "zz" * count}],
                max_tokens=12,
                temperature=0,
            )
            for count in (1, 9, 4)
        ]
        together = await asyncio.gather(*(said(engine, prompt) for prompt in prompts))
    finally:
        await engine.close()
    model, tokenizer = load_base(base)
    for pieces in together:
        how = GenerationParams(eos_token_ids(model, tokenizer), 12)
        lonely = generate_completions(model, [pieces[0].prompt_token_ids], None, how)[0]
        assert ids_of(pieces) == lonely.ids
        assert logprobs_of(pieces) == pytest.approx(lonely.logprobs, abs=1e-4)


async def test_no_more_is_read_than_a_sliding_window_always_sees(tiny, tmp_path, size):
    base = folder_of(tiny, tmp_path / "base", KINDS["a sliding window"](size))
    engine = await TorchEngine.start(base, threads=1)
    try:
        prompt = GenerationRequest(
            model=base.name, messages=[{"role": "user", "content": "z" * 80}]
        )
        with pytest.raises(Rejected, match="64 tokens"):
            await said(engine, prompt)
    finally:
        await engine.close()


async def test_a_model_that_keeps_its_past_in_another_way_is_refused(tiny, tmp_path, size):
    config = Lfm2Config(vocab_size=size, layer_types=["conv", "full_attention"], **SMALL)
    base = folder_of(tiny, tmp_path / "base", config)
    with pytest.raises(Misuse, match="shared batch"):
        await TorchEngine.start(base, threads=1)


async def test_tools_go_to_a_template_that_takes_them(tiny, tmp_path, size):
    template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}"
        "{% for message in messages %}<|user|>{{ message.content }}<|end|>{% endfor %}"
    )
    base = folder_of(tiny, tmp_path / "base", KINDS["shared heads"](size), template)
    engine = await TorchEngine.start(base, threads=1)
    messages = [{"role": "system", "content": "red"}, {"role": "user", "content": "lamp"}]
    tools = [{"type": "function", "function": {"name": "sell"}}]
    try:
        prompt = GenerationRequest(model=base.name, messages=messages, tools=tools, max_tokens=1)
        pieces = await said(engine, prompt)
    finally:
        await engine.close()
    _, tokenizer = load_base(base)
    assert tokenizer.decode(pieces[0].prompt_token_ids) == "[sell]<|user|>red\n\nlamp<|end|>"


@pytest.mark.parametrize(
    ("wish", "gguf", "installed", "kind"),
    [
        ("auto", True, True, "llama"),
        ("auto", True, False, "torch"),
        ("auto", False, True, "torch"),
        ("auto", False, False, "torch"),
        ("torch", True, True, "torch"),
        ("llama", False, False, "llama"),
    ],
)
def test_the_engine_is_chosen_as_the_table_says(wish, gguf, installed, kind):
    assert choose_engine(wish, has_gguf=gguf, llama_installed=installed) == kind


async def test_tiny_runs_in_torch_unless_told_otherwise(bases):
    engine = await open_engine("tiny", bases, threads=1)
    assert isinstance(engine, TorchEngine)
    await engine.close()
    with pytest.raises(Misuse):
        await open_engine("tiny", bases, choice="llama")
