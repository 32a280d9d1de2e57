"""When is it time? A cron expression of five fields, in UTC.

| field        | values            | names       |
|--------------|-------------------|-------------|
| minute       | 0–59              |             |
| hour         | 0–23              |             |
| day of month | 1–31              |             |
| month        | 1–12              | `jan`–`dec` |
| day of week  | 0–7, Sunday twice | `sun`–`sat` |

A field is `*`, a value, a range `a-b`, any of these with a step `/n`, or a list of such with commas.
When both days are restricted, either of them will do, as in every cron. `@hourly`, `@daily`,
`@weekly`, `@monthly` and `@yearly` are known too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from upswing.errors import Misuse

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTH = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_YEARS = 41
"""The 29th of February falls on a given weekday at least once in so many years."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _DAYS),
)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A schedule. All its times are UTC, on the minute."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either_day: bool
    """Both days are restricted, so one of them is enough."""

    def fires_on(self, day: date) -> bool:
        """Is this one of its days?"""
        if day.month not in self.months:
            return False
        by_date, by_name = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_name if self.either_day else by_date and by_name

    def newest(self, after: datetime, until: datetime) -> datetime | None:
        """Its last time that is later than `after` and not later than `until`.

        However many were missed, this is one: what was slept through is made up for once.

        >>> from datetime import UTC
        >>> daily = parse_cron("0 2 * * *")
        >>> begin = datetime(2025, 12, 1, tzinfo=UTC)
        >>> daily.newest(begin, datetime(2025, 12, 8, 1, 59, tzinfo=UTC)).isoformat()
        '2025-12-07T02:00:00+00:00'
        >>> daily.newest(begin, datetime(2025, 12, 1, 1, tzinfo=UTC)) is None
        True
        """
        for day in _iterate_days(until.date(), min(after.date(), until.date()), -1):
            if self.fires_on(day):
                for slot in self._times(day, until, latest_first=True):
                    if slot <= until:
                        return slot if slot > after else None
        return None

    def next(self, after: datetime) -> datetime | None:
        """Its first time later than `after`; None when the calendar ends before.

        >>> from datetime import UTC
        >>> parse_cron("*/15 9-17 * * mon-fri").next(datetime(2025, 12, 6, tzinfo=UTC)).isoformat()
        '2025-12-08T09:00:00+00:00'
        """
        last = date.max if after.year + _YEARS > date.max.year else date(after.year + _YEARS, 1, 1)
        for day in _iterate_days(after.date(), last, 1):
            if self.fires_on(day):
                for slot in self._times(day, after, latest_first=False):
                    if slot > after:
                        return slot
        return None

    def _times(self, day: date, like: datetime, *, latest_first: bool) -> Iterator[datetime]:
        for hour in sorted(self.hours, reverse=latest_first):
            for minute in sorted(self.minutes, reverse=latest_first):
                yield datetime.combine(day, time(hour, minute), like.tzinfo)


@lru_cache(maxsize=64)
def parse_cron(text: str) -> CronSchedule:
    """The schedule that `text` means, or `Misuse` with the field that is wrong.

    >>> parse_cron("61 * * * *")
    Traceback (most recent call last):
    upswing.errors.Misuse: The schedule '61 * * * *' cannot be used: minute 61 is not between 0 and 59.
    """
    plain = " ".join(text.lower().split())
    parts = _MACROS.get(plain, plain).split()
    try:
        if len(parts) != len(_FIELDS):
            names = ", ".join(field.name for field in _FIELDS)
            raise ValueError(f"it needs five fields ({names}), not {len(parts)}")  # noqa: TRY301
        minutes, hours, days, months, weekdays = (
            _field_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)
        )
        either = not parts[2].startswith("*") and not parts[4].startswith("*")
        if not either and min(days) > max(_LONGEST_MONTH.get(month, 31) for month in months):
            raise ValueError("none of its months has such a day")  # noqa: TRY301
    except ValueError as error:
        raise Misuse(f"The schedule {text!r} cannot be used: {error}.") from None
    return CronSchedule(
        plain, minutes, hours, days, months, frozenset(day % 7 for day in weekdays), either
    )


def _field_values(part: str, field: _Field) -> frozenset[int]:
    return frozenset(value for item in part.split(",") for value in _item_values(item, field))


def _item_values(item: str, field: _Field) -> range:
    span, slash, step = item.partition("/")
    if slash and (not _is_number(step) or int(step) < 1):
        raise ValueError(f"the step of {field.name} {item!r} is a number from 1 on")
    first, dash, last = span.partition("-")
    if span == "*":
        low, high = field.low, field.high
    else:
        low = _parse_value(first, field)
        high = _parse_value(last, field) if dash else field.high if slash else low
    if field.names is _DAYS and dash and high == 0:
        high = 7  # `fri-sun` ends with a Sunday
    if low > high:
        raise ValueError(f"{field.name} {span!r} runs backwards")
    if span == "*" and field.names is _DAYS:
        high = 6
    return range(low, high + 1, int(step) if slash else 1)


def _parse_value(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + (1 if field.names is _MONTHS else 0)
    if not _is_number(text):
        raise ValueError(f"{text!r} is no {field.name}")
    if not field.low <= int(text) <= field.high:
        raise ValueError(f"{field.name} {text} is not between {field.low} and {field.high}")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _iterate_days(first: date, last: date, step: int) -> Iterator[date]:
    """From `first` to `last`, both included."""
    for count in range(abs((last - first).days) + 1):
        yield first + timedelta(days=count * step)
