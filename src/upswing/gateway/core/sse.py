"""Is this an event stream of a model's answer, and where does an event end?

Only whole events are let through, each of them looked at: a client never sees half an event, nor
one that is not JSON.

    bytes as they come ─▶ whole events ─▶ `data: {…}` checked ─▶ on to the client
                             └▶ the rest waits for more
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec
from msgspec import Raw

from upswing.contracts.typed import json_decoder

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_FIELDS = (b"data:", b":", b"event:", b"id:", b"retry:")
MAX_EVENT_BYTES = 4 * 1024 * 1024
_NOTHING = Raw(b"")
_NULL = b"null"


class StreamProblem(StrEnum):
    """What is wrong with a stream."""

    GARBAGE = "garbage"
    """Not an event stream, or an event that is not JSON."""
    ERROR = "error"
    """An event that says the server failed."""


class _Chunk(msgspec.Struct, gc=False):
    error: Raw = _NOTHING
    type: str = ""


_FAILURES = frozenset({"error", "response.failed"})
"""Events of other shapes than chat that say so."""


_CHUNK = json_decoder(_Chunk)


class SseChecker:
    """The look at one stream. `feed` gives what may go on; `problem` says why nothing more does."""

    __slots__ = ("_last_events", "_rest", "done", "events", "problem")

    def __init__(self, last_events: frozenset[str] = frozenset()) -> None:
        """`last_events`: types of events that end the stream, where it is not a chat completion's."""
        self._rest, self._last_events = b"", last_events
        self.done = False
        """`[DONE]`, or an event that means it, has been seen: the stream is whole."""
        self.events = 0
        """With data; comments that keep a connection warm are none."""
        self.problem: StreamProblem | None = None

    def feed(self, data: bytes) -> bytes:
        """The whole events that are complete with `data`, as they came."""
        if not self._rest and data.endswith(b"}\n\n") and data.count(b"\n") == 2:
            if data.startswith(b"data: ") and self._check_payload(
                data[6:-2]
            ):  # one event, the usual case
                self.events += 1
                return data
            if self.problem:
                return b""
        return self._feed_general(data)

    def finish(self) -> bytes:
        """No more bytes come: some servers leave out the last blank line."""
        if self._rest.strip() != b"data: [DONE]":
            return b""
        self.done, self._rest = True, b""
        return b"data: [DONE]\n\n"

    def _feed_general(self, data: bytes) -> bytes:
        data = self._rest + data if self._rest else data
        begin = 0
        while (ends := self._event_end(data, begin)) is not None:
            if not self._check_event(data[begin : ends[0]]):
                self._rest = b""
                return data[:begin]
            begin = ends[1]
        self._rest = data[begin:]
        if len(self._rest) > MAX_EVENT_BYTES or not _may_begin_event(self._rest):
            self.problem = StreamProblem.GARBAGE
        return data[:begin]

    @staticmethod
    def _event_end(data: bytes, begin: int) -> tuple[int, int] | None:
        """Where the event that begins there ends, and where the next one begins."""
        if b"\r" not in data:
            at = data.find(b"\n\n", begin)
            return None if at < 0 else (at, at + 2)
        found = _EVENT_END.search(data, begin)
        return found.span() if found else None

    def _check_event(self, event: bytes) -> bool:
        has_data = False
        for line in event.splitlines():
            if line.startswith(b"data:"):
                payload = line[5:].strip()
                has_data = True
                if payload == b"[DONE]":
                    self.done = True
                elif not self._check_payload(payload):
                    return False
            elif not line.startswith(_FIELDS):
                self.problem = StreamProblem.GARBAGE
                return False
        self.events += has_data
        return True

    def _check_payload(self, payload: bytes) -> bool:
        try:
            chunk = _CHUNK.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.problem = StreamProblem.GARBAGE
            return False
        error = chunk.error
        if (error and bytes(error) != _NULL) or (self._last_events and chunk.type in _FAILURES):
            self.problem = StreamProblem.ERROR
            return False
        self.done = self.done or chunk.type in self._last_events
        return True


def _may_begin_event(rest: bytes) -> bool:
    """Could an event begin so? Garbage need not be waited out.

    >>> _may_begin_event(b"da"), _may_begin_event(b"data: {"), _may_begin_event(b"<html>")
    (True, True, False)
    """
    head = rest.lstrip(b"\r\n")[:6]
    return not head or any(head.startswith(f) or f.startswith(head) for f in _FIELDS)


def event_payloads(stream: bytes) -> list[bytes]:
    r"""The data of every event of a whole stream.

    >>> event_payloads(b'data: {"a":1}\n\n: ping\n\ndata:[DONE]\r\n\r\n')
    [b'{"a":1}', b'[DONE]']
    """
    return [line[5:].strip() for line in stream.splitlines() if line.startswith(b"data:")]
