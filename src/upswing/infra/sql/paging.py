"""How is a long table read a page at a time, the newest first, with bounded work?

A page looks at no more than a span of row numbers, whatever the filters leave of it: behind it the next page begins.
Where an index answers the filter, the span is open: the index names no row that does not match. Times rise with the
numbers, so that a list ends where its rows are older than it was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from upswing.infra.sql.database import Row, Tx

SPAN = 5000
"""Row numbers that a page looks at."""
_EPOCH_SECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class PageWanted:
    """Which rows, and how many of them."""

    limit: int
    before: int | None = None
    """The number before which the page begins; None: at the newest."""
    since: datetime | None = None
    until: datetime | None = None
    equal: Mapping[str, Any] = field(default_factory=dict)
    """Column → value; one that is None is not asked for."""


@dataclass(frozen=True, slots=True)
class TablePage:
    """Rows, and the number before which the next page begins; None: there is no other."""

    rows: list[Row]
    position: int | None


@dataclass(frozen=True, slots=True)
class TableList:
    """A table that is read by pages; the number of a row is its first selected column."""

    table: str
    columns: str
    time: str
    """The column with a time that rises with the numbers, in microseconds."""
    indexed: tuple[str, ...] = ()
    """Columns of which an index has the rows in the order of their numbers."""
    key: str = "seq"
    span: int = SPAN

    def read(self, tx: Tx, wanted: PageWanted) -> TablePage:
        equal = {name: value for name, value in wanted.equal.items() if value is not None}
        newest = self._newest(tx) if wanted.before is None else wanted.before - 1
        by_index = len(equal) == 1 and next(iter(equal)) in self.indexed
        filtered = bool(equal) or wanted.since is not None or wanted.until is not None
        floor = newest - self.span + 1 if filtered and not by_index else 0
        conditions: dict[str, Any] = {f"{self.key} <= ?": newest, f"{self.key} >= ?": floor}
        conditions |= {f"{name} = ?": value for name, value in equal.items()}
        if wanted.since is not None:
            conditions[f"{self.time} >= ?"] = _microseconds(wanted.since)
        if wanted.until is not None:
            conditions[f"{self.time} < ?"] = _microseconds(wanted.until)
        rows = tx.rows(
            f"SELECT {self.key}, {self.columns} FROM {self.table} WHERE {' AND '.join(conditions)} "
            f"ORDER BY {self.key} DESC LIMIT ?",
            (*conditions.values(), wanted.limit + 1),
        )
        if len(rows) > wanted.limit:
            return TablePage(rows[: wanted.limit], int(rows[wanted.limit - 1][0]))
        more = floor > 0 and self._has_older_rows(tx, floor, wanted.since)
        return TablePage(rows, floor if more else None)

    def _newest(self, tx: Tx) -> int:
        row = tx.row(f"SELECT MAX({self.key}) FROM {self.table}")
        return int(row[0]) if row and isinstance(row[0], int) else 0

    def _has_older_rows(self, tx: Tx, floor: int, since: datetime | None) -> bool:
        """Whether rows stand before this number that may be asked for."""
        row = tx.row(
            f"SELECT {self.time} FROM {self.table} WHERE {self.key} < ? ORDER BY {self.key} DESC LIMIT 1",
            (floor,),
        )
        if row is None:
            return False
        return since is None or not isinstance(row[0], int) or row[0] >= _microseconds(since)


def _microseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * _EPOCH_SECONDS + moment.microsecond
