"""How often may one key be counted as evidence? No more than 1.5 times as often as the average of all who speak.

Nor more often than all others together. Whoever is not ahead of the average is counted always, so that those who speak
equally often never wait for each other. One key can invent as many users as it likes, and see which model answered it. So where several keys speak, a key
that may not speak for many users is one voice, however many users it names; each user of a trusted key is one too.
What comes beyond its share is left out. Whether it is follows from who came when, never from which model it was nor
from what was earned, so that what is left is as fair a bet as before.
"""

from __future__ import annotations

from msgspec import Struct, field

from upswing.principals import cap_of

_MOST = 500
"""Users of trusted keys, and other keys, that are told apart: more make nobody's share smaller."""
_OTHERS = "others"
_LEAD = 3.0
"""How far one of two may be ahead: half is all that an equal one has, and chance alone takes it that far."""


class VoiceCounts(Struct):
    """It changes in place, like the evidence that it belongs to."""

    keys: dict[str, int] = field(default_factory=dict)
    """Key that speaks for itself alone → how often it was counted."""
    users: list[str] = field(default_factory=list)
    """Hashes of the users of trusted keys."""
    counted: int = 0
    left_out: int = 0

    def count_if_fair(self, key: str, user: str, *, several: bool = False) -> bool:
        """Count one more, or leave it out.

        `key` is empty for a trusted one; `several`: lately other keys have spoken too, if not here. Where they are
        silent it waits for nobody.
        """
        if not key:
            if user not in self.users and len(self.users) < _MOST:
                self.users.append(user)
            self.counted += 1
            return True
        key = key if key in self.keys or len(self.keys) < _MOST else _OTHERS
        mine = self.keys.setdefault(key, 0)
        if several and mine > self._fair(mine) and mine + 1 > self.share:
            self.left_out += 1
            return False
        self.keys[key] = mine + 1
        self.counted += 1
        return True

    def _fair(self, mine: int) -> float:
        """How often it may have been counted so far without being ahead."""
        lead = min(_LEAD, (self.counted - mine) / 4) if self.voices == 2 else 0.0
        return self.counted / max(2, self.voices) + lead

    @property
    def voices(self) -> int:
        return len(self.keys) + len(self.users)

    @property
    def share(self) -> float:
        """How often one key may be among what is counted, with the next."""
        return cap_of(self.voices, key=True) * (self.counted + 1)

    @property
    def sentence(self) -> str:
        """What was left out, and what can be done about it; empty when it does not matter."""
        if self.left_out <= self.counted:
            return ""
        return (
            f" {self.left_out} more came with keys that count as one user each: a key that is made with "
            "`upswing keys add NAME --trusted` speaks for many."
        )
