"""What does the loop remember? Each method is one durable step, in SQLite and PostgreSQL alike."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import msgspec

from upswing.contracts import DeadLetter, decode, encode
from upswing.contracts.topics import FEEDBACK, FEEDBACKS, TRAJECTORIES, TRAJECTORY
from upswing.errors import Misuse
from upswing.infra.sql import store_mark
from upswing.infra.sql.attempts import Attempts
from upswing.infra.sql.counter_tables import COUNTED
from upswing.infra.sql.database import (
    Database,
    Row,
    Tx,
    bytes_of_column,
    check_row_types,
    connect_postgres,
    connect_sqlite,
    translating_database_errors,
    verified_bytes_of_column,
)
from upswing.infra.sql.dead_tables import SUBJECTS, count_with_newest_letter, prune_dead
from upswing.infra.sql.key_tables import OWN_FIRST
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.schema import migrate_schema
from upswing.principals import BEGUN_BY, NOBODY, Sender, may_speak
from upswing.records import (
    Admitted,
    AdmittedFeedback,
    OutboxEntry,
    Receipt,
    StoredDeadLetter,
    StoredTrajectory,
    Taken,
)

LATEST = 253_370_000_000_000_000
"""Microseconds since 1970 that are still a time, with a year to spare."""
_STAGE, _RELAY = "store", "relay"
_DEAD_COLUMNS = "stage, body, replayed_us, key_id, many, more"
_DEAD = f"SELECT seq, {_DEAD_COLUMNS} FROM dead"
_DEAD_LIST = TableList("dead", _DEAD_COLUMNS, "created_us")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = tuple(
    {"started": "started_us", "ended": "ended_us"}.get(field.name, field.name)
    for field in fields(Admitted)
)
_INSERT = (
    f"INSERT INTO trajectories ({', '.join(_COLUMNS)}, door, stored_us) "
    f"VALUES ({', '.join('?' * (len(_COLUMNS) + 2))}) ON CONFLICT (trajectory_id) DO NOTHING"
)
_SELECT = f"SELECT seq, door, stored_us, {', '.join(_COLUMNS)} FROM trajectories"

_TABLES = {TRAJECTORIES: ("trajectories", "trajectory_id"), FEEDBACKS: ("feedback", "feedback_id")}
"""Which rows the messages of a stream tell of, and their key."""


def _placeholders_for(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def to_microseconds(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_microseconds(us: int) -> datetime:
    """The inverse of `to_microseconds`."""
    return _EPOCH + timedelta(microseconds=us)


class SqlStore(Attempts):
    """The store behind every port that remembers."""

    def __init__(
        self, database: Database, lock: IO[str] | None = None, folder: Path | None = None
    ) -> None:
        """`folder`: the data directory of a SQLite store that is marked and sealed."""
        super().__init__(database)
        self._lock = lock
        self.folder = folder

    async def prepare(self) -> None:
        """Make or migrate the tables."""
        await self.database.write(
            lambda tx: migrate_schema(tx, "postgres" if tx.postgres else "sqlite")
        )

    def close(self) -> None:
        """Commit what waits, close, and let another process be the writer."""
        self.database.close()
        if self.folder is not None:
            store_mark.record_and_seal(self.folder)
        if self._lock is not None:
            self._lock.close()

    # ── trajectories ─────────────────────────────────────────────────────────────────────────

    async def take(
        self,
        admitted: Admitted,
        *,
        door: str,
        now: datetime,
        stream_seq: int | None,
        announce: bool,
        overrides: bool = False,
    ) -> Taken:
        """Store it once, whatever is delivered how often."""
        values = (*map(_column_value, shallow_field_values(admitted)), door, to_microseconds(now))
        key = admitted.trajectory_id

        def take_in_transaction(tx: Tx) -> Taken:
            if tx.row("SELECT 1 FROM erased WHERE ref = ?", (key,)):
                return Taken.ERASED
            if not overrides and key_that_began(tx, key) not in {"", admitted.key_id}:
                return Taken.NOT_YOURS
            if tx.execute(_INSERT, values) == 0:
                row = tx.row(
                    "SELECT content_hash FROM trajectories WHERE trajectory_id = ?", (key,)
                )
                if row is None or bytes_of_column(row[0]) != admitted.content_hash:
                    return Taken.CONFLICT
                outcome = Taken.KNOWN
            else:
                outcome = Taken.STORED
                if announce:
                    insert_outbox_message(tx, TRAJECTORY, admitted.content_hash.hex(), ref=key)
            if stream_seq is not None:
                _note_carried_content(tx, TRAJECTORIES, stream_seq, key)
            return outcome

        return await self.database.write(take_in_transaction)

    async def already_stored(self, stream: str, contents: Mapping[int, bytes]) -> dict[int, bool]:
        """Which of these messages carry content that is stored, byte for byte?

        Given as sequence number → hash. The value tells whether the store knows the message too.
        """
        table, _ = _TABLES[stream]
        hashes, seqs = tuple(set(contents.values())), tuple(contents)

        def find_stored_in_transaction(tx: Tx) -> dict[int, bool]:
            sql = f"SELECT content_hash FROM {table} WHERE content_hash IN ({_placeholders_for(hashes)})"
            found = {bytes_of_column(row[0]) for row in tx.rows(sql, hashes)}
            if not found:
                return {}
            sql = f"SELECT stream_seq FROM carried WHERE stream = ? AND stream_seq IN ({_placeholders_for(seqs)})"
            carried = {row[0] for row in tx.rows(sql, (stream, *seqs))}
            return {seq: seq in carried for seq, content in contents.items() if content in found}

        return await self.database.read(find_stored_in_transaction) if contents else {}

    async def note_carried(self, stream: str, contents: Mapping[int, bytes]) -> None:
        """Remember which messages of `stream` carry which stored content."""
        table, key = _TABLES[stream]
        sql = (
            f"INSERT INTO carried (stream, stream_seq, ref) SELECT ?, ?, {key} FROM {table} "
            "WHERE content_hash = ? ON CONFLICT DO NOTHING"
        )

        def note_carried_in_transaction(tx: Tx) -> None:
            for seq, content in contents.items():
                tx.execute(sql, (stream, seq, content))

        await self.database.write(note_carried_in_transaction)

    async def trajectory(self, trajectory_id: str) -> StoredTrajectory | None:
        sql = f"{_SELECT} WHERE trajectory_id = ?"
        row = await self.database.read(lambda tx: tx.row(sql, (trajectory_id,)))
        return self.database.bad_rows.read_one(_STAGE, "trajectories", row, _trajectory_from_row)

    async def trajectories_after(self, seq: int, limit: int = 500) -> list[StoredTrajectory]:
        """The next ones in the order in which they were stored."""
        sql = f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?"
        while rows := await self.database.read(_rows_query(sql, (seq, limit))):
            if found := self.database.bad_rows.read_each(
                _STAGE, "trajectories", rows, _trajectory_from_row
            ):
                return found
            seq = rows[-1][0]  # not one of them can be read: whoever follows wants those behind
        return []

    # ── feedback ─────────────────────────────────────────────────────────────────────────────

    async def take_feedback(
        self,
        admitted: AdmittedFeedback,
        *,
        now: datetime,
        announce: bool,
        stream_seq: int | None = None,
    ) -> Taken:
        """Store a user's word once, unless it speaks of somebody else's work."""

        def take_feedback_in_transaction(tx: Tx) -> Taken:
            if tx.row("SELECT 1 FROM erased WHERE ref = ?", (admitted.feedback_id,)):
                return Taken.ERASED
            owner, may = _owner_of_feedback(tx, admitted)
            if not may:
                return Taken.NOT_YOURS
            user = admitted.user_id or (None if admitted.trusted else owner)
            key = _feedback_key(tx, admitted)
            if tx.row("SELECT 1 FROM erased WHERE ref = ?", (key,)):
                return Taken.ERASED
            inserted = tx.execute(
                "INSERT INTO feedback (feedback_id, content_hash, body, trajectory_id, episode_id, "
                "inference_id, user_id, principal, trusted, many, stored_us) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (feedback_id) DO NOTHING",
                (
                    key,
                    *astuple(admitted)[1:6],
                    user,
                    admitted.principal,
                    int(admitted.trusted),
                    int(admitted.many),
                    to_microseconds(now),
                ),
            )
            if inserted:
                if announce:
                    insert_outbox_message(
                        tx,
                        FEEDBACK,
                        admitted.content_hash.hex(),
                        ref=key,
                        payload=admitted.body,
                    )
            else:
                row = tx.row(
                    "SELECT content_hash FROM feedback WHERE feedback_id = ?",
                    (key,),
                )
                if row is None or bytes_of_column(row[0]) != admitted.content_hash:
                    return Taken.CONFLICT
            if stream_seq is not None:
                _note_carried_content(tx, FEEDBACKS, stream_seq, key)
            return Taken.STORED if inserted else Taken.KNOWN

        return await self.database.write(take_feedback_in_transaction)

    async def may_feedback_count(self, admitted: AdmittedFeedback) -> bool:
        """May this word count, as far as its trajectory is known?"""
        return await self.database.read(lambda tx: _owner_of_feedback(tx, admitted)[1])

    # ── dead letters ─────────────────────────────────────────────────────────────────────────

    async def add_dead_letter(
        self,
        letter: DeadLetter,
        *,
        stage: str,
        user_id: str | None = None,
        announced: bool = False,
        sender: Sender = NOBODY,
    ) -> None:
        """Keep a dead letter and announce it, unless it comes from the bus and is `announced` already."""
        await self.database.write(
            lambda tx: insert_dead_letter(
                tx, letter, stage=stage, user_id=user_id, announced=announced, sender=sender
            )
        )

    async def list_dead_letters(
        self, *, reason: str | None = None, limit: int = 100
    ) -> list[StoredDeadLetter]:
        """The newest dead letters first."""
        where, params = ("WHERE reason = ?", (reason, limit)) if reason else ("", (limit,))
        sql = f"{_DEAD} {where} ORDER BY seq DESC LIMIT ?"
        rows = await self.database.read(lambda tx: tx.rows(sql, params))
        return self.database.bad_rows.read_each(_STAGE, "dead", rows, _dead_letter_from_row)

    async def dead_letter_page(
        self, wanted: PageWanted
    ) -> tuple[list[StoredDeadLetter], int | None]:
        """The newest dead letters first, and the row before which the next page begins."""
        page = await self.database.view(lambda tx: _DEAD_LIST.read(tx, wanted))
        read_each = self.database.bad_rows.read_each
        return read_each(_STAGE, "dead", page.rows, _dead_letter_from_row), page.position

    async def dead_letter(self, dead_id: str) -> StoredDeadLetter | None:
        sql = f"{_DEAD} WHERE dead_id = ?"
        row = await self.database.read(lambda tx: tx.row(sql, (dead_id,)))
        return self.database.bad_rows.read_one(_STAGE, "dead", row, _dead_letter_from_row)

    async def prune_dead(self, before: datetime) -> int:
        """Delete dead letters from before then, and of a key with very many the oldest; how many."""
        return await self.database.write(lambda tx: prune_dead(tx, to_microseconds(before)))

    async def mark_replayed(self, dead_id: str, now: datetime) -> None:
        sql = "UPDATE dead SET replayed_us = ? WHERE dead_id = ?"
        await self.database.write(lambda tx: tx.execute(sql, (to_microseconds(now), dead_id)))

    # ── outbox ───────────────────────────────────────────────────────────────────────────────

    async def outbox(self, limit: int = 256) -> list[OutboxEntry]:
        """The oldest messages that the bus has not acknowledged; dead letters behind all others."""
        sql = (
            "SELECT o.seq, o.subject, o.msg_id, o.payload, t.body, t.content_hash FROM outbox o "
            "LEFT JOIN trajectories t ON t.trajectory_id = o.ref "
            f"WHERE o.subject {{}} '{SUBJECTS}%' ORDER BY o.seq LIMIT ?"
        )

        def outbox_in_transaction(tx: Tx) -> list[Row]:
            rows = tx.rows(sql.format("NOT LIKE"), (limit,))
            return [*rows, *tx.rows(sql.format("LIKE"), (limit - len(rows),))]

        rows = await self.database.read(outbox_in_transaction)
        found = self.database.bad_rows.read_each(_RELAY, "outbox", rows, _outbox_entry_from_row)
        lost = {row[0] for row in rows} - {each.seq for each in found}
        if lost:  # they are set aside, and would stand in the way of all behind them
            await self.discard(tuple(lost))
        return found if found or not rows else await self.outbox(limit)

    async def discard(self, seqs: Sequence[int]) -> None:
        """These messages can never be published."""
        sql = f"DELETE FROM outbox WHERE seq IN ({_placeholders_for(seqs)})"
        await self.database.write(lambda tx: tx.execute(sql, tuple(seqs)))

    async def mark_delivered(self, receipts: Sequence[Receipt]) -> None:
        """The bus has these; remember where, in case they must be erased one day."""
        carry = (
            "INSERT INTO carried (stream, stream_seq, ref) SELECT ?, ?, ref FROM outbox "
            "WHERE seq = ? AND ref IS NOT NULL ON CONFLICT DO NOTHING"
        )
        doom = (
            "INSERT INTO carried (stream, stream_seq, ref, doomed) VALUES (?, ?, '', 1) "
            "ON CONFLICT DO NOTHING"
        )
        seqs = tuple(receipt.seq for receipt in receipts)

        def delivered_in_transaction(tx: Tx) -> None:
            there = tx.rows(
                f"SELECT seq FROM outbox WHERE seq IN ({_placeholders_for(seqs)})", seqs
            )
            known = {row[0] for row in there}
            for receipt in receipts:
                if receipt.seq in known:
                    tx.execute(carry, (receipt.stream, receipt.stream_seq, receipt.seq))
                else:  # erased while it was on its way: it must not stay on the bus
                    tx.execute(doom, (receipt.stream, receipt.stream_seq))
            tx.execute(f"DELETE FROM outbox WHERE seq IN ({_placeholders_for(seqs)})", seqs)

        await self.database.write(delivered_in_transaction)

    async def forget_carried(self, stream: str, before: int) -> None:
        """The stream no longer holds messages before this one."""

        def forget_carried_in_transaction(tx: Tx) -> None:
            for table in ("carried", "attempts"):
                sql = f"DELETE FROM {table} WHERE stream = ? AND stream_seq < ?"
                tx.execute(sql, (stream, before))

        await self.database.write(forget_carried_in_transaction)

    # ── small things ─────────────────────────────────────────────────────────────────────────

    async def counts(self) -> dict[str, int]:
        """How many rows each table has, as counted by every change; a table of a later stage counts zero."""
        return await self.database.view(table_counts)

    async def setting(self, name: str, default: bytes | None = None) -> bytes | None:
        """A remembered value; with `default`, whoever comes first decides it for all."""

        def setting_in_transaction(tx: Tx) -> bytes | None:
            if default is not None:
                tx.execute(
                    "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                    (name, default),
                )
            row = tx.row("SELECT value FROM settings WHERE name = ?", (name,))
            return bytes_of_column(row[0]) if row else None

        return await self.database.write(setting_in_transaction)

    async def cursor(self, name: str) -> int:
        row = await self.database.read(
            lambda tx: tx.row("SELECT seq FROM cursors WHERE name = ?", (name,))
        )
        return int(row[0]) if row else 0

    async def move_cursor(self, name: str, seq: int) -> None:
        sql = (
            "INSERT INTO cursors (name, seq) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq"
        )
        await self.database.write(lambda tx: tx.execute(sql, (name, seq)))


def shallow_field_values(admitted: Admitted) -> tuple[Any, ...]:
    """The fields in order, without the deep copy that `dataclasses.astuple` makes."""
    return tuple(getattr(admitted, field.name) for field in fields(admitted))


def _rows_query(sql: str, params: tuple[object, ...]) -> Callable[[Tx], list[Row]]:
    return lambda tx: tx.rows(sql, params)


def _outbox_entry_from_row(row: Row) -> OutboxEntry:
    """A message; one whose row is gone says nothing and is sent all the same."""
    seq, subject, msg_id, payload, body, content_hash = row
    if payload is None and body is not None:
        payload = verified_bytes_of_column(body, content_hash)
    return check_row_types(OutboxEntry(seq, subject, msg_id, bytes_of_column(payload or b"")))


def _column_value(value: object) -> object:
    """As both databases keep it: times in microseconds, flags as 0 and 1."""
    if isinstance(value, datetime):
        return to_microseconds(value)
    return int(value) if isinstance(value, bool) else value


def table_counts(tx: Tx) -> dict[str, int]:
    """How many rows each table has; one whose count cannot be read is counted."""
    there = existing_tables(tx)
    rows = tx.rows("SELECT name, n FROM counts") if "counts" in there else []
    kept = {row[0]: row[1] for row in rows}

    def count(name: str) -> int:
        if isinstance(known := kept.get(name), int):
            return known
        return int(tx.rows(f"SELECT COUNT(*) FROM {name}")[0][0]) if name in there else 0

    return {name: count(name) for name in COUNTED}


def existing_tables(tx: Tx) -> set[str]:
    """The names of the tables that exist."""
    sql = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        if tx.postgres
        else "SELECT name FROM sqlite_master WHERE type = 'table'"
    )
    return {row[0] for row in tx.rows(sql)}


def _owners_of_feedback_target(tx: Tx, feedback: AdmittedFeedback) -> list[tuple[str | None, str]]:
    """User and key of what this word may speak of, its own key's first; (None, "") when there is none, or not yet.

    Two keys may name an episode alike, so what one has named keeps no other from its own.
    """
    for column, value in (
        ("trajectory_id", feedback.trajectory_id),
        ("episode_id", feedback.episode_id),
    ):
        if value is not None:
            rows = tx.rows(
                f"SELECT DISTINCT t.user_id, t.key_id, {OWN_FIRST} AS later FROM trajectories t "
                f"WHERE t.{column} = ? ORDER BY later, t.key_id, t.user_id",
                (feedback.principal, value),
            )
            return [(row[0], row[1]) for row in rows] or [(None, "")]
    return [(None, "")]


def _may_count_for_owner(feedback: AdmittedFeedback, owner: str | None, key: str) -> bool:
    return may_speak(
        feedback.user_id,
        owner,
        trusted=feedback.trusted,
        key=feedback.principal,
        recorded_by=key,
        many=feedback.many,
    )


def _owner_of_feedback(tx: Tx, feedback: AdmittedFeedback) -> tuple[str | None, bool]:
    """Whose work it is about, and may it count?"""
    owners = [
        owner
        for owner, key in _owners_of_feedback_target(tx, feedback)
        if _may_count_for_owner(feedback, owner, key)
    ]
    return (owners[0], True) if owners else (None, False)


def _feedback_key(tx: Tx, feedback: AdmittedFeedback) -> str:
    """The id of its row. Ids are each key's own: one that another key took first gets a hash of the key behind it."""
    sql = "SELECT principal, content_hash FROM feedback WHERE feedback_id = ?"
    row = tx.row(sql, (feedback.feedback_id,))
    if (
        row is None
        or row[0] in {"", feedback.principal}
        or bytes_of_column(row[1]) == feedback.content_hash
    ):
        return feedback.feedback_id
    return f"{feedback.feedback_id}#{sha256(feedback.principal.encode()).hexdigest()[:16]}"


