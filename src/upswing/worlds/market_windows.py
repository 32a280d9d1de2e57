"""Which hour is which window, and what really happened in it?

The market never ends; a window is one of its hours, named as the loop names windows. What happened
in it is reported as `outcome.v1`, for the judge: the agents who acted in the window did not know it.

    >>> from upswing.worlds.market_prices import market_hour
    >>> outcome = true_outcome_of_hour(market_hour(0, 3))
    >>> outcome.window_id, outcome.assets["cotton"].open, outcome.assets["cotton"].close
    ('2026-01-05T03:00', 70.34, 68.22)
    >>> outcome.events[0].text
    'News about cotton: launch.'
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import UNSET

from upswing.contracts.outcome import AssetMove, Event, Outcome
from upswing.contracts.steps import window_id_at
from upswing.worlds.market_prices import Hour

START = datetime(2026, 1, 5, tzinfo=UTC)
"""When hour 0 begins: a Monday."""
LENGTH = timedelta(hours=1)
SOURCE = "market"
_NEWS_AT, _SHOCK_AT = timedelta(minutes=5), timedelta(minutes=40)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def start_of_hour(number: int) -> datetime:
    """When this hour begins; it ends when the next one begins."""
    return START + number * LENGTH


def window_id_of_hour(number: int) -> str:
    """The window that this hour is."""
    return window_id_at(start_of_hour(number))


def hour_of_window_id(window_id: str) -> int:
    """The hour that this window is.

    >>> hour_of_window_id(window_id_of_hour(1000))
    1000
    """
    number = (_start_of_window(window_id) - START) // LENGTH
    if number < 0:
        raise ValueError(f"the market opened with window {window_id_of_hour(0)}, after {window_id}")
    return number


def day_text_of_hour(number: int) -> str:
    """As people say it.

    >>> day_text_of_hour(0), day_text_of_hour(38)
    ('monday', 'tuesday')
    """
    return _DAYS[start_of_hour(number).weekday()]


def true_outcome_of_hour(
    hour: Hour, window_id: str | None = None, scenario_id: str | None = None
) -> Outcome:
    """What really happened in the hour: every price, the news, the hidden shock.

    An hour that is played again at another time is reported under that time's window, for the scenario
    that was played.
    """
    window = window_id or window_id_of_hour(hour.number)
    return Outcome(
        window_id=window,
        scenario_id=UNSET if scenario_id is None else scenario_id,
        assets={
            asset: AssetMove(
                open=move.open / 100, close=move.close / 100, change=move.change / move.open
            )
            for asset, move in hour.moves.items()
        },
        events=_events_of_hour(hour, _start_of_window(window)) or UNSET,
        source=SOURCE,
    )


def _start_of_window(window_id: str) -> datetime:
    return datetime.fromisoformat(f"{window_id}:00+00:00")


def _events_of_hour(hour: Hour, began: datetime) -> list[Event]:
    events = []
    if hour.news is not None:
        events.append(Event(time=began + _NEWS_AT, text=f"News about {hour.asset}: {hour.news}."))
    if hour.shock:
        way = "up" if hour.move.change > 0 else "down"
        events.append(
            Event(
                time=began + _SHOCK_AT,
                text=f"A hidden shock sends {hour.asset} {way}, against everything known.",
            )
        )
    return events
