"""Is the database sound? SQLite's own check at the start, and every row's hash behind it.

start ──▶ integrity_check, a second at most ──▶ sound: go on
                 │                          └─▶ damaged: refuse, one sentence
                 └─▶ not done: the loop starts, and the check goes on beside it
then  ──▶ trajectories and feedback, some at a time: one whose content is not what its hash says is set aside
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

from upswing.errors import Damaged
from upswing.infra.sql.database import Database, Row, verified_bytes_of_column
from upswing.infra.sql.store_mark import DATABASE

SECONDS = 1.0
"""Of a start for the check; most stores of some hundred megabytes are done."""
_OPCODES = 20_000
"""Of SQLite's machine between two looks at the clock."""
_ROWS, _PAUSE_SECONDS = 100, 0.05
_STAGE = "inspection"
_TABLES = ("trajectories", "feedback")


class Inspection:
    """Looks through a store once."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder, self._database = folder, database
        self._stop = threading.Event()
        self.done = False
        """Whether the file was checked to its end."""

    async def begin(self, seconds: float = SECONDS) -> None:
        """`Damaged` when the file is; what takes longer is left for `run`."""
        self.done = await asyncio.to_thread(self._check_file, time.monotonic() + seconds)

    async def run(self) -> None:
        """The rest; `Damaged` when the file is. What is wrong with a row is set aside."""
        try:
            if not self.done:
                self.done = await asyncio.to_thread(self._check_file, None)
        finally:
            self._stop.set()  # a thread is not ended by cancelling whoever waits for it
        for table in _TABLES:
            await self._inspect_rows(table)

    def _check_file(self, deadline: float | None) -> bool:
        """Whether it came to its end."""
        return check_file(self._folder, lambda: self._is_deadline_over(deadline))

    def _is_deadline_over(self, deadline: float | None) -> bool:
        return self._stop.is_set() or (deadline is not None and time.monotonic() > deadline)

    async def _inspect_rows(self, table: str) -> None:
        seq = 0
        sql = f"SELECT seq, body, content_hash FROM {table} WHERE seq > ? ORDER BY seq LIMIT ?"
        while rows := await self._next_rows(sql, seq):
            self._database.bad_rows.read_each(_STAGE, table, rows, _check_row)
            seq = rows[-1][0]
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _next_rows(self, sql: str, seq: int) -> list[Row]:
        return await self._database.read(lambda tx: tx.rows(sql, (seq, _ROWS)))


def check_file(folder: Path, is_over: Callable[[], bool]) -> bool:
    """SQLite's own check of the file. `Damaged` when it is, False when it was `is_over` before the end."""
    if is_over():
        return False
    uri = f"{(folder / DATABASE).resolve().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=10)) as connection:
        connection.set_progress_handler(is_over, _OPCODES)
        try:
            rows = connection.execute("PRAGMA integrity_check(1)").fetchall()
        except sqlite3.OperationalError as error:
            if is_over():
                return False
            raise _damaged_error(folder, str(error)) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _damaged_error(folder, str(error)) from None
    if rows != [("ok",)]:
        raise _damaged_error(folder, str(rows[0][0]) if rows else "it says nothing")
    return True


def _check_row(row: Row) -> int:
    verified_bytes_of_column(row[1], row[2])
    return int(row[0])


def _damaged_error(folder: Path, why: str) -> Damaged:
    detail = " ".join(why.split())[:300]
    return Damaged(
        f"{folder / DATABASE} is damaged ({detail}): put a whole copy of the directory back, or run "
        f"`upswing repair --data {folder}`, which keeps what is sound and says what is lost."
    )
