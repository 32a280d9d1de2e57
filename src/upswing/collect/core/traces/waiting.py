"""Is a trace whole? Spans wait until their root has come, for children come first and in other exports.

| a trace                                                   | is closed                                           |
|-----------------------------------------------------------|-----------------------------------------------------|
| whose root has come                                       | when nothing came for `grace_seconds`               |
| without a root                                            | when nothing came for `idle_seconds`                |
| that goes on for ever                                     | `longest_seconds` after its first span              |
| of which a part was closed already                        | as if its root had come: its trace is over          |
| that is a single call whose model waits for a tool        | when a call goes on with it, or after `idle_seconds` |

All of it is in memory, unredacted, and never on a disk. A trace belongs to a key: the same id with another key's spans is another trace.
Where there is no room, nothing of an export is taken, and its sender is asked to send it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from upswing.collect.core.traces.conversations import (
    MOST_ALIKE,
    TraceContent,
    TracedConversation,
    TraceReading,
    joined,
    read_trace,
)
from upswing.collect.core.traces.traced import ReadExport, TracedMessage, TracedSpan
from upswing.errors import Reason, Rejected, Transient
from upswing.principals import Sender

_SPAN_BYTES, _RECORD_BYTES, _BODY_BYTES = 1200, 300, 200
"""What a value takes beyond its texts, about."""
SHUTDOWN = "shutdown"
"""Why a trace is over when the loop ends."""
_REMEMBERED = 50_000
"""Spans of closed traces that are known again when an exporter sends them twice."""


@dataclass(frozen=True, slots=True)
class WaitingLimits:
    """How long traces wait, and how many."""

    grace_seconds: float = 5.0
    idle_seconds: float = 300.0
    longest_seconds: float = 3600.0
    max_traces: int = 10_000
    max_spans: int = 10_000
    """Of one trace."""
    max_bytes: int = 128 * 1024 * 1024


@dataclass(slots=True)
class WaitingTrace:
    """What has come of a trace so far."""

    sender: Sender
    trace_id: str
    first_at: float
    last_at: float
    spans: dict[str, TracedSpan] = field(default_factory=dict)
    records: dict[str, list[TracedMessage]] = field(default_factory=dict)
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    size: int = 0
    told: int = 0
    """Log records."""
    rooted: bool = False

    def closed_by(self, now: float, limits: WaitingLimits) -> str:
        """Why it is over; empty: it is not."""
        if self.rooted and now - self.last_at >= limits.grace_seconds:
            return "root"
        if now - self.last_at >= limits.idle_seconds:
            return "quiet"
        return "age" if now - self.first_at >= limits.longest_seconds else ""


@dataclass(frozen=True, slots=True)
class AddedSpans:
    """What became of an export."""

    spans: int = 0
    known: int = 0
    """Were there already."""
    rejected: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FinishedConversation:
    """A conversation that is over, and whose it is."""

    sender: Sender
    conversation: TracedConversation
    ended_by: str
    size: int = 0


@dataclass(slots=True)
class _Held:
    finished: FinishedConversation
    until: float


@dataclass(frozen=True, slots=True)
class ClosedTrace:
    """A trace that is over."""

    finished: list[FinishedConversation]
    without_content: dict[str, int]
    """Emitter → calls that had no messages."""


class WaitingTraces:
    """Traces that are not whole."""

    def __init__(self, limits: WaitingLimits) -> None:
        self.limits = limits
        self._traces: dict[tuple[str, str], WaitingTrace] = {}
        self._held: dict[tuple[str, bytes], list[_Held]] = {}
        """Key and last answer → single calls that wait for the call that goes on with them."""
        self._closed: dict[tuple[str, str, str], None] = {}
        self._bytes: dict[str, int] = {}
        """By key."""
        self.size = 0

    def __len__(self) -> int:
        return len(self._traces) + sum(map(len, self._held.values()))

    # --- what comes --------------------------------------------------------------------------------

    def add(self, sender: Sender, export: ReadExport, now: float) -> AddedSpans:
        """Take an export; `Transient` where there is no room for it, and then nothing of it is kept."""
        fresh = [span for span in export.spans if not self._is_known(sender.key_id, span)]
        self._check_room(sender.key_id, fresh, export)
        rejected, problem = 0, ""
        for span in fresh:
            trace = self._trace(sender, span.trace_id, now)
            if len(trace.spans) >= self.limits.max_spans:
                rejected += 1
                problem = f"A trace may have {self.limits.max_spans} spans here."
                continue
            trace.spans[span.span_id] = span
            trace.rooted = trace.rooted or not span.parent_id
            self._grow(trace, _size_of_span(span))
            self._keep_bodies(trace, _keys_of(span), export.messages)
        for record in export.records:
            if (sender.key_id, record.trace_id, record.span_id) in self._closed:
                continue
            trace = self._trace(sender, record.trace_id, now)
            if trace.told < self.limits.max_spans:
                trace.told += 1
                trace.records.setdefault(record.span_id, []).append(record)
                self._grow(trace, _RECORD_BYTES + 16 * len(record.messages))
                self._keep_bodies(trace, _keys_of(record), export.messages)
        return AddedSpans(len(fresh) - rejected, len(export.spans) - len(fresh), rejected, problem)

    def _is_known(self, key_id: str, span: TracedSpan) -> bool:
        trace = self._traces.get((key_id, span.trace_id))
        waits = trace is not None and span.span_id in trace.spans
        return waits or (key_id, span.trace_id, span.span_id) in self._closed

    def _check_room(self, key_id: str, spans: list[TracedSpan], export: ReadExport) -> None:
        """A key may fill half of what the others leave, so that none shuts out another."""
        keys = {
            key for each in (spans, export.records) for value in each for key in _keys_of(value)
        }
        bodies = [len(export.messages[key]) + _BODY_BYTES for key in keys if key in export.messages]
        more = sum(map(_size_of_span, spans)) + sum(bodies) + _RECORD_BYTES * len(export.records)
        mine = self._bytes.get(key_id, 0)
        if more > self.limits.max_bytes // 2:
            raise Rejected(
                Reason.TOO_LARGE,
                "The export has more than may ever wait here: send fewer spans at a time.",
            )
        if mine + more > (self.limits.max_bytes - self.size + mine) // 2:
            raise Transient(
                "Too many spans wait for the rest of their traces: send it again later."
            )
        ids = {span.trace_id for span in spans} | {record.trace_id for record in export.records}
        named = {(key_id, trace_id) for trace_id in ids}
        fresh = sum(each not in self._traces for each in named)
        own = sum(key == key_id for key, _ in self._traces)
        if own + fresh > (self.limits.max_traces - len(self._traces) + own) // 2:
            raise Transient("Too many traces wait for the rest of them: send it again later.")

    def _trace(self, sender: Sender, trace_id: str, now: float) -> WaitingTrace:
        place = (sender.key_id, trace_id)
        trace = self._traces.get(place)
        if trace is None:
            trace = self._traces[place] = WaitingTrace(sender, trace_id, now, now)
            trace.rooted = (*place, "") in self._closed
        trace.last_at = now
        return trace

    def _grow(self, trace: WaitingTrace, size: int) -> None:
        trace.size += size
        self._count(trace.sender.key_id, size)

    def _count(self, key_id: str, size: int) -> None:
        self.size += size
        if left := self._bytes.get(key_id, 0) + size:
            self._bytes[key_id] = left
        else:
            self._bytes.pop(key_id, None)

    def _keep_bodies(
        self, trace: WaitingTrace, keys: Iterable[bytes], bodies: dict[bytes, bytes]
    ) -> None:
        for key in keys:
            if key not in trace.bodies and (body := bodies.get(key)) is not None:
                trace.bodies[key] = body
                self._grow(trace, len(body) + _BODY_BYTES)

    # --- what is over ------------------------------------------------------------------------------

    def pop_due(self, now: float, *, everything: str = "") -> list[tuple[WaitingTrace, str]]:
        """Traces that are over by now, the oldest first, and why; `everything`: all of them, for this reason.

        They are counted until they are finished.
        """
        due = [
            (trace, why)
            for trace in self._traces.values()
            if (why := everything or trace.closed_by(now, self.limits))
        ]
        for trace, _ in due:
            self._forget(trace)
        return sorted(due, key=lambda each: each[0].first_at)

    def finish(self, trace: WaitingTrace, why: str, now: float) -> ClosedTrace:
        """The conversations of a trace that is over; each is counted until it is released."""
        content = TraceContent(trace.trace_id, trace.spans, trace.records, trace.bodies)
        reading = read_trace(content)
        finished = self._finished(trace, reading, why, now)
        return ClosedTrace(finished, reading.without_content)

    def pop_held(self, now: float, *, everything: bool = False) -> list[FinishedConversation]:
        """Single calls that nobody went on with."""
        due = [
            (place, held)
            for place, group in self._held.items()
            for held in group
            if everything or now >= held.until
        ]
        for place, held in due:
            self._drop_held(place, held)
        return [held.finished for _, held in due]

    def release(self, sender: Sender, size: int) -> None:
        """What was finished is stored, and takes no room any more."""
        self._count(sender.key_id, -size)

    def _forget(self, trace: WaitingTrace) -> None:
        key_id = trace.sender.key_id
        del self._traces[key_id, trace.trace_id]
        for span_id in ("", *trace.spans):
            self._closed[key_id, trace.trace_id, span_id] = None
        while len(self._closed) > _REMEMBERED:
            del self._closed[next(iter(self._closed))]

    def _finished(
        self, trace: WaitingTrace, reading: TraceReading, why: str, now: float
    ) -> list[FinishedConversation]:
        found = reading.conversations
        share = trace.size // max(1, len(found))
        self._count(trace.sender.key_id, share * len(found) - trace.size)
        made = [FinishedConversation(trace.sender, each, why, share) for each in found]
        if not reading.single_call or not made:
            return made
        whole = self._join(made[0])
        if why == SHUTDOWN or not whole.conversation.awaits_tools:
            return [whole]
        place = (trace.sender.key_id, whole.conversation.keys[-1])
        self._held.setdefault(place, []).append(_Held(whole, now + self.limits.idle_seconds))
        return []

    def _join(self, made: FinishedConversation) -> FinishedConversation:
        """With the single calls before it that it goes on with."""
        key_id = made.sender.key_id
        for key in dict.fromkeys(made.conversation.calls[0].keys):
            for held in self._held.get((key_id, key), [])[: -MOST_ALIKE - 1 : -1]:
                if joined(held.finished.conversation, made.conversation):
                    self._drop_held((key_id, key), held)
                    before = held.finished
                    return FinishedConversation(
                        before.sender, before.conversation, made.ended_by, before.size + made.size
                    )
        return made

    def _drop_held(self, place: tuple[str, bytes], held: _Held) -> None:
        self._held[place] = [each for each in self._held[place] if each is not held]
        if not self._held[place]:
            del self._held[place]


def _size_of_span(span: TracedSpan) -> int:
    texts = (span.name, span.scope, span.error, span.agent, span.outcome, span.result, span.user)
    return _SPAN_BYTES + 50 * len(span.messages) + sum(map(len, texts))


def _keys_of(value: TracedSpan | TracedMessage) -> list[bytes]:
    tools = [value.tools] if isinstance(value, TracedSpan) else []
    return [*value.messages, *(key for key in (value.system, value.answer, *tools) if key)]
