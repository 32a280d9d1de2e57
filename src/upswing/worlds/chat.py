"""How does a conversation look to this model? Its own chat template, in its own tokens.

What the model sampled is never tokenised again: a later turn adds only what is new since then, the
end of the reply (where the model did not write it itself), the next message and the cue to speak.
So the ids of all turns, one after the other, are exactly what the model has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import TemplateError

_REPLY = "upswingreply"
"""Stands for a reply whose tokens are known, to find what the template writes behind it."""


class Chat:
    """The conversations with one tokenizer; what many of them share is rendered once."""

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.chat_template:
            raise ValueError("the tokenizer has no chat template, so nobody knows how to ask it")
        self._tokenizer = tokenizer
        self._known: dict[tuple[str, ...], tuple[int, ...]] = {}

    def first_prompt(self, instructions: str, text: str) -> tuple[int, ...]:
        """The ids of the first prompt."""
        key = (instructions, text)
        if key not in self._known:
            self._known[key] = self._token_ids(self._render_prompt(instructions, [text]))
        return self._known[key]

    def next_prompt(
        self, instructions: str, texts: Sequence[str], last: int | None
    ) -> tuple[int, ...]:
        """The ids between a reply and the next one.

        `texts` are all messages to the model so far; `last` is the end token that the reply closed
        with, None if it did not.
        """
        key = (instructions, *texts, _REPLY)
        if key not in self._known:
            whole = self._render_prompt(instructions, texts)
            self._known[key] = self._token_ids(whole.rpartition(_REPLY)[2])
        ids = self._known[key]
        return ids[1:] if last is not None and ids[:1] == (last,) else ids

    def _render_prompt(self, instructions: str, texts: Sequence[str]) -> str:
        """Where a template knows no system, the first message begins with the instructions."""
        if not instructions:
            return self._apply_template([], texts)
        try:
            return self._apply_template([{"role": "system", "content": instructions}], texts)
        except TemplateError:
            return self._apply_template([], [f"{instructions}\n\n{texts[0]}", *texts[1:]])

    def _apply_template(self, messages: list[dict[str, str]], texts: Sequence[str]) -> str:
        for text in texts:
            messages = [
                *messages,
                {"role": "user", "content": text},
                {"role": "assistant", "content": _REPLY},
            ]
        rendered: str = self._tokenizer.apply_chat_template(
            messages[:-1], tokenize=False, add_generation_prompt=True
        )
        return rendered

    def _token_ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])
