"""Which model is in a GGUF file, and which of its tokens are only parts of characters?

The second matters because llama.cpp's server streams text, not tokens: one that ends in the middle
of a character is left out of the stream, id, logprob and all. As a control token it has no text that
could be incomplete, and it is reported like every other; its id, and so the model, stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from upswing.errors import Misuse
from upswing.train.bases.gguf_header import GgufHeader

RowOrder = Literal["llama", "plain"]
ARCHITECTURES: Mapping[str, RowOrder] = {
    "llama": "llama",
    "qwen2": "plain",
    "qwen3": "plain",
}
"""What llama.cpp calls a family of models → whether its queries and keys are stored in another order."""
CONTROL_TOKEN = 3
"""The type of a token that has no text."""
TOKEN_TYPES = "tokenizer.ggml.token_type"  # noqa: S105 - the name of a field
_TOKENIZERS = ("gpt2", "llama")
_BYTE = re.compile("<0x([0-9A-F]{2})>")


class GgufBase(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter must fit."""

    architecture: str
    blocks: int
    width: int
    heads: int
    kv_heads: int
    vocabulary: int
    context: int
    """Tokens, prompt and answer together."""
    tensors: dict[str, tuple[int, ...]]
    """Name → shape as GGUF has it: the length of a row first."""


def read_gguf_base(header: GgufHeader) -> GgufBase:
    """The model that this header describes, or `Misuse` when adapters of it are not known here."""
    architecture = str(header.get("general.architecture", ""))
    if header.get("general.type", "model") != "model" or architecture not in ARCHITECTURES:
        raise Misuse(
            f"The GGUF file holds {architecture[:40]!r}, whose layers are not known here: only "
            f"{', '.join(ARCHITECTURES)} are."
        )
    if (tokenizer := header.get("tokenizer.ggml.model")) not in _TOKENIZERS:
        raise Misuse(
            f"The GGUF file has a tokenizer that is not known here: {str(tokenizer)[:40]!r}."
        )

    def number(key: str, default: int | None = None) -> int:
        value = header.get(f"{architecture}.{key}", default)
        if not isinstance(value, int) or value < 1:
            raise Misuse(f"The GGUF file does not say its {architecture}.{key}.")
        return value

    heads = number("attention.head_count")
    return GgufBase(
        architecture=architecture,
        blocks=number("block_count"),
        width=number("embedding_length"),
        heads=heads,
        kv_heads=number("attention.head_count_kv", heads),
        vocabulary=len(header.get("tokenizer.ggml.tokens", ())),
        context=number("context_length"),
        tensors=header.tensors,
    )


def check_same_model(base: GgufBase, config: Mapping[str, Any], name: str) -> None:
    """Refuse a GGUF file that is not the model of the folder whose adapters it is to carry."""
    ours = {
        "num_hidden_layers": base.blocks,
        "hidden_size": base.width,
        "num_attention_heads": base.heads,
        "num_key_value_heads": base.kv_heads,
    }
    for key, value in ours.items():
        if config.get(key, value) != value:
            raise Misuse(
                f"The GGUF file of {name} is another model: its {key} is {value}, "
                f"that of config.json {config[key]}."
            )


def check_same_vocabulary(header: GgufHeader, tokenizer: Mapping[str, Any], name: str) -> None:
    """Refuse a GGUF file whose tokens are not those of the folder's tokenizer.json."""
    model = tokenizer.get("model")
    known = model.get("vocab") if isinstance(model, dict) else None
    texts: Sequence[str] = header.get("tokenizer.ggml.tokens", ())
    for text, number in known.items() if isinstance(known, dict) else ():
        if not 0 <= number < len(texts) or texts[number] != text:
            raise Misuse(
                f"The GGUF file of {name} has other tokens than its tokenizer.json: see {number}."
            )


def partial_tokens(header: GgufHeader) -> list[int]:
    """The tokens that are no whole characters by themselves."""
    texts: Sequence[str] = header.get("tokenizer.ggml.tokens", ())
    if header.get("tokenizer.ggml.model") == "llama":
        return [number for number, text in enumerate(texts) if _is_high_byte(text)]
    bytes_of = _bytes_of_letters()
    return [number for number, text in enumerate(texts) if _is_partial(text, bytes_of)]


def _is_high_byte(text: str) -> bool:
    """Whether it is one byte that no character consists of alone.

    >>> _is_high_byte("<0xE2>"), _is_high_byte("<0x0A>"), _is_high_byte("tree")
    (True, False, False)
    """
    found = _BYTE.fullmatch(text)
    return found is not None and int(found[1], 16) >= 0x80


def _is_partial(text: str, bytes_of: Mapping[str, int]) -> bool:
    """Whether these letters stand for bytes that are not UTF-8 by themselves."""
    if text.isascii() or any(letter not in bytes_of for letter in text):
        return False  # an added token is written as it is
    try:
        bytes(bytes_of[letter] for letter in text).decode()
    except UnicodeDecodeError:
        return True
    return False


def _bytes_of_letters() -> dict[str, int]:
    """GPT-2's alphabet: a printable letter for every byte.

    >>> letters = _bytes_of_letters()
    >>> len(letters), letters["A"], letters["Ġ"]
    (256, 65, 32)
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {chr(byte): byte for byte in shown}
    return letters | {chr(0x100 + place): byte for place, byte in enumerate(hidden)}
