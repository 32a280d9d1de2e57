"""What is known of a span once it is read? Values that cross from an admission worker to the loop."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class SpanKind(StrEnum):
    """What a span is to a conversation."""

    CHAT = "chat"
    """A call of a model."""
    TOOL = "tool"
    AGENT = "agent"
    """An agent at work: calls below it are its own."""
    OTHER = "other"
    """It only links others to their root."""


class TracedSpan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One span; messages are named by their keys, for every call repeats those before it."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    kind: SpanKind = SpanKind.OTHER
    started_ns: int = 0
    ended_ns: int = 0
    emitter: str = ""
    """One of `emitters.EMITTERS`."""
    scope: str = ""
    service: str = ""
    error: str = ""
    agent: str = ""
    conversation: str = ""
    user: str = ""
    task: str = ""
    outcome: str = ""
    """What `upswing.outcome` says, as it was written."""
    model: str = ""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    finish: str = ""
    answer_id: str = ""
    system: bytes = b""
    """The key of the instructions, which stand apart from the messages or before them."""
    messages: list[bytes] = []
    """The keys of what the model read."""
    answer: bytes = b""
    """The key of what it said."""
    tools: bytes = b""
    """The key of what it was offered."""
    call_id: str = ""
    tool_name: str = ""
    result: str = ""
    """Of a tool."""
    dropped_attributes: int = 0

    @property
    def has_content(self) -> bool:
        return bool(self.answer) or bool(self.messages)


class TracedMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A log record that tells one message of a span, or all of them."""

    trace_id: str
    span_id: str
    system: bytes = b""
    messages: list[bytes] = []
    answer: bytes = b""
    finish: str = ""


class ReadExport(msgspec.Struct, frozen=True, tag=True):
    """An export that was read."""

    spans: list[TracedSpan]
    records: list[TracedMessage]
    messages: dict[bytes, bytes]
    """Key → JSON of a message, of instructions or of tools, each once."""
    rejected: int = 0
    problem: str = ""


class RefusedExport(msgspec.Struct, frozen=True, tag=True):
    """An export of which nothing can be taken."""

    status: int
    message: str


ExportVerdict = ReadExport | RefusedExport


class ExportRequest(msgspec.Struct, frozen=True):
    """An export as it came."""

    body: bytes
    content_type: str
    coding: str
    limit: int
    """Bytes of it once decompressed."""
    logs: bool = False
