"""What did models earn over time? Read from buckets that triggers keep, so that it costs the same in a large store.

| span asked for     | read from      |
|--------------------|----------------|
| up to six hours    | 10-second rows |
| longer             | hourly rows    |

Models are named by trajectories, and anybody can name one: of very many the most frequent are told by name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt

from upswing.infra.metric_labels import OTHER
from upswing.infra.sql.counter_tables import COARSE, FINE
from upswing.infra.sql.database import Database, Row, Tx, is_sane
from upswing.infra.sql.store import from_microseconds, to_microseconds

FINE_SPAN = timedelta(hours=6)
"""Of which ten seconds are told apart."""
KEPT_FINE = timedelta(days=2)
"""After which 10-second rows are deleted; the hourly ones stay."""
MOST_MODELS = 12
"""That are told by name."""
MOST_ROWS = 100_000
"""That are read for one answer."""
_Z = 1.96


@dataclass(frozen=True, slots=True)
class RewardPoint:
    """What a model earned in one stretch of time."""

    at: datetime
    """When the stretch begins."""
    mean: float
    count: int
    served: int
    """Of these, those that a gateway recorded."""
    lower: float
    """With `upper` a 95 % interval of the mean."""
    upper: float


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One model's rewards over time."""

    model: str
    points: tuple[RewardPoint, ...]


@dataclass(frozen=True, slots=True)
class RewardSeries:
    """All models' rewards over time."""

    since: datetime
    until: datetime
    bucket_seconds: int
    series: tuple[ModelSeries, ...]


@dataclass(slots=True)
class _Sum:
    n: int = 0
    served: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, n: int, served: int, total: float, squares: float) -> None:
        self.n, self.served = self.n + n, self.served + served
        self.total, self.squares = self.total + total, self.squares + squares


class RewardSeriesReader:
    """Reads, and deletes what nobody reads any more."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def series(
        self, since: datetime, until: datetime, points: int, models: frozenset[str] = frozenset()
    ) -> RewardSeries:
        """About so many stretches between these times; `models`: only these."""
        width = FINE if until - since <= FINE_SPAN else COARSE
        span = max(width, (until - since).total_seconds())
        bucket = width * max(1, round(span / points / width))
        rows = await self._database.view(lambda tx: _rows(tx, width, since, until))
        wanted = [row for row in rows if not models or row[1] in models]
        return RewardSeries(since, until, bucket, _grouped(wanted, bucket))

    async def newest(self) -> list[tuple[str, RewardPoint]]:
        """The newest 10-second stretch of each model in the last minute that has one."""

        def newest_in_transaction(tx: Tx) -> list[Row]:
            sql = "SELECT MAX(start_us) FROM reward_buckets WHERE width_s = ?"
            row = tx.row(sql, (FINE,))
            if row is None or not isinstance(row[0], int):
                return []
            return tx.rows(
                "SELECT start_us, model, n, served, total, squares FROM reward_buckets "
                "WHERE width_s = ? AND start_us = ? AND n > 0 ORDER BY n DESC LIMIT ?",
                (FINE, row[0], MOST_MODELS),
            )

        rows = await self._database.view(newest_in_transaction)
        return [(each.model, each.points[0]) for each in _grouped(rows, FINE)]

    async def prune(self, now: datetime) -> int:
        """Delete 10-second rows that are too old to be read; how many."""
        sql = "DELETE FROM reward_buckets WHERE width_s = ? AND start_us < ?"
        before = to_microseconds(now - KEPT_FINE)
        return await self._database.write(lambda tx: tx.execute(sql, (FINE, before)))


def _rows(tx: Tx, width: int, since: datetime, until: datetime) -> list[Row]:
    first = to_microseconds(since) // (width * 1_000_000) * (width * 1_000_000)
    return tx.rows(
        "SELECT start_us, model, n, served, total, squares FROM reward_buckets "
        "WHERE width_s = ? AND start_us >= ? AND start_us <= ? AND n > 0 "
        "ORDER BY start_us DESC LIMIT ?",
        (width, first, to_microseconds(until), MOST_ROWS),
    )


def _grouped(rows: list[Row], bucket: int) -> tuple[ModelSeries, ...]:
    sound = [row for row in rows if isinstance(row[0], int) and all(map(is_sane, row[2:]))]
    counts: Counter[str] = Counter()
    for row in sound:
        counts[str(row[1])] += int(row[2])
    named = [name for name, _ in counts.most_common(MOST_MODELS)]
    sums: dict[str, dict[int, _Sum]] = {name: {} for name in named}
    us = bucket * 1_000_000
    for start, model, n, served, total, squares in sound:
        name = str(model) if str(model) in sums else OTHER
        into = sums.setdefault(name, {}).setdefault(int(start) // us * us, _Sum())
        into.add(int(n), int(served), float(total), float(squares))
    return tuple(
        ModelSeries(name, tuple(_point(at, some) for at, some in sorted(of.items())))
        for name, of in sums.items()
    )


def _point(at: int, some: _Sum) -> RewardPoint:
    mean = some.total / some.n
    variance = max(0.0, some.squares / some.n - mean * mean)
    half = _Z * sqrt(variance / some.n)
    return RewardPoint(from_microseconds(at), mean, some.n, some.served, mean - half, mean + half)
