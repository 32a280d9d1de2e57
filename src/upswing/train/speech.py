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

from upswing.dataset.sample import bare_tool
from upswing.train.chat import Call, Exchange, Manners, Messages

_ASK, _TELL, _TOOL = "upswingask", "upswingtell", "upswingtool"
"""Stand for messages where only the template's own words matter."""


Tools = Sequence[dict[str, Any]]
"""As OpenAI has them."""


class Unspeakable(Exception):
    """The chat template does not take this conversation; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One turn in tokens."""

    heard: tuple[int, ...]
    """New since the turn before: the end of its template, the observation, the cue to speak."""
    said: tuple[int, ...]
    """Empty where the model's words are not known."""
    pieced: bool = False
    """Whether the template had to be taken apart."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The text that a turn adds."""

    heard: str
    said: str
    rest: str
    """What the template writes behind the mark that ends the turn."""
    pieced: bool = False


@dataclass(frozen=True, slots=True)
class _Moment:
    """A conversation up to the end of a turn."""

    number: int
    messages: Messages
    text: str
    """As the template renders it."""
    turns: tuple[_Parts, ...]
    tools: Tools | None = None
    """Those that are offered in all of it."""


class Speech:
    """The conversations with one tokenizer; what they share is rendered and encoded once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        marks = sorted(_marks(tokenizer), key=len, reverse=True)
        self._mark = re.compile("|".join(map(re.escape, marks)) or r"(?!)")
        self._known: dict[str, tuple[int, ...]] = {}
        self._roots: dict[bytes, _Moment] = {}
        self._moments: dict[tuple[int, Exchange], _Moment] = {}
        self._spoken: dict[int, tuple[Spoken, ...]] = {}
        self.manners = self._probe()

    def spoken(
        self, conversation: Sequence[Exchange], tools: Tools | None = None
    ) -> tuple[Spoken, ...]:
        """Every turn in tokens, or `Unspeakable`; with the tools, where the template takes some."""
        tools = tools if self.manners.tools else None
        root = _Moment(-len(self._roots), (), "", (), tools)
        moment = self._roots.setdefault(msgspec.json.encode(tools), root)
        for exchange in conversation:
            key = (moment.number, exchange)
            if key not in self._moments:
                self._moments[key] = self._after(moment, exchange)
            moment = self._moments[key]
        if moment.number not in self._spoken:
            self._spoken[moment.number] = self._encoded(moment.turns)
        return self._spoken[moment.number]

    def spell(self, calls: Sequence[Call], content: str) -> str | None:
        """Tool calls as the template writes them behind `content`; None where it has no form."""
        if not self.manners.calls:
            return None
        try:
            return self._spelled(calls, content)
        except Unspeakable:
            return None

    def _spelled(self, calls: Sequence[Call], content: str) -> str | None:
        told = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
        ask: dict[str, Any] = {"role": "user", "content": _ASK}
        prompt = self._written([ask], cue=True)
        text = self._written([ask, {"role": "assistant", "content": content, "tool_calls": told}])
        if not text.startswith(prompt):
            return None
        said = text[len(prompt) :]
        said = self._unended(said).strip()
        return said if all(name in said for name, _ in calls) else None

    def bare(self, text: str) -> str:
        """The text without the marks of the template."""
        return self._mark.sub("", text)

    def decoded(self, ids: Sequence[int]) -> str:
        """What these tokens spell, without marks."""
        return self.bare(self._tokenizer.decode(ids, skip_special_tokens=False))

    # ── text ─────────────────────────────────────────────────────────────────────────────────────

    def _after(self, before: _Moment, exchange: Exchange) -> _Moment:
        said = self._unended(exchange.said or "")
        asked = (*before.messages, *exchange.heard)
        whole = (*asked, ("assistant", said))
        tools = before.tools
        prompt = self._render(asked, cue=True, tools=tools)
        text = self._render(whole, tools=tools)
        parts = self._in_place(before, prompt, text, said) or self._apart(before, exchange, said)
        if exchange.said is None:
            parts = replace(parts, heard=parts.heard + parts.said, said="")
        return _Moment(len(self._moments) + 1, whole, text, (*before.turns, parts), tools)

    def _in_place(self, before: _Moment, prompt: str, text: str, said: str) -> _Parts | None:
        """The parts as the whole conversation shows them; None when it rewrites itself."""
        if not prompt.startswith(before.text) or not text.startswith(prompt):
            return None
        found = _around(text[len(prompt) :], said.strip())
        if found is None:
            return None
        lead, words, tail = found
        heard = _rest(before) + prompt[len(before.text) :]
        if lead.strip():
            heard, lead = heard + lead, ""
        end, rest = self._ending(tail)
        return _Parts(heard, lead + words + end, rest)

    def _apart(self, before: _Moment, exchange: Exchange, said: str) -> _Parts:
        """The parts as they look in a conversation in which there is nothing to rewrite."""
        small: Messages = (("user", _ASK), ("assistant", _TELL))
        told = self._render(small)
        end, rest = self._ending(told.partition(_TELL)[2])
        if not before.messages:
            heard = self._render(exchange.heard, cue=True, tools=before.tools)
            return _Parts(heard, said + end, rest, pieced=True)
        more = self._render((*small, *exchange.heard), cue=True)
        if not more.startswith(told):
            raise Unspeakable("The chat template rewrites even what has just been said.")
        return _Parts(_rest(before) + more[len(told) :], said + end, rest, pieced=True)

    def _ending(self, tail: str) -> tuple[str, str]:
        """What follows the words, up to the mark that ends the turn, and what comes behind it."""
        mark = self._mark.search(tail)
        cut = mark.end() if mark and not tail[: mark.start()].strip() else 0
        return tail[:cut], tail[cut:]

    def _unended(self, said: str) -> str:
        """Without the marks at its end, where they were recorded with the text."""
        while marks := [m for m in self._mark.finditer(said) if not said[m.end() :].strip()]:
            said = said[: marks[0].start()]
        return said

    def _render(self, messages: Messages, *, cue: bool = False, tools: Tools | None = None) -> str:
        told = [{"role": role, "content": content} for role, content in messages]
        return self._written(told, cue=cue, tools=tools)

    def _written(
        self, told: list[dict[str, Any]], *, cue: bool = False, tools: Tools | None = None
    ) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(
                told,
                tools=list(tools) if tools else None,
                tokenize=False,
                add_generation_prompt=cue,
            )
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise Unspeakable(f"The chat template does not take it: {error}") from None
        return text

    def _probe(self) -> Manners:
        ask: Messages = (("user", _ASK),)
        return Manners(
            system=self._takes((("system", _TELL), *ask)),
            tool="tool" in str(self._tokenizer.chat_template)
            and self._takes((*ask, ("assistant", _ASK), ("tool", _TELL))),
            tools=self._offers(ask),
            calls="tool_calls" in str(self._tokenizer.chat_template),
        )

    def _offers(self, ask: Messages) -> bool:
        try:
            return _TOOL in self._render(ask, cue=True, tools=[bare_tool(_TOOL)])
        except Unspeakable:
            return False

    def _takes(self, messages: Messages) -> bool:
        try:
            return _TELL in self._render(messages, cue=True)
        except Unspeakable:
            return False

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def _encoded(self, turns: Sequence[_Parts]) -> tuple[Spoken, ...]:
        """Part by part, if together they give what the whole text gives; else cut from the whole."""
        spoken = tuple(
            Spoken(self._ids(part.heard), self._ids(part.said), part.pieced) for part in turns
        )
        texts = [text for part in turns for text in (part.heard, part.said)]
        whole = self._fresh_ids("".join(texts))
        if whole == tuple(chain.from_iterable(turn.heard + turn.said for turn in spoken)):
            return spoken
        prefixes = [self._fresh_ids(text) for text in accumulate(texts)]
        if any(ids != whole[: len(ids)] for ids in prefixes):
            return tuple(replace(turn, pieced=True) for turn in spoken)
        cuts = [0, *map(len, prefixes)]
        pieces = [whole[start:end] for start, end in pairwise(cuts)]
        return tuple(
            Spoken(heard, said, part.pieced)
            for heard, said, part in zip(pieces[::2], pieces[1::2], turns, strict=True)
        )

    def _ids(self, text: str) -> tuple[int, ...]:
        if text not in self._known:
            self._known[text] = self._fresh_ids(text)
        return self._known[text]

    def _fresh_ids(self, text: str) -> tuple[int, ...]:
        if not text:
            return ()
        return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])


def _marks(tokenizer: Any) -> set[str]:
    """The tokens that a template writes and a text does not."""
    added = tokenizer.added_tokens_decoder.values()
    return {*tokenizer.all_special_tokens, *(str(token) for token in added if token.special)}


def _rest(before: _Moment) -> str:
    return before.turns[-1].rest if before.turns else ""


def _around(text: str, words: str) -> tuple[str, str, str] | None:
    """What stands before these words, they themselves, and what stands behind them.

    >>> _around(" so.<|end|>", "so."), _around("so?", "why")
    ((' ', 'so.', '<|end|>'), None)
    """
    lead = len(text) - len(text.lstrip())
    start = lead if text.startswith(words, lead) else text.find(words)
    if start < 0:
        return None
    return text[:start], words, text[start + len(words) :]
