"""Which shapes hold six digits close together, and where in a text do so many stand?

Half of what an engine takes for a text goes into shapes without a word of their own: phones, cards, national numbers. They
all hold six digits with little between them, which ordinary text seldom has. So one cheap expression looks for those digits,
and the shapes are looked for only around them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from .rule import Anchor

_DIGITS, _SIGNS = frozenset(b"0123456789"), frozenset(b" ./()-")
_BETWEEN, _LEAST = 3, 6
RUN = r"[0-9](?:[ ./()\-]{0,3}[0-9]){5,}(?:[ ./()\-]{4}|[ ./()\-]{0,3}[^0-9 ./()\-])"
"""Digits close together, told once, at their end."""
_EDGE = 2
"""Characters before a shape that its left border needs."""
_SEPARATOR = b"\n"
Span = tuple[int, int]


def holds_digit_run(anchor: Anchor) -> bool:
    r"""Does everything of this shape hold a run of digits?

    >>> holds_digit_run(Anchor("", r"[0-9]{3}-[0-9]{2}-[0-9]{4}", 11))
    True
    >>> holds_digit_run(Anchor("", r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}", 17))
    False
    """
    if anchor.literal or anchor.late or anchor.core or not anchor.width or not anchor.edged:
        return False
    places = _alphabets(parser.parse(anchor.follow))
    if places is None:
        return False
    digits = gap = most = 0
    for alphabet in places:
        if alphabet <= _DIGITS:
            digits, gap = digits + 1, 0
        elif alphabet <= _DIGITS | _SIGNS and digits and gap < _BETWEEN:
            gap += 1
        else:
            digits = gap = 0
        most = max(most, digits)
    return most >= _LEAST


def _alphabets(parsed: Any) -> list[frozenset[int]] | None:
    """What each character of a shape may be; None for a shape that is more than a row of characters."""
    found: list[frozenset[int]] = []
    for kind, value in parsed:
        part = _alphabets_of_item(kind, value)
        if part is None:
            return None
        found += part
    return found


def _alphabets_of_item(kind: Any, value: Any) -> list[frozenset[int]] | None:
    if kind is c.LITERAL:
        return [frozenset([value])]
    if kind is c.IN and value[0][0] is not c.NEGATE:
        return [frozenset().union(*map(_characters, value))]
    if kind is c.MAX_REPEAT and value[0] == value[1]:
        part = _alphabets(value[2])
        return None if part is None else part * value[0]
    if kind is c.SUBPATTERN:
        return _alphabets(value[-1])
    return _alphabets_of_branch(value[1]) if kind is c.BRANCH else None


def _alphabets_of_branch(parsed: Any) -> list[frozenset[int]] | None:
    ways = [way for each in parsed if (way := _alphabets(each)) is not None]
    if len(ways) < len(parsed) or len({len(way) for way in ways}) > 1:
        return None
    return [frozenset().union(*place) for place in zip(*ways, strict=True)]


def _characters(item: tuple[Any, Any]) -> frozenset[int]:
    kind, value = item
    if kind is c.RANGE:
        return frozenset(range(value[0], value[1] + 1))
    return frozenset([value]) if kind is c.LITERAL else frozenset(range(256))


def max_digit_runs(size: int) -> int:
    """How many runs are looked at one by one? With more, the whole text is read at less cost."""
    return 16 + size // 256


class DigitText:
    """What stands around the runs of digits of a text, joined so that one pass can read it.

    >>> near = DigitText(b"a" * 999 + b" 0171 234567 " + b"a" * 999, [(1000, 1013)], 8)
    >>> near.data, near.position(near.data.index(b"0171"))
    (b'aaaaaaaaa 0171 234567 aaaaaaaaaaa', 1000)
    """

    def __init__(self, data: bytes, runs: Sequence[Span], width: int) -> None:
        """The runs are sorted; no shape is wider than `width`."""
        self._starts: list[int] = []
        self._at: list[int] = []
        parts, at = [], 0
        for low, high in _spans_around(runs, width + _EDGE, len(data)):
            self._starts.append(low)
            self._at.append(at)
            parts.append(data[low:high])
            at += high - low + len(_SEPARATOR)
        self.data = _SEPARATOR.join(parts)

    def position(self, at: int) -> int:
        """Where in the text a place of `data` lies."""
        part = bisect_right(self._at, at) - 1
        return self._starts[part] + at - self._at[part]


def _spans_around(runs: Sequence[Span], width: int, size: int) -> Iterator[Span]:
    """Around each run; those that meet are one."""
    start, stop = 0, -1
    for first, last in runs:
        if first - width > stop:
            if stop >= 0:
                yield start, stop
            start = max(0, first - width)
        stop = min(size, max(stop, last + width))
    if stop >= 0:
        yield start, stop
