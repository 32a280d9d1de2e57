"""What becomes of a row that a stage cannot read? A dead letter, and the stage goes on.

    rows ─▶ read each ─▶ those that could be read
                │
                └──▶ bad row: log, counter ─▶ dead letter, before the stage's cursor passes it

| reading it raises | whose fault it is  | what follows                                            |
|-------------------|--------------------|---------------------------------------------------------|
| `Transient`, or   | nobody's           | raised: the stage tries again; there is no dead letter  |
| `OSError` of work |                    |                                                         |
| `Rejected`        | the row's          | a dead letter with the reason and the sentence          |
| anything else     | the row's, or ours | a dead letter, `unreadable`, with the traceback in it   |

Whoever reads rows in a thread of the store collects the bad ones (`BadRows`); whoever may write turns them into dead
letters (`DeadLetterWriter`). A row has one letter, however often it is met: a letter's id follows from stage, location
and content.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import NAMESPACE_URL, UUID, uuid5

from msgspec import UNSET
from prometheus_client import CollectorRegistry, Counter

from upswing.contracts.dead import DeadLetter
from upswing.errors import Reason, Rejected, Transient
from upswing.records import RejectedMessage

if TYPE_CHECKING:
    from upswing.infra.sql.store import SqlStore

log = logging.getLogger(__name__)
R = TypeVar("R")
T = TypeVar("T")
_REMEMBERED = 100_000
"""Rows that are remembered, so that a stage that meets one every second says so once."""
_TRACEBACK_CHARACTERS = 3000
"""Characters of a traceback that are kept, the last ones."""
_WAITING, _HELD_BYTES = 10_000, 64 * 1024 * 1024
"""Rows that wait for their dead letters at most, where nobody can write them, and of how many bytes: beyond that
they lose their text, or are in the log only."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that a stage could not read."""

    dead_id: UUID
    stage: str
    location: str
    """Table and key, or stream and number."""
    raw: bytes
    sha256: str
    error: Rejected


class BadRowMetrics:
    """How many rows could not be read, and how often a part broke."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Counter(
            "upswing_rows_set_aside_total",
            "Rows and messages that a stage could not read.",
            ["stage", "reason"],
            registry=registry,
        )
        self._rounds = Counter(
            "upswing_rounds_failed_total",
            "Rounds of a part that ended with an unexpected error.",
            ["part"],
            registry=registry,
        )

    def count_row(self, stage: str, reason: str) -> None:
        self._rows.labels(stage, reason).inc()

    def count_round(self, part: str) -> None:
        self._rounds.labels(part).inc()


class BadRows:
    """Rows that could not be read, until their dead letters are written. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[UUID, None] = OrderedDict()
        self._waiting: dict[UUID, BadRow] = {}
        self._held = 0
        self.on_bad_row: Callable[[str, str], None] = lambda _stage, _reason: None

    def read_each(
        self,
        stage: str,
        table: str,
        rows: Iterable[R],
        read: Callable[[R], T],
        *,
        key: Callable[[R], object] | None = None,
        raw: Callable[[R], bytes] | None = None,
    ) -> list[T]:
        """What `read` makes of each row; those over which it breaks become bad rows."""
        found: list[T] = []
        for row in rows:
            try:
                found.append(read(row))
            except Transient:
                raise
            except Exception as error:  # noqa: BLE001 - it is told with its traceback
                name = str(key(row)) if key else _row_key(row)
                self.add(stage, table, name, raw(row) if raw else row_bytes(row), error)
        return found

    def read_one(self, stage: str, table: str, row: R | None, read: Callable[[R], T]) -> T | None:
        """What `read` makes of a row; None when there is none, or none that can be read."""
        found = [] if row is None else self.read_each(stage, table, [row], read)
        return found[0] if found else None

    def add(self, stage: str, table: str, key: str, raw: bytes, error: Exception) -> None:
        """Log and count a row that cannot be read, and keep it for its dead letter."""
        location, digest = f"{table}/{key[:200]}", sha256(raw).hexdigest()
        dead_id = uuid5(NAMESPACE_URL, _encodable_text(f"{stage} {location} {digest}"))
        rejected = error if isinstance(error, Rejected) else _rejection_for(error)
        with self._lock:
            if dead_id in self._known:
                return
            self._known[dead_id] = None
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
            if len(self._waiting) < _WAITING:
                kept = raw if self._held + len(raw) <= _HELD_BYTES else b""
                self._held += len(kept)
                self._waiting[dead_id] = BadRow(dead_id, stage, location, kept, digest, rejected)
        self.on_bad_row(stage, rejected.reason.value)
        log.error(
            "%s cannot read %s, which becomes a dead letter: %s",
            stage,
            location,
            type(error).__name__,
            exc_info=None if isinstance(error, Rejected) else error,
            extra={
                "action": "alert",
                "reason": "row_set_aside",
                "stage": stage,
                "why": rejected.reason.value,
            },
        )

    def pending(self) -> list[BadRow]:
        with self._lock:
            return list(self._waiting.values())

    def remove(self, row: BadRow) -> None:
        with self._lock:
            if self._waiting.pop(row.dead_id, None):
                self._held -= len(row.raw)


