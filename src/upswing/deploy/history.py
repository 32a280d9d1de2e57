"""How did it come to this? Traffic over time, evidence as it grew, and what people had to hear of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from upswing.contracts.typed import from_json
from upswing.deploy.core.deployment_state import decode_rollout
from upswing.deploy.core.record import RolloutRecord, read_record
from upswing.deploy.core.rollout import Rollout
from upswing.deploy.core.rows import EvidencePoint, Incident, RolloutRow, TrafficStep
from upswing.deploy.repository import STAGE
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.store import from_microseconds, to_microseconds

MOST_POINTS = 2000
"""Of the evidence of one rollout that are read, the newest."""
MOST_STEPS = 1000
"""Changes of the traffic that are read, the newest."""
_LIVE = 50
"""Rollouts that are not over, the newest."""
_ROLLOUT = "SELECT rollout_id, model_id, baseline_id, state, share, body FROM rollouts"
_INCIDENT = "incident_id, rollout_id, model_id, reason, sentence, metrics, happened_us"
_INCIDENTS = TableList("incidents", _INCIDENT, "happened_us")
_STEPS = "SELECT at_us, shares, events, decision_id FROM traffic_history"
_POINTS = (
    "SELECT rollout_id, at_us, share, rewards, difference, lower_bound, upper_bound, requests, errors "
    "FROM evidence_history WHERE rollout_id = ? ORDER BY seq DESC LIMIT ?"
)


class RolloutHistory:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, name: str) -> Rollout | None:
        """The rollout of this id, or the newest one of the model of this name."""

        def find_in_transaction(tx: Tx) -> Row | None:
            return tx.row(f"{_ROLLOUT} WHERE rollout_id = ?", (name,)) or tx.row(
                f"{_ROLLOUT} WHERE model_id = ? ORDER BY seq DESC LIMIT 1", (name,)
            )

        row = await self._database.view(find_in_transaction)
        return self._database.bad_rows.read_one(STAGE, "rollouts", row, _rollout)

    async def live(self) -> list[Rollout]:
        """Those that are not over, the oldest first."""
        over = "('rolled_back', 'replaced', 'cancelled', 'succeeded')"
        sql = f"{_ROLLOUT} WHERE state NOT IN {over} ORDER BY seq DESC LIMIT {_LIVE}"
        rows = await self._database.view(lambda tx: tx.rows(sql))
        return self._database.bad_rows.read_each(STAGE, "rollouts", reversed(rows), _rollout)

    async def record(self, rollout_id: str) -> RolloutRecord:
        """What a rollout has shown; nothing, where that cannot be read."""
        sql = "SELECT rollout_id, body FROM evidence WHERE rollout_id = ?"
        row = await self._database.view(lambda tx: tx.row(sql, (rollout_id,)))
        found = self._database.bad_rows.read_one(STAGE, "evidence", row, _record)
        return found or RolloutRecord()

    async def points(self, rollout_id: str) -> list[EvidencePoint]:
        """Its evidence as it grew, the oldest first."""
        rows = await self._database.view(lambda tx: tx.rows(_POINTS, (rollout_id, MOST_POINTS)))
        return self._database.bad_rows.read_each(STAGE, "evidence_history", reversed(rows), _point)

    async def traffic(self, since: datetime, until: datetime) -> list[TrafficStep]:
        """The changes between, the oldest first, and before them what held at the beginning."""

        def traffic_in_transaction(tx: Tx) -> list[Row]:
            first = tx.rows(
                f"{_STEPS} WHERE at_us <= ? ORDER BY seq DESC LIMIT 1",
                (to_microseconds(since),),
            )
            rows = tx.rows(
                f"{_STEPS} WHERE at_us > ? AND at_us <= ? ORDER BY seq DESC LIMIT ?",
                (to_microseconds(since), to_microseconds(until), MOST_STEPS),
            )
            return [*first, *reversed(rows)]

        rows = await self._database.view(traffic_in_transaction)
        return self._database.bad_rows.read_each(STAGE, "traffic_history", rows, _step)

    async def incidents(self, wanted: PageWanted) -> tuple[Sequence[Incident], int | None]:
        """What people had to hear of, the newest first, and the row before which the next page begins."""
        page = await self._database.view(lambda tx: _INCIDENTS.read(tx, wanted))
        found = self._database.bad_rows.read_each(STAGE, "incidents", page.rows, _incident)
        return found, page.position


def _rollout(row: Row) -> Rollout:
    return decode_rollout(check_row_types(RolloutRow(*(*row[:5], bytes_of_column(row[5])))))


def _record(row: Row) -> RolloutRecord:
    return read_record(bytes_of_column(row[1]))


def _point(row: Row) -> EvidencePoint:
    return check_row_types(EvidencePoint(row[0], from_microseconds(row[1]), *row[2:]))


def _step(row: Row) -> TrafficStep:
    shares = from_json(bytes_of_column(row[1]), dict[str, float])
    events = from_json(bytes_of_column(row[2]), dict[str, str])
    return TrafficStep(from_microseconds(row[0]), shares, events, str(row[3]))


def _incident(row: Row) -> Incident:
    _, *values, metrics, happened = row
    known = (*values, bytes_of_column(metrics), from_microseconds(happened))
    return check_row_types(Incident(*known))
