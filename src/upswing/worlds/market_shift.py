"""What does a trader's hour bring? What the trader comes in with, does, and has gained when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from upswing.worlds.market_books import Book
from upswing.worlds.market_prices import Hour
from upswing.worlds.market_windows import window_id_of
from upswing.worlds.world import Task

Temperament = Literal["conservative", "aggressive", "balanced", "contrarian", "momentum"]
Side = Literal["long", "short", "flat"]
ORDERS = ("buy", "sell", "hold")
"""The replies that end a trader's hour."""
TOOLS = ("read", "check", "report")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a temperament trades."""

    told: str
    size: int
    """Units that its orders are about."""


MANNERS: Mapping[Temperament, Manner] = {
    "conservative": Manner("you are a careful trader", 1),
    "aggressive": Manner("you are a brave trader", 4),
    "balanced": Manner("you are a fair trader", 2),
    "contrarian": Manner("you trade against the trend", 2),
    "momentum": Manner("you trade with the trend", 3),
}
TEMPERAMENTS: tuple[Temperament, ...] = tuple(MANNERS)


@dataclass(frozen=True, slots=True)
class Shift(Task):
    """One trader's hour."""

    hour: Hour
    temperament: Temperament
    book: Book
    """What the trader comes in with."""
    heard: str
    """What others posted last."""

    @property
    def window_id(self) -> str:
        return window_id_of(self.hour.number)

    @property
    def size(self) -> int:
        return MANNERS[self.temperament].size

    @property
    def side(self) -> Side:
        """On which side of the asset that is talked about the book stands."""
        return side_of(self.book.units[self.hour.asset])


@dataclass(frozen=True, slots=True)
class Floor:
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


def book_after(state: Floor) -> Book:
    """What the trader owns when the hour ends."""
    shift = state.shift
    asset, price = shift.hour.asset, shift.hour.move.open
    match state.order:
        case "buy":
            return shift.book.order(asset, shift.size, price)
        case "sell":
            return shift.book.order(asset, -shift.size, price)
        case _:
            return shift.book


def profit_of(state: Floor) -> int:
    """P&L of the trader's whole book in the hour, in cents, fees included."""
    now = state.shift.hour
    return book_after(state).worth(now.closing()) - state.shift.book.worth(now.opening())


def score_of(state: Floor) -> float:
    """How much of what the hour had to offer over an idle book was gained."""
    if state.order not in ORDERS:
        return 0.0
    profits = {order: profit_of(replace(state, order=order)) for order in ORDERS}
    idle, best = profits["hold"], max(profits.values())
    if best == idle:
        return float(profits[state.order] == idle)
    return max(0.0, (profits[state.order] - idle) / (best - idle))


def side_of(units: int) -> Side:
    return "long" if units > 0 else "short" if units < 0 else "flat"
