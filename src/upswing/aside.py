"""What becomes of a row that a stage cannot read? It is set aside and buried, and the stage goes on.

    rows ─▶ read each ─▶ those that could be read
                │
                └──▶ set aside: log, counter ─▶ dead letter, before the stage's cursor passes it

| reading it raises | whose fault it is  | what follows                                            |
|-------------------|--------------------|---------------------------------------------------------|
| `Transient`, or   | nobody's           | raised: the stage tries again, and nothing is buried    |
| `OSError` of work |                    |                                                         |
| `Rejected`        | the row's          | a dead letter with the reason and the sentence          |
| anything else     | the row's, or ours | a dead letter, `unreadable`, with the traceback in it   |

Whoever reads rows in a thread of the store sets aside (`Aside`); whoever may write buries (`Burial`).
The same row is buried once, however often it is met: a letter's id follows from stage, place and content.
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
from typing import Any, Protocol, TypeVar
from uuid import NAMESPACE_URL, UUID, uuid5

from msgspec import UNSET
from prometheus_client import CollectorRegistry, Counter

from upswing.contracts.dead import DeadLetter
from upswing.errors import Reason, Rejected, Transient

log = logging.getLogger(__name__)
R = TypeVar("R")
T = TypeVar("T")
_KNOWN = 100_000
"""Rows that are remembered, so that a stage that meets one every second says so once."""
_TRACE = 3000
"""Characters of a traceback that are kept, the last ones."""
_WAITING, _HELD_BYTES = 10_000, 64 * 1024 * 1024
"""Rows that wait for their burial at most, where nobody can bury, and of how many bytes: beyond that
they lose their text, or are in the log only."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that a stage could not read."""

    dead_id: UUID
    stage: str
    place: str
    """Table and key, or stream and number."""
    raw: bytes
    sha256: str
    error: Rejected


class AsideMetrics:
    """How many rows were set aside, and how often a part broke."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._rows = Counter(
            "upswing_rows_set_aside_total", "Rows and messages that a stage could not read.",
            ["stage", "reason"], registry=registry,
        )  # fmt: skip
        self._rounds = Counter(
            "upswing_rounds_failed_total", "Rounds of a part that ended with an unexpected error.",
            ["part"], registry=registry,
        )  # fmt: skip

    def row(self, stage: str, reason: str) -> None:
        self._rows.labels(stage, reason).inc()

    def round(self, part: str) -> None:
        self._rounds.labels(part).inc()


class Aside:
    """What could not be read, until somebody buries it. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[UUID, None] = OrderedDict()
        self._waiting: dict[UUID, BadRow] = {}
        self._held = 0
        self.count: Callable[[str, str], None] = lambda _stage, _reason: None

    def sound(
        self, stage: str, table: str, rows: Iterable[R], read: Callable[[R], T],
        *, key: Callable[[R], object] | None = None, raw: Callable[[R], bytes] | None = None,
    ) -> list[T]:  # fmt: skip
        """What `read` makes of each row; those over which it breaks are set aside."""
        found: list[T] = []
        for row in rows:
            try:
                found.append(read(row))
            except Transient:
                raise
            except Exception as error:  # noqa: BLE001 - it is told with its traceback
                name = str(key(row)) if key else _key(row)
                self.note(stage, table, name, raw(row) if raw else bytes_of(row), error)
        return found

    def one(self, stage: str, table: str, row: R | None, read: Callable[[R], T]) -> T | None:
        """What `read` makes of a row; None when there is none, or none that can be read."""
        found = [] if row is None else self.sound(stage, table, [row], read)
        return found[0] if found else None

    def note(self, stage: str, table: str, key: str, raw: bytes, error: Exception) -> None:
        """Tell and count a row that cannot be read, and keep it for its burial."""
        place, digest = f"{table}/{key[:200]}", sha256(raw).hexdigest()
        dead_id = uuid5(NAMESPACE_URL, _plain(f"{stage} {place} {digest}"))
        told = error if isinstance(error, Rejected) else _unreadable(error)
        with self._lock:
            if dead_id in self._known:
                return
            self._known[dead_id] = None
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
            if len(self._waiting) < _WAITING:
                kept = raw if self._held + len(raw) <= _HELD_BYTES else b""
                self._held += len(kept)
                self._waiting[dead_id] = BadRow(dead_id, stage, place, kept, digest, told)
        self.count(stage, told.reason.value)
        log.error(
            "%s sets %s aside: %s", stage, place, type(error).__name__,
            exc_info=None if isinstance(error, Rejected) else error,
            extra={"action": "alert", "stage": stage, "reason": told.reason.value},
        )  # fmt: skip

    def waiting(self) -> list[BadRow]:
        with self._lock:
            return list(self._waiting.values())

    def buried(self, row: BadRow) -> None:
        with self._lock:
            if self._waiting.pop(row.dead_id, None):
                self._held -= len(row.raw)


