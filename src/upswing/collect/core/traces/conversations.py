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
_HIGHEST = 64
"""Spans above a call that are looked at."""
MOST_ALIKE = 16
"""Conversations that end alike, the newest, of which a call may go on with one."""


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


class ToolSpans:
    """What an agent's tools did, by the ids of the calls and by their names; all of its conversations share it."""

    def __init__(self, spans: Iterable[TracedSpan] = ()) -> None:
        self.by_id: dict[str, TracedSpan] = {}
        self.by_name: dict[str, list[TracedSpan]] = {}
        for span in spans:
            self.add(span)

    def add(self, span: TracedSpan) -> None:
        if span.call_id:
            self.by_id[span.call_id] = span
        else:
            self.by_name.setdefault(span.tool_name, []).append(span)

    def merged(self, other: ToolSpans) -> ToolSpans:
        both = ToolSpans()
        both.by_id = self.by_id | other.by_id
        for each in (self.by_name, other.by_name):
            for name, spans in each.items():
                both.by_name.setdefault(name, []).extend(spans)
        return both


@dataclass(slots=True, eq=False)
class TracedConversation:
    """Calls that go on with each other, in their order."""

    trace_id: str
    calls: list[ModelCall]
    lineage: list[TracedSpan]
    """The first call and the spans above it, the nearest first."""
    tools: ToolSpans = field(default_factory=ToolSpans)
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
    links, bodies = _Links(content.spans), _Bodies(content.bodies)
    missing: dict[str, int] = {}
    scopes: dict[str, _Scope] = {}
    failures: list[tuple[str, ModelCall, list[TracedSpan]]] = []
    calls = [
        _with_records(span, content.records.get(span.span_id, ()))
        for span in _of_kind(content, SpanKind.CHAT)
    ]
    lineages = {span.span_id: [span, *links.above(span)] for span in calls}
    with_content = {span.span_id for span in calls if span.has_content}
    seen_below = {above.span_id for each in with_content for above in lineages[each][1:]}
    for span in calls:
        lineage = lineages[span.span_id]
        if any(each.span_id in with_content for each in lineage[1:]):
            continue
        if span.span_id not in with_content:
            if span.span_id not in seen_below:
                missing[span.emitter] = missing.get(span.emitter, 0) + 1
            continue
        call, scope = bodies.read_call(span), _scope_of(lineage)
        if call.answer is None:
            failures.append((scope, call, lineage))
        else:
            scopes.setdefault(scope, _Scope(content.trace_id)).add(call, lineage, bodies)
    for scope, call, lineage in failures:
        scopes.setdefault(scope, _Scope(content.trace_id)).add_failure(call, lineage)
    for tool in _of_kind(content, SpanKind.TOOL):
        scope = _scope_of([tool, *links.above(tool)])
        if scope in scopes:
            scopes[scope].tools.add(tool)
    conversations = [each for scope in scopes.values() for each in scope.conversations]
    single = len(calls) == 1 and len(content.spans) == 1
    return TraceReading(conversations, missing, single)


class _Scope:
    """The conversations of one agent."""

    def __init__(self, trace_id: str) -> None:
        self._trace_id = trace_id
        self.tools = ToolSpans()
        self.conversations: list[TracedConversation] = []
        self._by_end: dict[bytes, list[TracedConversation]] = {}
        """By the last answer."""

    def add(self, call: ModelCall, lineage: list[TracedSpan], bodies: _Bodies) -> None:
        """To the conversation that it goes on with, the newest of several; else it begins one."""
        for key in dict.fromkeys(reversed(call.keys)):
            for each in self._by_end.get(key, [])[: -MOST_ALIKE - 1 : -1]:
                if known := each.goes_on_with(call):
                    self._by_end[key].remove(each)
                    each.add(call, known)
                    self._by_end.setdefault(each.keys[-1], []).append(each)
                    return
        begun = TracedConversation(
            self._trace_id,
            [call],
            lineage,
            self.tools,
            offered=bodies.value(call.span.tools) or [],
            keys=call.whole,
        )
        self.conversations.append(begun)
        self._by_end.setdefault(begun.keys[-1], []).append(begun)

    def add_failure(self, call: ModelCall, lineage: list[TracedSpan]) -> None:
        """Beside the answered calls of its agent; alone, it is a conversation in which nobody answered."""
        if self.conversations:
            self.conversations[-1].failures.append(call.span)
        else:
            failures = [call.span]
            self.conversations.append(
                TracedConversation(self._trace_id, [call], lineage, self.tools, failures=failures)
            )


class _Bodies:
    """Messages by their keys, each decoded once."""

    def __init__(self, bodies: Mapping[bytes, bytes]) -> None:
        self._bodies = bodies
        self._values: dict[bytes, Any] = {}
        self._keys: dict[bytes, bytes] = {}

    def value(self, key: bytes) -> Any:
        """None where there is none."""
        if key not in self._values:
            body = self._bodies.get(key)
            self._values[key] = None if body is None else msgspec.json.decode(body)
        return self._values[key]

    def read_call(self, span: TracedSpan) -> ModelCall:
        kept = [key for key in span.messages if self.value(key) is not None]
        messages = [self.value(key) for key in kept]
        keys = [self._known_by(key) for key in kept]
        return ModelCall(
            span, self.value(span.system) or "", messages, keys, self.value(span.answer)
        )

    def _known_by(self, key: bytes) -> bytes:
        if key not in self._keys:
            self._keys[key] = message_key(self._values[key])
        return self._keys[key]


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


def joined(before: TracedConversation, after: TracedConversation) -> bool:
    """Let one conversation go on with another that is a trace of its own; False: it does not."""
    known = before.goes_on_with(after.calls[0])
    if not known:
        return False
    before.add(after.calls[0], known)
    before.calls += after.calls[1:]
    before.keys = after.keys
    before.tools = before.tools.merged(after.tools)
    before.failures += after.failures
    return True
