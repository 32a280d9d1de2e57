"""How does a request become tokens, and tokens text? By the model's own chat template and tokenizer.

Where a template knows no system, no tools or no calls, they are told as training tells them: the
instructions begin the first message, a tool's result is a message of the user, a call is written as
JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
from jinja2 import TemplateError

from upswing.errors import Reason, Rejected
from upswing.serve.memory import Ids, Memory
from upswing.serve.ports import Message, Prompt
from upswing.train.speech import Speech

_LOOKED_BACK = 4
"""Replies that are looked for in memory, the latest first."""


@dataclass(frozen=True, slots=True)
class Read:
    """A prompt as the model is given it."""

    text: str
    ids: Ids


class Reader:
    """What is read to, and heard from, the models of one tokenizer."""

    def __init__(self, tokenizer: Any, context: int) -> None:
        self._tokenizer, self.context = tokenizer, context
        self._manners = Speech(tokenizer).manners
        self._calls = "tool_calls" in str(tokenizer.chat_template)
        self._longest = max(map(len, tokenizer.get_vocab()))
        self._special = frozenset(tokenizer.all_special_ids)
        self._memory = Memory()
        self._lock = Lock()
        self._words: dict[int, str] = {}

    def read(self, prompt: Prompt) -> Read:
        """The tokens of a prompt, or `Rejected`; there is room for one more at least."""
        messages = self._fitted(prompt.messages)
        text = self._render(messages, prompt.tools)
        # Tokens are so long at most: what cannot fit need not be tokenised to know.
        shortest = len(text.encode("utf-8", "replace")) // (4 * self._longest)
        ids = () if shortest >= self.context else self._ids(text, messages, prompt.tools)
        count = max(shortest, len(ids))
        if count >= self.context:
            raise Rejected(
                Reason.TOO_LARGE,
                f"This model's context is {self.context} tokens, and the messages alone have "
                f"{'' if ids else 'more than '}{count}.",
            )
        if not ids:
            raise Rejected(Reason.SCHEMA, "There is nothing in these messages to go on from.")
        return Read(text, ids)

    def said(self, read: Read, ids: Ids, *, ended: bool) -> None:
        """Remember an answer as it was spelled; `ended`: its last token is the one that ends it."""
        told = ids[:-1] if ended else ids
        if told and self._special.isdisjoint(told):
            with self._lock:
                self._memory.note(read.text + self.decode(told), read.ids + told)

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def word(self, token: int) -> str:
        """One token alone, marks by their name."""
        if token not in self._words:
            self._words[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return self._words[token]

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def _ids(self, text: str, messages: Sequence[Message], tools: Any) -> Ids:
        """What the model said before as it said it; the rest as the tokenizer has it."""
        replies = [at for at, told in enumerate(messages) if told["role"] == "assistant"]
        for at in replies[: -_LOOKED_BACK - 1 : -1]:
            if not at or not messages[at]["content"]:
                continue
            head = self._render(messages[:at], tools) + messages[at]["content"]
            with self._lock:
                known = self._memory.find(head) if text.startswith(head) else None
            if known is not None:
                return known + self._fresh(text[len(head) :])
        return self._fresh(text)

    def _fresh(self, text: str) -> Ids:
        try:
            told = self._tokenizer(text, add_special_tokens=False, verbose=False)
            return tuple(told["input_ids"])
        except (UnicodeError, TypeError) as error:
            raise Rejected(Reason.SCHEMA, f"This is no text: {error}.") from None

    # ── text ─────────────────────────────────────────────────────────────────────────────────────

    def _render(self, messages: Sequence[Message], tools: Any) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(
                [dict(message) for message in messages],
                tools=[dict(tool) for tool in tools] if tools else None,
                tokenize=False,
                add_generation_prompt=True,
            )
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise Rejected(
                Reason.SCHEMA, f"The chat template does not take these messages: {error}"
            ) from None
        return text

    def _fitted(self, messages: Sequence[Message]) -> list[Message]:
        told = [self._fit(message) for message in messages]
        if self._manners.system:
            return told
        heard = [message for message in told if message["role"] != "system"]
        instructions = "\n\n".join(m["content"] for m in told if m["role"] == "system")
        if instructions and heard and heard[0]["role"] == "user":
            heard[0] = {**heard[0], "content": f"{instructions}\n\n{heard[0]['content']}"}
        elif instructions:
            heard.insert(0, {"role": "user", "content": instructions})
        return heard

    def _fit(self, message: Message) -> Message:
        if message["role"] in {"tool", "function"} and not self._manners.tool:
            return {"role": "user", "content": message["content"]}
        if message.get("tool_calls") and not self._calls:
            calls = "\n".join(_call(call) for call in message["tool_calls"])
            words = "\n".join(part for part in (message["content"], calls) if part)
            return {"role": message["role"], "content": words}
        return message


def _call(call: Mapping[str, Any]) -> str:
    """A tool call in words, as training tells it.

    >>> _call({"function": {"name": "sell", "arguments": {"n": 2}}})
    '{"tool_name":"sell","tool_args":{"n":2}}'
    """
    function = call.get("function") or {}
    told = {"tool_name": function.get("name"), "tool_args": function.get("arguments")}
    return msgspec.json.encode(told).decode()
