"""What was decided, on what, and why? The journal, and how far the schedule has been dealt with."""

from __future__ import annotations

from datetime import datetime

from upswing.adapters.sql.database import Database, Row, Tx, blob, checked
from upswing.adapters.sql.store import LATEST, micros, moment
from upswing.ports import Decision

_COLUMNS = "decision_id, stage, kind, sentence, inputs, outcome, decided_us"
_SELECT = f"SELECT seq, {_COLUMNS} FROM decisions"
_SLOT = "trigger slot"
_READERS = "journal"


class Decisions:
    """The journal. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, decision: Decision | None, *, slot: datetime | None = None) -> None:
        """Write a decision down, and that the schedule's time `slot` is dealt with."""

        def unit(tx: Tx) -> None:
            if decision is not None:
                insert(tx, decision)
            if slot is not None:
                deal_with_slot(tx, slot)

        await self._database.write(unit)

    async def get(self, decision_id: str) -> Decision | None:
        sql = f"{_SELECT} WHERE decision_id = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (decision_id,)))
        return self._database.aside.one(_READERS, "decisions", row, _decision)

    async def reached(self) -> datetime | None:
        """How far the clock of decisions and ramps is known to have come."""
        sql = (
            "SELECT MAX(at_us) FROM (SELECT decided_us AS at_us FROM decisions UNION ALL "
            "SELECT held_us AS at_us FROM controller) AS known WHERE at_us BETWEEN 0 AND ?"
        )
        row = await self._database.read(lambda tx: tx.row(sql, (LATEST,)))
        return moment(int(row[0])) if row and row[0] is not None else None

    async def list(
        self, stage: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[Decision]:
        """The newest first."""
        sql = f"{_SELECT} WHERE (? = '' OR stage = ?) AND decided_us >= ? ORDER BY seq DESC LIMIT ?"
        params = (stage or "", stage or "", micros(since) if since else 0, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, params))
        return self._database.aside.sound(_READERS, "decisions", rows, _decision)


def insert(tx: Tx, decision: Decision) -> None:
    tx.execute(
        f"INSERT INTO decisions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            decision.decision_id, decision.stage, decision.kind, decision.sentence, decision.inputs,
            decision.outcome, micros(decision.decided),
        ),
    )  # fmt: skip


def last_slot(tx: Tx) -> datetime | None:
    """The newest time of the schedule that was dealt with."""
    row = tx.row("SELECT seq FROM cursors WHERE name = ?", (_SLOT,))
    return moment(row[0]) if row and isinstance(row[0], int) and 0 <= row[0] <= LATEST else None


def deal_with_slot(tx: Tx, slot: datetime) -> bool:
    """True for whoever comes first with this time of the schedule."""
    return bool(
        tx.execute(
            "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
            "SET seq = excluded.seq WHERE cursors.seq < excluded.seq",
            (_SLOT, micros(slot)),
        )
    )


def _decision(row: Row) -> Decision:
    seq, key, stage, kind, sentence, inputs, outcome, decided = row
    return checked(
        Decision(key, stage, kind, sentence, blob(inputs), blob(outcome), moment(decided), seq)
    )
