"""Is there room for this body? Bytes are reserved before they are read.

| a body                 | may fill                                                        |
|------------------------|-----------------------------------------------------------------|
| up to 256 KB           | all of it, so that large ones never keep small ones out         |
| larger                 | three quarters                                                  |
| that needs no key      | a sixteenth, together with all others of its kind               |
"""

from __future__ import annotations

_SMALL = 256 * 1024


class Budget:
    """What is reserved of the bytes that a port holds at once."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.reserved = self.keyless = 0

    def reserve(self, size: int, *, whole: int | None = None, keyed: bool = True) -> bool:
        """Take `size` bytes, of a body that is `whole` so far.

        >>> budget = Budget(4_000_000)
        >>> budget.reserve(3_000_000), budget.reserve(300_000), budget.reserve(1000)
        (True, False, True)
        >>> budget.reserve(250_000, keyed=False), budget.reserve(1000, keyed=False)
        (True, False)
        """
        most = self.total if (whole or size) <= _SMALL else self.total * 3 // 4
        if self.reserved + size > most:
            return False
        if not keyed:
            if self.keyless + size > self.total // 16:
                return False
            self.keyless += size
        self.reserved += size
        return True

    def release(self, size: int, *, keyed: bool = True) -> None:
        self.reserved -= size
        if not keyed:
            self.keyless -= size