def key_that_began(tx: Tx, trajectory_id: str) -> str:
    """The key that has begun to tell it in steps; empty where none has, or nobody knows which."""
    row = tx.row("SELECT head FROM open_trajectories WHERE trajectory_id = ?", (trajectory_id,))
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = msgspec.json.decode(bytes_of_column(row[0])) if row else {}
        return str(head.get(BEGUN_BY) or "") if isinstance(head, dict) else ""
    return ""


def insert_outbox_message(
    tx: Tx, subject: str, msg_id: str, *, ref: str | None = None, payload: bytes | None = None
) -> None:
    tx.execute(
        "INSERT INTO outbox (subject, msg_id, ref, payload) VALUES (?, ?, ?, ?)",
        (subject, msg_id, ref, payload),
    )


def insert_dead_letter(
    tx: Tx,
    letter: DeadLetter,
    *,
    stage: str,
    user_id: str | None,
    announced: bool = False,
    sender: Sender = NOBODY,
    whole: bool = False,
) -> None:
    """Keep a dead letter, and announce one that is not `announced` already.

    `whole`: it was acknowledged once, so it is never only counted.
    """
    if not whole and count_with_newest_letter(
        tx, letter.reason, to_microseconds(letter.timestamp), sender
    ):
        return
    body, dead_id = encode(letter), str(letter.dead_id)
    new = tx.execute(
        "INSERT INTO dead (dead_id, stage, reason, user_id, body, created_us, key_id, many) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dead_id) DO NOTHING",
        (
            dead_id,
            stage,
            letter.reason,
            user_id,
            body,
            to_microseconds(letter.timestamp),
            sender.key_id,
            int(sender.many),
        ),
    )
    if new and not announced:
        insert_outbox_message(tx, f"{SUBJECTS}{stage}", dead_id, ref=dead_id, payload=body)


