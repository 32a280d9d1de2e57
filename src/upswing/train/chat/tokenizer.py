"""Which of a conversation's tokens did the model produce, whatever its chat template looks like?

Two renderings tell: what the template writes before the model speaks (with the cue to speak) and
after it has spoken. The second goes on where the first ends, and the difference is what was said:

    <|user|>how<|end|><|assistant|>
    <|user|>how<|end|><|assistant|>so<|end|>⏎
                                   └─ said ─┘└─ belongs to the next prompt

Said is the text and the mark that ends a turn, which the model must produce too; what the template
writes behind it, or before the text, is not. Where a template rewrites what was said earlier, so that
the second rendering is no continuation of the first, each part is rendered on its own, and the tokens
are strung together as the model once read and produced them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any

import msgspec
from jinja2 import TemplateError

from upswing.dataset.sample import tool_stub
from upswing.train.chat.turns import ChatTurn, Messages, TemplateFeatures, ToolCallPair

_USER_TEXT, _ASSISTANT_TEXT, _TOOL_NAME = "upswingask", "upswingtell", "upswingtool"
"""Stand for messages where only the template's own words matter."""


ToolSchemas = Sequence[dict[str, Any]]
"""As OpenAI has them."""


class UnsupportedConversation(Exception):
    """The chat template does not take this conversation; the sentence says why."""


@dataclass(frozen=True, slots=True)
class TokenizedTurn:
    """One turn in tokens."""

    prompt_ids: tuple[int, ...]
    """New since the turn before: the end of its template, the observation, the cue to speak."""
    completion_ids: tuple[int, ...]
    """Empty where the model's words are not known."""
    in_pieces: bool = False
    """Whether the template had to be taken apart."""


@dataclass(frozen=True, slots=True)
class _TurnText:
    """The text that a turn adds."""

    prompt: str
    completion: str
    rest: str
    """What the template writes behind the mark that ends the turn."""
    in_pieces: bool = False


@dataclass(frozen=True, slots=True)
class _ConversationState:
    """A conversation up to the end of a turn."""

    number: int
    messages: Messages
    text: str
    """As the template renders it."""
    turns: tuple[_TurnText, ...]
    tools: ToolSchemas | None = None
    """Those that are offered in all of it."""


