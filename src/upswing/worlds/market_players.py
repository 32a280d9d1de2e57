"""How do traders trade who follow a rule of their own? One per temperament, and some to compare with.

A player sees the task as far as its opening shows it, and what the world says now. None of them
looks at what the hour brings, but for the seer, who is there to say what the hidden shocks cost.
Their scores are in the table of `market`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from upswing.worlds.market import Market
from upswing.worlds.market_prices import NEWS, expected_direction
from upswing.worlds.market_shift import (
    ORDERS,
    TOOLS,
    Shift,
    ShiftState,
    Temperament,
    score_of_shift,
)

Player = Callable[[Shift, str, Random], str]
"""What to reply to this task, when the world says this; chance is for those who need it."""


def random_player(_task: Shift, _seen: str, chance: Random) -> str:
    return chance.choice((*TOOLS, *ORDERS))


def holding_player(_task: Shift, _seen: str, _chance: Random) -> str:
    return "hold"


def conservative_player(_task: Shift, seen: str, _chance: Random) -> str:
    """Looks at the portfolio, and leaves it as it is."""
    return "hold" if seen.startswith("you are") else "check"


def aggressive_player(_task: Shift, _seen: str, _chance: Random) -> str:
    """Buys, whatever it is."""
    return "buy"


def contrarian_player(task: Shift, _seen: str, _chance: Random) -> str:
    """What rises must fall."""
    return "sell" if task.hour.move.trend == "rising" else "buy"


def momentum_player(task: Shift, _seen: str, _chance: Random) -> str:
    """What rises goes on rising."""
    return "buy" if task.hour.move.trend == "rising" else "sell"


def balanced_player(task: Shift, seen: str, _chance: Random) -> str:
    """Reads what there is, and takes every asset for one like oil and every market for calm."""
    if "rumour" in seen:
        return "read"
    return _order_for(
        expected_direction("oil", _news_in_observation(seen), task.hour.move.trend, "calm")
    )


def optimal_player(task: Shift, seen: str, _chance: Random) -> str:
    """Reads what there is, and knows the whole table."""
    if "rumour" in seen:
        return "read"
    now = task.hour
    return _order_for(
        expected_direction(now.asset, _news_in_observation(seen), now.move.trend, now.regime)
    )


def clairvoyant_player(task: Shift, _seen: str, _chance: Random) -> str:
    """Knows what the price will be."""
    states = (ShiftState(task, order=order) for order in ORDERS)
    return max(states, key=score_of_shift).order or "hold"


SCRIPTED: Mapping[Temperament, Player] = {
    "conservative": conservative_player,
    "aggressive": aggressive_player,
    "balanced": balanced_player,
    "contrarian": contrarian_player,
    "momentum": momentum_player,
}


def scripted_player(task: Shift, seen: str, chance: Random) -> str:
    """As the task's temperament trades."""
    return SCRIPTED[task.temperament](task, seen, chance)


def held_out_score(market: Market, player: Player, seed: int = 0) -> float:
    """The mean over the held-out hours."""
    chance = Random(f"market-players/{seed}")  # noqa: S311 - a script, not a secret
    scores = [_episode_score(market, task, player, chance) for task in market.held_out]
    return sum(scores) / len(scores)


def _episode_score(market: Market, task: Shift, player: Player, chance: Random) -> float:
    state = market.reset(task)
    for _ in range(market.max_turns):
        state = market.step(state, player(task, market.observe(state).text, chance))
        if (ended := market.outcome(state)) is not None:
            return ended.score
    return 0.0


def _news_in_observation(seen: str) -> str | None:
    return next((word for word in seen.replace(",", " ").split() if word in NEWS), None)


def _order_for(move: int) -> str:
    return "buy" if move > 0 else "sell" if move < 0 else "hold"
