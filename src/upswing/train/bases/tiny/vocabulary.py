"""Which words does `tiny` know, and how does it mark who speaks?"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

PAD, END = "<|pad|>", "<|end|>"
ROLES = ("system", "user", "assistant")
SPECIALS = (PAD, END, *(f"<|{role}|>" for role in ROLES))

TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- set role = message['role'] -%}"
    "<|{{ role if role in ['system', 'user', 'assistant'] else 'user' }}|>"
    "{{ message['content'] or '' }}<|end|>"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}"
)
"""Two marks around what is said, and nothing else; whatever has another role speaks as the user."""

PARTS = r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]|\n+|\s+(?!\S)|\s"
"""Text falls into endings, words, single digits and single marks, each with the one space before it."""


@cache
def action_words() -> tuple[str, ...]:
    """The words that agents answer with.

    >>> "refund" in action_words(), len(action_words()) <= 120
    (True, True)
    """
    return tuple(dict.fromkeys(_read_list("actions.txt")))


@cache
def vocabulary_words() -> tuple[str, ...]:
    """Every word of the vocabulary, the actions first.

    >>> 1500 < len(vocabulary_words()) < 2100
    True
    """
    return tuple(dict.fromkeys([*action_words(), *_read_list("words.txt")]))


def _read_list(name: str) -> list[str]:
    lines = files(__package__).joinpath(name).read_text("utf-8").splitlines()
    return " ".join(line for line in lines if not line.startswith("#")).split()
