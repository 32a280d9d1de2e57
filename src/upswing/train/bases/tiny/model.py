"""What is `tiny` before it has read anything? A small Llama whose last layer begins as a copier.

From a random start a transformer needs millions of tokens until it can repeat a word from its prompt.
Three things in the way it begins make that a matter of seconds:

| what                                            | why                                             |
|-------------------------------------------------|-------------------------------------------------|
| the last attention hands on what it looks at    | a word that is looked at is likely to be said   |
| a word lies near itself with a space before it  | words are offered with one, and said without    |
| the actions lie at right angles to each other   | several at once stay apart, and equally likely  |
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import normalize
from transformers import LlamaConfig, LlamaForCausalLM

from upswing.train.bases.tiny.recipe import ModelShape
from upswing.train.bases.tiny.vocabulary import action_words, vocabulary_words


def build_model(tokenizer: Any, shape: ModelShape, rng: torch.Generator) -> Any:
    """The model as it begins; the same for the same generator."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=shape.reach,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        model: Any = LlamaForCausalLM(config)  # type: ignore[no-untyped-call]  # theirs has no types
    with torch.no_grad():
        _initialise_weights(model, shape, rng)
        _initialise_embeddings(model.get_input_embeddings().weight, tokenizer, shape, rng)
        _initialise_copying(model.model.layers[-1].self_attn, shape, rng)
    return model


def _initialise_weights(model: Any, shape: ModelShape, rng: torch.Generator) -> None:
    """Every matrix anew, from our own generator and in the order of its name."""
    for _, weight in sorted(model.named_parameters()):
        if weight.dim() == 2:
            weight.normal_(0.0, shape.small, generator=rng)


def _initialise_embeddings(
    embedding_VH: torch.Tensor,
    tokenizer: Any,
    shape: ModelShape,
    rng: torch.Generator,
) -> None:
    count = len(action_words())
    axes_HH = _random_rotation(shape.hidden, rng)
    rest_RH = axes_HH[count:-1]
    draws = torch.randn(len(embedding_VH), len(rest_RH), generator=rng)
    embedding_VH.copy_(normalize(draws) @ rest_RH * shape.length)
    bare = torch.tensor(_token_ids(tokenizer, vocabulary_words(), ""))
    spaced = torch.tensor(_token_ids(tokenizer, vocabulary_words(), " "))
    embedding_VH[spaced[:count]] = axes_HH[:count] * shape.length
    embedding_VH[bare] = embedding_VH[spaced] + axes_HH[-1] * shape.length / 2


def _initialise_copying(attention: Any, shape: ModelShape, rng: torch.Generator) -> None:
    """What goes in comes out: the values are turned, and the output turns them back."""
    turn_HH = _random_rotation(shape.hidden, rng)
    attention.v_proj.weight.copy_(turn_HH)
    attention.o_proj.weight.copy_(turn_HH.T)


def _random_rotation(size: int, rng: torch.Generator) -> torch.Tensor:
    rotation: torch.Tensor = torch.linalg.qr(torch.randn(size, size, generator=rng)).Q
    return rotation


def _token_ids(tokenizer: Any, wanted: tuple[str, ...], before: str) -> list[int]:
    encoded = tokenizer([before + word for word in wanted], add_special_tokens=False)["input_ids"]
    return [number for (number,) in encoded]
