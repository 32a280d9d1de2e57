"""Is this an event stream of chat completion chunks, and where does an event end?

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

_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_FIELDS = (b"data:", b":", b"event:", b"id:", b"retry:")
LONGEST_EVENT = 4 * 1024 * 1024
_NOTHING = Raw(b"")
_NULL = b"null"


class Trouble(StrEnum):
    """What is wrong with a stream."""

    GARBAGE = "garbage"
    """Not an event stream, or an event that is not JSON."""
    ERROR = "error"
    """An event that says the server failed."""


class _Chunk(msgspec.Struct, gc=False):
    error: Raw = _NOTHING


_CHUNK = json_decoder(_Chunk)


class EventCheck:
    """The look at one stream. `feed` gives what may go on; `trouble` says why nothing more does."""

    __slots__ = ("_rest", "done", "events", "trouble")

    def __init__(self) -> None:
        self._rest = b""
        self.done = False
        """`[DONE]` has been seen: the stream is whole."""
        self.events = 0
        """With data; comments that keep a connection warm are none."""
        self.trouble: Trouble | None = None

    def feed(self, data: bytes) -> bytes:
        """The whole events that are complete with `data`, as they came."""
        if not self._rest and data.endswith(b"}\n\n") and data.count(b"\n") == 2:
            if data.startswith(b"data: ") and self._sound(data[6:-2]):  # one event, the usual case
                self.events += 1
                return data
            if self.trouble:
                return b""
        return self._feed_slowly(data)

    def end(self) -> bytes:
        """No more bytes come: some servers leave out the last blank line."""
        if self._rest.strip() != b"data: [DONE]":
            return b""
        self.done, self._rest = True, b""
        return b"data: [DONE]\n\n"

    def _feed_slowly(self, data: bytes) -> bytes:
        data = self._rest + data if self._rest else data
        begin = 0
        while (ends := self._blank_line(data, begin)) is not None:
            if not self._event(data[begin : ends[0]]):
                self._rest = b""
                return data[:begin]
            begin = ends[1]
        self._rest = data[begin:]
        if len(self._rest) > LONGEST_EVENT or not _may_begin(self._rest):
            self.trouble = Trouble.GARBAGE
        return data[:begin]

    @staticmethod
    def _blank_line(data: bytes, begin: int) -> tuple[int, int] | None:
        """Where the event that begins there ends, and where the next one begins."""
        if b"\r" not in data:
            at = data.find(b"\n\n", begin)
            return None if at < 0 else (at, at + 2)
        found = _BLANK_LINE.search(data, begin)
        return found.span() if found else None

    def _event(self, event: bytes) -> bool:
        told = False
        for line in event.splitlines():
            if line.startswith(b"data:"):
                payload = line[5:].strip()
                told = True
                if payload == b"[DONE]":
                    self.done = True
                elif not self._sound(payload):
                    return False
            elif not line.startswith(_FIELDS):
                self.trouble = Trouble.GARBAGE
                return False
        self.events += told
        return True

    def _sound(self, payload: bytes) -> bool:
        try:
            error = _CHUNK.decode(payload).error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.trouble = Trouble.GARBAGE
            return False
        if error and bytes(error) != _NULL:
            self.trouble = Trouble.ERROR
            return False
        return True


def _may_begin(rest: bytes) -> bool:
    """Could an event begin so? Garbage need not be waited out.

    >>> _may_begin(b"da"), _may_begin(b"data: {"), _may_begin(b"<html>")
    (True, True, False)
    """
    head = rest.lstrip(b"\r\n")[:6]
    return not head or any(head.startswith(f) or f.startswith(head) for f in _FIELDS)


def payloads(stream: bytes) -> list[bytes]:
    r"""The data of every event of a whole stream.

    >>> payloads(b'data: {"a":1}\n\n: ping\n\ndata:[DONE]\r\n\r\n')
    [b'{"a":1}', b'[DONE]']
    """
    return [line[5:].strip() for line in stream.splitlines() if line.startswith(b"data:")]
