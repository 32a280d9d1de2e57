"""Which reports are there? Each period has one, and so has each training job.

A report, its message for the bus and its deliveries to webhooks are one transaction, and a name is taken once: whoever
comes second, after a crash or on another machine, changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import msgspec

from upswing.contracts import ReportNotice, encode
from upswing.contracts.notices import TEXT_LIMIT, ReportPeriod
from upswing.contracts.topics import REPORT
from upswing.contracts.typed import from_tree
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.store import from_microseconds, insert_outbox_message, to_microseconds
from upswing.monitor.deliveries import Recipient, queue_notice

STAGE = "monitor"
_SINCE = "reports since"
_NEWEST_JOBS = 200
"""Jobs that are looked at: a job that waits for its report is one of the newest."""
_UNREPORTED = (
    "SELECT j.job_id FROM (SELECT seq, job_id, state, ended_us FROM jobs "
    f"ORDER BY seq DESC LIMIT {_NEWEST_JOBS}) AS j "
    "WHERE j.state IN ('completed', 'failed') AND j.ended_us >= ? "
    "AND NOT EXISTS (SELECT 1 FROM reports r WHERE r.report_id = 'job-' || j.job_id) ORDER BY j.seq LIMIT 20"
)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report as it stands in the store."""

    seq: int
    report_id: str
    kind: str
    job_id: str | None
    title: str
    start: datetime
    end: datetime
    made: datetime
    figures: bytes
    text: bytes


_TIMES = ("start", "end", "made")
_COLUMNS = tuple(
    f"{each.name}_us" if each.name in _TIMES else each.name for each in fields(ReportRow)
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM reports"


class ReportRepository:
    """The rows. Every write is durable when it returns."""

    def __init__(self, database: Database, recipients: Sequence[Recipient] = ()) -> None:
        self._database, self._recipients = database, recipients

    async def began(self, now: datetime) -> datetime:
        """Since when this store's loop owes reports: what ended before its first start has none.

        A time that lies ahead was kept by a clock that was wrong: it begins anew.
        """

        def began_in_transaction(tx: Tx) -> int:
            row = tx.row("SELECT seq FROM cursors WHERE name = ?", (_SINCE,))
            if row is not None and int(row[0]) <= to_microseconds(now):
                return int(row[0])
            tx.execute(
                "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq",
                (_SINCE, to_microseconds(now)),
            )
            return to_microseconds(now)

        return from_microseconds(await self._database.write(began_in_transaction))

    async def exists(self, report_id: str) -> bool:
        sql = "SELECT 1 FROM reports WHERE report_id = ?"
        return await self._database.read(lambda tx: tx.row(sql, (report_id,)) is not None)

    async def unreported_jobs(self, since: datetime) -> list[str]:
        """Jobs that ended since then and have no report."""
        at = (to_microseconds(since),)
        return [
            str(row[0]) for row in await self._database.read(lambda tx: tx.rows(_UNREPORTED, at))
        ]

    async def add(self, report: ReportRow) -> bool:
        """Keep a report and tell of it; False when there is one of this name."""
        notice = encode(notice_of_report(report))

        def add_in_transaction(tx: Tx) -> bool:
            new = tx.execute(
                "INSERT INTO reports (report_id, kind, job_id, title, start_us, end_us, made_us, figures, text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    report.report_id,
                    report.kind,
                    report.job_id,
                    report.title,
                    *(to_microseconds(getattr(report, name)) for name in _TIMES),
                    report.figures,
                    report.text,
                ),
            )
            if new:
                insert_outbox_message(tx, REPORT, report.report_id, payload=notice)
                queue_notice(
                    tx, self._recipients, "report", report.report_id, notice, now=report.made
                )
            return bool(new)

        return await self._database.write(add_in_transaction)

    async def get(self, report_id: str) -> ReportRow | None:
        row = await self._database.view(
            lambda tx: tx.row(f"{_SELECT} WHERE report_id = ?", (report_id,))
        )
        return self._database.bad_rows.read_one(STAGE, "reports", row, _report_from_row)

    async def list(
        self,
        *,
        kind: str | None = None,
        job_id: str | None = None,
        before_seq: int | None = None,
        limit: int = 50,
    ) -> list[ReportRow]:
        """The newest first."""
        sql = (
            f"{_SELECT} WHERE (? = '' OR kind = ?) AND (? = '' OR job_id = ?) AND seq < ? "
            "ORDER BY seq DESC LIMIT ?"
        )
        before = 2**62 if before_seq is None else before_seq
        params = (kind or "", kind or "", job_id or "", job_id or "", before, limit)
        rows = await self._database.view(lambda tx: tx.rows(sql, params))
        return self._database.bad_rows.read_each(STAGE, "reports", rows, _report_from_row)

    async def prune(self, before: datetime) -> int:
        """Forget those that were made before then; none is made again, for its time is over."""
        sql = "DELETE FROM reports WHERE made_us < ?"
        return await self._database.write(lambda tx: tx.execute(sql, (to_microseconds(before),)))


def notice_of_report(report: ReportRow) -> ReportNotice:
    """The report as it travels."""
    return from_tree(
        {
            "report_id": report.report_id,
            "timestamp": report.made,
            "kind": report.kind,
            "period": ReportPeriod(start=report.start, end=report.end),
            "figures": msgspec.json.decode(report.figures),
            "text": report.text.decode()[:TEXT_LIMIT],
        },
        ReportNotice,
    )


def _report_from_row(row: Row) -> ReportRow:
    values: dict[str, Any] = dict(zip((each.name for each in fields(ReportRow)), row, strict=True))
    values |= {name: from_microseconds(values[name]) for name in _TIMES}
    values |= {name: bytes_of_column(values[name]) for name in ("figures", "text")}
    return check_row_types(ReportRow(**values))
