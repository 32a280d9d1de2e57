"""What did the model write when it made this call? A conversation goes on with its very words.

A client brings a call back as a name and arguments, and a template may write that in another way than
the model did, or not at all. Then the next prompt is not what the model has read and said before. So
what it wrote lately is kept under the id of its first call, and stands in the place of the calls, if
the client has changed nothing in them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.serve.core.engine import Message
from upswing.serve.core.tool_calls import ParsedReply


@dataclass(frozen=True, slots=True)
class _WrittenCalls:
    text: str
    content: str
    calls: list[tuple[Any, Any]]
    """Names and arguments."""


class ToolCallTexts:
    """The answers of late that called tools.

    >>> from upswing.serve.core.tool_calls import ParsedToolCall
    >>> texts = ToolCallTexts()
    >>> texts.remember("call_1_0", '<tool_call>{"name": "go"}</tool_call>', ParsedReply("", (ParsedToolCall("go", "{}"),)))
    >>> call = {"id": "call_1_0", "function": {"name": "go", "arguments": {}}}
    >>> texts.restore({"role": "assistant", "content": "", "tool_calls": [call]})
    {'role': 'assistant', 'content': '<tool_call>{"name": "go"}</tool_call>'}
    """

    def __init__(self, max_entries: int = 4096, max_characters: int = 16_000_000) -> None:
        self._entries, self._characters = max_entries, max_characters
        self._known: OrderedDict[str, _WrittenCalls] = OrderedDict()
        self._size = 0

    def remember(self, call_id: str, text: str, reply: ParsedReply) -> None:
        """The model has written `text`, and this was heard in it."""
        calls = [(call.name, msgspec.json.decode(call.arguments)) for call in reply.calls]
        self._known[call_id] = _WrittenCalls(text, reply.content, calls)
        self._size += len(text)
        while len(self._known) > self._entries or self._size > self._characters:
            _, forgotten = self._known.popitem(last=False)
            self._size -= len(forgotten.text)

    def restore(self, message: Message) -> Message:
        """The message with the model's own words, where they are known and say the same."""
        calls = message.get("tool_calls")
        if message["role"] != "assistant" or not calls:
            return message
        wrote = self._known.get(str(calls[0].get("id")))
        if wrote is None or (wrote.content, wrote.calls) != (
            message["content"],
            _names_and_arguments(calls),
        ):
            return message
        self._known.move_to_end(str(calls[0]["id"]))
        return {"role": "assistant", "content": wrote.text}


def _names_and_arguments(calls: Any) -> list[tuple[Any, Any]]:
    """Names and arguments, as a client brings them back."""
    functions = [call.get("function") for call in calls]
    return [
        (each.get("name"), each.get("arguments")) if isinstance(each, dict) else (None, None)
        for each in functions
    ]
