"""Which validations were begun, how did they end, and what did they report?

running ─▶ done      with the report, and its decision in the same transaction
   │
   └────▶ failed     there is no report, and the sentence says why; asking again begins anew

Only its holder ends it. Who has not claimed anything is `""`, who holds what nobody has claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal

import msgspec

from upswing.contracts.typed import from_json
from upswing.contracts.validation import ValidationReport
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column
from upswing.infra.sql.decisions import insert_decision
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.store import existing_tables, from_microseconds, to_microseconds
from upswing.records import Decision

State = Literal["running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class ValidationRow:
    """A validation as it stands in the store."""

    run_id: str
    candidate: str
    against: str
    """The model that it is compared with."""
    suites: tuple[str, ...]
    state: State
    verdict: str | None
    """`pass`, `fail` or `inconclusive`, when it is done."""
    sentence: str | None
    improvement: float | None
    report: ValidationReport | None
    artifact: str | None
    """Where a copy of the report lies."""
    decision_id: str | None
    started: datetime
    ended: datetime | None


_COLUMNS = tuple(
    {"verdict": "word", "started": "started_us", "ended": "ended_us"}.get(field.name, field.name)
    for field in fields(ValidationRow)
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM validations"


_LIST = TableList(
    "validations",
    ", ".join("NULL" if name == "report" else name for name in _COLUMNS),
    "started_us",
    indexed=("candidate",),
)


class Validations:
    """The rows. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, run_id: str, candidate: str, against: str, suites: Sequence[str], now: datetime
    ) -> ValidationRow:
        """The row of this id: new, or as it is known; one that failed is begun anew."""
        values = (run_id, candidate, against, msgspec.json.encode(suites), to_microseconds(now))

        def begin_in_transaction(tx: Tx) -> ValidationRow:
            tx.execute(
                "INSERT INTO validations (run_id, candidate, against, suites, state, started_us) "
                "VALUES (?, ?, ?, ?, 'running', ?) ON CONFLICT (run_id) DO NOTHING",
                values,
            )
            tx.execute(
                "UPDATE validations SET state = 'running', sentence = NULL, ended_us = NULL, "
                "holder = '', lease_us = 0 WHERE run_id = ? AND state = 'failed'",
                (run_id,),
            )
            (row,) = tx.rows(f"{_SELECT} WHERE run_id = ?", (run_id,))
            return _row(row)

        return await self._database.write(begin_in_transaction)

    # ── whose it is ──────────────────────────────────────────────────────────────────────────

    async def claim(self, run_id: str, holder: str, now: datetime, until: datetime) -> bool:
        """Have it, or go on having it; False while it is another's, or when it has ended."""
        sql = (
            "UPDATE validations SET holder = ?, lease_us = ? "
            "WHERE run_id = ? AND state = 'running' AND (holder = ? OR lease_us <= ?)"
        )
        values = (holder, to_microseconds(until), run_id, holder, to_microseconds(now))
        return bool(await self._database.write(lambda tx: tx.execute(sql, values)))

    async def release(self, run_id: str, holder: str) -> None:
        """Anybody may have it at once."""
        sql = "UPDATE validations SET lease_us = 0 WHERE run_id = ? AND holder = ? AND state = 'running'"
        await self._database.write(lambda tx: tx.execute(sql, (run_id, holder)))

    async def release_orphans(self, holder: str) -> None:
        """After a restart: what others did is nobody's, and anybody may have it at once.

        In PostgreSQL other processes may be alive, so there a claim ends with its lease.
        """
        sql = "UPDATE validations SET lease_us = 0 WHERE state = 'running' AND holder <> ?"

        def release_orphans_in_transaction(tx: Tx) -> None:
            if not tx.postgres:
                tx.execute(sql, (holder,))

        await self._database.write(release_orphans_in_transaction)

    # ── its end ──────────────────────────────────────────────────────────────────────────────

    async def finish(
        self,
        report: ValidationReport,
        artifact: str,
        decision: Decision,
        now: datetime,
        holder: str = "",
    ) -> bool:
        """Keep the report and its decision; False when it was kept before, or is another's."""
        improvement = report.improvement.estimate if report.improvement else None
        values = (
            report.verdict,
            decision.sentence,
            improvement,
            msgspec.json.encode(report),
            artifact,
            decision.decision_id,
            to_microseconds(now),
            report.run_id,
            holder,
        )

        def finish_in_transaction(tx: Tx) -> bool:
            done = tx.execute(
                "UPDATE validations SET state = 'done', word = ?, sentence = ?, improvement = ?, "
                "report = ?, artifact = ?, decision_id = ?, ended_us = ? "
                "WHERE run_id = ? AND state = 'running' AND holder = ?",
                values,
            )
            if done:
                insert_decision(tx, decision)
            return bool(done)

        return await self._database.write(finish_in_transaction)

    async def fail(self, run_id: str, sentence: str, now: datetime, holder: str = "") -> bool:
        """There will be no report; False when it has ended before, or is another's."""
        sql = (
            "UPDATE validations SET state = 'failed', sentence = ?, ended_us = ? "
            "WHERE run_id = ? AND state = 'running' AND holder = ?"
        )
        values = (sentence, to_microseconds(now), run_id, holder)
        return bool(await self._database.write(lambda tx: tx.execute(sql, values)))

    # ── what there is ────────────────────────────────────────────────────────────────────────

    async def get(self, run_id: str) -> ValidationRow | None:
        return await self._one("run_id = ?", run_id)

    async def unfinished(self) -> list[ValidationRow]:
        """Those that were begun and have not ended, the oldest first."""
        return await self._many("state = 'running' ORDER BY seq")

    async def newest(self, limit: int = 100) -> list[ValidationRow]:
        """Those that are done, the newest first."""
        return await self._many(f"state = 'done' ORDER BY seq DESC LIMIT {int(limit)}")

    async def of_pair(self, one: str, other: str) -> ValidationRow | None:
        """The newest report that compares these two, whichever was the candidate."""
        pair = "((candidate = ? AND against = ?) OR (candidate = ? AND against = ?))"
        return await self._one(
            f"state = 'done' AND {pair} ORDER BY seq DESC LIMIT 1", one, other, other, one
        )

    async def of_candidate(self, model_id: str) -> ValidationRow | None:
        """The newest report in which this model was the candidate."""
        return await self._one(
            "state = 'done' AND candidate = ? ORDER BY seq DESC LIMIT 1", model_id
        )

    async def page(self, wanted: PageWanted) -> tuple[Sequence[ValidationRow], int | None]:
        """The newest first, without their reports, and the row before which the next page begins."""
        page = await self._database.view(lambda tx: _LIST.read(tx, wanted))
        read_each = self._database.bad_rows.read_each
        return read_each("validate", "validations", page.rows, _row_of_list), page.position

    async def _one(self, where: str, *params: object) -> ValidationRow | None:
        found = await self._many(where, *params)
        return found[0] if found else None

    async def _many(self, where: str, *params: object) -> list[ValidationRow]:
        def many_in_transaction(tx: Tx) -> list[ValidationRow]:
            if "validations" not in existing_tables(tx):  # a store that an older version left
                return []
            rows = tx.rows(f"{_SELECT} WHERE {where}", params)
            return tx.bad_rows.read_each("validate", "validations", rows, _row)

        return await self._database.read(many_in_transaction)


def _row_of_list(row: Row) -> ValidationRow:
    return _row(row[1:])


def _row(row: Row) -> ValidationRow:
    by_name = dict(zip((field.name for field in fields(ValidationRow)), row, strict=True))
    report, ended = by_name["report"], by_name["ended"]
    return ValidationRow(
        **by_name
        | {
            "suites": from_json(bytes_of_column(by_name["suites"]), tuple[str, ...]),
            "report": from_json(bytes_of_column(report), ValidationReport) if report else None,
            "started": from_microseconds(by_name["started"]),
            "ended": from_microseconds(ended) if ended is not None else None,
        }
    )
