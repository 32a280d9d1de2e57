"""Is there room for this body? Bytes are reserved before they are read.

| the bodies of                       | may fill                                                    |
|-------------------------------------|-------------------------------------------------------------|
| one key                             | its share: half of what the others leave                    |
| whoever needs no key, all together  | a sixteenth, and no more than a share                       |
| more than 256 KB                    | three quarters of the share, and of all: small ones find room |

So no number of bodies of one key leaves another without room, and each further key that takes all it may halves the rest.
"""

from __future__ import annotations

from collections.abc import Hashable

_SMALL = 256 * 1024


class BodyBudget:
    """What is reserved of the bytes that a port holds at once."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.reserved = 0
        self._held: dict[Hashable, int] = {}

    def held(self, owner: Hashable) -> int:
        """What is reserved for this owner; None: for all who need no key."""
        return self._held.get(owner, 0)

    def reserve(self, size: int, owner: Hashable, *, whole: int | None = None) -> bool:
        """Take `size` bytes, of a body that is `whole` so far.

        >>> budget = BodyBudget(8_000_000)
        >>> [budget.reserve(size, "ann") for size in (3_000_000, 300_000, 250_000, 800_000)]
        [True, False, True, False]
        >>> budget.reserve(1_500_000, "bob"), budget.reserve(500_000, None), budget.reserve(1000, None)
        (True, True, False)
        """
        mine = self.held(owner)
        share = (self.total - self.reserved + mine) // 2
        if owner is None:
            share = min(share, self.total // 16)
        most = self.total
        if (whole or size) > _SMALL:
            most = most * 3 // 4
            share = share if owner is None else share * 3 // 4
        if mine + size > share or self.reserved + size > most:
            return False
        self._held[owner] = mine + size
        self.reserved += size
        return True

    def release(self, size: int, owner: Hashable) -> None:
        self.reserved -= size
        if left := self.held(owner) - size:
            self._held[owner] = left
        else:
            self._held.pop(owner, None)
