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

from upswing.serve.spelling import overlap

BEGIN, END = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants called."""

    name: str
    arguments: str
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer: words, and calls beside them."""

    content: str
    calls: tuple[Call, ...] = ()


def names_of(tools: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """What the tools of a request are called.

    >>> sorted(names_of([{"type": "function", "function": {"name": "add"}}, {"name": "sell"}, {}]))
    ['add', 'sell']
    """
    named = [tool["function"] if isinstance(tool.get("function"), dict) else tool for tool in tools]
    return frozenset(each["name"] for each in named if isinstance(each.get("name"), str))


def read_calls(text: str, tools: Collection[str]) -> Heard:
    """The words and the calls of a whole answer, where tools of these names can be called.

    >>> read_calls('Wait. <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', ())
    Heard(content='Wait.', calls=(Call(name='add', arguments='{"a": 1}'),))
    >>> read_calls('{"name": "Ann", "arguments": {}}', {"add"}).calls
    ()
    """
    try:
        return _marked(text) if BEGIN in text else _bare(text, tools)
    except (ValueError, RecursionError):
        return Heard(text)


class Listener:
    """Hears an answer piece by piece; shows what can no longer turn out to be part of a call."""

    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools
        self._parts: list[str] = []
        self._held = ""
        self._shown = 0
        self._calling = False

    def hear(self, piece: str) -> str:
        """What can be shown now.

        >>> listener = Listener({"add"})
        >>> [listener.hear(piece) for piece in ("So ", "<b> ", "<tool", '_call>{"name":', '"add"}')]
        ['So', ' <b>', '', '', '']
        >>> listener.end()
        Heard(content='', calls=(Call(name='add', arguments='{}'),))
        """
        self._parts.append(piece)
        if self._calling:
            return ""
        self._held += piece
        if not self._shown and self._held.lstrip().startswith("{"):
            return ""
        at = self._held.find(BEGIN)
        self._calling = at >= 0
        sure = self._held[: at if self._calling else len(self._held) - overlap(self._held, BEGIN)]
        shown = sure.rstrip()
        self._held = self._held[len(shown) :]
        self._shown += len(shown)
        return shown

    @property
    def text(self) -> str:
        """All that was heard."""
        return "".join(self._parts)

    def end(self) -> Heard:
        """What is left to be shown when the answer is over, and its calls."""
        heard = read_calls(self.text, self._tools)
        return Heard(heard.content[self._shown :], heard.calls)


def _marked(text: str) -> Heard:
    calls: list[Call] = []
    found = text.find(BEGIN)
    content = text[:found].rstrip()
    while found >= 0:
        value, at = _value(text, found + len(BEGIN))
        calls += [_call(each) for each in (value if isinstance(value, list) else [value])]
        found = text.find(BEGIN, at)
        words = text[at:].strip() if found < 0 else text[at:found].strip()
        content += f"\n{words}" if content and words else words
    if not calls:
        raise ValueError("There is no call in it.")
    return Heard(content, tuple(calls))


def _value(text: str, at: int) -> tuple[Any, int]:
    """What stands in a mark that begins here, and where what follows it begins."""
    value, end = _read(text, at)
    if text.startswith(END, end):
        return value, end + len(END)
    if end < len(text):
        raise ValueError("The mark has no end.")
    return value, end


def _bare(text: str, tools: Collection[str]) -> Heard:
    if not text.lstrip().startswith("{"):
        return Heard(text)
    value, end = _read(text, 0)
    call = _call(value)
    if end < len(text) or call.name not in tools or not {"arguments", "parameters"} & set(value):
        return Heard(text)
    return Heard("", (call,))


def _call(value: Any) -> Call:
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        raise ValueError("It names no tool.")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = _DECODER.decode(arguments)
    if not isinstance(arguments, dict):
        raise ValueError("Its arguments are no object.")  # noqa: TRY004 - what is wrong is a text
    written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    (name + written).encode()  # half a character cannot be sent
    return Call(name, written)


def _read(text: str, at: int) -> tuple[Any, int]:
    """The JSON value here, and where the blanks behind it end."""
    value, end = _DECODER.raw_decode(text, len(text) - len(text[at:].lstrip()))
    return value, len(text) - len(text[end:].lstrip())


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON.")


_DECODER = json.JSONDecoder(parse_constant=_no_number)
