"""There is no more room: which key gives way?

A key that is alone may use everything. Where others want room, too, the one that holds most gives way, down to what the
one that asks would hold: so no key takes away another's share, however much it asks for.
"""

from __future__ import annotations


class KeyShares:
    """How much each key holds of something that is bounded for all."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def add(self, key: str, amount: int) -> None:
        """It holds so much more, or less."""
        held = self._held.get(key, 0) + amount
        if held > 0:
            self._held[key] = held
        else:
            self._held.pop(key, None)

    def held(self, key: str) -> int:
        return self._held.get(key, 0)

    def heaviest(self) -> str | None:
        """The key that holds most."""
        return max(self._held, key=self._held.__getitem__, default=None)

    def key_to_evict(self, key: str, amount: int) -> str | None:
        """The key that gives way so that this one may hold so much more; None: nobody does.

        >>> shares = KeyShares()
        >>> shares.add("loud", 90), shares.add("calm", 10)
        (None, None)
        >>> shares.key_to_evict("calm", 20), shares.key_to_evict("calm", 80), shares.key_to_evict("loud", 1)
        ('loud', None, None)
        """
        heaviest = self.heaviest()
        if heaviest is None or heaviest == key:
            return None
        return heaviest if self._held[heaviest] > self.held(key) + amount else None
