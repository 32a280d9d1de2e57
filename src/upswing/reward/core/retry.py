"""A group could not be judged: when is it asked again, and when does a person hear of it?

| tries             | 1     | 2      | 3      | 4      | 5    | 6    | 7    | 8 and more |
|-------------------|-------|--------|--------|--------|------|------|------|------------|
| the next after    | 5 min | 10 min | 20 min | 40 min | 80 min | 160 min | 320 min | 6 h |

Nobody asks again a week after the first try, unless a person wants it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST = timedelta(minutes=5)
LONGEST = timedelta(hours=6)
WEEK = timedelta(days=7)
ALERT = timedelta(hours=1)
"""A group that has waited for so long is worth a person's attention."""


def next_judge_try(tries: int, first: datetime, now: datetime) -> datetime | None:
    """When to ask again after so many tries; None: not by itself.

    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> [str(next_judge_try(n, at, at) - at) for n in (1, 2, 7, 8, 99)]
    ['0:05:00', '0:10:00', '5:20:00', '6:00:00', '6:00:00']
    >>> next_judge_try(30, at, at + WEEK) is None
    True
    """
    after = now + min(LONGEST, FIRST * 2 ** min(tries - 1, 20))
    return after if after < first + WEEK else None
