"""What does a chunk of a streamed chat completion add? Words, thoughts, parts of calls, and how it ended.

Servers differ in what they write where there is nothing to say (`"choices": null`, a time with a fraction): what nobody here
needs may be anything, for a stream that a chat client could read is one that all others can.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder
from upswing.openai.completions import UsageCounts, read_usage

_NOTHING = Raw(b"")


class ChunkFunction(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ChunkToolCall(msgspec.Struct, gc=False):
    """A call, or a part of one: its id and name come once, its arguments in pieces."""

    index: int | None = None
    id: str | None = None
    function: ChunkFunction | None = None


class ChunkDelta(msgspec.Struct, gc=False):
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ChunkToolCall] | None = None

    @property
    def text(self) -> str:
        """Its words; a refusal stands in a field of its own."""
        if isinstance(self.content, list):
            return "".join(str(part.get("text") or "") for part in self.content)
        return self.content or self.refusal or ""


class ChunkChoice(msgspec.Struct, gc=False):
    index: int | None = None
    delta: ChunkDelta | None = None
    finish_reason: Any = None
    stop_reason: Any = None
    logprobs: Raw = _NOTHING

    def token_logprobs(self) -> list[Any]:
        """An entry for each token, where there are any."""
        found = msgspec.json.decode(self.logprobs) if self.logprobs else None
        content = found.get("content") if isinstance(found, dict) else None
        return content if isinstance(content, list) else []


class ChatChunk(msgspec.Struct, gc=False):
    """One event of a stream."""

    choices: list[ChunkChoice] | None = None
    model: Any = None
    created: Any = None
    usage: Any = None

    @property
    def first_choice(self) -> ChunkChoice | None:
        return next((choice for choice in self.choices or () if not choice.index), None)

    @property
    def model_name(self) -> str:
        return self.model if isinstance(self.model, str) else ""

    @property
    def created_at(self) -> int:
        """Seconds since 1970; 0: nobody says."""
        return int(self.created) if isinstance(self.created, int | float) else 0

    def usage_counts(self) -> UsageCounts:
        return read_usage(self.usage)


_CHUNK = json_decoder(ChatChunk)


def read_chunk(payload: bytes) -> ChatChunk:
    """The chunk in an event's data; `msgspec.MsgspecError` when it is none.

    >>> read_chunk(b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}').first_choice.delta.text
    'Hi'
    """
    return _CHUNK.decode(payload)
