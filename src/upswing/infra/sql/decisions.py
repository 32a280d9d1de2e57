"""What was decided, on what, and why? The journal, and how far the schedule has been dealt with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.store import LATEST, from_microseconds, to_microseconds
from upswing.records import Decision

_COLUMNS = "decision_id, stage, kind, sentence, inputs, outcome, decided_us, about"
_SELECT = f"SELECT seq, {_COLUMNS.removesuffix('about')} '' AS about FROM decisions"
"""Without what they are about: stores of earlier versions, which commands read as they are, do not say it."""
_LIST = TableList("decisions", _COLUMNS, "decided_us", indexed=("stage", "about"))
_CYCLES = (
    "SELECT j.created_us, j.ended_us, m.deployed_us FROM jobs j LEFT JOIN models m ON m.job_id = j.job_id "
    "WHERE j.ended_us IS NOT NULL AND j.created_us BETWEEN ? AND ? ORDER BY j.seq DESC LIMIT 1000"
)
_SLOT = "trigger slot"
_READERS = "journal"


@dataclass(frozen=True, slots=True)
class JournalWindow:
    """A part of the journal, from the first to the last sequence number."""

    stages: tuple[str, ...]
    since_us: int
    until_us: int
    first: int
    last: int
    truncated: bool
    """There are older ones in that time."""


class Decisions:
    """The journal. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, decision: Decision | None, *, slot: datetime | None = None) -> None:
        """Write a decision down, and that the schedule's time `slot` is dealt with."""

        def record_in_transaction(tx: Tx) -> None:
            if decision is not None:
                insert_decision(tx, decision)
            if slot is not None:
                claim_schedule_slot(tx, slot)

        await self._database.write(record_in_transaction)

    async def get(self, decision_id: str) -> Decision | None:
        sql = f"{_SELECT} WHERE decision_id = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (decision_id,)))
        return self._database.bad_rows.read_one(_READERS, "decisions", row, _decision_from_row)

    async def list_by_id_prefix(self, id_prefix: str, limit: int = 10) -> list[Decision]:
        """Decisions whose id begins so, the newest first."""
        sql = f"{_SELECT} WHERE substr(decision_id, 1, ?) = ? ORDER BY seq DESC LIMIT ?"
        values = (len(id_prefix), id_prefix, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, values))
        return self._database.bad_rows.read_each(_READERS, "decisions", rows, _decision_from_row)

    async def latest_time(self) -> datetime | None:
        """How far the clock of decisions and ramps is known to have come."""
        sql = (
            "SELECT MAX(at_us) FROM (SELECT decided_us AS at_us FROM decisions UNION ALL "
            "SELECT held_us AS at_us FROM controller) AS known WHERE at_us BETWEEN 0 AND ?"
        )
        row = await self._database.read(lambda tx: tx.row(sql, (LATEST,)))
        return from_microseconds(int(row[0])) if row and row[0] is not None else None

    async def list(
        self, stage: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[Decision]:
        """The newest first."""
        sql = f"{_SELECT} WHERE (? = '' OR stage = ?) AND decided_us >= ? ORDER BY seq DESC LIMIT ?"
        params = (stage or "", stage or "", to_microseconds(since) if since else 0, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, params))
        return self._database.bad_rows.read_each(_READERS, "decisions", rows, _decision_from_row)

    async def page(self, wanted: PageWanted) -> tuple[Sequence[Decision], int | None]:
        """The newest first, and the row before which the next page begins."""
        page = await self._database.view(lambda tx: _LIST.read(tx, wanted))
        read_each = self._database.bad_rows.read_each
        return read_each(_READERS, "decisions", page.rows, _decision_from_row), page.position

    async def window(
        self, stages: Sequence[str], since: datetime, until: datetime, most: int
    ) -> JournalWindow:
        """Where the newest decisions of these stages in that time lie, `most` of them."""
        marks = ", ".join("?" * len(stages))
        sql = (
            f"SELECT seq FROM decisions WHERE stage IN ({marks}) AND decided_us BETWEEN ? AND ? "
            "ORDER BY seq DESC LIMIT ?"
        )
        span = (to_microseconds(since), to_microseconds(until))
        values = (*stages, *span, most + 1)
        seqs = [row[0] for row in await self._database.read(lambda tx: tx.rows(sql, values))]
        kept = seqs[:most]
        first, last = (kept[-1], kept[0]) if kept else (1, 0)
        return JournalWindow(tuple(stages), *span, first, last, len(seqs) > most)

    async def training_cycles(self, since: datetime, until: datetime) -> Sequence[timedelta]:
        """How long each job of that time took, from when it was asked for until it ended or its model was promoted."""
        span = (to_microseconds(since), to_microseconds(until))
        rows = await self._database.read(lambda tx: tx.rows(_CYCLES, span))
        return [
            timedelta(microseconds=max(ended, promoted or 0) - created)
            for created, ended, promoted in rows
        ]

    async def window_page(
        self, window: JournalWindow, after: int, limit: int = 250
    ) -> tuple[Sequence[Decision], Sequence[str], int | None]:
        """The next decisions of a window, ids of rows that cannot be read, and where the page ends; None: no more."""
        marks = ", ".join("?" * len(window.stages))
        sql = (
            f"{_SELECT} WHERE seq > ? AND seq <= ? AND stage IN ({marks}) AND decided_us BETWEEN ? AND ? "
            "ORDER BY seq LIMIT ?"
        )
        first = max(after, window.first - 1)
        values = (first, window.last, *window.stages, window.since_us, window.until_us, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, values))
        found = self._database.bad_rows.read_each(_READERS, "decisions", rows, _decision_from_row)
        known = {each.decision_id for each in found}
        bad = [str(row[1]) for row in rows if row[1] not in known]
        return found, bad, rows[-1][0] if rows else None


def insert_decision(tx: Tx, decision: Decision) -> None:
    tx.execute(
        f"INSERT INTO decisions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            decision.decision_id,
            decision.stage,
            decision.kind,
            decision.sentence,
            decision.inputs,
            decision.outcome,
            to_microseconds(decision.decided),
            decision.about,
        ),
    )


def last_schedule_slot(tx: Tx) -> datetime | None:
    """The newest time of the schedule that was dealt with."""
    row = tx.row("SELECT seq FROM cursors WHERE name = ?", (_SLOT,))
    return (
        from_microseconds(row[0])
        if row and isinstance(row[0], int) and 0 <= row[0] <= LATEST
        else None
    )


def claim_schedule_slot(tx: Tx, slot: datetime) -> bool:
    """True for whoever comes first with this time of the schedule."""
    return bool(
        tx.execute(
            "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
            "SET seq = excluded.seq WHERE cursors.seq < excluded.seq",
            (_SLOT, to_microseconds(slot)),
        )
    )


def _decision_from_row(row: Row) -> Decision:
    seq, key, stage, kind, sentence, inputs, outcome, decided, about = row
    return check_row_types(
        Decision(
            key,
            stage,
            kind,
            sentence,
            bytes_of_column(inputs),
            bytes_of_column(outcome),
            from_microseconds(decided),
            seq,
            about,
        )
    )
