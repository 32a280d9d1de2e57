"""Which alerts are there, how do they stand, and who has to hear of a change?

A change of an alert, its message for the bus, its deliveries to webhooks and how far the monitor has read are
one transaction: after a crash nothing is missing, and nothing is told twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from upswing.contracts import AlertNotice, encode
from upswing.contracts.notices import AlertState
from upswing.contracts.topics import ALERT
from upswing.contracts.typed import from_tree
from upswing.errors import Conflict, Misuse
from upswing.infra.sql.audit import append_audit
from upswing.infra.sql.cursors import move_cursor
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.store import from_microseconds, insert_outbox_message, to_microseconds
from upswing.monitor.core.alert_catalog import CATALOG
from upswing.monitor.core.alert_states import (
    AlertChange,
    BeginAlert,
    ContinueAlert,
    OpenAlert,
    ResolveAlert,
)
from upswing.monitor.deliveries import Recipient, queue_notice
from upswing.records import AuditEntry

STAGE = "monitor"
_SHORTEST = 4
"""Characters of an id by which an alert is looked for."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert as it stands in the store."""

    seq: int
    alert_id: str
    cause: str
    name: str
    severity: str
    state: str
    summary: str
    labels: bytes
    evidence: bytes
    times: int
    began: datetime
    changed: datetime
    seen: datetime
    acknowledged_by: str | None
    acknowledged: datetime | None
    note: str | None
    over: str | None
    """Why it is over."""
    resolved: datetime | None

    @property
    def runbook(self) -> str:
        kind = CATALOG.get(self.name)
        return kind.runbook if kind else ""


_TIMES = ("began", "changed", "seen", "acknowledged", "resolved")
_COLUMNS = tuple(
    f"{each.name}_us" if each.name in _TIMES else each.name for each in fields(AlertRow)
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM alerts"
_OPEN = "state <> 'resolved'"
_LONGEST = 2000
"""Characters of a notice's sentence."""
_MOST_OPEN = 1000
"""Open alerts that are looked at: more causes than that are one trouble."""


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Which alerts are wanted; None: all."""

    states: Collection[str] | None = None
    severity: str | None = None
    name: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Changed since, and before then."""
    before_seq: int | None = None
    """Only those before this one: the next page."""


class AlertRepository:
    """The rows. Every write is durable when it returns."""

    def __init__(
        self,
        database: Database,
        recipients: Sequence[Recipient],
        *,
        new_id: Callable[[], UUID],
    ) -> None:
        """`recipients` are the webhooks to which changes are delivered one by one."""
        self._database, self._recipients, self._new_id = database, recipients, new_id

    async def open_alerts(self) -> list[AlertRow]:
        """Those that are not resolved, the oldest first."""
        sql = f"{_SELECT} WHERE {_OPEN} ORDER BY seq LIMIT {_MOST_OPEN}"
        return self._read(await self._database.read(lambda tx: tx.rows(sql)))

    async def resolved_since(self, since: datetime) -> list[AlertRow]:
        sql = f"{_SELECT} WHERE state = 'resolved' AND resolved_us >= ? ORDER BY seq DESC LIMIT 200"
        params = (to_microseconds(since),)
        return self._read(await self._database.read(lambda tx: tx.rows(sql, params)))

    async def get(self, alert_id: str) -> AlertRow | None:
        return await read_alert(self._database, alert_id)

    async def search(self, wanted: AlertFilter, limit: int) -> list[AlertRow]:
        """The newest first."""
        return await read_alerts(self._database, wanted, limit)

    async def apply(
        self, changes: Sequence[AlertChange], cursors: Mapping[str, int], now: datetime
    ) -> list[AlertRow]:
        """Carry these out, and remember how far the monitor has read; the alerts whose state changed."""

        def apply_in_transaction(tx: Tx) -> list[AlertRow]:
            changed = [row for change in changes if (row := self._apply_one(tx, change, now))]
            for name, seq in cursors.items():
                move_cursor(tx, name, seq)
            return changed

        return await self._database.write(apply_in_transaction)

    async def acknowledge(
        self, alert_id: str, by: str, note: str, now: datetime, audit: AuditEntry | None
    ) -> AlertRow | None:
        """A person has seen it; None: there is no such alert. `Conflict` when it is over."""

        def acknowledge_in_transaction(tx: Tx) -> AlertRow | None:
            before = _alert(tx, alert_id)
            if before is None or before.state == "acknowledged":
                return before
            if before.state == "resolved":
                raise Conflict(f"{before.name} is over since {before.resolved:%Y-%m-%d %H:%M} UTC.")
            tx.execute(
                "UPDATE alerts SET state = 'acknowledged', acknowledged_by = ?, acknowledged_us = ?, "
                "note = ?, changed_us = ? WHERE alert_id = ?",
                (by, to_microseconds(now), note, to_microseconds(now), alert_id),
            )
            if audit is not None:
                append_audit(tx, audit)
            return self._announce(tx, alert_id, now)

        return await self._database.write(acknowledge_in_transaction)

    async def prune(self, before: datetime) -> int:
        """Forget alerts that were over by then."""
        sql = "DELETE FROM alerts WHERE state = 'resolved' AND resolved_us < ?"
        return await self._database.write(lambda tx: tx.execute(sql, (to_microseconds(before),)))

    def _apply_one(self, tx: Tx, change: AlertChange, now: datetime) -> AlertRow | None:
        match change:
            case BeginAlert():
                alert_id = str(self._new_id())
                return (
                    self._announce(tx, alert_id, now)
                    if _insert(tx, alert_id, change, now)
                    else None
                )
            case ContinueAlert():
                _count_again(tx, change, now)
                return None
            case ResolveAlert():
                done = tx.execute(
                    "UPDATE alerts SET state = 'resolved', resolved_us = ?, changed_us = ?, over = ? "
                    f"WHERE alert_id = ? AND {_OPEN}",
                    (to_microseconds(now), to_microseconds(now), change.why, change.alert_id),
                )
                return self._announce(tx, change.alert_id, now) if done else None

    def _announce(self, tx: Tx, alert_id: str, now: datetime) -> AlertRow | None:
        """Tell the bus and the webhooks how it stands now."""
        row = _alert(tx, alert_id)
        if row is None:
            return None
        body = encode(notice_of(row, now))
        insert_outbox_message(tx, ALERT, f"{alert_id}-{row.state}", payload=body)
        queue_notice(
            tx,
            self._recipients,
            "alert",
            alert_id,
            body,
            severity=row.severity,
            state=row.state,
            now=now,
        )
        return row

    def _read(self, rows: Sequence[Row]) -> list[AlertRow]:
        return _alerts_from_rows(self._database, rows)


async def read_alert(database: Database, alert_id: str) -> AlertRow | None:
    """The alert of this id, or the only one whose id begins so; `Misuse` where several do."""
    found = await database.view(lambda tx: _alert(tx, alert_id))
    if found is not None or len(alert_id) < _SHORTEST:
        return found
    sql = f"{_SELECT} WHERE substr(alert_id, 1, ?) = ? ORDER BY seq DESC LIMIT 10"
    rows = await database.view(lambda tx: tx.rows(sql, (len(alert_id), alert_id)))
    several = _alerts_from_rows(database, rows)
    if len(several) > 1:
        ids = ", ".join(each.alert_id for each in several)
        raise Misuse(f"Several alerts begin with {alert_id}: {ids}. Give more of the id.")
    return several[0] if several else None


async def read_alerts(database: Database, wanted: AlertFilter, limit: int) -> list[AlertRow]:
    """The newest first, for who only reads."""
    where, params = _where(wanted)
    sql = f"{_SELECT} {where} ORDER BY seq DESC LIMIT ?"
    return _alerts_from_rows(
        database, await database.view(lambda tx: tx.rows(sql, (*params, limit)))
    )


def _alerts_from_rows(database: Database, rows: Sequence[Row]) -> list[AlertRow]:
    return database.bad_rows.read_each(
        STAGE, "alerts", rows, _alert_from_row, key=lambda row: row[1]
    )


def as_open(row: AlertRow) -> OpenAlert:
    """What deciding needs of it."""
    state: AlertState = "acknowledged" if row.state == "acknowledged" else "firing"
    return OpenAlert(row.alert_id, row.name, row.cause, state, row.began, row.seen)


def notice_of(row: AlertRow, now: datetime) -> AlertNotice:
    """The alert as it travels."""
    return from_tree(
        {
            "alert_id": row.alert_id,
            "timestamp": now,
            "name": row.name,
            "severity": row.severity,
            "state": row.state,
            "summary": (f"{row.over} It was: {row.summary}" if row.over else row.summary)[
                :_LONGEST
            ],
            "labels": msgspec.json.decode(row.labels),
            "evidence": msgspec.json.decode(row.evidence),
            "runbook": row.runbook,
        },
        AlertNotice,
    )


def _insert(tx: Tx, alert_id: str, change: BeginAlert, now: datetime) -> bool:
    seen, at = change.seen, to_microseconds(now)
    new = tx.execute(
        "INSERT INTO alerts (alert_id, cause, name, severity, state, summary, labels, evidence, times, "
        "began_us, changed_us, seen_us) VALUES (?, ?, ?, ?, 'firing', ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (
            alert_id,
            seen.cause,
            seen.name,
            change.severity,
            seen.summary,
            _encode(seen.labels),
            _encode(seen.evidence),
            seen.times,
            at,
            at,
            at,
        ),
    )
    return bool(new)


