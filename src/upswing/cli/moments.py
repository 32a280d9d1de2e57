"""Since when? A person's words for a moment that is over.

| written                                        | means                                          |
|------------------------------------------------|------------------------------------------------|
| `90m`, `36h`, `7d`, `2w`, `45s`, `1h30m`       | so long ago                                    |
| `3 days ago`, `an hour ago`, `last 2 weeks`    | the same                                       |
| `today`, `yesterday`, `monday`                 | that day's beginning, UTC                      |
| `last week`, `last month`                      | 7 and 30 days ago                              |
| `now`                                          | now                                            |
| `2026-01-15`, `2026-01-15T10:00`, `… 10:00:00Z`, `…+02:00` | that moment; UTC unless it says otherwise |
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

_UNITS = {
    "s": "seconds",
    "m": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
    "sec": "seconds",
    "secs": "seconds",
    "min": "minutes",
    "mins": "minutes",
    "hr": "hours",
    "hrs": "hours",
    **{
        f"{unit}{s}": f"{unit}s"
        for unit in ("second", "minute", "hour", "day", "week")
        for s in ("", "s")
    },
}
_PART = re.compile(r"(\d{1,6}|an?)\s*([a-z]+)")
_SPAN = re.compile(r"(?:(?:\d{1,6}|an?)\s*[a-z]+[\s,]*)+(?:and\s+)?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMED = {"week": 7, "month": 30, "year": 365}
FORMS = "90m, 36h, 7d, 2w, yesterday, `3 days ago`, 2026-01-15 or 2026-01-15T10:00"


def moment(text: str, now: datetime) -> datetime:
    """The moment that is meant, in UTC; `ArgumentTypeError` when nobody can say, or it is still to come.

    >>> now = datetime(2026, 3, 4, 12, tzinfo=UTC)
    >>> [str(moment(each, now))[:16] for each in ("36h", "yesterday", "2026-03-01", "2 days ago")]
    ['2026-03-03 00:00', '2026-03-03 00:00', '2026-03-01 00:00', '2026-03-02 12:00']
    """
    plain = " ".join(text.strip().lower().split())
    found = _day(plain, now) or _span(plain, now) or _date(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write {FORMS}")
    if found > now:
        raise argparse.ArgumentTypeError(f"{text!r} is still to come: write {FORMS}")
    return found


def _day(plain: str, now: datetime) -> datetime | None:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = plain.removeprefix("last ")
    if plain == "now":
        return now
    if plain in {"today", "yesterday"}:
        return midnight - timedelta(days=plain == "yesterday")
    if day in _DAYS:
        return midnight - timedelta(days=(now.weekday() - _DAYS.index(day)) % 7 or 7)
    if plain != day and day in _NAMED:
        return now - timedelta(days=_NAMED[day])
    return None


def _span(plain: str, now: datetime) -> datetime | None:
    bare = (
        plain.removeprefix("the ").removeprefix("last ").removeprefix("past ").removesuffix(" ago")
    )
    if not _SPAN.fullmatch(f"{bare} "):
        return None
    back = timedelta()
    for count, unit in _PART.findall(bare.replace(" and ", " ")):
        if unit not in _UNITS:
            return None
        back += timedelta(**{_UNITS[unit]: 1 if count in {"a", "an"} else int(count)})
    try:
        return now - back
    except OverflowError:
        return None


def _date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
