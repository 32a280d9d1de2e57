"""What of a damaged database can still be trusted? Its rows, one by one, into a new one.

    damaged ──▶ range of rows ──▶ read ──▶ hash fits ──▶ new database
                    │                └──▶ it does not: lost, with its name
                    └──▶ cannot be read: each half of it, down to single rows ──▶ lost

Numbers that were given out are not given out again: stages follow the store by them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from upswing.errors import Damaged, Rejected
from upswing.infra.dead_letters import BadRows
from upswing.infra.sql.counter_tables import DERIVED
from upswing.infra.sql.database import Row, Tx, connect_sqlite, verified_bytes_of_column
from upswing.infra.sql.schema import migrate_schema
from upswing.infra.sql.store_mark import sequences_of

_HASHED = {"trajectories": "trajectory_id", "feedback": "feedback_id"}
"""Tables whose rows say what their content is; and their names."""
_ROWS = 500
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""The second when SQLite's own message quotes rubbish."""
_NAMES = 1000
"""Of lost rows that are remembered."""


@dataclass(slots=True)
class Salvage:
    """What came of it."""

    kept: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    """Table → rows that are there and cannot be read or trusted, at least."""
    names: set[str] = field(default_factory=set)
    """Ids of rows whose content is not what was stored."""
    tables: list[str] = field(default_factory=list)
    """Tables of which nothing can be read."""
    gaps: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Table → the last number that it knows of, and the last one that was given out."""


def salvage_database(source: Path, target: Path, sequences: Mapping[str, int]) -> Salvage:
    """Make `target` of what is sound in `source`; `sequences`: table → the last number given out."""
    done = Salvage()
    target.unlink(missing_ok=True)
    with contextlib.closing(connect_sqlite(str(target))) as new:
        new.execute("PRAGMA journal_mode=DELETE")
        new.execute("BEGIN")
        migrate_schema(Tx(new, postgres=False, bad_rows=BadRows()), "sqlite")
        last: dict[str, int] = {}
        if source.exists() and source.stat().st_size:
            with contextlib.closing(_open_database(source)) as old:
                last = _last_sequences(old)
                for table in _table_names(new):
                    _copy_table(table, old, new, done)
        done.gaps = {
            table: (last.get(table, 0), had)
            for table, had in sequences.items()
            if last.get(table, 0) < had and table != "outbox"  # what waited there was sent
        }
        _advance_sequences(new, sequences)
        new.execute("COMMIT")
    return done


def _open_database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _last_sequences(old: sqlite3.Connection) -> dict[str, int]:
    try:
        return sequences_of(old)
    except (*_DAMAGE, Damaged):
        return {}


def _table_names(new: sqlite3.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [row[0] for row in new.execute(sql) if row[0] not in {"migrations", *DERIVED}]


def _copy_table(
    table: str, old: sqlite3.Connection, new: sqlite3.Connection, done: Salvage
) -> None:
    try:
        columns = _shared_columns(table, old, new)
        lowest, highest = old.execute(f"SELECT MIN(rowid), MAX(rowid) FROM {table}").fetchone()
    except _DAMAGE:
        done.tables.append(table)
        return
    if lowest is None or not columns:
        return
    marks = ", ".join("?" * len(columns))
    put = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"
    for row in _readable_rows(table, columns, old, (lowest, highest), done):
        if _is_sound(table, columns, row, done):
            try:
                done.kept[table] += new.execute(put, row).rowcount
            except sqlite3.IntegrityError:  # a column that must hold something holds nothing
                done.lost[table] += 1


def _shared_columns(table: str, old: sqlite3.Connection, new: sqlite3.Connection) -> list[str]:
    """Columns that both have; an older version's table may have fewer."""
    had = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
    return [row[1] for row in new.execute(f"PRAGMA table_info({table})") if row[1] in had]


def _readable_rows(
    table: str, columns: list[str], old: sqlite3.Connection, span: tuple[int, int], done: Salvage
) -> Iterator[Row]:
    """Every row that can be read; a range that cannot is halved."""
    names = ", ".join(columns)
    sql = f"SELECT rowid, {names} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?"
    spans = [span]
    while spans:
        low, high = spans.pop()
        try:
            rows = old.execute(sql, (low, high, _ROWS)).fetchall()
        except _DAMAGE:
            if low == high:
                done.lost[table] += 1
                continue
            middle = (low + high) // 2
            spans += [(middle + 1, high), (low, middle)]
            continue
        if len(rows) == _ROWS and rows[-1][0] < high:
            spans.append((rows[-1][0] + 1, high))
        yield from (row[1:] for row in rows)


def _is_sound(table: str, columns: list[str], row: Row, done: Salvage) -> bool:
    if (name := _HASHED.get(table)) is None:
        return True
    values = dict(zip(columns, row, strict=True))
    try:
        verified_bytes_of_column(values["body"], values["content_hash"])
    except (Rejected, TypeError, KeyError):
        done.lost[table] += 1
        if len(done.names) < _NAMES and values.get(name) is not None:
            done.names.add(str(values[name]))
        return False
    return True


def _advance_sequences(new: sqlite3.Connection, sequences: Mapping[str, int]) -> None:
    for table, last in sequences.items():
        if new.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
            continue
        new.execute(
            "UPDATE sqlite_sequence SET seq = ? WHERE name = ? AND seq < ?", (last, table, last)
        )
        new.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? "
            "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
            (table, last, table),
        )
