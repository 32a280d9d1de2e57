"""What does a trader see, do and earn in an hour of the market? A world without an end, in windows.

    options: read, sell, hold, buy. you are a careful trader
    monday: a rumour, oil rising, market calm                       ─▶ read
    news merger                                                     ─▶ buy

| reply    | what happens                                                                 |
|----------|------------------------------------------------------------------------------|
| `read`   | shows the news                                                               |
| `check`  | shows on which side the portfolio stands                                          |
| `report` | posts what the trader has read, and shows what others posted                 |
| `buy`    | the trader buys as many units as are usual, at the hour's first price        |
| `sell`   | the same, the other way round                                                |
| `hold`   | no order                                                                     |

That ends the trader's hour; the portfolio goes on into the next one. The score is how much of what could
be gained was gained: 0 for no more than an idle portfolio gains, 1 for as much as the best reply. Where
nothing could be gained, it is 1 for `hold`. Who decides nothing in four replies, or replies what
nobody understands, has no score.

Temperaments differ in what they are told and in how much they trade. The market does not care: what
it does follows from the table in `market_prices`. Every eighth hour is held out; test hours come
after all the others, and none of them opens with words that one of those opens with.

| player                                          | score |
|-------------------------------------------------|-------|
| at random among the six replies                 | 0.32  |
| always `hold`                                   | 0.16  |
| conservative: checks, then holds                | 0.16  |
| aggressive: always buys                         | 0.44  |
| contrarian: trades against the trend            | 0.49  |
| momentum: trades with the trend                 | 0.35  |
| balanced: reads, as if gold were like the rest  | 0.87  |
| optimal: reads, and knows the table             | 0.97  |
| a seer: knows the hidden shocks too             | 1.00  |

(The mean over the held-out hours of the seeds 0 to 4.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice

from upswing.contracts.outcome import Outcome as Truth
from upswing.worlds.market_portfolio import Portfolio, first_portfolio
from upswing.worlds.market_prices import Hour, Kind, market_hour
from upswing.worlds.market_shift import (
    ORDERS,
    TEMPERAMENTS,
    TRADER_STYLES,
    Shift,
    ShiftState,
    Temperament,
    portfolio_after,
    profit_of_shift,
    score_of_shift,
    side_of_units,
)
from upswing.worlds.market_windows import day_text_of_hour, hour_of_window_id, true_outcome_of_hour
from upswing.worlds.world import WorldObservation, WorldOutcome

HELD_OUT = 8
"""One hour in so many is held out."""


_OFFERS: Mapping[Kind, str] = {
    "headline": "options: sell, hold, buy",
    "rumour": "options: read, sell, hold, buy",
    "quiet": "options: check, report, sell, hold, buy",
}
"""Every reply is taken at any time; what is offered is what makes sense."""
_OPENING = "{day}: {news}, {asset} {trend}, market {regime}"
_NEWS = {"headline": "news {news}", "rumour": "a rumour", "quiet": "no news"}
_REFUSED = "That is no order."


@dataclass(frozen=True)
class Market:
    """Windows of one endless market. The same seed makes the same prices.

    >>> market = Market(seed=1)
    >>> shift = market.training[0]
    >>> market.observe(market.reset(shift)).text
    'monday: news lawsuit, copper rising, market calm'
    >>> ended = market.step(market.reset(shift), "sell")
    >>> market.outcome(ended).sentence
    'Sold: P&L -0.87.'
    >>> ended.shift.portfolio.units["copper"], market.next_shift(ended).portfolio.units["copper"]
    (1, 0)
    >>> ended.shift.window_id, market.next_shift(ended).window_id
    ('2026-01-05T00:00', '2026-01-05T01:00')
    """

    seed: int = 0
    sizes: tuple[int, int] = (1152, 176)
    """How many tasks there are to learn from, and to measure with; the market itself has no end."""
    tests: int = 320
    """How many tasks there are that neither training nor validation sees."""

    @property
    def name(self) -> str:
        return "market"

    @property
    def max_turns(self) -> int:
        return 4

    # ── the market that goes on ──────────────────────────────────────────────────────────────

    def window(self, number: int) -> Hour:
        """What happens in an hour, any one from 0 on."""
        return market_hour(self.seed, number)

    def outcomes(self, window_id: str) -> tuple[Truth, ...]:
        """What really happened in a window, for every scenario of it."""
        return (true_outcome_of_hour(self.window(hour_of_window_id(window_id))),)

    def shift(
        self,
        number: int,
        temperament: Temperament,
        portfolio: Portfolio | None = None,
        chatter: str = "",
    ) -> Shift:
        """A trader's task in an hour; without a portfolio the one that a newcomer finds there."""
        now = self.window(number)
        style = TRADER_STYLES[temperament]
        owned = first_portfolio(style.size, _starting_side(now)) if portfolio is None else portfolio
        side = side_of_units(owned.units[now.asset])
        return Shift(
            f"{self.name}-{self.seed}-{number:05d}-{temperament}-{side}",
            f"{_OFFERS[now.kind]}. {style.instructions}",
            now,
            temperament,
            owned,
            chatter or _chatter_text(now),
        )

    def next_shift(self, state: ShiftState, chatter: str = "") -> Shift:
        """The same trader's next hour, with the portfolio as this one left it."""
        shift = state.shift
        return self.shift(shift.hour.number + 1, shift.temperament, portfolio_after(state), chatter)

    # ── its windows as tasks ─────────────────────────────────────────────────────────────────

    @cached_property
    def training(self) -> tuple[Shift, ...]:
        return tuple(islice(self._draw_shifts(held_out=False), self.sizes[0]))

    @cached_property
    def held_out(self) -> tuple[Shift, ...]:
        return tuple(islice(self._draw_shifts(held_out=True), self.sizes[1]))

    @cached_property
    def test(self) -> tuple[Shift, ...]:
        seen = (*self.training, *self.held_out)
        known = {(each.instructions, _opening_text(each.hour)) for each in seen}
        later = max((each.hour.number for each in seen), default=-1) + 1
        shifts = (
            self.shift(number, TEMPERAMENTS[number % len(TEMPERAMENTS)]) for number in count(later)
        )
        unseen = (
            each for each in shifts if (each.instructions, _opening_text(each.hour)) not in known
        )
        return tuple(islice(unseen, self.tests))

    def _draw_shifts(self, *, held_out: bool) -> Iterator[Shift]:
        """Hour after hour, the temperaments in turn."""
        hours = (at for at in count() if (at % HELD_OUT == HELD_OUT - 1) is held_out)
        for index, number in enumerate(hours):
            yield self.shift(number, TEMPERAMENTS[index % len(TEMPERAMENTS)])

    def reset(self, task: Shift) -> ShiftState:
        return ShiftState(task)

    def observe(self, state: ShiftState) -> WorldObservation:
        if state.order is not None:
            return WorldObservation(_outcome_sentence(state), "system_message")
        match state.tool:
            case "read":
                return WorldObservation(f"news {state.shift.hour.news or 'none'}", "tool_result")
            case "check":
                return WorldObservation(
                    f"you are {state.shift.side} {state.shift.hour.asset}", "tool_result"
                )
            case "report":
                return WorldObservation(f"posted. others say {state.shift.chatter}", "tool_result")
            case _:
                return WorldObservation(_opening_text(state.shift.hour))

    def step(self, state: ShiftState, reply: str) -> ShiftState:
        word = reply.strip().lower()
        if word == "read":
            return replace(state, tool=word, informed=True)
        if word == "report":
            return replace(state, tool=word, post=_post_text(state))
        if word == "check":
            return replace(state, tool=word)
        return replace(state, order=word)

    def outcome(self, state: ShiftState) -> WorldOutcome | None:
        if state.order is None:
            return None
        score = score_of_shift(state)
        return WorldOutcome(
            score >= 1, score, _outcome_sentence(state), pnl=profit_of_shift(state) / 100
        )


def _opening_text(now: Hour) -> str:
    news = _NEWS[now.kind].format(news=now.news)
    return _OPENING.format(
        day=day_text_of_hour(now.number),
        asset=now.asset,
        trend=now.move.trend,
        regime=now.regime,
        news=news,
    )


def _starting_side(now: Hour) -> int:
    """On which side a newcomer's portfolio stands."""
    return 1 if now.move.trend == "rising" else -1


def _chatter_text(now: Hour) -> str:
    """Where nobody posted, people say what they always say: that it will go on like this."""
    return f"{now.asset} {'up' if now.move.trend == 'rising' else 'down'}"


def _post_text(state: ShiftState) -> str:
    now = state.shift.hour
    known = now.news if state.informed or now.kind == "headline" else None
    return f"{now.asset} {known or now.move.trend}"


def _outcome_sentence(state: ShiftState) -> str:
    if state.order not in ORDERS:
        return _REFUSED
    done = {"buy": "Bought", "sell": "Sold", "hold": "Held"}[state.order]
    return f"{done}: P&L {profit_of_shift(state) / 100:+.2f}."
