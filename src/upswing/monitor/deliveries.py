"""What waits for a webhook, and what became of it? A queue of rows for each address.

| a delivery is          | it …                                                                       |
|------------------------|----------------------------------------------------------------------------|
| `waiting`              | is sent when those before it were, again and again while the address fails |
| `sent`                 | was answered with a 2xx                                                    |
| `given_up`             | was refused for good, is too old, or had too many behind it                |

A notice and its deliveries are one transaction. An address that fails keeps `MOST_WAITING` of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from upswing.contracts.notices import Severity
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.store import from_microseconds, to_microseconds
from upswing.monitor.core.webhook_bodies import NoticeEvent, is_heard

STAGE = "monitor"
MOST_WAITING = 500
"""For one address; the oldest give way."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A webhook as far as queueing needs it."""

    name: str
    severity: Severity = "info"
    alerts: bool = True
    reports: bool = True


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One notice for one address."""

    seq: int
    delivery_id: str
    target: str
    kind: str
    ref: str
    body: bytes
    state: str
    tries: int
    error: str
    queued: datetime
    next: datetime
    ended: datetime | None


_TIMES = ("queued", "next", "ended")
_COLUMNS = tuple(
    f"{each.name}_us" if each.name in _TIMES else each.name for each in fields(DeliveryRow)
)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM deliveries"
_GIVE_UP = (
    "UPDATE deliveries SET state = 'given_up', error = ?, ended_us = ? WHERE state = 'waiting'"
)


def queue_notice(
    tx: Tx,
    recipients: Sequence[Recipient],
    kind: NoticeEvent,
    ref: str,
    body: bytes,
    *,
    now: datetime,
    severity: str = "urgent",
    state: str = "",
) -> None:
    """Queue a notice for everybody who hears of such; the same notice is queued once."""
    for each in recipients:
        if not _wants(each, kind, severity):
            continue
        name = f"{each.name}-{ref}" + (f"-{state}" if state else "")
        tx.execute(
            "INSERT INTO deliveries (delivery_id, target, kind, ref, body, state, queued_us, next_us) "
            "VALUES (?, ?, ?, ?, ?, 'waiting', ?, ?) ON CONFLICT DO NOTHING",
            (name, each.name, kind, ref, body, to_microseconds(now), to_microseconds(now)),
        )
        tx.execute(
            f"{_GIVE_UP} AND target = ? AND seq <= (SELECT seq FROM deliveries WHERE state = 'waiting' "
            f"AND target = ? ORDER BY seq DESC LIMIT 1 OFFSET {MOST_WAITING})",
            ("Too many wait behind it.", to_microseconds(now), each.name, each.name),
        )


def _wants(recipient: Recipient, kind: NoticeEvent, severity: str) -> bool:
    if kind == "report":
        return recipient.reports
    known: Severity = (
        "urgent" if severity == "urgent" else "warning" if severity == "warning" else "info"
    )
    return recipient.alerts and is_heard(known, recipient.severity)


class DeliveryQueue:
    """The rows. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def first_waiting(self, target: str) -> DeliveryRow | None:
        """The oldest delivery to this address that was neither sent nor given up."""
        sql = f"{_SELECT} WHERE state = 'waiting' AND target = ? ORDER BY seq LIMIT 1"
        row = await self._database.read(lambda tx: tx.row(sql, (target,)))
        found = self._database.bad_rows.read_one(STAGE, "deliveries", row, _delivery_from_row)
        if row is not None and found is None:
            await self._end(int(row[0]), "given_up", "Its row cannot be read.", None)
            return await self.first_waiting(target)
        return found

    async def sent(self, delivery: DeliveryRow, now: datetime) -> None:
        await self._end(delivery.seq, "sent", "", now)

    async def give_up(self, delivery: DeliveryRow, error: str, now: datetime) -> None:
        await self._end(delivery.seq, "given_up", error, now)

    async def postpone(self, delivery: DeliveryRow, error: str, until: datetime) -> None:
        """It is tried again then."""
        sql = "UPDATE deliveries SET tries = tries + 1, error = ?, next_us = ? WHERE seq = ?"
        values = (error, to_microseconds(until), delivery.seq)
        await self._database.write(lambda tx: tx.execute(sql, values))

    async def give_up_strangers(self, known: Sequence[str], now: datetime) -> int:
        """What waits for addresses that the config does not name any more."""
        marks = ", ".join("?" * len(known)) or "''"
        values = ("The config names no such webhook any more.", to_microseconds(now), *known)
        return await self._database.write(
            lambda tx: tx.execute(f"{_GIVE_UP} AND target NOT IN ({marks})", values)
        )

    async def of_notice(self, ref: str) -> list[DeliveryRow]:
        """All deliveries of an alert or a report, in the order in which they were queued."""
        sql = f"{_SELECT} WHERE ref = ? ORDER BY seq LIMIT 200"
        rows = await self._database.read(lambda tx: tx.rows(sql, (ref,)))
        return self._database.bad_rows.read_each(STAGE, "deliveries", rows, _delivery_from_row)

    async def prune(self, before: datetime) -> int:
        """Forget what was sent or given up by then."""
        sql = "DELETE FROM deliveries WHERE state <> 'waiting' AND ended_us < ?"
        return await self._database.write(lambda tx: tx.execute(sql, (to_microseconds(before),)))

    async def _end(self, seq: int, state: str, error: str, now: datetime | None) -> None:
        sql = "UPDATE deliveries SET state = ?, tries = tries + 1, error = ?, ended_us = ? WHERE seq = ?"
        values = (state, error, to_microseconds(now) if now else 0, seq)
        await self._database.write(lambda tx: tx.execute(sql, values))


def _delivery_from_row(row: Row) -> DeliveryRow:
    values: dict[str, Any] = dict(
        zip((each.name for each in fields(DeliveryRow)), row, strict=True)
    )
    values |= {
        name: None if values[name] is None else from_microseconds(values[name]) for name in _TIMES
    }
    return check_row_types(DeliveryRow(**(values | {"body": bytes_of_column(values["body"])})))
