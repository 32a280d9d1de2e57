"""Which message killed its taker? A crowd shares a mark, suspects stand alone, and deaths alone count.

| what is known of a message                       | how it is taken                                  |
|--------------------------------------------------|--------------------------------------------------|
| it came after us, and whoever had it lives       | with others, without a mark                      |
| it may have been in hand when somebody died      | with others, behind marks in one commit; the     |
|                                                  | first few of a life alone, which saves a death   |
| a mark was left of it                            | alone, behind a mark that counts                 |
| three marks of its own were left                 | not at all: it is poison                         |

So a death condemns nobody who merely was there: it takes three takers that died with this message
and no other in hand. A killer dies once or twice among others, and then by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum, auto

from upswing.ports import Carried

DEATHS_TO_POISON = 4
"""One among others, and three alone."""
FEW = 32
"""Messages of an unknown past that are taken alone at the start of a life."""


class Way(Enum):
    """How a message is taken."""

    NEW = auto()
    SHARED = auto()
    ALONE = auto()


class Suspects:
    """What one life of a collector knows of the messages that it has in hand."""

    def __init__(self, few: int = FEW) -> None:
        self.backlog: int | None = None
        """The last message that was there before us; until we know it, every message may be."""
        self._few = few
        self._returned: dict[int, int] = {}
        """New ones that we gave back ourselves, and which delivery that was."""
        self._survived: Counter[int] = Counter()
        """Marks that stand although nobody died: they could not be taken back."""

    def is_new(self, carried: Carried) -> bool:
        """Nobody can have died of it: it came after us, and every delivery was ours.

        The count alone is not enough. When the bus died together with us it may have forgotten
        that it delivered.
        """
        ours = carried.deliveries == 1 or carried.deliveries == self._returned.get(carried.seq)
        return ours and carried.seq > (self.backlog or 0)

    def way(self, carried: Carried, marks: Mapping[int, int]) -> Way:
        """How it is taken, given the marks that were left."""
        if carried.seq in marks:
            return Way.ALONE
        if self.is_new(carried):
            self._returned.pop(carried.seq, None)
            return Way.NEW
        if self._few > 0:
            self._few -= 1
            return Way.ALONE
        return Way.SHARED

    def returned(self, carried: Carried) -> None:
        """We gave back a new one, and live."""
        self._returned[carried.seq] = carried.deliveries + 1

    def deaths(self, carried: Carried, left: int) -> int:
        """How many died of it: the one among others, and those whose mark was `left` of it alone."""
        return 1 + left - self._survived[carried.seq]

    def survived(self, carried: Carried) -> None:
        """It was taken alone and given back, but its mark could not be."""
        self._survived[carried.seq] += 1

    def cleared(self, carried: Carried) -> None:
        """It has no mark any more."""
        self._survived.pop(carried.seq, None)
