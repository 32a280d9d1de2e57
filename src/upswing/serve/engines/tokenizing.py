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
from upswing.serve.core.engine import GenerationRequest, Message
from upswing.serve.core.token_cache import TokenCache, TokenIds
from upswing.train.chat.tokenizer import ChatTokenizer

_MAX_REPLIES_CHECKED = 4
"""Replies that are looked for in memory, the latest first."""


@dataclass(frozen=True, slots=True)
class TokenizedPrompt:
    """A prompt as the model is given it."""

    text: str
    token_ids: TokenIds


class PromptTokenizer:
    """Encodes prompts and decodes replies, for all models of one tokenizer."""

    def __init__(self, tokenizer: Any, context_length: int) -> None:
        self._tokenizer, self.context_length = tokenizer, context_length
        self._template_features = ChatTokenizer(tokenizer).features
        self._template_has_calls = "tool_calls" in str(tokenizer.chat_template)
        self._longest_token = max(map(len, tokenizer.get_vocab()))
        self._special = frozenset(tokenizer.all_special_ids)
        self._known_tokens = TokenCache()
        self._lock = Lock()
        self._token_texts: dict[int, str] = {}

    def encode(self, request: GenerationRequest) -> TokenizedPrompt:
        """The tokens of a prompt, or `Rejected`; there is room for one more at least."""
        messages = self._adapt_messages(request.messages)
        text = self._render(messages, request.tools)
        # Tokens are so long at most: what cannot fit need not be tokenised to know.
        shortest = len(text.encode("utf-8", "replace")) // (4 * self._longest_token)
        ids = (
            ()
            if shortest >= self.context_length
            else self._token_ids(text, messages, request.tools)
        )
        count = max(shortest, len(ids))
        if count >= self.context_length:
            raise Rejected(
                Reason.TOO_LARGE,
                f"This model's context is {self.context_length} tokens, and the messages alone have "
                f"{'' if ids else 'more than '}{count}.",
            )
        if not ids:
            raise Rejected(Reason.SCHEMA, "There is nothing in these messages to go on from.")
        return TokenizedPrompt(text, ids)

    def remember_reply(self, tokenized: TokenizedPrompt, ids: TokenIds, *, ended: bool) -> None:
        """Remember an answer as it was spelled; `ended`: its last token is the one that ends it."""
        reply_ids = ids[:-1] if ended else ids
        if reply_ids and self._special.isdisjoint(reply_ids):
            with self._lock:
                self._known_tokens.put(
                    tokenized.text + self.decode(reply_ids), tokenized.token_ids + reply_ids
                )

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def token_text(self, token: int) -> str:
        """One token alone, marks by their name."""
        if token not in self._token_texts:
            self._token_texts[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return self._token_texts[token]

    def closing_brace(self) -> int:
        """A token that is a closing brace, or ends with one."""
        return self._tokenize("}")[-1]

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def _token_ids(self, text: str, messages: Sequence[Message], tools: Any) -> TokenIds:
        """What the model said before as it said it; the rest as the tokenizer has it."""
        replies = [
            index for index, message in enumerate(messages) if message["role"] == "assistant"
        ]
        for index in replies[: -_MAX_REPLIES_CHECKED - 1 : -1]:
            if not index or not messages[index]["content"]:
                continue
            head = self._render(messages[:index], tools) + messages[index]["content"]
            with self._lock:
                known = self._known_tokens.get(head) if text.startswith(head) else None
            if known is not None:
                return known + self._tokenize(text[len(head) :])
        return self._tokenize(text)

    def _tokenize(self, text: str) -> TokenIds:
        try:
            encoded = self._tokenizer(text, add_special_tokens=False, verbose=False)
            return tuple(encoded["input_ids"])
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

    def _adapt_messages(self, messages: Sequence[Message]) -> list[Message]:
        adapted = [self._adapt_message(message) for message in messages]
        if self._template_features.system:
            return adapted
        without_system = [message for message in adapted if message["role"] != "system"]
        instructions = "\n\n".join(m["content"] for m in adapted if m["role"] == "system")
        if instructions and without_system and without_system[0]["role"] == "user":
            without_system[0] = {
                **without_system[0],
                "content": f"{instructions}\n\n{without_system[0]['content']}",
            }
        elif instructions:
            without_system.insert(0, {"role": "user", "content": instructions})
        return without_system

    def _adapt_message(self, message: Message) -> Message:
        if message["role"] in {"tool", "function"} and not self._template_features.tool:
            return {"role": "user", "content": message["content"]}
        if message.get("tool_calls") and not self._template_has_calls:
            calls = "\n".join(_call_as_json(call) for call in message["tool_calls"])
            text = "\n".join(part for part in (message["content"], calls) if part)
            return {"role": message["role"], "content": text}
        return message


def _call_as_json(call: Mapping[str, Any]) -> str:
    """A tool call in words, as training tells it.

    >>> _call_as_json({"function": {"name": "sell", "arguments": {"n": 2}}})
    '{"tool_name":"sell","tool_args":{"n":2}}'
    """
    function = call.get("function") or {}
    written = {"tool_name": function.get("name"), "tool_args": function.get("arguments")}
    return msgspec.json.encode(written).decode()
