"""Does the model want tools called? What it wrote, read as calls where it has one of their forms.

| the model writes                                       | it becomes                               |
|--------------------------------------------------------|------------------------------------------|
| `<tool_call>{"name": …, "arguments": {…}}</tool_call>` | a call, as often as it stands there      |
| `<tool_call>[{…}, {…}]</tool_call>`                    | a call each                              |
| one of them without its end, and nothing behind it     | the same                                 |
| `{"name": …, "arguments": {…}}` and nothing else       | a call, where a tool has that name       |
| `parameters` in the place of `arguments`               | the same                                 |
| words around marked calls                              | the content beside them                  |
| anything else, be it one bad call among good ones      | text, all of it as it is                 |
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from upswing.serve.core.detokenizer import stop_overlap

BEGIN, END = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class ParsedToolCall:
    """A tool that the model wants called."""

    name: str
    arguments: str
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """An answer: words, and calls beside them."""

    content: str
    calls: tuple[ParsedToolCall, ...] = ()


def tool_names(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """What the tools of a request are called.

    >>> sorted(tool_names([{"type": "function", "function": {"name": "add"}}, {"name": "sell"}, {}]))
    ['add', 'sell']
    """
    named = [tool["function"] if isinstance(tool.get("function"), dict) else tool for tool in tools]
    return frozenset(each["name"] for each in named if isinstance(each.get("name"), str))


def parse_tool_calls(text: str, known_tools: Collection[str]) -> ParsedReply:
    """The words and the calls of a whole answer, where tools of these names can be called.

    >>> parse_tool_calls('Wait. <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', ())
    ParsedReply(content='Wait.', calls=(ParsedToolCall(name='add', arguments='{"a": 1}'),))
    >>> parse_tool_calls('{"name": "Ann", "arguments": {}}', {"add"}).calls
    ()
    """
    try:
        return _parse_tagged(text) if BEGIN in text else _parse_bare(text, known_tools)
    except (ValueError, RecursionError):
        return ParsedReply(text)


class StreamingToolCallParser:
    """Hears an answer piece by piece; shows what can no longer turn out to be part of a call."""

    def __init__(self, known_tools: Collection[str]) -> None:
        self._tools = known_tools
        self._parts: list[str] = []
        self._held = ""
        self._shown = 0
        self._calling = False

    def feed(self, text: str) -> str:
        """What can be shown now.

        >>> parser = StreamingToolCallParser({"add"})
        >>> [parser.feed(piece) for piece in ("So ", "<b> ", "<tool", '_call>{"name":', '"add"}')]
        ['So', ' <b>', '', '', '']
        >>> parser.finish()
        ParsedReply(content='', calls=(ParsedToolCall(name='add', arguments='{}'),))
        """
        self._parts.append(text)
        if self._calling:
            return ""
        self._held += text
        if not self._shown and self._held.lstrip().startswith("{"):
            return ""
        at = self._held.find(BEGIN)
        self._calling = at >= 0
        sure = self._held[
            : at if self._calling else len(self._held) - stop_overlap(self._held, BEGIN)
        ]
        shown = sure.rstrip()
        self._held = self._held[len(shown) :]
        self._shown += len(shown)
        return shown

    @property
    def text(self) -> str:
        """All that was heard."""
        return "".join(self._parts)

    def finish(self) -> ParsedReply:
        """What is left to be shown when the answer is over, and its calls."""
        reply = parse_tool_calls(self.text, self._tools)
        return ParsedReply(reply.content[self._shown :], reply.calls)


def _parse_tagged(text: str) -> ParsedReply:
    calls: list[ParsedToolCall] = []
    found = text.find(BEGIN)
    content = text[:found].rstrip()
    while found >= 0:
        value, at = _tagged_value(text, found + len(BEGIN))
        calls += [_validated_call(each) for each in (value if isinstance(value, list) else [value])]
        found = text.find(BEGIN, at)
        between = text[at:].strip() if found < 0 else text[at:found].strip()
        content += f"\n{between}" if content and between else between
    if not calls:
        raise ValueError("There is no call in it.")
    return ParsedReply(content, tuple(calls))


def _tagged_value(text: str, start: int) -> tuple[Any, int]:
    """What stands in a mark that begins here, and where what follows it begins."""
    value, end = _decode_json_at(text, start)
    if text.startswith(END, end):
        return value, end + len(END)
    if end < len(text):
        raise ValueError("The mark has no end.")
    return value, end


def _parse_bare(text: str, known_tools: Collection[str]) -> ParsedReply:
    if not text.lstrip().startswith("{"):
        return ParsedReply(text)
    value, end = _decode_json_at(text, 0)
    call = _validated_call(value)
    if (
        end < len(text)
        or call.name not in known_tools
        or not {"arguments", "parameters"} & set(value)
    ):
        return ParsedReply(text)
    return ParsedReply("", (call,))


def _validated_call(value: Any) -> ParsedToolCall:
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        raise ValueError("It names no tool.")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = _DECODER.decode(arguments)
    if not isinstance(arguments, dict):
        raise ValueError("Its arguments are no object.")  # noqa: TRY004 - what is wrong is a text
    written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    (name + written).encode()  # half a character cannot be sent
    return ParsedToolCall(name, written)


def _decode_json_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value here, and where the blanks behind it end."""
    value, end = _DECODER.raw_decode(text, len(text) - len(text[start:].lstrip()))
    return value, len(text) - len(text[end:].lstrip())


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON.")


_DECODER = json.JSONDecoder(parse_constant=_reject_constant)
