"""What does the loop remember? Each method is one durable step, in SQLite and PostgreSQL alike."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import msgspec

from upswing.adapters.sql import mark
from upswing.adapters.sql.attempts import Attempts
from upswing.adapters.sql.database import (
    Database,
    Row,
    Tx,
    blob,
    blob_of,
    checked,
    connect_postgres,
    connect_sqlite,
    foreign_errors,
)
from upswing.adapters.sql.key_tables import OWN_FIRST
from upswing.adapters.sql.schema import migrate
from upswing.contracts import DeadLetter, decode, encode
from upswing.contracts.topics import FEEDBACK, FEEDBACKS, TRAJECTORIES, TRAJECTORY
from upswing.errors import Misuse
from upswing.ports import (
    Admitted,
    AdmittedFeedback,
    Buried,
    OutboxEntry,
    Receipt,
    StoredTrajectory,
    Taken,
)
from upswing.senders import BEGUN_BY, NOBODY, Sender, may_speak

LATEST = 253_370_000_000_000_000
"""Microseconds since 1970 that are still a time, with a year to spare."""
_STAGE, _RELAY = "store", "relay"
_DEAD = "SELECT seq, stage, body, replayed_us, key_id, many FROM dead"
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
COUNTED = (
    "trajectories",
    "rewards",
    "judged",
    "dead",
    "jobs",
    "models",
    "feedback",
    "outbox",
    "optouts",
)


_TABLES = {TRAJECTORIES: ("trajectories", "trajectory_id"), FEEDBACKS: ("feedback", "feedback_id")}
"""Which rows the messages of a stream tell of, and their key."""


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(us: int) -> datetime:
    """The inverse of `micros`."""
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
        await self.database.write(lambda tx: migrate(tx, "postgres" if tx.postgres else "sqlite"))

    def close(self) -> None:
        """Commit what waits, close, and let another process be the writer."""
        self.database.close()
        if self.folder is not None:
            mark.end(self.folder)
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
        values = (*map(_value, astuple_flat(admitted)), door, micros(now))
        key = admitted.trajectory_id

        def unit(tx: Tx) -> Taken:
            if tx.row("SELECT 1 FROM erased WHERE ref = ?", (key,)):
                return Taken.ERASED
            if not overrides and begun_by(tx, key) not in {"", admitted.key_id}:
                return Taken.NOT_YOURS
            if tx.execute(_INSERT, values) == 0:
                row = tx.row(
                    "SELECT content_hash FROM trajectories WHERE trajectory_id = ?", (key,)
                )
                if row is None or blob(row[0]) != admitted.content_hash:
                    return Taken.CONFLICT
                outcome = Taken.KNOWN
            else:
                outcome = Taken.STORED
                if announce:
                    post(tx, TRAJECTORY, admitted.content_hash.hex(), ref=key)
            if stream_seq is not None:
                _carry(tx, TRAJECTORIES, stream_seq, key)
            return outcome

        return await self.database.write(unit)

    async def echoes(self, stream: str, contents: Mapping[int, bytes]) -> dict[int, bool]:
        """Which of these messages carry content that is stored, byte for byte?

        Given as sequence number → hash. The value tells whether the store knows the message too.
        """
        table, _ = _TABLES[stream]
        hashes, seqs = tuple(set(contents.values())), tuple(contents)

        def unit(tx: Tx) -> dict[int, bool]:
            sql = f"SELECT content_hash FROM {table} WHERE content_hash IN ({_marks(hashes)})"
            found = {blob(row[0]) for row in tx.rows(sql, hashes)}
            if not found:
                return {}
            sql = f"SELECT stream_seq FROM carried WHERE stream = ? AND stream_seq IN ({_marks(seqs)})"
            carried = {row[0] for row in tx.rows(sql, (stream, *seqs))}
            return {seq: seq in carried for seq, content in contents.items() if content in found}

        return await self.database.read(unit) if contents else {}

    async def note_carried(self, stream: str, contents: Mapping[int, bytes]) -> None:
        """Remember which messages of `stream` carry which stored content."""
        table, key = _TABLES[stream]
        sql = (
            f"INSERT INTO carried (stream, stream_seq, ref) SELECT ?, ?, {key} FROM {table} "
            "WHERE content_hash = ? ON CONFLICT DO NOTHING"
        )

        def unit(tx: Tx) -> None:
            for seq, content in contents.items():
                tx.execute(sql, (stream, seq, content))

        await self.database.write(unit)

    async def trajectory(self, trajectory_id: str) -> StoredTrajectory | None:
        sql = f"{_SELECT} WHERE trajectory_id = ?"
        row = await self.database.read(lambda tx: tx.row(sql, (trajectory_id,)))
        return self.database.aside.one(_STAGE, "trajectories", row, _stored)

    async def trajectories_after(self, seq: int, limit: int = 500) -> list[StoredTrajectory]:
        """The next ones in the order in which they were stored."""
        sql = f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?"
        while rows := await self.database.read(_asking(sql, (seq, limit))):
            if found := self.database.aside.sound(_STAGE, "trajectories", rows, _stored):
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

        def unit(tx: Tx) -> Taken:
            if tx.row("SELECT 1 FROM erased WHERE ref = ?", (admitted.feedback_id,)):
                return Taken.ERASED
            owner, may = _speaks(tx, admitted)
            if not may:
                return Taken.NOT_YOURS
            user = admitted.user_id or (None if admitted.trusted else owner)
            inserted = tx.execute(
                "INSERT INTO feedback (feedback_id, content_hash, body, trajectory_id, episode_id, "
                "inference_id, user_id, principal, trusted, many, stored_us) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (feedback_id) DO NOTHING",
                (
                    *astuple(admitted)[:6], user, admitted.principal, int(admitted.trusted),
                    int(admitted.many), micros(now),
                ),
            )  # fmt: skip
            if inserted:
                if announce:
                    post(
                        tx,
                        FEEDBACK,
                        admitted.content_hash.hex(),
                        ref=admitted.feedback_id,
                        payload=admitted.body,
                    )
            else:
                row = tx.row(
                    "SELECT content_hash FROM feedback WHERE feedback_id = ?",
                    (admitted.feedback_id,),
                )
                if row is None or blob(row[0]) != admitted.content_hash:
                    return Taken.CONFLICT
            if stream_seq is not None:
                _carry(tx, FEEDBACKS, stream_seq, admitted.feedback_id)
            return Taken.STORED if inserted else Taken.KNOWN

        return await self.database.write(unit)

    async def speaks(self, admitted: AdmittedFeedback) -> bool:
        """May this word count, as far as its trajectory is known?"""
        return await self.database.read(lambda tx: _speaks(tx, admitted)[1])

    # ── dead letters ─────────────────────────────────────────────────────────────────────────

    async def bury(
        self, letter: DeadLetter, *, stage: str, user_id: str | None = None, heard: bool = False,
        sender: Sender = NOBODY,
    ) -> None:  # fmt: skip
        """Keep a dead letter and announce it; one that was `heard` on the bus is there already."""
        await self.database.write(
            lambda tx: bury(tx, letter, stage=stage, user_id=user_id, heard=heard, sender=sender)
        )

    async def dead(self, *, reason: str | None = None, limit: int = 100) -> list[Buried]:
        """The newest dead letters first."""
        where, params = ("WHERE reason = ?", (reason, limit)) if reason else ("", (limit,))
        sql = f"{_DEAD} {where} ORDER BY seq DESC LIMIT ?"
        rows = await self.database.read(lambda tx: tx.rows(sql, params))
        return self.database.aside.sound(_STAGE, "dead", rows, _buried)

    async def dead_letter(self, dead_id: str) -> Buried | None:
        sql = f"{_DEAD} WHERE dead_id = ?"
        row = await self.database.read(lambda tx: tx.row(sql, (dead_id,)))
        return self.database.aside.one(_STAGE, "dead", row, _buried)

    async def mark_replayed(self, dead_id: str, now: datetime) -> None:
        sql = "UPDATE dead SET replayed_us = ? WHERE dead_id = ?"
        await self.database.write(lambda tx: tx.execute(sql, (micros(now), dead_id)))

    # ── outbox ───────────────────────────────────────────────────────────────────────────────

    async def outbox(self, limit: int = 256) -> list[OutboxEntry]:
        """The oldest messages that the bus has not acknowledged."""
        sql = (
            "SELECT o.seq, o.subject, o.msg_id, o.payload, t.body, t.content_hash FROM outbox o "
            "LEFT JOIN trajectories t ON t.trajectory_id = o.ref ORDER BY o.seq LIMIT ?"
        )
        rows = await self.database.read(lambda tx: tx.rows(sql, (limit,)))
        found = self.database.aside.sound(_RELAY, "outbox", rows, _entry)
        lost = {row[0] for row in rows} - {each.seq for each in found}
        if lost:  # they are set aside, and would stand in the way of all behind them
            await self.discard(tuple(lost))
        return found if found or not rows else await self.outbox(limit)

    async def discard(self, seqs: Sequence[int]) -> None:
        """These messages can never be published."""
        sql = f"DELETE FROM outbox WHERE seq IN ({_marks(seqs)})"
        await self.database.write(lambda tx: tx.execute(sql, tuple(seqs)))

    async def delivered(self, receipts: Sequence[Receipt]) -> None:
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

        def unit(tx: Tx) -> None:
            there = tx.rows(f"SELECT seq FROM outbox WHERE seq IN ({_marks(seqs)})", seqs)
            known = {row[0] for row in there}
            for receipt in receipts:
                if receipt.seq in known:
                    tx.execute(carry, (receipt.stream, receipt.stream_seq, receipt.seq))
                else:  # erased while it was on its way: it must not stay on the bus
                    tx.execute(doom, (receipt.stream, receipt.stream_seq))
            tx.execute(f"DELETE FROM outbox WHERE seq IN ({_marks(seqs)})", seqs)

        await self.database.write(unit)

    async def forget_carried(self, stream: str, before: int) -> None:
        """The stream no longer holds messages before this one."""

        def unit(tx: Tx) -> None:
            for table in ("carried", "attempts"):
                sql = f"DELETE FROM {table} WHERE stream = ? AND stream_seq < ?"
                tx.execute(sql, (stream, before))

        await self.database.write(unit)

    # ── small things ─────────────────────────────────────────────────────────────────────────

    async def counts(self) -> dict[str, int]:
        """How many rows each table has; a table of a later stage counts zero."""

        def unit(tx: Tx) -> dict[str, int]:
            there = tables(tx)
            return {
                name: tx.rows(f"SELECT COUNT(*) FROM {name}")[0][0] if name in there else 0
                for name in COUNTED
            }

        return await self.database.read(unit)

    async def setting(self, name: str, default: bytes | None = None) -> bytes | None:
        """A remembered value; with `default`, whoever comes first decides it for all."""

        def unit(tx: Tx) -> bytes | None:
            if default is not None:
                tx.execute(
                    "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                    (name, default),
                )
            row = tx.row("SELECT value FROM settings WHERE name = ?", (name,))
            return blob(row[0]) if row else None

        return await self.database.write(unit)

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


def astuple_flat(admitted: Admitted) -> tuple[Any, ...]:
    """The fields in order, without the deep copy that `dataclasses.astuple` makes."""
    return tuple(getattr(admitted, field.name) for field in fields(admitted))


def _asking(sql: str, params: tuple[object, ...]) -> Callable[[Tx], list[Row]]:
    return lambda tx: tx.rows(sql, params)


def _entry(row: Row) -> OutboxEntry:
    """A message; one whose row is gone says nothing and is sent all the same."""
    seq, subject, msg_id, payload, body, content_hash = row
    if payload is None and body is not None:
        payload = blob_of(body, content_hash)
    return checked(OutboxEntry(seq, subject, msg_id, blob(payload or b"")))


def _value(value: object) -> object:
    """As both databases keep it: times in microseconds, flags as 0 and 1."""
    if isinstance(value, datetime):
        return micros(value)
    return int(value) if isinstance(value, bool) else value


def tables(tx: Tx) -> set[str]:
    """The names of the tables that exist."""
    sql = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        if tx.postgres
        else "SELECT name FROM sqlite_master WHERE type = 'table'"
    )
    return {row[0] for row in tx.rows(sql)}


def _recorded(tx: Tx, word: AdmittedFeedback) -> list[tuple[str | None, str]]:
    """User and key of what this word may speak of, its own key's first; (None, "") when there is none, or not yet.

    Two keys may name an episode alike, so what one has named keeps no other from its own.
    """
    for column, value in (("trajectory_id", word.trajectory_id), ("episode_id", word.episode_id)):
        if value is not None:
            rows = tx.rows(
                f"SELECT DISTINCT t.user_id, t.key_id, {OWN_FIRST} AS later FROM trajectories t "
                f"WHERE t.{column} = ? ORDER BY later, t.key_id, t.user_id",
                (word.principal, value),
            )
            return [(row[0], row[1]) for row in rows] or [(None, "")]
    return [(None, "")]


def _speaks_of(word: AdmittedFeedback, owner: str | None, key: str) -> bool:
    return may_speak(
        word.user_id,
        owner,
        trusted=word.trusted,
        key=word.principal,
        recorded_by=key,
        many=word.many,
    )


def _speaks(tx: Tx, word: AdmittedFeedback) -> tuple[str | None, bool]:
    """Whose work it is about, and may it count?"""
    owners = [owner for owner, key in _recorded(tx, word) if _speaks_of(word, owner, key)]
    return (owners[0], True) if owners else (None, False)


def begun_by(tx: Tx, trajectory_id: str) -> str:
    """The key that has begun to tell it in steps; empty where none has, or nobody knows which."""
    row = tx.row("SELECT head FROM open_trajectories WHERE trajectory_id = ?", (trajectory_id,))
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = msgspec.json.decode(blob(row[0])) if row else {}
        return str(head.get(BEGUN_BY) or "") if isinstance(head, dict) else ""
    return ""


def post(
    tx: Tx, subject: str, msg_id: str, *, ref: str | None = None, payload: bytes | None = None
) -> None:
    tx.execute(
        "INSERT INTO outbox (subject, msg_id, ref, payload) VALUES (?, ?, ?, ?)",
        (subject, msg_id, ref, payload),
    )


def bury(
    tx: Tx, letter: DeadLetter, *, stage: str, user_id: str | None, heard: bool = False,
    sender: Sender = NOBODY,
) -> None:  # fmt: skip
    """Keep a dead letter, and announce one that was not heard on the bus."""
    body, dead_id = encode(letter), str(letter.dead_id)
    new = tx.execute(
        "INSERT INTO dead (dead_id, stage, reason, user_id, body, created_us, key_id, many) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (dead_id) DO NOTHING",
        (
            dead_id, stage, letter.reason, user_id, body, micros(letter.timestamp), sender.key_id,
            int(sender.many),
        ),
    )  # fmt: skip
    if new and not heard:
        post(tx, f"agent.rl.dead.{stage}", dead_id, ref=dead_id, payload=body)


def _carry(tx: Tx, stream: str, stream_seq: int, ref: str) -> None:
    tx.execute(
        "INSERT INTO carried (stream, stream_seq, ref) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (stream, stream_seq, ref),
    )


def _stored(row: Row) -> StoredTrajectory:
    seq, door, stored_us, *values = row
    by_name = dict(zip((field.name for field in fields(Admitted)), values, strict=True))
    by_name |= {
        "content_hash": blob(by_name["content_hash"]),
        "body": blob_of(by_name["body"], by_name["content_hash"]),
        "started": moment(by_name["started"]),
        "ended": moment(by_name["ended"]),
        "infra_error": bool(by_name["infra_error"]),
        "evaluation": bool(by_name["evaluation"]),
        "practice": bool(by_name["practice"]),
        "many": bool(by_name["many"]),
        "continuous": bool(by_name["continuous"]),
    }
    return StoredTrajectory(seq, door, moment(stored_us), checked(Admitted(**by_name)))


def _buried(row: Row) -> Buried:
    seq, stage, body, replayed_us, key_id, many = row
    replayed = moment(replayed_us) if replayed_us is not None else None
    sender = Sender(key_id, many=bool(many) and bool(key_id))
    return Buried(seq, stage, decode(DeadLetter, blob(body)), replayed, sender)


def only_writer(folder: Path) -> IO[str]:
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


def open_store(folder: Path, url: str | None = None) -> SqlStore:
    """The store to write to: PostgreSQL when `url` names it, else SQLite in `folder`."""
    if url:
        return SqlStore(_postgres(url))
    lock = only_writer(folder)
    try:
        return SqlStore(_sqlite(folder), lock, folder)
    except BaseException:
        lock.close()
        raise


def _sqlite(folder: Path) -> Database:
    """The database, if it is still what it was when it was last written."""
    path = str(folder / mark.DATABASE)
    with foreign_errors():
        mark.begin(folder)
    return Database(
        lambda: connect_sqlite(path), postgres=False, reader=lambda: connect_sqlite(path)
    )


def in_memory() -> SqlStore:
    """The store's twin for tests: the same code on a database that lives in memory."""
    return SqlStore(Database(lambda: connect_sqlite(":memory:"), postgres=False))


def read_only(folder: Path, url: str | None = None) -> SqlStore:
    """The store to look at, beside a running loop or without one."""
    if url:
        return SqlStore(_postgres(url))
    path = folder / "upswing.db"
    if not path.exists():
        raise Misuse(f"{folder} holds no loop yet: start one with `upswing up --data {folder}`.")

    def connect() -> Any:
        return connect_sqlite(str(path), read_only=True)

    return SqlStore(Database(connect, postgres=False, reader=connect))


def _postgres(url: str) -> Database:
    return Database(
        lambda: connect_postgres(url), postgres=True, reader=lambda: connect_postgres(url)
    )