def _note_carried_content(tx: Tx, stream: str, stream_seq: int, ref: str) -> None:
    tx.execute(
        "INSERT INTO carried (stream, stream_seq, ref) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (stream, stream_seq, ref),
    )


def _trajectory_from_row(row: Row) -> StoredTrajectory:
    seq, door, stored_us, *values = row
    by_name = dict(zip((field.name for field in fields(Admitted)), values, strict=True))
    by_name |= {
        "content_hash": bytes_of_column(by_name["content_hash"]),
        "body": verified_bytes_of_column(by_name["body"], by_name["content_hash"]),
        "started": from_microseconds(by_name["started"]),
        "ended": from_microseconds(by_name["ended"]),
        "infra_error": bool(by_name["infra_error"]),
        "evaluation": bool(by_name["evaluation"]),
        "practice": bool(by_name["practice"]),
        "many": bool(by_name["many"]),
        "continuous": bool(by_name["continuous"]),
    }
    return StoredTrajectory(
        seq, door, from_microseconds(stored_us), check_row_types(Admitted(**by_name))
    )


def _dead_letter_from_row(row: Row) -> StoredDeadLetter:
    seq, stage, body, replayed_us, key_id, many, more = row
    replayed = from_microseconds(replayed_us) if replayed_us is not None else None
    sender = Sender(key_id, many=bool(many) and bool(key_id))
    return StoredDeadLetter(
        seq, stage, decode(DeadLetter, bytes_of_column(body)), replayed, sender, int(more)
    )