class ChatTokenizer:
    """The conversations with one tokenizer; what they share is rendered and encoded once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        marks = sorted(_special_markers(tokenizer), key=len, reverse=True)
        self._marker = re.compile("|".join(map(re.escape, marks)) or r"(?!)")
        self._ids_by_text: dict[str, tuple[int, ...]] = {}
        self._roots: dict[bytes, _ConversationState] = {}
        self._states: dict[tuple[int, ChatTurn], _ConversationState] = {}
        self._tokenized: dict[int, tuple[TokenizedTurn, ...]] = {}
        self.features = self._probe_template()

    def tokenize_turns(
        self, conversation: Sequence[ChatTurn], tools: ToolSchemas | None = None
    ) -> tuple[TokenizedTurn, ...]:
        """Every turn in tokens, or `UnsupportedConversation`; with the tools, where the template takes some."""
        tools = tools if self.features.tools else None
        root = _ConversationState(-len(self._roots), (), "", (), tools)
        moment = self._roots.setdefault(msgspec.json.encode(tools), root)
        for exchange in conversation:
            key = (moment.number, exchange)
            if key not in self._states:
                self._states[key] = self._extend_conversation(moment, exchange)
            moment = self._states[key]
        if moment.number not in self._tokenized:
            self._tokenized[moment.number] = self._tokenize_turns(moment.turns)
        return self._tokenized[moment.number]

    def format_calls(self, calls: Sequence[ToolCallPair], content: str) -> str | None:
        """Tool calls as the template writes them behind `content`; None where it has no form."""
        if not self.features.calls:
            return None
        try:
            return self._format_calls(calls, content)
        except UnsupportedConversation:
            return None

    def _format_calls(self, calls: Sequence[ToolCallPair], content: str) -> str | None:
        tool_calls = [
            {"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls
        ]
        ask: dict[str, Any] = {"role": "user", "content": _USER_TEXT}
        prompt = self._apply_template([ask], generation_prompt=True)
        text = self._apply_template(
            [ask, {"role": "assistant", "content": content, "tool_calls": tool_calls}]
        )
        if not text.startswith(prompt):
            return None
        completion = text[len(prompt) :]
        completion = self._strip_end_markers(completion).strip()
        return completion if all(name in completion for name, _ in calls) else None

    def strip_markers(self, text: str) -> str:
        """The text without the marks of the template."""
        return self._marker.sub("", text)

    def decode(self, ids: Sequence[int]) -> str:
        """What these tokens spell, without marks."""
        return self.strip_markers(self._tokenizer.decode(ids, skip_special_tokens=False))

    # ── text ─────────────────────────────────────────────────────────────────────────────────────

    def _extend_conversation(
        self, before: _ConversationState, turn: ChatTurn
    ) -> _ConversationState:
        completion = self._strip_end_markers(turn.completion or "")
        messages = (*before.messages, *turn.prompt_messages)
        whole = (*messages, ("assistant", completion))
        tools = before.tools
        prompt = self._render_messages(messages, generation_prompt=True, tools=tools)
        text = self._render_messages(whole, tools=tools)
        parts = self._split_in_place(before, prompt, text, completion) or self._split_separately(
            before, turn, completion
        )
        if turn.completion is None:
            parts = replace(parts, prompt=parts.prompt + parts.completion, completion="")
        return _ConversationState(len(self._states) + 1, whole, text, (*before.turns, parts), tools)

    def _split_in_place(
        self, before: _ConversationState, prompt: str, text: str, completion: str
    ) -> _TurnText | None:
        """The parts as the whole conversation shows them; None when it rewrites itself."""
        if not prompt.startswith(before.text) or not text.startswith(prompt):
            return None
        found = _split_around(text[len(prompt) :], completion.strip())
        if found is None:
            return None
        lead, words, tail = found
        prompt_text = _trailing_text(before) + prompt[len(before.text) :]
        if lead.strip():
            prompt_text, lead = prompt_text + lead, ""
        end, rest = self._split_end_marker(tail)
        return _TurnText(prompt_text, lead + words + end, rest)

    def _split_separately(
        self, before: _ConversationState, turn: ChatTurn, completion: str
    ) -> _TurnText:
        """The parts as they look in a conversation in which there is nothing to rewrite."""
        small: Messages = (("user", _USER_TEXT), ("assistant", _ASSISTANT_TEXT))
        rendered = self._render_messages(small)
        end, rest = self._split_end_marker(rendered.partition(_ASSISTANT_TEXT)[2])
        if not before.messages:
            prompt_text = self._render_messages(
                turn.prompt_messages, generation_prompt=True, tools=before.tools
            )
            return _TurnText(prompt_text, completion + end, rest, in_pieces=True)
        more = self._render_messages((*small, *turn.prompt_messages), generation_prompt=True)
        if not more.startswith(rendered):
            raise UnsupportedConversation(
                "The chat template rewrites even what has just been said."
            )
        return _TurnText(
            _trailing_text(before) + more[len(rendered) :], completion + end, rest, in_pieces=True
        )

    def _split_end_marker(self, tail: str) -> tuple[str, str]:
        """What follows the words, up to the mark that ends the turn, and what comes behind it."""
        mark = self._marker.search(tail)
        cut = mark.end() if mark and not tail[: mark.start()].strip() else 0
        return tail[:cut], tail[cut:]

    def _strip_end_markers(self, completion: str) -> str:
        """Without the marks at its end, where they were recorded with the text."""
        while marks := [
            m for m in self._marker.finditer(completion) if not completion[m.end() :].strip()
        ]:
            completion = completion[: marks[0].start()]
        return completion

    def _render_messages(
        self,
        messages: Messages,
        *,
        generation_prompt: bool = False,
        tools: ToolSchemas | None = None,
    ) -> str:
        chat = [{"role": role, "content": content} for role, content in messages]
        return self._apply_template(chat, generation_prompt=generation_prompt, tools=tools)

    def _apply_template(
        self,
        messages: list[dict[str, Any]],
        *,
        generation_prompt: bool = False,
        tools: ToolSchemas | None = None,
    ) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages,
                tools=list(tools) if tools else None,
                tokenize=False,
                add_generation_prompt=generation_prompt,
            )
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise UnsupportedConversation(f"The chat template does not take it: {error}") from None
        return text

    def _probe_template(self) -> TemplateFeatures:
        ask: Messages = (("user", _USER_TEXT),)
        return TemplateFeatures(
            system=self._accepts_messages((("system", _ASSISTANT_TEXT), *ask)),
            tool="tool" in str(self._tokenizer.chat_template)
            and self._accepts_messages(
                (*ask, ("assistant", _USER_TEXT), ("tool", _ASSISTANT_TEXT))
            ),
            tools=self._renders_tools(ask),
            calls="tool_calls" in str(self._tokenizer.chat_template),
        )

    def _renders_tools(self, ask: Messages) -> bool:
        try:
            return _TOOL_NAME in self._render_messages(
                ask, generation_prompt=True, tools=[tool_stub(_TOOL_NAME)]
            )
        except UnsupportedConversation:
            return False

    def _accepts_messages(self, messages: Messages) -> bool:
        try:
            return _ASSISTANT_TEXT in self._render_messages(messages, generation_prompt=True)
        except UnsupportedConversation:
            return False

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def _tokenize_turns(self, turns: Sequence[_TurnText]) -> tuple[TokenizedTurn, ...]:
        """Part by part, if together they give what the whole text gives; else cut from the whole."""
        spoken = tuple(
            TokenizedTurn(
                self._cached_ids(part.prompt), self._cached_ids(part.completion), part.in_pieces
            )
            for part in turns
        )
        texts = [text for part in turns for text in (part.prompt, part.completion)]
        whole = self._token_ids("".join(texts))
        if whole == tuple(
            chain.from_iterable(turn.prompt_ids + turn.completion_ids for turn in spoken)
        ):
            return spoken
        prefixes = [self._token_ids(text) for text in accumulate(texts)]
        if any(ids != whole[: len(ids)] for ids in prefixes):
            return tuple(replace(turn, in_pieces=True) for turn in spoken)
        cuts = [0, *map(len, prefixes)]
        pieces = [whole[start:end] for start, end in pairwise(cuts)]
        return tuple(
            TokenizedTurn(prompt, completion, part.in_pieces)
            for prompt, completion, part in zip(pieces[::2], pieces[1::2], turns, strict=True)
        )

    def _cached_ids(self, text: str) -> tuple[int, ...]:
        if text not in self._ids_by_text:
            self._ids_by_text[text] = self._token_ids(text)
        return self._ids_by_text[text]

    def _token_ids(self, text: str) -> tuple[int, ...]:
        if not text:
            return ()
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _special_markers(tokenizer: Any) -> set[str]:
    """The tokens that a template writes and a text does not."""
    added = tokenizer.added_tokens_decoder.values()
    return {*tokenizer.all_special_tokens, *(str(token) for token in added if token.special)}


def _trailing_text(before: _ConversationState) -> str:
    return before.turns[-1].rest if before.turns else ""


def _split_around(text: str, words: str) -> tuple[str, str, str] | None:
    """What stands before these words, they themselves, and what stands behind them.

    >>> _split_around(" so.<|end|>", "so."), _split_around("so?", "why")
    ((' ', 'so.', '<|end|>'), None)
    """
    lead = len(text) - len(text.lstrip())
    start = lead if text.startswith(words, lead) else text.find(words)
    if start < 0:
        return None
    return text[:start], words, text[start + len(words) :]
