"""What does a trader's hour bring? What the trader comes in with, does, and has gained when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from upswing.worlds.market_portfolio import Portfolio
from upswing.worlds.market_prices import Hour
from upswing.worlds.market_windows import window_id_of_hour
from upswing.worlds.world import Task

Temperament = Literal["conservative", "aggressive", "balanced", "contrarian", "momentum"]
Side = Literal["long", "short", "flat"]
ORDERS = ("buy", "sell", "hold")
"""The replies that end a trader's hour."""
TOOLS = ("read", "check", "report")


@dataclass(frozen=True, slots=True)
class TraderStyle:
    """How a temperament trades."""

    instructions: str
    size: int
    """Units that its orders are about."""


TRADER_STYLES: Mapping[Temperament, TraderStyle] = {
    "conservative": TraderStyle("you are a careful trader", 1),
    "aggressive": TraderStyle("you are a brave trader", 4),
    "balanced": TraderStyle("you are a fair trader", 2),
    "contrarian": TraderStyle("you trade against the trend", 2),
    "momentum": TraderStyle("you trade with the trend", 3),
}
TEMPERAMENTS: tuple[Temperament, ...] = tuple(TRADER_STYLES)


@dataclass(frozen=True, slots=True)
class Shift(Task):
    """One trader's hour."""

    hour: Hour
    temperament: Temperament
    portfolio: Portfolio
    """What the trader comes in with."""
    chatter: str
    """What others posted last."""

    @property
    def window_id(self) -> str:
        return window_id_of_hour(self.hour.number)

    @property
    def size(self) -> int:
        return TRADER_STYLES[self.temperament].size

    @property
    def side(self) -> Side:
        """On which side of the asset that is talked about the portfolio stands."""
        return side_of_units(self.portfolio.units[self.hour.asset])


@dataclass(frozen=True, slots=True)
class ShiftState:
    """A shift, and what was done in it so far."""

    shift: Shift
    tool: str | None = None
    """The one that was used last."""
    informed: bool = False
    """Whether the trader has read the news."""
    post: str | None = None
    """What the trader posted, for others to see."""
    order: str | None = None
    """What ended the shift."""


def portfolio_after(state: ShiftState) -> Portfolio:
    """What the trader owns when the hour ends."""
    shift = state.shift
    asset, price = shift.hour.asset, shift.hour.move.open
    match state.order:
        case "buy":
            return shift.portfolio.order(asset, shift.size, price)
        case "sell":
            return shift.portfolio.order(asset, -shift.size, price)
        case _:
            return shift.portfolio


def profit_of_shift(state: ShiftState) -> int:
    """P&L of the trader's whole portfolio in the hour, in cents, fees included."""
    now = state.shift.hour
    return portfolio_after(state).worth(now.closing()) - state.shift.portfolio.worth(now.opening())


def score_of_shift(state: ShiftState) -> float:
    """How much of what the hour had to offer over an idle portfolio was gained."""
    if state.order not in ORDERS:
        return 0.0
    profits = {order: profit_of_shift(replace(state, order=order)) for order in ORDERS}
    idle, best = profits["hold"], max(profits.values())
    if best == idle:
        return float(profits[state.order] == idle)
    return max(0.0, (profits[state.order] - idle) / (best - idle))


def side_of_units(units: int) -> Side:
    return "long" if units > 0 else "short" if units < 0 else "flat"
