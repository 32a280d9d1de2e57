"""There is more data than is wanted: how much is left out, and which?

    have ≤ wanted   nothing
    have > wanted   min(30 %, 1 − wanted / have) of every group

Judging and training on everything costs more and teaches little more. Each group loses its share,
rounded down, and never falls below the size at which its comparison is still fair. Who goes is
decided by a hash of the seed and the id, so the same seed always keeps the same trajectories.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

CAP = 0.3
"""The largest share that is left out."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[K, T]):
    """The groups that go on, their members in the order they came in."""

    groups: dict[K, tuple[T, ...]]
    rate: float
    dropped: int
    sentence: str


def rate_of(have: int, wanted: int, cap: float = CAP) -> Fraction:
    """The share to leave out.

    >>> [float(rate_of(have, 1000)) for have in (800, 1000, 1250, 5000)]
    [0.0, 0.0, 0.2, 0.3]
    """
    if have <= wanted:
        return Fraction(0)
    return min(Fraction(str(cap)), Fraction(have - wanted, have))


def drop(
    groups: Mapping[K, Sequence[T]],
    wanted: int,
    seed: str | int,
    cap: float = CAP,
    *,
    minimum: int = 5,
    key: Callable[[T], str] = str,
) -> Kept[K, T]:
    """The groups without what dropout takes; `key` gives a member's id.

    >>> kept = drop({"10:00": range(10), "11:00": range(6)}, wanted=4, seed=1)
    >>> {name: len(members) for name, members in kept.groups.items()}
    {'10:00': 7, '11:00': 5}
    >>> kept.sentence
    '4 of 16 trajectories left out by dropout (a rate of 30 %), because 4 are wanted.'
    """
    if not 0 <= cap <= 1:
        raise ValueError("the cap is a share between 0 and 1")
    have = sum(map(len, groups.values()))
    rate = rate_of(have, wanted, cap)
    kept = {
        name: _without(members, min(int(rate * len(members)), len(members) - minimum), seed, key)
        for name, members in groups.items()
    }
    dropped = have - sum(map(len, kept.values()))
    return Kept(kept, float(rate), dropped, _sentence(have, wanted, dropped, rate))


def _without(
    members: Sequence[T], loss: int, seed: str | int, key: Callable[[T], str]
) -> tuple[T, ...]:
    if loss <= 0:
        return tuple(members)
    places = sorted(range(len(members)), key=lambda i: (_lot(seed, key(members[i])), i))
    gone = frozenset(places[:loss])
    return tuple(each for place, each in enumerate(members) if place not in gone)


def _lot(seed: str | int, name: str) -> bytes:
    return sha256(f"dropout\0{seed}\0{name}".encode()).digest()


def _sentence(have: int, wanted: int, dropped: int, rate: Fraction) -> str:
    if not rate:
        return f"All {have} trajectories are used; {wanted} are wanted."
    if not dropped:
        return f"None of {have} left out: no group can lose one and still be compared fairly."
    return (
        f"{dropped} of {have} trajectories left out by dropout (a rate of {float(rate):.0%}), "
        f"because {wanted} are wanted."
    ).replace("%", " %")
