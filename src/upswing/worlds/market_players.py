"""How do traders trade who follow a rule of their own? One per temperament, and some to compare with.

A player sees the task as far as its opening shows it, and what the world says now. None of them
looks at what the hour brings, but for the seer, who is there to say what the hidden shocks cost.
Their scores are in the table of `market`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from upswing.worlds.market import Market
from upswing.worlds.market_prices import NEWS, direction
from upswing.worlds.market_shift import ORDERS, TOOLS, Floor, Shift, Temperament, score_of

Player = Callable[[Shift, str, Random], str]
"""What to reply to this task, when the world says this; chance is for those who need it."""


def at_random(_task: Shift, _seen: str, chance: Random) -> str:
    return chance.choice((*TOOLS, *ORDERS))


def always_hold(_task: Shift, _seen: str, _chance: Random) -> str:
    return "hold"


def conservative(_task: Shift, seen: str, _chance: Random) -> str:
    """Looks at the book, and leaves it as it is."""
    return "hold" if seen.startswith("you are") else "check"


def aggressive(_task: Shift, _seen: str, _chance: Random) -> str:
    """Buys, whatever it is."""
    return "buy"


def contrarian(task: Shift, _seen: str, _chance: Random) -> str:
    """What rises must fall."""
    return "sell" if task.hour.move.trend == "rising" else "buy"


def momentum(task: Shift, _seen: str, _chance: Random) -> str:
    """What rises goes on rising."""
    return "buy" if task.hour.move.trend == "rising" else "sell"


def balanced(task: Shift, seen: str, _chance: Random) -> str:
    """Reads what there is, and takes every asset for one like oil and every market for calm."""
    if "rumour" in seen:
        return "read"
    return _order(direction("oil", _news(seen), task.hour.move.trend, "calm"))


def optimal(task: Shift, seen: str, _chance: Random) -> str:
    """Reads what there is, and knows the whole table."""
    if "rumour" in seen:
        return "read"
    now = task.hour
    return _order(direction(now.asset, _news(seen), now.move.trend, now.regime))


def seer(task: Shift, _seen: str, _chance: Random) -> str:
    """Knows what the price will be."""
    states = (Floor(task, order=order) for order in ORDERS)
    return max(states, key=score_of).order or "hold"


SCRIPTED: Mapping[Temperament, Player] = {
    "conservative": conservative,
    "aggressive": aggressive,
    "balanced": balanced,
    "contrarian": contrarian,
    "momentum": momentum,
}


def scripted(task: Shift, seen: str, chance: Random) -> str:
    """As the task's temperament trades."""
    return SCRIPTED[task.temperament](task, seen, chance)


def score(market: Market, player: Player, seed: int = 0) -> float:
    """The mean over the held-out hours."""
    chance = Random(f"market-players/{seed}")  # noqa: S311 - a script, not a secret
    scores = [_played(market, task, player, chance) for task in market.held_out]
    return sum(scores) / len(scores)


def _played(market: Market, task: Shift, player: Player, chance: Random) -> float:
    state = market.reset(task)
    for _ in range(market.max_turns):
        state = market.step(state, player(task, market.observe(state).text, chance))
        if (ended := market.outcome(state)) is not None:
            return ended.score
    return 0.0


def _news(seen: str) -> str | None:
    return next((word for word in seen.replace(",", " ").split() if word in NEWS), None)


def _order(way: int) -> str:
    return "buy" if way > 0 else "sell" if way < 0 else "hold"