def lock_for_writing(folder: Path) -> IO[str]:
    """Hold the directory's lock; whoever comes second is told who has it."""
    lock = (folder / "lock").open("a+", errors="replace")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read(20).strip()
        holder = holder if holder.isdecimal() else "unknown"
        lock.close()
        raise Misuse(
            f"{folder} is in use by process {holder}: stop it, or give another directory with --data."
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def is_locked(folder: Path) -> bool:
    """Whether another process has this directory now."""
    try:
        with (folder / "lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def open_store(folder: Path, url: str | None = None) -> SqlStore:
    """The store to write to: PostgreSQL when `url` names it, else SQLite in `folder`."""
    if url:
        return SqlStore(_open_postgres(url))
    lock = lock_for_writing(folder)
    try:
        return SqlStore(_open_sqlite(folder), lock, folder)
    except BaseException:
        lock.close()
        raise


def _open_sqlite(folder: Path) -> Database:
    """The database, if it is still what it was when it was last written."""
    path = str(folder / store_mark.DATABASE)
    with translating_database_errors():
        store_mark.check_and_unseal(folder)
    return Database(
        lambda: connect_sqlite(path),
        postgres=False,
        reader=lambda: connect_sqlite(path),
        viewer=lambda: connect_sqlite(path, read_only=True),
    )


def open_in_memory_store() -> SqlStore:
    """The store's twin for tests: the same code on a database that lives in memory."""
    return SqlStore(Database(lambda: connect_sqlite(":memory:"), postgres=False))


def open_store_read_only(folder: Path, url: str | None = None) -> SqlStore:
    """The store to look at, beside a running loop or without one."""
    if url:
        return SqlStore(_open_postgres(url))
    path = folder / "upswing.db"
    if not path.exists():
        raise Misuse(f"{folder} holds no loop yet: start one with `upswing up --data {folder}`.")

    def connect() -> Any:
        return connect_sqlite(str(path), read_only=True)

    return SqlStore(Database(connect, postgres=False, reader=connect))


def _open_postgres(url: str) -> Database:
    def connect() -> Any:
        return connect_postgres(url)

    return Database(connect, postgres=True, reader=connect, viewer=connect)