class Refused(Protocol):
    """What may be kept of a row: all of it redacted."""

    @property
    def detail(self) -> str: ...
    @property
    def payload(self) -> str | None: ...
    @property
    def user_id(self) -> str | None: ...


class KeepsDead(Protocol):
    async def bury(self, letter: DeadLetter, *, stage: str, user_id: str | None = None) -> None: ...


class Burial:
    """Turns what was set aside into dead letters. Without a store it is told in the log only."""

    def __init__(
        self, aside: Aside | None = None, store: KeepsDead | None = None,
        refuse: Callable[[bytes, Rejected], Refused] | None = None,
        *, clock: Callable[[], datetime] | None = None, changed: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.aside = aside or Aside()
        self._store, self._refuse, self._clock, self._changed = store, refuse, clock, changed

    async def each(
        self, stage: str, table: str, rows: Iterable[R], work: Callable[[R], Awaitable[T]],
        *, key: Callable[[R], object] = str, raw: Callable[[R], bytes] | None = None,
    ) -> list[T]:  # fmt: skip
        """`work` on each row; those over which it breaks are buried, and the others go on."""
        done: list[T] = []
        for row in rows:
            try:
                done.append(await work(row))
            except (Transient, OSError):
                raise
            except Exception as error:  # noqa: BLE001 - it is told with its traceback
                told = raw(row) if raw else bytes_of(row)
                self.aside.note(stage, table, str(key(row)), told, error)
        await self.bury()
        return done

    async def bury(self) -> int:
        """Write a dead letter for each that waits; how many. `Transient` when that cannot be just now."""
        if self._store is None or self._refuse is None or self._clock is None:
            return 0
        waiting = self.aside.waiting()
        for row in waiting:
            await self._one(row, self._store, self._refuse, self._clock())
            self.aside.buried(row)
        if waiting:
            self._changed()
        return len(waiting)

    async def _one(
        self, row: BadRow, store: KeepsDead, refuse: Callable[[bytes, Rejected], Refused],
        now: datetime,
    ) -> None:  # fmt: skip
        try:
            told = await asyncio.to_thread(refuse, row.raw, row.error)
            letter = _letter(row, told.detail, told.payload, now)
            await store.bury(letter, stage=row.stage, user_id=told.user_id)
        except Transient:
            raise
        except Exception:
            log.exception("%s is buried without its text", row.place, extra={"action": "alert"})
            await _bare(row, store, now)


async def _bare(row: BadRow, store: KeepsDead, now: datetime) -> None:
    """Place and reason alone; a row that cannot even be buried so is in the log, and holds up nobody."""
    try:
        await store.bury(_letter(row, row.error.reason.value, None, now), stage=row.stage)
    except Transient:
        raise
    except Exception:
        log.exception("%s cannot be buried", row.place, extra={"action": "alert"})


def _letter(row: BadRow, detail: str, payload: str | None, now: datetime) -> DeadLetter:
    return DeadLetter(
        dead_id=row.dead_id,
        timestamp=now,
        subject=_plain(row.place),
        reason=row.error.reason.value,
        detail=_plain(detail),
        deliveries=1,
        payload=UNSET if payload is None else _plain(payload),
        sha256=row.sha256,
    )


def _plain(text: str) -> str:
    """What UTF-8 can spell."""
    return text.encode("utf-8", "replace").decode()


def _unreadable(error: Exception) -> Rejected:
    """The error as a reason, with where it happened: a mistake of ours must be found."""
    told = "".join(traceback.format_exception(error))[-_TRACE:]
    return Rejected(Reason.UNREADABLE, f"{type(error).__name__}: {str(error)[:500]}\n{told}")


def _key(row: object) -> str:
    first = row[0] if isinstance(row, tuple) and row else getattr(row, "seq", row)
    return str(first)


def bytes_of(row: Any) -> bytes:
    """A row as the bytes that a person could look at: its text, or all of its columns."""
    if isinstance(row, bytes | bytearray | memoryview):
        return bytes(row)
    if isinstance(row, tuple | list):
        return b" | ".join(bytes_of(value) for value in row)
    return repr(row).encode("utf-8", "replace")
