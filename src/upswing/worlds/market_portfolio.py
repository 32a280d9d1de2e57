"""What does a trader own, and what is it worth? Cash and units, in whole cents and whole units.

    >>> portfolio = Portfolio(100_00, {"oil": 1})
    >>> longer = portfolio.order("oil", 2, 80_00)
    >>> longer
    Portfolio(cash=-6064, units={'oil': 3})
    >>> longer.worth({"oil": 80_00}) - portfolio.worth({"oil": 80_00})
    -64

An order costs a fee and changes nothing else about what a portfolio is worth; only prices do that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from upswing.worlds.market_prices import ASSETS, Asset

CASH = 1000_00
"""What every trader begins with, beside the first units."""
FEE = 250
"""An order costs one part in so many of what it is about."""


@dataclass(frozen=True, slots=True)
class Portfolio:
    """What one trader owns, and owes."""

    cash: int
    """Cents; below zero is borrowed."""
    units: Mapping[Asset, int]
    """Of each asset; below zero is sold short."""

    def order(self, asset: Asset, units: int, price: int) -> Portfolio:
        """The portfolio after so many units were bought, or sold where they are below zero."""
        owned = self.units.get(asset, 0) + units
        return Portfolio(
            self.cash - units * price - order_fee(units, price), {**self.units, asset: owned}
        )

    def worth(self, prices: Mapping[Asset, int]) -> int:
        """Cash, and what the units would bring."""
        return self.cash + sum(units * prices[asset] for asset, units in self.units.items())


def order_fee(units: int, price: int) -> int:
    """What an order costs: less than a large move brings, more than a small one does."""
    return abs(units) * price // FEE


def first_portfolio(size: int, side: int = 1) -> Portfolio:
    """What a trader begins with: that many units of every asset, long (1) or short (-1)."""
    return Portfolio(CASH, dict.fromkeys(ASSETS, side * size))
