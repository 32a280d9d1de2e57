"""Is this score good beside the last thousand, to the last digit and on every replica?

A window adds what comes and takes away what leaves. With floats the errors of ten million such
steps add up, and two replicas that started at different rows would disagree. So the sums are
integers: a number counts in steps of 2⁻⁵⁰ (about 10⁻¹⁵), and integer sums forget nothing. The
state follows from the last `size` numbers alone.

| history                  | normalised                        | `method`  |
|--------------------------|-----------------------------------|-----------|
| fewer than 30 numbers    | the raw score                     | `none`    |
| z-score                  | clamp((z + 2) / 4, 0, 1)          | `z-score` |
| min-max                  | clamp((x - min) / (max - min))    | `min-max` |
| min-max, all the same    | the raw score                     | `none`    |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import copysign, inf, isqrt, sqrt
from typing import Any, Literal

SIZE = 1000
MIN_HISTORY = 30
"""Samples below which a history says nothing: its own mean would be off by a fifth of a spread."""
STD_FLOOR = 0.05
"""The smallest spread of scores that counts as one. A history of nearly equal scores would make a
hair's breadth into the best or the worst; with this floor that takes a tenth of the scale."""

Method = Literal["z-score", "min-max"]
Used = Literal["z-score", "min-max", "none"]

_ONE = 1 << 50
_SCALE = float(_ONE)


class TrailingWindow:
    """The last `size` numbers: mean, population deviation, extremes.

    >>> window = TrailingWindow(size=3)
    >>> for x in (5, 1, 2, 3): window.push(x)
    >>> window.count, window.mean, window.min, window.max, round(window.std, 4)
    (3, 2.0, 1.0, 3.0, 0.8165)
    """

    __slots__ = ("_at", "_high", "_laps", "_low", "_ring", "_squares", "_sum", "size")

    def __init__(self, size: int = SIZE, numbers: Iterable[float] = ()) -> None:
        if size < 1:
            raise ValueError("a window holds at least one number")
        self.size = size
        self._ring = [0] * size
        self._at = 0
        self._laps = 0
        self._sum = 0
        self._squares = 0
        self._low = self._high = (0, 0)
        """(how many numbers were seen, where the extreme of those stands); see `_extreme`."""
        for number in numbers:
            self.push(number)

    def push(self, x: float) -> None:
        """Add `x`; the oldest number leaves a full window."""
        try:
            new = int(x * _SCALE)
        except (ValueError, OverflowError):
            raise ValueError(f"a window holds finite numbers, not {x}") from None
        at = self._at
        old = self._ring[at]
        self._ring[at] = new
        at += 1
        if at == self.size:
            at = 0
            self._laps += 1
        self._at = at
        change = new - old
        self._sum += change
        self._squares += change * (new + old)

    def z(self, x: float, floor: float = 0.0) -> float:
        """How many deviations above the mean `x` lies; a deviation counts at least `floor`."""
        count = self.size if self._laps else self._at
        total = self._sum
        try:
            spread: float = sqrt(count * self._squares - total * total)
        except OverflowError:  # numbers beyond 10^130: still right, no longer quick
            spread = isqrt(count * self._squares - total * total)
        if floor:
            spread = max(spread, floor * count * _SCALE)
        if spread:
            return (count * x * _SCALE - total) / spread
        above = count * int(x * _SCALE) - total
        return copysign(inf, above) if count and above else 0.0

    @property
    def count(self) -> int:
        return self.size if self._laps else self._at

    @property
    def mean(self) -> float:
        """0 of an empty window."""
        return self._sum / ((self.count or 1) * _ONE)

    @property
    def std(self) -> float:
        count = self.count or 1
        square = count * self._squares - self._sum * self._sum
        try:
            return sqrt(square) / (count * _ONE)
        except OverflowError:
            return isqrt(square) / (count * _ONE)

    @property
    def min(self) -> float:
        self._low = self._extreme(self._low, -1)
        return self._ring[self._low[1] % self.size] / _ONE

    @property
    def max(self) -> float:
        self._high = self._extreme(self._high, 1)
        return self._ring[self._high[1] % self.size] / _ONE

    def copy(self) -> TrailingWindow:
        """A window in the same state that goes its own way."""
        return TrailingWindow(self.size, self.numbers())

    def numbers(self) -> list[float]:
        """What the window holds, oldest first, in its own steps."""
        held = self._ring[self._at :] + self._ring[: self._at] if self._laps else self._ring
        return [number / _ONE for number in held[: self.count]]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TrailingWindow)
            and self.size == other.size
            and self.numbers() == other.numbers()
        )

    __hash__ = None  # type: ignore[assignment] # it changes

    def _extreme(self, known: tuple[int, int], sign: int) -> tuple[int, int]:
        """Where the newest extreme stands, looking only at what came since it was last asked.

        Positions count every number ever pushed. The known extreme holds while it is inside;
        only when it has left is the whole window looked at.
        """
        seen, index = known
        now = self._laps * self.size + self._at
        ring, size = self._ring, self.size
        if seen == 0 or index < now - size:
            seen, index = max(0, now - size), max(0, now - size)
        best = sign * ring[index % size]
        for i in range(seen, now):
            one = sign * ring[i % size]
            if one >= best:
                best, index = one, i
        return now, index


@dataclass(frozen=True, slots=True)
class NormalisedScore:
    """A score beside its history, and what that history was."""

    value: float
    method: Used
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None


def normalise(
    score: float, window: TrailingWindow | None, method: Method = "z-score"
) -> NormalisedScore:
    """Where `score` stands in its history, in [0, 1].

    >>> history = TrailingWindow(numbers=[0.4, 0.6] * 50)
    >>> normalise(0.6, history).value, normalise(0.6, history, "min-max").value
    (0.75, 1.0)
    >>> normalise(0.6, TrailingWindow(numbers=[0.4, 0.6])).method
    'none'
    """
    if window is None or window.count == 0:
        return NormalisedScore(score, "none")
    low, high = window.min, window.max
    statistics = [round(number, 12) for number in (window.mean, window.std, low, high)]
    if window.count < MIN_HISTORY:
        return NormalisedScore(score, "none", *statistics)
    if method == "z-score":
        return NormalisedScore(_clamp((window.z(score, STD_FLOOR) + 2) / 4), "z-score", *statistics)
    if high <= low:
        return NormalisedScore(score, "none", *statistics)
    return NormalisedScore(_clamp((score - low) / (high - low)), "min-max", *statistics)


def renormalise(score: float, statistics: Mapping[str, Any]) -> float:
    """Where `score` stands in a history of which only its numbers are left.

    >>> history = TrailingWindow(numbers=[0.4, 0.6] * 50)
    >>> was = normalise(0.5, history)
    >>> renormalise(0.6, {"method": was.method, "mean": was.mean, "std": was.std})
    0.75
    """
    match statistics:
        case {"method": "z-score", "mean": float(mean), "std": float(std)}:
            return _clamp(((score - mean) / max(std, STD_FLOOR) + 2) / 4)
        case {"method": "min-max", "min": float(low), "max": float(high)} if high > low:
            return _clamp((score - low) / (high - low))
        case _:
            return score


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, round(value, 12)))
