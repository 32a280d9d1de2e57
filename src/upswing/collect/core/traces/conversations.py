"""Which calls of a trace are one conversation? Each call is a turn of exactly one.

    agent ─┬─ call 1   [user]                          → answer 1 (calls a tool)
           ├─ tool
           └─ call 2   [user, answer 1, tool's result] → answer 2

A call goes on with a conversation when what it read begins with the end of that conversation, answer included: all of it,
or as much as an agent left that forgets what is old. What it read beyond that is new. A call that goes on with none begins
a conversation, with what it read as history. So no turn is there twice, however often it is repeated.

| calls                                                       | become                                              |
|-------------------------------------------------------------|-----------------------------------------------------|
| below different agents                                      | different conversations                             |
| of one agent, that do not go on with each other             | different conversations                             |
| below another call with messages                            | nothing: two instrumentations saw the same call     |
| without an answer                                           | an error of the conversation they went on with      |
| without messages                                            | nothing: a sentence says which switch is missing    |
| whose parents form a circle                                 | as if they had none                                 |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from upswing.collect.core.traces.chat_messages import Message, message_key
from upswing.collect.core.traces.traced import SpanKind, TracedMessage, TracedSpan

_MOST_OVERLAPS = 8
"""Places at which a conversation may end in what a call read: more are only in texts made for that."""
_HIGHEST = 256
"""Spans above a call that are looked at."""


@dataclass(frozen=True, slots=True)
class TraceContent:
    """All that came of one trace."""

    trace_id: str
    spans: Mapping[str, TracedSpan]
    records: Mapping[str, list[TracedMessage]]
    bodies: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model, with its messages."""

    span: TracedSpan
    system: str
    messages: list[Message]
    keys: list[bytes]
    """What its messages are known again by."""
    answer: Message | None
    new_from: int = 0
    """The first of its messages that its conversation did not have before."""

    @property
    def whole(self) -> list[bytes]:
        """The conversation after it."""
        return [*self.keys, *([message_key(self.answer)] if self.answer else [])]


@dataclass(slots=True)
class TracedConversation:
    """Calls that go on with each other, in their order."""

    trace_id: str
    calls: list[ModelCall]
    lineage: list[TracedSpan]
    """The first call and the spans above it, the nearest first."""
    tools: list[TracedSpan] = field(default_factory=list)
    """What its agent called."""
    offered: list[Any] = field(default_factory=list)
    failures: list[TracedSpan] = field(default_factory=list)
    """Calls that were not answered."""
    keys: list[bytes] = field(default_factory=list)
    """All of it."""

    @property
    def awaits_tools(self) -> bool:
        """It cannot be over: its model waits for what a tool returns."""
        answer = self.calls[-1].answer
        return bool(answer and answer.get("tool_calls"))

    def goes_on_with(self, call: ModelCall) -> int:
        """How many of the call's messages are known; 0: it is another conversation."""
        return overlap(self.keys, call.keys)

    def add(self, call: ModelCall, known: int) -> None:
        read = ModelCall(call.span, call.system, call.messages, call.keys, call.answer, known)
        self.calls.append(read)
        self.keys = call.whole


def overlap(before: list[bytes], after: list[bytes]) -> int:
    """How much of the beginning of one list is the end of another.

    >>> overlap([b"u", b"a"], [b"u", b"a", b"t"]), overlap([b"u", b"a", b"v", b"b"], [b"v", b"b", b"w"])
    (2, 2)
    >>> overlap([b"u", b"a"], [b"u", b"x"]), overlap([], [b"u"])
    (0, 0)
    """
    if not before:
        return 0
    places = [n for n, key in enumerate(after[: len(before)], 1) if key == before[-1]]
    return next(
        (size for size in places[::-1][:_MOST_OVERLAPS] if before[-size:] == after[:size]), 0
    )


@dataclass(frozen=True, slots=True)
class TraceReading:
    """What a trace holds."""

    conversations: list[TracedConversation]
    without_content: dict[str, int]
    """Emitter → calls that nothing is recorded of."""
    single_call: bool
    """It is one call without anything around it: the next one may go on with it."""


