"""Are failures more frequent here than elsewhere, or is that chance? Fisher's exact test, and many of them at once.

|        | failed | succeeded |
|--------|--------|-----------|
| here   | a      | b         |
| there  | c      | d         |

With the margins given, `a` is hypergeometric where nothing is different. The chance of `a` or more is exact for any
numbers, small ones too. Everything is kept in logarithms: a thousand failures are beyond what a float can hold.

Of k looks at a true nothing, one in twenty alarms would be false at 5 % each. Looks that could not come out significant
whatever the failures were cost nothing (Tarone): only those that could are corrected for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, lgamma, log, log1p

_NEGLIGIBLE = 1e-17
"""Terms of a sum below that share of it change nothing."""


@dataclass(frozen=True, slots=True)
class CountTable:
    """The four counts."""

    a: int
    b: int
    c: int
    d: int

    @property
    def log_p(self) -> float:
        """The logarithm of the chance of as many failures here, or more.

        >>> round(exp(CountTable(3, 1, 1, 3).log_p), 4)
        0.2429
        """
        return _log_tail(self.a, self.a + self.b, self.a + self.c, self._total)

    @property
    def log_least(self) -> float:
        """The logarithm of the smallest chance that these margins allow."""
        most = min(self.a + self.b, self.a + self.c)
        return _log_tail(most, self.a + self.b, self.a + self.c, self._total)

    @property
    def _total(self) -> int:
        return self.a + self.b + self.c + self.d

    @property
    def lift(self) -> float:
        """How many times as often it fails here; where it never fails elsewhere, as if half a failure were there.

        >>> round(CountTable(30, 70, 10, 190).lift, 6)
        6.0
        """
        here, there = self.a + self.b, self.c + self.d
        if not here or not there:
            return 1.0
        return (self.a / here) / (max(self.c, 0.5) / there)


def _log_tail(found: int, drawn: int, marked: int, total: int) -> float:
    """Ln P(X ≥ found), X the marked ones among `drawn` of `total`."""
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    if found <= low:
        return 0.0
    if found > high:
        return -inf
    first = (
        _log_choose(marked, found)
        + _log_choose(total - marked, drawn - found)
        - _log_choose(total, drawn)
    )
    term, tail = 1.0, 1.0
    for x in range(found, high):
        term *= (marked - x) * (drawn - x) / ((x + 1) * (total - marked - drawn + x + 1))
        tail += term
        if term < _NEGLIGIBLE * tail:
            break
    return min(0.0, first + log(tail))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def looks_that_count(tables: Sequence[CountTable], chance: float) -> int:
    """For how many looks must be corrected, so that all of them together alarm falsely with this chance at most.

    >>> looks_that_count([CountTable(0, 1, 9, 90), CountTable(9, 1, 0, 90)], 0.05)
    1
    """
    least = sorted(table.log_least for table in tables)
    for k in range(1, len(least) + 1):
        if sum(each <= log(chance / k) for each in least) <= k:
            return k
    return max(1, len(least))


def adjusted(log_p: float, looks: int) -> float:
    """The chance of such a finding among so many looks.

    >>> adjusted(log(0.001), 20), adjusted(log(0.2), 20)
    (0.02..., 1.0)
    """
    return min(1.0, exp(log_p + log1p(looks - 1)))
