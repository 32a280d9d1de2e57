"""What does a trader see, do and earn in an hour of the market? A world without an end, in windows.

    options: read, sell, hold, buy. you are a careful trader
    monday: a rumour, oil rising, market calm                       ─▶ read
    news merger                                                     ─▶ buy

| reply    | what happens                                                                 |
|----------|------------------------------------------------------------------------------|
| `read`   | shows the news                                                               |
| `check`  | shows on which side the book stands                                          |
| `report` | posts what the trader has read, and shows what others posted                 |
| `buy`    | the trader buys as many units as are usual, at the hour's first price        |
| `sell`   | the same, the other way round                                                |
| `hold`   | no order                                                                     |

That ends the trader's hour; the book goes on into the next one. The score is how much of what could
be gained was gained: 0 for no more than an idle book gains, 1 for as much as the best reply. Where
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
from upswing.worlds.market_books import Book, first_book
from upswing.worlds.market_prices import Hour, Kind, hour
from upswing.worlds.market_shift import (
    MANNERS,
    ORDERS,
    TEMPERAMENTS,
    Floor,
    Shift,
    Temperament,
    book_after,
    profit_of,
    score_of,
    side_of,
)
from upswing.worlds.market_windows import day_of, number_of, truth
from upswing.worlds.world import Observation, Outcome

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
    >>> ended.shift.book.units["copper"], market.following(ended).book.units["copper"]
    (1, 0)
    >>> ended.shift.window_id, market.following(ended).window_id
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
        return hour(self.seed, number)

    def outcomes(self, window_id: str) -> tuple[Truth, ...]:
        """What really happened in a window, for every scenario of it."""
        return (truth(self.window(number_of(window_id))),)

    def shift(
        self, number: int, temperament: Temperament, book: Book | None = None, heard: str = ""
    ) -> Shift:
        """A trader's task in an hour; without a book the one that a newcomer finds there."""
        now = self.window(number)
        manner = MANNERS[temperament]
        owned = first_book(manner.size, _with_trend(now)) if book is None else book
        side = side_of(owned.units[now.asset])
        return Shift(
            f"{self.name}-{self.seed}-{number:05d}-{temperament}-{side}",
            f"{_OFFERS[now.kind]}. {manner.told}",
            now,
            temperament,
            owned,
            heard or _chatter(now),
        )

    def following(self, state: Floor, heard: str = "") -> Shift:
        """The same trader's next hour, with the book as this one left it."""
        shift = state.shift
        return self.shift(shift.hour.number + 1, shift.temperament, book_after(state), heard)

    # ── its windows as tasks ─────────────────────────────────────────────────────────────────

    @cached_property
    def training(self) -> tuple[Shift, ...]:
        return tuple(islice(self._shifts(held_out=False), self.sizes[0]))

    @cached_property
    def held_out(self) -> tuple[Shift, ...]:
        return tuple(islice(self._shifts(held_out=True), self.sizes[1]))

    @cached_property
    def test(self) -> tuple[Shift, ...]:
        seen = (*self.training, *self.held_out)
        known = {(each.instructions, _opening(each.hour)) for each in seen}
        later = max((each.hour.number for each in seen), default=-1) + 1
        shifts = (
            self.shift(number, TEMPERAMENTS[number % len(TEMPERAMENTS)]) for number in count(later)
        )
        unseen = (each for each in shifts if (each.instructions, _opening(each.hour)) not in known)
        return tuple(islice(unseen, self.tests))

    def _shifts(self, *, held_out: bool) -> Iterator[Shift]:
        """Hour after hour, the temperaments in turn."""
        hours = (at for at in count() if (at % HELD_OUT == HELD_OUT - 1) is held_out)
        for place, number in enumerate(hours):
            yield self.shift(number, TEMPERAMENTS[place % len(TEMPERAMENTS)])

    def reset(self, task: Shift) -> Floor:
        return Floor(task)

    def observe(self, state: Floor) -> Observation:
        if state.order is not None:
            return Observation(_sentence(state), "system_message")
        match state.tool:
            case "read":
                return Observation(f"news {state.shift.hour.news or 'none'}", "tool_result")
            case "check":
                return Observation(
                    f"you are {state.shift.side} {state.shift.hour.asset}", "tool_result"
                )
            case "report":
                return Observation(f"posted. others say {state.shift.heard}", "tool_result")
            case _:
                return Observation(_opening(state.shift.hour))

    def step(self, state: Floor, reply: str) -> Floor:
        word = reply.strip().lower()
        if word == "read":
            return replace(state, tool=word, informed=True)
        if word == "report":
            return replace(state, tool=word, post=_post(state))
        if word == "check":
            return replace(state, tool=word)
        return replace(state, order=word)

    def outcome(self, state: Floor) -> Outcome | None:
        if state.order is None:
            return None
        score = score_of(state)
        return Outcome(score >= 1, score, _sentence(state), pnl=profit_of(state) / 100)


def _opening(now: Hour) -> str:
    news = _NEWS[now.kind].format(news=now.news)
    return _OPENING.format(
        day=day_of(now.number),
        asset=now.asset,
        trend=now.move.trend,
        regime=now.regime,
        news=news,
    )


def _with_trend(now: Hour) -> int:
    """On which side a newcomer's book stands."""
    return 1 if now.move.trend == "rising" else -1


def _chatter(now: Hour) -> str:
    """Where nobody posted, people say what they always say: that it will go on like this."""
    return f"{now.asset} {'up' if now.move.trend == 'rising' else 'down'}"


def _post(state: Floor) -> str:
    now = state.shift.hour
    known = now.news if state.informed or now.kind == "headline" else None
    return f"{now.asset} {known or now.move.trend}"


def _sentence(state: Floor) -> str:
    if state.order not in ORDERS:
        return _REFUSED
    done = {"buy": "Bought", "sell": "Sold", "hold": "Held"}[state.order]
    return f"{done}: P&L {profit_of(state) / 100:+.2f}."