def read_trace(content: TraceContent) -> TraceReading:
    """The conversations of a trace, and how many calls had nothing to show."""
    links = _Links(content.spans)
    missing: dict[str, int] = {}
    found: dict[str, list[TracedConversation]] = {}
    failures: list[tuple[str, ModelCall, list[TracedSpan]]] = []
    decoded: dict[bytes, Any] = {}
    calls = [
        _with_records(span, content.records.get(span.span_id, ()))
        for span in _of_kind(content, SpanKind.CHAT)
    ]
    with_content = {span.span_id for span in calls if span.has_content}
    seen_below = {
        above.span_id for span in calls if span.has_content for above in links.above(span)
    }
    for span in calls:
        lineage = [span, *links.above(span)]
        if any(each.span_id in with_content for each in lineage[1:]):
            continue
        if span.span_id not in with_content:
            if span.span_id not in seen_below:
                missing[span.emitter] = missing.get(span.emitter, 0) + 1
            continue
        call, scope = _read_call(span, content.bodies, decoded), _scope_of(lineage)
        if call.answer is None:
            failures.append((scope, call, lineage))
        else:
            _add_call(found.setdefault(scope, []), content, call, lineage)
    for scope, call, lineage in failures:
        _add_failure(found.setdefault(scope, []), content, call, lineage)
    conversations = [each for group in found.values() for each in group]
    for tool in _of_kind(content, SpanKind.TOOL):
        for each in found.get(_scope_of([tool, *links.above(tool)]), ()):
            each.tools.append(tool)
    single = len(calls) == 1 and len(content.spans) == 1
    return TraceReading(conversations, missing, single)


def _of_kind(content: TraceContent, kind: SpanKind) -> list[TracedSpan]:
    spans = (span for span in content.spans.values() if span.kind is kind)
    return sorted(spans, key=lambda span: (span.started_ns, span.ended_ns, span.span_id))


def _with_records(span: TracedSpan, records: Iterable[TracedMessage]) -> TracedSpan:
    """What log records say of a span that says nothing itself."""
    if span.has_content:
        return span
    messages: list[bytes] = []
    system = answer = b""
    finish = span.finish
    for record in records:
        messages += record.messages
        system, answer = record.system or system, record.answer or answer
        finish = record.finish or finish
    return msgspec.structs.replace(
        span, messages=messages, system=system, answer=answer, finish=finish
    )


class _Links:
    """Who stands above whom."""

    def __init__(self, spans: Mapping[str, TracedSpan]) -> None:
        self.spans = spans

    def above(self, span: TracedSpan) -> list[TracedSpan]:
        """Its parent, the parent's parent and so on; a circle ends where it began."""
        seen = {span.span_id}
        found: list[TracedSpan] = []
        parent = self.spans.get(span.parent_id)
        while parent is not None and parent.span_id not in seen and len(found) < _HIGHEST:
            seen.add(parent.span_id)
            found.append(parent)
            parent = self.spans.get(parent.parent_id)
        return found


def _scope_of(lineage: list[TracedSpan]) -> str:
    """Whose work it is: the nearest agent's, else the trace's."""
    return next((each.span_id for each in lineage if each.kind is SpanKind.AGENT), "")


def _read_call(
    span: TracedSpan, bodies: Mapping[bytes, bytes], decoded: dict[bytes, Any]
) -> ModelCall:
    def value(key: bytes) -> Any:
        if key not in decoded:
            decoded[key] = msgspec.json.decode(bodies[key])
        return decoded[key]

    messages = [value(key) for key in span.messages if key in bodies]
    system = value(span.system) if span.system in bodies else ""
    answer = value(span.answer) if span.answer in bodies else None
    return ModelCall(span, system, messages, [message_key(each) for each in messages], answer)


def _add_call(
    group: list[TracedConversation],
    content: TraceContent,
    call: ModelCall,
    lineage: list[TracedSpan],
) -> None:
    for each in reversed(group):
        if known := each.goes_on_with(call):
            each.add(call, known)
            return
    body = content.bodies.get(call.span.tools)
    offered = msgspec.json.decode(body) if body else []
    group.append(
        TracedConversation(content.trace_id, [call], lineage, offered=offered, keys=call.whole)
    )


def _add_failure(
    group: list[TracedConversation],
    content: TraceContent,
    call: ModelCall,
    lineage: list[TracedSpan],
) -> None:
    """Beside the answered calls of its agent; alone, it is a conversation in which nobody answered."""
    if group:
        group[-1].failures.append(call.span)
    else:
        group.append(TracedConversation(content.trace_id, [call], lineage, failures=[call.span]))


def joined(before: TracedConversation, after: TracedConversation) -> bool:
    """Let one conversation go on with another that is a trace of its own; False: it does not."""
    known = before.goes_on_with(after.calls[0])
    if not known:
        return False
    before.add(after.calls[0], known)
    before.calls += after.calls[1:]
    before.keys = after.keys
    before.tools += after.tools
    before.failures += after.failures
    return True
