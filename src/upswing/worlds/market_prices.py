"""What does the market do, hour by hour? All of it follows from a seed, and it never ends.

Each hour one asset is talked about. What it does follows from this table, which no prompt shows:

| news    | oil, copper, coffee, cotton | gold |
|---------|-----------------------------|------|
| merger  | up                          | up   |
| recall  | up                          | up   |
| outage  | up                          | down |
| launch  | down                        | down |
| lawsuit | down                        | down |
| ban     | down                        | up   |

Without news a volatile market turns against the trend. In a calm one, and for the assets that nobody
talks about, the trend goes on in steps so small that no order is worth its fee. In a few hours a
hidden shock turns the move of the asset that is talked about, and nobody could have known.

Prices are whole cents. The further a price is from where it began, the smaller are its steps away
and the larger those back, so that it stays in sight of it for ever.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

Asset = Literal["oil", "copper", "coffee", "cotton", "gold"]
Kind = Literal["headline", "rumour", "quiet"]
Regime = Literal["calm", "volatile"]
Trend = Literal["rising", "falling"]

BEGAN: Mapping[Asset, int] = {
    "oil": 80_00,
    "copper": 90_00,
    "coffee": 60_00,
    "cotton": 70_00,
    "gold": 200_00,
}
"""What each asset costs in the first hour, in cents."""
ASSETS: tuple[Asset, ...] = tuple(BEGAN)
NEWS: Mapping[str, int] = {
    "merger": 1,
    "recall": 1,
    "outage": 1,
    "launch": -1,
    "lawsuit": -1,
    "ban": -1,
}
"""Which way a piece of news moves most assets."""
HAVEN: Asset = "gold"
"""Where everybody flees to from what is in `FLIGHT`, so that this moves it the other way."""
FLIGHT = frozenset({"outage", "ban"})
PAGE = len(ASSETS) * len(NEWS)
"""Hours that are drawn together: each asset meets each piece of news once."""
SHARES: Mapping[Kind, float] = {"headline": 0.6, "rumour": 0.2, "quiet": 0.2}
"""How many hours have news that everybody sees, news that one has to read, and none."""
VOLATILE = 0.3
"""The share of volatile times."""
SPELL = 4
"""Hours for which a market stays calm or volatile."""
SHOCK = 0.04
"""The share of hours with a hidden shock."""
LARGE, SMALL = (0.010, 0.030), (0.001, 0.002)
"""The least and the most that a price moves in an hour, as a share of it."""


@dataclass(frozen=True, slots=True)
class Move:
    """One asset in one hour."""

    trend: Trend
    """How it moved in the hour before."""
    open: int
    close: int

    @property
    def change(self) -> int:
        return self.close - self.open


@dataclass(frozen=True, slots=True)
class Hour:
    """What happens in one hour; what an agent may know of it is the world's affair."""

    number: int
    asset: Asset
    """The one that is talked about."""
    kind: Kind
    news: str | None
    """None in a quiet hour."""
    regime: Regime
    shock: bool
    moves: Mapping[Asset, Move]

    @property
    def move(self) -> Move:
        """Of the asset that is talked about."""
        return self.moves[self.asset]

    def opening(self) -> dict[Asset, int]:
        return {asset: move.open for asset, move in self.moves.items()}

    def closing(self) -> dict[Asset, int]:
        return {asset: move.close for asset, move in self.moves.items()}


def expected_direction(asset: Asset, news: str | None, trend: Trend, regime: Regime) -> int:
    """Where the table sends an asset: 1 is up, -1 is down, 0 is nowhere that is worth an order.

    >>> expected_direction("gold", "ban", "rising", "calm"), expected_direction("oil", None, "rising", "volatile")
    (1, -1)
    """
    if news is not None:
        return -NEWS[news] if asset == HAVEN and news in FLIGHT else NEWS[news]
    if regime == "calm":
        return 0
    return -1 if trend == "rising" else 1


def market_hour(seed: int, number: int) -> Hour:
    """Any hour from 0 on; the same seed has the same one."""
    if number < 0:
        raise ValueError(f"the market begins with hour 0, not {number}")
    last = number // PAGE
    for earlier in range(last):  # so that a page finds the one before, however far it is
        _page_of_hours(seed, earlier)
    return _page_of_hours(seed, last)[number % PAGE]


@lru_cache(maxsize=1024)
def _page_of_hours(seed: int, number: int) -> tuple[Hour, ...]:
    chance = random.Random(f"market/{seed}/{number}")  # noqa: S311 - a script, not a secret
    deck = list(product(ASSETS, NEWS))
    chance.shuffle(deck)
    before = _page_of_hours(seed, number - 1)[-1].moves if number else _first_moves(chance)
    page: list[Hour] = []
    regime: Regime = "calm"
    for index, (asset, news) in enumerate(deck):
        if index % SPELL == 0:
            regime = "volatile" if chance.random() < VOLATILE else "calm"
        page.append(_draw_hour(chance, number * PAGE + index, asset, news, regime, before))
        before = page[-1].moves
    return tuple(page)


def _first_moves(chance: random.Random) -> dict[Asset, Move]:
    """The hour before the first one: every price is where it begins, and came from somewhere."""
    return {
        asset: Move("rising", price - chance.choice((1, -1)), price)
        for asset, price in BEGAN.items()
    }


def _draw_hour(
    chance: random.Random,
    number: int,
    asset_in_news: Asset,
    news: str,
    regime: Regime,
    before: Mapping[Asset, Move],
) -> Hour:
    kind = chance.choices(tuple(SHARES), tuple(SHARES.values()))[0]
    published = None if kind == "quiet" else news
    shock = chance.random() < SHOCK and (published is not None or regime == "volatile")
    moves: dict[Asset, Move] = {}
    for asset, last in before.items():
        trend: Trend = "rising" if last.change > 0 else "falling"
        move = expected_direction(asset, published, trend, regime) if asset == asset_in_news else 0
        share = chance.uniform(*(LARGE if move else SMALL))
        signed_move = (move or (1 if trend == "rising" else -1)) * (-1 if shock and move else 1)
        moves[asset] = Move(trend, last.close, _next_price(asset, last.close, signed_move, share))
    return Hour(number, asset_in_news, kind, published, regime, shock, moves)


def _next_price(asset: Asset, price: int, move: int, share: float) -> int:
    away = price / BEGAN[asset]
    step = price * share * (away if move < 0 else 1 / away)
    return price + move * max(1, round(step))