def _count_again(tx: Tx, change: ContinueAlert, now: datetime) -> None:
    seen = change.seen
    tx.execute(
        f"UPDATE alerts SET times = times + ?, seen_us = ?, summary = ?, evidence = ? WHERE alert_id = ? AND {_OPEN}",
        (seen.times, to_microseconds(now), seen.summary, _encode(seen.evidence), change.alert_id),
    )


def _alert(tx: Tx, alert_id: str) -> AlertRow | None:
    row = tx.row(f"{_SELECT} WHERE alert_id = ?", (alert_id,))
    return tx.bad_rows.read_one(STAGE, "alerts", row, _alert_from_row)


def _alert_from_row(row: Row) -> AlertRow:
    values: dict[str, Any] = dict(zip((each.name for each in fields(AlertRow)), row, strict=True))
    values |= {
        name: None if values[name] is None else from_microseconds(values[name]) for name in _TIMES
    }
    values |= {name: bytes_of_column(values[name]) for name in ("labels", "evidence")}
    return check_row_types(AlertRow(**values))


def _where(wanted: AlertFilter) -> tuple[str, tuple[object, ...]]:
    parts: list[str] = []
    params: list[object] = []
    if wanted.states is not None:
        parts.append(f"state IN ({', '.join('?' * len(wanted.states))})")
        params += wanted.states
    for column, value in (("severity = ?", wanted.severity), ("name = ?", wanted.name)):
        if value is not None:
            parts.append(column)
            params.append(value)
    for column, at in (("changed_us >= ?", wanted.since), ("changed_us < ?", wanted.until)):
        if at is not None:
            parts.append(column)
            params.append(to_microseconds(at))
    if wanted.before_seq is not None:
        parts.append("seq < ?")
        params.append(wanted.before_seq)
    return f"WHERE {' AND '.join(parts)}" if parts else "", tuple(params)


def _encode(tree: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(dict(tree))
