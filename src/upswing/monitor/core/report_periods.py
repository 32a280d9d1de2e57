"""Which report is due? The newest day or week that has ended; each has one report, by its name.

However long the loop was away, and wherever a clock was set to: what has a report gets no other, and what was
missed is made up for once. What ended before the loop first ran here is owed to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Literal

PeriodKind = Literal["daily", "weekly"]
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DEFAULT_TIME = "08:00"
OFF = "off"


@dataclass(frozen=True, slots=True)
class ReportSchedule:
    """When reports are made, in UTC."""

    daily: time | None = time(8)
    weekly: int | None = 0
    """The weekday; 0 is Monday."""
    weekly_time: time = time(8)


@dataclass(frozen=True, slots=True)
class DuePeriod:
    """A period that is over, and the name of its report."""

    kind: PeriodKind
    report_id: str
    start: datetime
    end: datetime


def read_schedule(daily: str, weekly: str) -> ReportSchedule:
    """As the config says it.

    >>> read_schedule("07:30", "sun").weekly, read_schedule("off", "mon").daily is None
    (6, True)
    """
    at = time.fromisoformat(_DEFAULT_TIME if daily == OFF else daily)
    return ReportSchedule(
        None if daily == OFF else at, None if weekly == OFF else WEEKDAYS.index(weekly), at
    )


def due_periods(schedule: ReportSchedule, since: datetime, now: datetime) -> list[DuePeriod]:
    """The newest day and the newest week that ended by `now`, if they ended after `since`."""
    found = []
    if schedule.daily is not None:
        found.append(day_until(_newest_slot(now, schedule.daily)))
    if schedule.weekly is not None:
        slot = _newest_slot(now, schedule.weekly_time, schedule.weekly)
        found.append(week_until(slot))
    return [each for each in found if since < each.end <= now]


def day_until(end: datetime) -> DuePeriod:
    """The 24 hours before `end`.

    >>> from datetime import UTC
    >>> day_until(datetime(2026, 1, 15, 8, tzinfo=UTC)).report_id
    'daily-2026-01-15'
    """
    return DuePeriod("daily", f"daily-{end:%Y-%m-%d}", end - timedelta(days=1), end)


def week_until(end: datetime) -> DuePeriod:
    """The seven days before `end`, named by the week that they begin in.

    >>> from datetime import UTC
    >>> week_until(datetime(2026, 1, 19, 8, tzinfo=UTC)).report_id
    'weekly-2026-W03'
    """
    start = end - timedelta(days=7)
    year, week, _ = start.isocalendar()
    return DuePeriod("weekly", f"weekly-{year}-W{week:02}", start, end)


def _newest_slot(now: datetime, at: time, weekday: int | None = None) -> datetime:
    """The last such time that is not later than `now`."""
    slot = datetime.combine(now.date(), at, now.tzinfo)
    days = 0 if weekday is None else (now.weekday() - weekday) % 7
    slot -= timedelta(days=days)
    step = timedelta(days=1 if weekday is None else 7)
    return slot if slot <= now else slot - step
