"""Whose key did it come with, and for whom may that key speak?

| key                                                   | speaks for                              |
|-------------------------------------------------------|-----------------------------------------|
| an operator's                                         | everybody                               |
| the installation's own of a gateway, a trusted one     | many users: each counts by themselves    |
| any other, and all agents on the bus together          | itself: its users are one voice, where   |
|                                                       | others speak too                        |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, TypeVar

T = TypeVar("T")

BEGUN_BY = "_key"
"""In the head of an open trajectory: the key that opened it, which alone may go on with it."""
BUS, GATEWAY = "bus", "gateway"
"""Principals of what an agent published, for the bus does not say whose agent it was, and of what came by a gateway
that does not name the key."""
OPERATOR, CLIENT = "operator", "agent"
"""Whose requests those are that come with the loop's key, or with the data directory's."""
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose key a message came with."""

    key_id: str = ""
    """Empty: nobody knows."""
    many: bool = True
    """It may speak for many users."""
    operator: bool = False
    """It may speak for everybody."""


NOBODY = Sender(many=False)
"""Nobody knows whose, so it speaks for none but itself."""


class Holder(str):
    """Whose a key is, and what else is known of it.

    Its text is the principal, to whom episodes belong. A key that the loop made is one by its id, so that none
    is another's who chose the same name.
    """

    __slots__ = ("key_id", "many", "name")

    name: str
    """What a person calls it."""
    key_id: str
    """What the loop knows it by."""
    many: bool
    """It may speak for many users."""

    @classmethod
    def of(cls, name: str, key_id: str = "", *, many: bool = False) -> Holder:
        """A key that the loop does not know is known by a hash of its name, which no redaction changes.

        >>> Holder.of("ann"), Holder.of("ann").key_id, Holder.of("ann").many
        ('ann', 'gateway-kpphlegd', False)
        >>> Holder.of(CLIENT).key_id, Holder.of(CLIENT).many
        ('gateway', True)
        >>> Holder.of("ann", "k7"), Holder.of("ann", "k7").name
        ('key:k7', 'ann')
        """
        made = cls(f"key:{key_id}" if key_id else name)
        made.name = name
        own = {OPERATOR: OPERATOR, CLIENT: GATEWAY}.get(name, "")
        hashed = sha256(name.encode()).hexdigest()[:8].translate(_LETTERS)
        made.key_id = key_id or own or f"{GATEWAY}-{hashed}"
        made.many = many or (bool(own) and not key_id)
        return made


class Voice(NamedTuple):
    """Who earned a reward, where the key that told of it may not speak for many users."""

    user: str
    key: str


Speaker = str | Voice
"""A user or agent, with the key where that counts."""
CAP = 1.5
"""How many average ones the busiest may count for. Less would ignore that honest users differ; more would let 5 %
of them move a mean by over 0.02."""


def cap_of(voices: int, *, key: bool) -> float:
    """The share of all that is counted which one voice may have, beside so many in all.

    A key that may not speak for many has never more than half: beside one other voice it would else outweigh it.

    >>> cap_of(2, key=True), cap_of(2, key=False), cap_of(100, key=True)
    (0.5, 0.75, 0.015)
    """
    share = CAP / max(2, voices)
    return min(0.5, share) if key else share


def most_of_each(counts: Iterable[int], most: int) -> int:
    """How many each may keep, so that all together keep at most so many: the busiest give way first.

    >>> most_of_each([500, 3, 1], 100), most_of_each([5, 3], 100), most_of_each([9, 9, 9], 2)
    (96, 5, 0)
    """
    left, kept = most, sorted(counts)
    for place, count in enumerate(kept):
        share = left // (len(kept) - place)
        if count > share:
            return share
        left -= count
    return kept[-1] if kept else 0


def fair_newest(items: Sequence[T], speaker: Callable[[T], Hashable], most: int) -> list[T]:
    """At most so many of these, in their order: of each speaker the last ones, the busiest cut first.

    >>> fair_newest(["b1", "a1", "a2", "a3", "a4"], lambda item: item[0], 3)
    ['b1', 'a3', 'a4']
    """
    if len(items) <= most:
        return list(items)
    by_speaker: dict[Hashable, list[int]] = {}
    for place, item in enumerate(items):
        by_speaker.setdefault(speaker(item), []).append(place)
    share = most_of_each(map(len, by_speaker.values()), most)
    kept = {
        place for places in by_speaker.values() for place in places[max(0, len(places) - share) :]
    }
    return [items[place] for place in sorted(kept)]


def key_weights(counts: Mapping[str, float]) -> dict[str, float]:
    """What counts of each untrusted key's, none more than `cap_of` of the sum; "" is all others together.

    >>> key_weights({"loud": 500, "": 20}), key_weights({"loud": 500})
    ({'loud': 20.0, '': 20.0}, {'loud': 500.0})
    """
    weights = {key: float(count) for key, count in counts.items() if count > 0}
    if len(weights) < 2:
        return weights
    share = cap_of(len(weights), key=True)
    for _ in range(200):
        whole = sum(weights.values())
        most = {key: whole if key == "" else whole * share for key in weights}
        if all(weight <= most[key] * (1 + 1e-9) for key, weight in weights.items()):
            break
        # at the cap, a key has `share` of everything: of the others' sum it has share / (1 - share)
        weights = {
            key: min(weight, (whole - weight) * share / (1 - share))
            if weight > most[key]
            else weight
            for key, weight in weights.items()
        }
    return weights


def may_speak(
    user_id: str | None,
    owner: str | None,
    *,
    trusted: bool,
    key: str = "",
    recorded_by: str = "",
    many: bool = False,
) -> bool:
    """May this word count for a trajectory of the user `owner` that came with the key `recorded_by`?

    | the word's key                        | names the owner | names nobody      | names another |
    |---------------------------------------|-----------------|-------------------|---------------|
    | speaks for everybody                  | yes             | yes               | yes           |
    | speaks for many users                 | yes             | as the owner's    | no            |
    | recorded the trajectory               | yes             | as the owner's    | no            |
    | another                               | no              | no                | no            |
    | nobody knows who recorded it          | yes             | no                | no            |

    Of a trajectory without a user everybody may speak who may speak of it at all.

    >>> may_speak("u1", "u1", trusted=False), may_speak("u1", "u2", trusted=False)
    (True, False)
    >>> may_speak(None, None, trusted=False), may_speak(None, "u2", trusted=True)
    (True, True)
    >>> [may_speak("u1", "u1", trusted=False, key=key, recorded_by="k1") for key in ("k1", "k2")]
    [True, False]
    """
    if trusted:
        return True
    own = many or (bool(recorded_by) and key == recorded_by)
    if recorded_by and not own:
        return False
    return owner is None or user_id == owner or (user_id is None and own)
