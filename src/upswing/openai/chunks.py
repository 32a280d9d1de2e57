"""What does a chunk of a streamed chat completion add? Words, thoughts, parts of calls, and how it ended."""

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
    tool_calls: list[ChunkToolCall] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(str(part.get("text") or "") for part in self.content)
        return self.content or ""


class _ChunkLogprobs(msgspec.Struct, gc=False):
    content: Raw = _NOTHING


class ChunkChoice(msgspec.Struct, gc=False):
    index: int = 0
    delta: ChunkDelta | None = None
    finish_reason: str | None = None
    stop_reason: Any = None
    logprobs: _ChunkLogprobs | None = None


class ChatChunk(msgspec.Struct, gc=False):
    """One event of a stream."""

    choices: list[ChunkChoice] = []
    model: str | None = None
    created: int | None = None
    usage: Any = None

    @property
    def first_choice(self) -> ChunkChoice | None:
        return next((choice for choice in self.choices if choice.index == 0), None)

    def usage_counts(self) -> UsageCounts:
        return read_usage(self.usage)


_CHUNK = json_decoder(ChatChunk)


def read_chunk(payload: bytes) -> ChatChunk:
    """The chunk in an event's data; `msgspec.MsgspecError` when it is none.

    >>> read_chunk(b'{"choices":[{"index":0,"delta":{"content":"Hi"}}]}').first_choice.delta.text
    'Hi'
    """
    return _CHUNK.decode(payload)
