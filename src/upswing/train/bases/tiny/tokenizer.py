"""How does `tiny` spell a text? One token per known word with the space before it, else in bytes.

    "the red lamp broke, zzz"  ─▶  the│ red│ lamp│ broke│,│ │z│z│z

Text falls into words, single digits and single marks, each with the one space before it. A part
that is in the vocabulary is one token; any other is spelled byte by byte. Every byte is a token, so
nothing is ever lost: decoding gives back the same text, whatever it was.
"""

from __future__ import annotations

from string import digits, punctuation
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import PreTrainedTokenizerFast

from upswing.train.bases.tiny.vocabulary import (
    END,
    PAD,
    PARTS,
    SPECIALS,
    TEMPLATE,
    vocabulary_words,
)

_ENDINGS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
_SPACES = ("\n\n", "  ", "   ", "       ")
"""Blank lines, and the indentation of code up to its last space."""


def build_tokenizer() -> Any:
    """The tokenizer, as an ordinary one of Hugging Face: no code of ours is needed to load it."""
    # A part that the vocabulary has is taken whole; there are no merges, so others stay bytes.
    core = Tokenizer(models.BPE(vocab=_build_vocabulary(), merges=[], ignore_merges=True))
    core.pre_tokenizer = Sequence(
        [
            Split(Regex(PARTS), behavior="isolated"),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in SPECIALS])
    made: Any = PreTrainedTokenizerFast
    return made(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=2048,
    )


def _build_vocabulary() -> dict[str, int]:
    """Marks, bytes, punctuation and digits, then each word with a space before it and without."""
    parts = [*_SPACES, *_ENDINGS, *(f" {mark}" for mark in punctuation + digits)]
    parts += [form for word in vocabulary_words() for form in (f" {word}", word)]
    spelled = [_to_byte_alphabet(part) for part in parts]
    tokens = dict.fromkeys([*SPECIALS, *sorted(ByteLevel.alphabet()), *spelled])
    return {token: number for number, token in enumerate(tokens)}


def _to_byte_alphabet(text: str) -> str:
    """The text in the alphabet that byte-level tokenizers use, where a space is `Ġ`."""
    level = ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(part for part, _ in level.pre_tokenize_str(text))
