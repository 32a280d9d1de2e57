"""How do many small writes share one fsync? A writer thread that commits whatever is waiting.

A *unit* is a function of a transaction. The writer takes all units that wait, runs them in one
transaction, commits, and only then lets their callers go on: an answer means durable. While a
commit is on its way to the disk the next batch gathers, so the busier it is, the larger the
batches. If one unit fails, the batch is rolled back and each unit runs again alone, so that
nobody pays for another's mistake.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from typing import Any, Generic, TypeVar

from upswing.contracts.steps import MOST
from upswing.contracts.typed import from_tree
from upswing.errors import Damaged, Misuse, Reason, Rejected, Transient, UpswingError
from upswing.infra.dead_letters import BadRows

T = TypeVar("T")
D = TypeVar("D", bound=Any)
Row = tuple[Any, ...]
BATCH = 1024
"""Units per transaction at most: enough to hide an fsync, little enough to stay responsive."""


@cache
def _with_postgres_placeholders(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def bytes_of_column(value: Any) -> bytes:
    """The bytes of a column; SQLite gives back whatever somebody put there."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"the column holds {type(value).__name__}, not bytes")


def verified_bytes_of_column(value: Any, content_hash: Any) -> bytes:
    """The bytes of a column, if they are still those that were stored: `Rejected` when the hash differs."""
    body = bytes_of_column(value)
    if sha256(body).digest() != bytes_of_column(content_hash):
        raise Rejected(Reason.UNREADABLE, "Its content is not what was stored: the hash differs.")
    return body


def is_sane(value: object) -> bool:
    """A number that readers can reckon with."""
    return isinstance(value, int | float) and -MOST <= value <= MOST


def check_row_types(row: D) -> D:
    """The same dataclass, if each of its fields holds what its type says, and no absurd number."""
    values = {each.name: getattr(row, each.name) for each in fields(row)}
    from_tree(values, type(row), as_they_are=(bytes, datetime))
    if any(isinstance(value, int | float) and not is_sane(value) for value in values.values()):
        raise ValueError("a number of the row is none that anybody measures")
    return row


class Tx:
    """A transaction, in either dialect: `?` marks a value, rows are tuples."""

    __slots__ = ("_connection", "bad_rows", "postgres")

    def __init__(self, connection: Any, *, postgres: bool, bad_rows: BadRows) -> None:
        """`bad_rows` collects rows that cannot be read."""
        self._connection = connection
        self.postgres = postgres
        self.bad_rows = bad_rows

    def execute(self, sql: str, params: tuple[object, ...] = ()) -> int:
        """Run a statement; how many rows it touched."""
        return int(self._run_statement(sql, params).rowcount)

    def rows(self, sql: str, params: tuple[object, ...] = ()) -> list[Row]:
        return list(self._run_statement(sql, params).fetchall())

    def row(self, sql: str, params: tuple[object, ...] = ()) -> Row | None:
        found: Row | None = self._run_statement(sql, params).fetchone()
        return found

    def _run_statement(self, sql: str, params: tuple[object, ...]) -> Any:
        if not self.postgres:
            try:
                return self._connection.execute(sql, params)
            except UnicodeDecodeError as error:  # SQLite's own message quotes rubbish
                raise sqlite3.DatabaseError("database disk image is malformed") from error
        # PostgreSQL's texts cannot hold a null character; a message's own bytes still do.
        clean = tuple(p.replace("\0", "\ufffd") if isinstance(p, str) else p for p in params)
        return self._connection.execute(_with_postgres_placeholders(sql), clean)


Unit = Callable[[Tx], T]


class _Pending(Generic[T]):
    __slots__ = ("alone", "error", "future", "loop", "result", "unit")

    def __init__(self, unit: Unit[T], loop: asyncio.AbstractEventLoop) -> None:
        self.unit = unit
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.alone = False
        """Runs by itself, outside a transaction."""