class DeadLetterWriter:
    """Turns bad rows into dead letters. Without a store they are in the log only."""

    def __init__(
        self,
        bad_rows: BadRows | None = None,
        store: SqlStore | None = None,
        redact: Callable[[bytes, Rejected], RejectedMessage] | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.bad_rows = bad_rows or BadRows()
        self._store, self._redact, self._clock, self._on_change = store, redact, clock, on_change

    async def process_each(
        self,
        stage: str,
        table: str,
        rows: Iterable[R],
        work: Callable[[R], Awaitable[T]],
        *,
        key: Callable[[R], object] = str,
        raw: Callable[[R], bytes] | None = None,
    ) -> list[T]:
        """`work` on each row; those over which it breaks become dead letters, and the others go on."""
        done: list[T] = []
        for row in rows:
            try:
                done.append(await work(row))
            except (Transient, OSError):
                raise
            except Exception as error:  # noqa: BLE001 - it is told with its traceback
                body = raw(row) if raw else row_bytes(row)
                self.bad_rows.add(stage, table, str(key(row)), body, error)
        await self.flush()
        return done

    async def flush(self) -> int:
        """Write a dead letter for each bad row; how many. `Transient` when that cannot be just now."""
        if self._store is None or self._redact is None or self._clock is None:
            return 0
        pending = self.bad_rows.pending()
        for row in pending:
            await self._write(row, self._store, self._redact, self._clock())
            self.bad_rows.remove(row)
        if pending:
            self._on_change()
        return len(pending)

    async def _write(
        self,
        row: BadRow,
        store: SqlStore,
        redact: Callable[[bytes, Rejected], RejectedMessage],
        now: datetime,
    ) -> None:
        try:
            redacted = await asyncio.to_thread(redact, row.raw, row.error)
            letter = _dead_letter_for(row, redacted.detail, redacted.payload, now)
            await store.add_dead_letter(letter, stage=row.stage, user_id=redacted.user_id)
        except Transient:
            raise
        except Exception:
            message = "the dead letter of %s has no text"
            log.exception(
                message, row.location, extra={"action": "alert", "reason": "no_dead_letter"}
            )
            await _write_without_payload(row, store, now)


async def _write_without_payload(row: BadRow, store: SqlStore, now: datetime) -> None:
    """Location and reason alone; a row without even such a letter is in the log, and holds up nobody."""
    try:
        await store.add_dead_letter(
            _dead_letter_for(row, row.error.reason.value, None, now), stage=row.stage
        )
    except Transient:
        raise
    except Exception:
        log.exception(
            "%s gets no dead letter",
            row.location,
            extra={"action": "alert", "reason": "no_dead_letter"},
        )


def _dead_letter_for(row: BadRow, detail: str, payload: str | None, now: datetime) -> DeadLetter:
    return DeadLetter(
        dead_id=row.dead_id,
        timestamp=now,
        subject=_encodable_text(row.location),
        reason=row.error.reason.value,
        detail=_encodable_text(detail),
        deliveries=1,
        payload=UNSET if payload is None else _encodable_text(payload),
        sha256=row.sha256,
    )


def _encodable_text(text: str) -> str:
    """What UTF-8 can spell."""
    return text.encode("utf-8", "replace").decode()


def _rejection_for(error: Exception) -> Rejected:
    """The error as a reason, with where it happened: a mistake of ours must be found."""
    trace = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARACTERS:]
    return Rejected(Reason.UNREADABLE, f"{type(error).__name__}: {str(error)[:500]}\n{trace}")


def _row_key(row: object) -> str:
    first = row[0] if isinstance(row, tuple) and row else getattr(row, "seq", row)
    return str(first)


def row_bytes(row: Any) -> bytes:
    """A row as the bytes that a person could look at: its text, or all of its columns."""
    if isinstance(row, bytes | bytearray | memoryview):
        return bytes(row)
    if isinstance(row, tuple | list):
        return b" | ".join(row_bytes(value) for value in row)
    return repr(row).encode("utf-8", "replace")
