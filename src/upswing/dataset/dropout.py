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

MAX_DROPOUT = 0.3
"""The largest share that is left out."""


@dataclass(frozen=True, slots=True)
class DropoutResult(Generic[K, T]):
    """The groups that go on, their members in the order they came in."""

    groups: dict[K, tuple[T, ...]]
    rate: float
    dropped: int
    sentence: str


def dropout_rate(available: int, wanted: int, cap: float = MAX_DROPOUT) -> Fraction:
    """The share to leave out.

    >>> [float(dropout_rate(have, 1000)) for have in (800, 1000, 1250, 5000)]
    [0.0, 0.0, 0.2, 0.3]
    """
    if available <= wanted:
        return Fraction(0)
    return min(Fraction(str(cap)), Fraction(available - wanted, available))


def apply_dropout(
    groups: Mapping[K, Sequence[T]],
    wanted: int,
    seed: str | int,
    cap: float = MAX_DROPOUT,
    *,
    minimum: int = 5,
    key: Callable[[T], str] = str,
) -> DropoutResult[K, T]:
    """The groups without what dropout takes; `key` gives a member's id.

    >>> kept = apply_dropout({"10:00": range(10), "11:00": range(6)}, wanted=4, seed=1)
    >>> {name: len(members) for name, members in kept.groups.items()}
    {'10:00': 7, '11:00': 5}
    >>> kept.sentence
    '4 of 16 trajectories left out by dropout (a rate of 30 %), because 4 are wanted.'
    """
    if not 0 <= cap <= 1:
        raise ValueError("the cap is a share between 0 and 1")
    have = sum(map(len, groups.values()))
    rate = dropout_rate(have, wanted, cap)
    kept = {
        name: _drop_members(
            members, min(int(rate * len(members)), len(members) - minimum), seed, key
        )
        for name, members in groups.items()
    }
    dropped = have - sum(map(len, kept.values()))
    return DropoutResult(kept, float(rate), dropped, _dropout_sentence(have, wanted, dropped, rate))


def _drop_members(
    members: Sequence[T], count: int, seed: str | int, key: Callable[[T], str]
) -> tuple[T, ...]:
    if count <= 0:
        return tuple(members)
    places = sorted(range(len(members)), key=lambda i: (_hash_rank(seed, key(members[i])), i))
    gone = frozenset(places[:count])
    return tuple(each for place, each in enumerate(members) if place not in gone)


def _hash_rank(seed: str | int, name: str) -> bytes:
    return sha256(f"dropout\0{seed}\0{name}".encode()).digest()


def _dropout_sentence(available: int, wanted: int, dropped: int, rate: Fraction) -> str:
    if not rate:
        return f"All {available} trajectories are used; {wanted} are wanted."
    if not dropped:
        return f"None of {available} left out: no group can lose one and still be compared fairly."
    return (
        f"{dropped} of {available} trajectories left out by dropout (a rate of {float(rate):.0%}), "
        f"because {wanted} are wanted."
    ).replace("%", " %")