class ReadConnection:
    """A connection that reads, in its own thread; it is opened when it is first used."""

    def __init__(
        self, database: Database, connect: Callable[[], Any], name: str, begin: str | None = None
    ) -> None:
        """`begin`: the statement by which all that a unit reads is of one moment."""
        self._database, self._connect, self._begin = database, connect, begin
        self._connection: Any = None
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(1, name)  # those of asyncio may all be taken

    async def run(self, unit: Unit[T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, self._run_in_thread, unit
        )

    def close(self) -> None:
        self._threads.shutdown()
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _run_in_thread(self, unit: Unit[T]) -> T:
        with self._lock, translating_database_errors():
            if self._connection is None:
                self._connection = self._connect()
            try:
                with self._snapshot():
                    return unit(self._database.transaction_on(self._connection))
            except BaseException:
                self._connection = self._database.reconnect(self._connection, self._connect)
                raise

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        if self._begin is None:
            yield
            return
        self._connection.execute(self._begin)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # a connection that broke has nothing to end
                self._connection.execute("ROLLBACK")


class Database:
    """One connection that writes, in its own thread, and two that read: one for the stages, one for people.

    What people look at is bounded, and still takes longer than what a stage asks for: no stage waits behind it.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        postgres: bool,
        reader: Callable[[], Any] | None = None,
        viewer: Callable[[], Any] | None = None,
    ) -> None:
        """Without a `reader` everything is read by the writer; without a `viewer` views are read by the reader."""
        self._connect = connect
        self._postgres = postgres
        self.bad_rows = BadRows()
        """Rows that could not be read, until somebody buries them."""
        self._queue: queue.SimpleQueue[_Pending[Any] | None] = queue.SimpleQueue()
        self._connection: Any = connect()
        self._reader = ReadConnection(self, reader, "store-reader") if reader else None
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if postgres else "BEGIN"
        self._viewer = ReadConnection(self, viewer, "store-viewer", begin) if viewer else None
        self._thread = threading.Thread(
            target=self._run_statement, name="store-writer", daemon=True
        )
        self._thread.start()
        self.commits = 0
        self.units = 0

    async def write(self, unit: Unit[T]) -> T:
        """Run `unit` in a shared transaction; return once it is committed."""
        pending = _Pending(unit, asyncio.get_running_loop())
        self._queue.put(pending)
        return await pending.future

    async def read(self, unit: Unit[T]) -> T:
        """Run `unit` on committed data; it must not write."""
        return await (self._reader.run(unit) if self._reader else self.write(unit))

    async def view(self, unit: Unit[T]) -> T:
        """The same for what people look at, all of one moment: however long it takes, no stage waits for it."""
        return await (self._viewer.run(unit) if self._viewer else self.read(unit))

    async def scrub(self) -> None:
        """Leave no copy of what was just removed: SQLite's log keeps old pages until it is emptied."""
        if self._postgres:
            return
        pending: _Pending[None] = _Pending(_truncate_wal, asyncio.get_running_loop())
        pending.alone = True
        self._queue.put(pending)
        await pending.future

    def close(self) -> None:
        """Commit what waits, then close; the writer last, for it alone can empty SQLite's log."""
        for reading in (self._reader, self._viewer):
            if reading is not None:
                reading.close()
        self._queue.put(None)
        self._thread.join()

    def transaction_on(self, connection: Any) -> Tx:
        return Tx(connection, postgres=self._postgres, bad_rows=self.bad_rows)

    def _run_statement(self) -> None:
        held: _Pending[Any] | None = None
        while (first := held or self._queue.get()) is not None:
            held, closing, batch = None, False, [first]
            while not first.alone and len(batch) < BATCH:
                try:
                    pending = self._queue.get_nowait()
                except queue.Empty:
                    break
                if pending is None or pending.alone:
                    held, closing = pending, pending is None
                    break
                batch.append(pending)
            self._commit_batch(batch)
            self._settle_batch(batch)
            if closing:
                break
        self._connection.close()

    def _commit_batch(self, batch: list[_Pending[Any]]) -> None:
        try:
            self._run_transaction(batch)
        except Exception as error:  # noqa: BLE001 - whatever it was, each caller is told its own
            if len(batch) == 1:
                batch[0].error = translate_database_error(error)
                return
            for pending in batch:
                self._commit_batch([pending])

    def _run_transaction(self, batch: list[_Pending[Any]]) -> None:
        try:
            connection = self._connection
            tx = self.transaction_on(connection)
            if batch[0].alone:
                batch[0].unit(tx)
                return
            tx.execute("BEGIN" if self._postgres else "BEGIN IMMEDIATE")
            if self._postgres:
                # Commits happen in the order of their sequence numbers, so that a reader who
                # follows the sequence never overtakes a row.
                tx.execute("SELECT pg_advisory_xact_lock(757)")
            for pending in batch:
                pending.error = None
                pending.result = pending.unit(tx)
            tx.execute("COMMIT")
            self.commits += 1
            self.units += len(batch)
        except BaseException:
            with contextlib.suppress(Exception):
                self._connection.execute("ROLLBACK")
            self._connection = self.reconnect(self._connection, self._connect)
            raise

    def reconnect(self, connection: Any, connect: Callable[[], Any]) -> Any:
        """A database server may have gone away under a connection; try once to get a new one."""
        if not self._postgres or not (connection.closed or connection.broken):
            return connection
        with contextlib.suppress(Exception):
            return connect()
        return connection

    @staticmethod
    def _settle_batch(batch: list[_Pending[Any]]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[_Pending[Any]]] = {}
        for pending in batch:
            by_loop.setdefault(pending.loop, []).append(pending)
        for loop, settled in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop was closed while we wrote
                loop.call_soon_threadsafe(_resolve_futures, settled)


def _truncate_wal(tx: Tx) -> None:
    tx.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def _resolve_futures(settled: list[_Pending[Any]]) -> None:
    for pending in settled:
        if pending.future.done():
            continue
        if pending.error is not None:
            pending.future.set_exception(pending.error)
        else:
            pending.future.set_result(pending.result)


def translate_database_error(error: Exception) -> Exception:
    """A database's error in our words; what is not a database's stays as it is."""
    if isinstance(error, UpswingError):
        return error
    if isinstance(error, sqlite3.OperationalError) or _is_operational(type(error)):
        return Transient(f"The store cannot be used just now: {str(error).strip()}.")
    if type(error) is sqlite3.DatabaseError:
        return Damaged(
            f"The store's file is damaged ({error}): put a whole copy of the data directory back, or run "
            "`upswing repair`, which keeps what is sound and says what is lost."
        )
    return error


def _is_operational(kind: type[BaseException]) -> bool:
    """PostgreSQL's "not now" errors, told by name, because the driver may not be installed.

    What exceeds a limit of the program (class 54), such as a text too long for an index, stays so.
    """
    if str(getattr(kind, "sqlstate", "") or "").startswith("54"):
        return False
    return any(
        base.__module__.startswith("psycopg")
        and base.__name__ in {"OperationalError", "InterfaceError"}
        for base in kind.__mro__
    )


@contextlib.contextmanager
def translating_database_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        ours = translate_database_error(error)
        if ours is error:
            raise
        raise ours from error


def connect_sqlite(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection whose commits are on the disk when they return."""
    with translating_database_errors():
        return _open_sqlite(path, read_only=read_only)


def _open_sqlite(path: str, *, read_only: bool) -> sqlite3.Connection:
    target = f"file:{path}?mode=ro" if read_only else path
    connection = sqlite3.connect(
        target,
        uri=read_only,
        isolation_level=None,
        check_same_thread=False,
        timeout=10,
        cached_statements=256,
    )
    # A text that is no UTF-8 is shown as well as can be; SQLite would fail the whole statement.
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    if not read_only:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA journal_size_limit=67108864")
        # Pages of the indexes are changed again and again: copying them back to the database
        # every 32 MB instead of every 4 writes each of them less often.
        connection.execute("PRAGMA wal_autocheckpoint=8000")
        connection.execute("PRAGMA cache_size=-65536")
    connection.execute("PRAGMA busy_timeout=10000")
    return connection


def connect_postgres(url: str) -> Any:
    """A connection to PostgreSQL; the driver is an extra."""
    try:
        import psycopg  # noqa: PLC0415 - only who uses PostgreSQL pays for it
    except ImportError:
        raise Misuse(
            "DATABASE_URL names PostgreSQL, but its driver is missing: pip install '.[postgres]'."
        ) from None
    with translating_database_errors():
        return psycopg.connect(url, autocommit=True, connect_timeout=5)
