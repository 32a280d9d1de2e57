"""Is this still chance, looked at as often as one likes, and since when is something wrong?

A bet against "nothing is wrong" multiplies a wealth. While the claim is true the wealth does not grow
on average, so it ever reaches 1/α with probability α at most (Ville): however often one looks, a healthy
model is suspected in at most α of all rollouts.

Wealth that was lost in a long healthy time would hide a later fall. So not all is bet at the beginning:
0.8 is, and the rest comes in bit by bit, turn after turn, 1 in all. A fall that begins after a thousand
turns costs ten more nats than one at the beginning, not forty (a mixture over when it began; the e-process
form of Shiryaev and Roberts).

`run` follows the last such beginning, the point from which on the bets have won: what is estimated from
there says how large the fall is, undiluted by the good time before it.
"""

from __future__ import annotations

from math import exp

from msgspec import Struct

FIRST = 0.8
SPREAD = 200.0
"""Turns after which half of the rest has come in."""
MOST = 1e100
"""Wealth beyond this says nothing more, and stays a number in JSON."""


class SequentialTest(Struct):
    """The wealth of a bettor against one claim."""

    wealth: float = 0.0
    turns: int = 0
    run: float = 0.0
    """Wealth of a bettor who begins anew whenever they have lost: above 1 since it began."""

    def rejects_null(self, chance: float) -> bool:
        """Is the claim refuted, with this chance of a false alarm over all looks?"""
        return self.wealth * chance >= 1

    def bet(self, growth: float, turns: int = 1) -> bool:
        """Multiply by e^growth; True when a new run begins with this bet."""
        fresh = fresh_wealth(self.turns, turns)
        anew = self.run <= 1
        factor = exp(min(growth, 200.0))
        self.wealth = min((self.wealth + fresh) * factor, MOST)
        self.run = min(factor if anew else self.run * factor, MOST)
        self.turns += turns
        return anew


def fresh_wealth(done: int, more: int = 1) -> float:
    """What comes in before the next `more` turns; all of it together is 1.

    >>> fresh_wealth(0) + fresh_wealth(1, 10**12)
    0.99999...
    """
    rest = (1 - FIRST) * SPREAD * (1 / (done + SPREAD) - 1 / (done + more + SPREAD))
    return rest if done else FIRST + rest
