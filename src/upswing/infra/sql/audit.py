"""What did operators do, and is any of it missing? Rows in a chain of hashes.

    row 1 ──hash──▶ row 2 ──hash──▶ row 3 ◀── head: 3 rows, this hash

Each row's hash covers its content and the hash before it, so a row that was changed, removed, added or moved breaks
the chain there; the head shows that rows at the end are missing. Whoever can write to the database can make a new
chain of all rows: who fears that keeps a head elsewhere (`upswing audit` prints it, the log tells each one) and
checks that it is still part of the chain.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

import msgspec

from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column
from upswing.infra.sql.paging import PageWanted, TableList, TablePage
from upswing.infra.sql.store import existing_tables, from_microseconds, to_microseconds
from upswing.records import AuditEntry

log = logging.getLogger(__name__)
_STAGE = "audit"
_COLUMNS = "who, what, about, detail, written_us, before_state, after_state"
_SELECT = f"SELECT seq, {_COLUMNS}, prev, hash FROM audit"
_LIST = TableList("audit", f"{_COLUMNS}, prev, hash", "written_us")
_STEP = 2000
"""Rows that are read at once."""


def audit_entry(
    who: str,
    what: str,
    about: str,
    written: datetime,
    *,
    detail: object = None,
    before: object = None,
    after: object = None,
) -> AuditEntry:
    """An entry whose detail and states are anything that is JSON; None: there is nothing to say."""

    def state(value: object) -> bytes | None:
        return None if value is None else msgspec.json.encode(value)

    return AuditEntry(
        who, what, about, msgspec.json.encode(detail), written, state(before), state(after)
    )


def append_audit(tx: Tx, entry: AuditEntry) -> str:
    """Write an entry behind the newest, in the transaction of what it tells of; its hash."""
    entries, prev = _head(tx) or _begin_chain(tx)
    columns = _columns(entry)
    digest = entry_hash(prev, columns)
    tx.execute(
        f"INSERT INTO audit ({_COLUMNS}, prev, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*columns, prev, digest),
    )
    _set_head(tx, entries + 1, digest)
    return digest


def log_audit(entry: AuditEntry, digest: str) -> None:
    """Tell the log, which may lie elsewhere, once the entry is durable."""
    extra = {"action": "audit", "hash": digest}
    log.info("%s: %s %s", entry.who, entry.what, entry.about, extra=extra)


def _columns(entry: AuditEntry) -> tuple[object, ...]:
    """As both databases keep them: a text holds no null character and no half of a pair."""
    texts = (
        text.replace("\0", "\ufffd").encode(errors="replace").decode()
        for text in (entry.who, entry.what, entry.about)
    )
    return (*texts, entry.detail, to_microseconds(entry.written), entry.before, entry.after)


def entry_hash(prev: str, columns: Sequence[object]) -> str:
    """Over everything in a row; each part with its length, so that nothing can move from one into the next.

    >>> entry_hash("", ("a", "bc"))[:8], entry_hash("", ("ab", "c"))[:8]
    ('a2444b54', '924c1214')
    """
    whole = sha256()
    for part in (prev, *columns):
        raw = b"" if part is None else _raw(part)
        whole.update(b"-" if part is None else b"%d:%s" % (len(raw), raw))
    return whole.hexdigest()


def _raw(part: object) -> bytes:
    if isinstance(part, bytes | bytearray | memoryview):
        return bytes(part)
    return str(part).encode(errors="replace")


def _head(tx: Tx) -> tuple[int, str] | None:
    row = tx.row("SELECT entries, hash FROM audit_head WHERE id = 1")
    if row is None or not isinstance(row[0], int) or not isinstance(row[1], str):
        return None
    return row[0], row[1]


def _set_head(tx: Tx, entries: int, digest: str) -> None:
    tx.execute(
        "INSERT INTO audit_head (id, entries, hash) VALUES (1, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET entries = excluded.entries, hash = excluded.hash",
        (entries, digest),
    )


def _begin_chain(tx: Tx) -> tuple[int, str]:
    """Where a row goes on that finds no head: behind older rows, which it seals.

    Where there is a chain, somebody has removed its head, and nobody knows how many rows with it. Then the new row
    follows none, so that this stays to be seen.
    """
    row = tx.row("SELECT COUNT(*) FROM audit WHERE hash <> ''")
    if row is None or not row[0]:
        return _seal_older(tx)
    return int(row[0]), _LOST_HEAD


def _seal_older(tx: Tx) -> tuple[int, str]:
    """Chain the rows that were written before there was a chain."""
    entries, prev = 0, ""
    for row in tx.rows(f"{_SELECT} ORDER BY seq"):
        digest = entry_hash(prev, row[1:8])
        tx.execute("UPDATE audit SET prev = ?, hash = ? WHERE seq = ?", (prev, digest, row[0]))
        entries, prev = entries + 1, digest
    _set_head(tx, entries, prev)
    return entries, prev


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class StoredAudit:
    """An entry with its place in the chain."""

    seq: int
    entry: AuditEntry
    prev: str
    hash: str


@dataclass(frozen=True, slots=True)
class ChainState:
    """How far the chain was followed, and whether it holds so far."""

    seq: int = 0
    """The last row that was read."""
    entries: int = 0
    hash: str = ""
    broken: str = ""
    """A sentence; empty: it holds."""
    done: bool = False


BEGINNING = ChainState()
"""Nothing is read yet."""


class AuditTrail:
    """The rows. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, entry: AuditEntry) -> None:
        """Write an entry of an action that is durable already."""
        log_audit(entry, await self._database.write(lambda tx: append_audit(tx, entry)))

    async def list(self, wanted: PageWanted) -> tuple[list[StoredAudit], int | None]:
        """The newest first, and the row before which the next page begins."""

        def list_in_transaction(tx: Tx) -> TablePage:
            return _LIST.read(tx, wanted) if _has_chain(tx) else TablePage([], None)

        page = await self._database.view(list_in_transaction)
        found = self._database.bad_rows.read_each(_STAGE, "audit", page.rows, _stored_from_row)
        return found, page.position

    async def has_hash(self, digest: str) -> bool:
        """Whether a row has this hash."""
        sql = "SELECT 1 FROM audit WHERE hash = ? LIMIT 1"
        return await self._database.view(
            lambda tx: _has_chain(tx) and tx.row(sql, (digest,)) is not None
        )

    async def head(self) -> tuple[int, str]:
        """How many entries there are, and the hash of the newest."""
        return await self._database.view(lambda tx: (_has_chain(tx) and _head(tx)) or (0, ""))

    async def verify(self, state: ChainState = BEGINNING, limit: int = _STEP) -> ChainState:
        """Follow the chain by so many rows; the answer goes into the next call until it is done or broken."""

        def verify_in_transaction(tx: Tx) -> ChainState:
            if not _has_chain(tx):
                return ChainState(done=True)
            head = _head(tx)
            rows = tx.rows(f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?", (state.seq, limit + 1))
            if head is None:
                return _without_head(tx)
            found = _follow(state, rows[:limit])
            return found if found.broken or len(rows) > limit else _compare_head(found, head)

        return await self._database.view(verify_in_transaction)


def _without_head(tx: Tx) -> ChainState:
    """Nothing was written since there is a chain, or somebody has removed its head."""
    row = tx.row("SELECT COUNT(*), COUNT(NULLIF(hash, '')) FROM audit")
    rows, chained = (int(row[0]), int(row[1])) if row else (0, 0)
    broken = "The chain has no head: somebody has removed it." if chained else ""
    return ChainState(entries=rows, broken=broken, done=not broken)


def _has_chain(tx: Tx) -> bool:
    """A store that an older version left has no chain."""
    return "audit_head" in existing_tables(tx)


def _follow(state: ChainState, rows: Sequence[Row]) -> ChainState:
    seq, entries, known = state.seq, state.entries, state.hash
    for row in rows:
        seq, prev, digest = row[0], row[8], row[9]
        if prev != known:
            why = "one or more rows before it are missing, or it was moved" if prev else _BY_HAND
            return ChainState(seq, entries, known, f"Row {seq} does not follow: {why}.")
        if entry_hash(prev, row[1:8]) != digest:
            return ChainState(seq, entries, known, f"Row {seq} was changed after it was written.")
        entries, known = entries + 1, digest
    return ChainState(seq, entries, known)


_LOST_HEAD = "the head was missing"
"""What stands in the place of a hash before a row that found no head."""
_BY_HAND = "it is no part of the chain; an older version or a hand has written it"


def _compare_head(found: ChainState, head: tuple[int, str]) -> ChainState:
    if (found.entries, found.hash) == head:
        return ChainState(found.seq, found.entries, found.hash, done=True)
    missing = head[0] - found.entries
    why = f"{missing} of the newest rows are missing" if missing > 0 else "its head is another"
    return ChainState(found.seq, found.entries, found.hash, f"The chain ends too early: {why}.")


def _entry_from_row(row: Row) -> AuditEntry:
    _, who, what, about, detail, written, before, after, *_ = row
    return AuditEntry(
        str(who),
        str(what),
        str(about),
        bytes_of_column(detail),
        from_microseconds(written),
        None if before is None else bytes_of_column(before),
        None if after is None else bytes_of_column(after),
    )


def _stored_from_row(row: Row) -> StoredAudit:
    return StoredAudit(int(row[0]), _entry_from_row(row), str(row[8]), str(row[9]))
