"""Which of many points are shown? Some of them, evenly, with the first and the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def evenly(values: Sequence[T], most: int) -> list[T]:
    """So many of them at most.

    >>> evenly(range(10), 4), evenly([1, 2], 4), evenly(range(10), 1)
    ([0, 3, 6, 9], [1, 2], [9])
    """
    if len(values) <= most:
        return list(values)
    last = len(values) - 1
    if most < 2:
        return [values[last]]
    return [values[place] for place in sorted({round(n * last / (most - 1)) for n in range(most)})]
