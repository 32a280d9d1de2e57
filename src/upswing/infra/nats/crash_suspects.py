"""Which message crashed its consumer? A batch shares a mark, suspects are processed alone, and crashes alone count.

| what is known of a message                       | how it is processed                              |
|--------------------------------------------------|--------------------------------------------------|
| it came after us, and whoever had it lives       | with others, without a mark                      |
| it may have been in hand when a consumer crashed | with others, behind marks in one commit; the     |
|                                                  | first few of a life alone, which saves a crash   |
| a mark was left of it                            | alone, behind a mark that counts                 |
| three marks of its own were left                 | not at all: it is poison                         |

So a crash condemns no message that merely was there: it takes three consumers that crashed with this message
and no other in hand. A killer crashes one or two batches, and then itself alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto

from upswing.records import StreamMessage

CRASHES_TO_POISON = 4
"""One among others, and three alone."""
FIRST_ALONE = 32
"""Messages of an unknown past that are processed alone at the start of a life."""


class Isolation(Enum):
    """How a message is kept apart from others while it is processed."""

    UNMARKED = auto()
    SHARED_MARK = auto()
    ALONE = auto()


class CrashSuspects:
    """What one life of a consumer knows of the messages that it has in hand."""

    def __init__(self, first_alone: int = FIRST_ALONE) -> None:
        self.backlog: int | None = None
        """The last message that was there before us; until we know it, every message may be."""
        self._first_alone = first_alone
        self._returned: dict[int, int] = {}
        """New ones that we gave back ourselves, and which delivery that was."""
        self._stale_marks: Counter[int] = Counter()
        """Marks that stand although nothing crashed: they could not be removed."""

    def is_new(self, message: StreamMessage) -> bool:
        """Nothing can have crashed on it: it came after us, and every delivery was ours.

        The count alone is not enough. When the bus died together with us it may have forgotten
        that it delivered.
        """
        ours = message.deliveries == 1 or message.deliveries == self._returned.get(message.seq)
        return ours and message.seq > (self.backlog or 0)

    def isolation(self, message: StreamMessage, marks: Mapping[int, int]) -> Isolation:
        """How it is processed, given the marks that were left."""
        if message.seq in marks:
            return Isolation.ALONE
        if self.is_new(message):
            self._returned.pop(message.seq, None)
            return Isolation.UNMARKED
        if self._first_alone > 0:
            self._first_alone -= 1
            return Isolation.ALONE
        return Isolation.SHARED_MARK

    def note_returned(self, message: StreamMessage) -> None:
        """We gave back a new one, and live."""
        self._returned[message.seq] = message.deliveries + 1

    def count_crashes(self, message: StreamMessage, marks_left: int) -> int:
        """The one among others, and those that left a mark of this message alone."""
        return 1 + marks_left - self._stale_marks[message.seq]

    def note_stale_crash_mark(self, message: StreamMessage) -> None:
        """It was processed alone and given back, but its mark could not be removed."""
        self._stale_marks[message.seq] += 1

    def clear(self, message: StreamMessage) -> None:
        """It has no mark any more."""
        self._stale_marks.pop(message.seq, None)
