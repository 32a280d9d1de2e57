"""Is the store still what it was when it last said so? A small file beside it remembers.

`upswing.mark` lies in the data directory and is fsynced:

| it holds    | written                        | so that this is noticed at the next start               |
|-------------|--------------------------------|---------------------------------------------------------|
| `sequences` | a second after rows at latest  | rows that were acknowledged and are gone: a lost log, an |
|             |                                | older copy, an empty or missing database                |
| `seal`      | when the loop stops in order   | any byte of the database that changed while it stood     |
|             |                                | still; the sha256 of the file                           |
| `streams`   | likewise                       | files of the embedded bus that changed: told in the log, |
|             |                                | since the bus serves no message whose checksum is wrong |
| `check`     | always                         | damage of this file itself                              |

It is the first file that a start writes, so a directory with keys or streams and without a mark has lost it:

| the mark is missing, and the database … | then                                                       |
|-----------------------------------------|------------------------------------------------------------|
| has rows                                | an alert: whether some are lost cannot be told             |
| has none, or is missing, and keys or streams lie beside it | the loop does not start                 |
| is missing, and nothing lies beside it  | this is a first start                                      |

Sequence numbers come from SQLite's own counters, which never go back, so nothing is added to a commit.
After a kill, rows of the last second may be lost with the log unnoticed; SQLite fsyncs them before they are
acknowledged, so only a disk that lies can do that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Damaged, Transient
from upswing.infra.sql.database import Database, Tx

log = logging.getLogger(__name__)
DATABASE, FILE = "upswing.db", "upswing.mark"
SECONDS = 1.0
"""How far the mark may lag behind what was acknowledged."""
SEALED_BYTES = 512 * 1024 * 1024
"""Of a database that is sealed: hashing more would keep a stop and a start waiting for seconds."""
LEAST_FREE_BYTES = 64 * 1024 * 1024
"""Of the disk: SQLite's log alone grows by half of that between two of its checkpoints."""
_KEYS, _STREAMS = "secrets.json", Path("nats") / "jetstream"
_SEQUENCES = "SELECT name, seq FROM sqlite_sequence"


@dataclass(frozen=True, slots=True)
class StoreMark:
    """What a data directory's store had."""

    sequences: Mapping[str, int] = field(default_factory=dict)
    """Table → the last number that it gave out."""
    seal: str | None = None
    streams: Mapping[str, str] = field(default_factory=dict)
    """File of the embedded bus → its sha256."""


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    sequences: dict[str, int]
    seal: str | None
    check: str
    streams: dict[str, str] = {}


def read_mark(folder: Path) -> StoreMark | None:
    """What the store had; None where no store was yet, or only an older version's."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        known = from_json(path.read_bytes(), _Written)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _damaged_error(folder, f"{FILE} is damaged") from None
    mark = StoreMark(known.sequences, known.seal, known.streams)
    if known.check != _mark_checksum(mark):
        raise _damaged_error(folder, f"{FILE} is damaged")
    return mark


def write_mark(folder: Path, mark: StoreMark) -> None:
    """Durable when it returns, whole or not at all."""
    path, fresh = folder / FILE, folder / f"{FILE}.new"
    text = json.dumps({**_mark_fields(mark), "check": _mark_checksum(mark)})
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    fresh.replace(path)
    _sync_folder(folder)


def check_file(folder: Path) -> StoreMark | None:
    """Before the database is opened, which would make an empty one: is it there, and untouched?"""
    mark, path, wal = read_mark(folder), folder / DATABASE, folder / f"{DATABASE}-wal"
    size = path.stat().st_size if path.exists() else None
    waits = wal.exists() and wal.stat().st_size > 0
    had = bool(mark.sequences or mark.seal) if mark else _was_used(folder)
    if not size and (waits or had):
        raise _begun_anew_error(folder, mark, "missing" if size is None else "empty")
    if mark and mark.seal and (waits or _file_digest(path) != mark.seal):
        raise _damaged_error(folder, f"{DATABASE} changed while no loop ran")
    return mark


def _was_used(folder: Path) -> bool:
    """A start writes these after the mark."""
    streams = folder / _STREAMS
    return (folder / _KEYS).exists() or any(path.is_file() for path in streams.rglob("*"))


def _begun_anew_error(folder: Path, mark: StoreMark | None, what: str) -> Damaged:
    without = "" if mark else f" (its keys or streams are there, {FILE} is not)"
    return _damaged_error(folder, f"{DATABASE} is {what}, and this directory had a store{without}")


def _check_unmarked(folder: Path, found: Mapping[str, int]) -> None:
    """A store whose mark is gone, or that an older version made."""
    if not found and _was_used(folder):
        raise _begun_anew_error(folder, None, "without rows")
    if found:
        log.error(
            "%s is missing: whether rows of the store were lost cannot be told; a new one is written",
            FILE,
            extra={"action": "alert", "reason": "mark_missing"},
        )


def check_sequences(folder: Path, mark: StoreMark, found: Mapping[str, int]) -> None:
    """Nothing that was given out may be gone."""
    lost = {
        table: (found.get(table, 0), last)
        for table, last in mark.sequences.items()
        if found.get(table, 0) < last
    }
    if lost:
        details = ", ".join(f"{table} end at {has} of {had}" for table, (has, had) in lost.items())
        raise _damaged_error(folder, f"Rows are lost that were acknowledged ({details})")


def check_and_unseal(folder: Path) -> None:
    """Before the database is written to: is it what it was? Then its seal is broken."""
    mark, path = check_file(folder), folder / DATABASE
    found: dict[str, int] = {}
    if path.exists():  # read alone: a log that does not fit stays as it is
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as first:
            found = sequences_of(first)
    if mark is not None:
        check_sequences(folder, mark, found)
        _log_streams(folder, mark)
    elif path.exists():
        _check_unmarked(folder, found)
    write_mark(folder, StoreMark(found))


def sequences_of(connection: sqlite3.Connection) -> dict[str, int]:
    """Table → the last number that it gave out; `Damaged` when that is no number."""
    try:
        rows = connection.execute(_SEQUENCES).fetchall()
    except sqlite3.OperationalError:  # no table that counts was made yet
        return {}
    except UnicodeDecodeError:  # SQLite's own message quotes rubbish
        raise Damaged("The store's file is damaged: run `upswing repair`.") from None
    return _sequences_from_rows(rows)


def record_and_seal(folder: Path) -> None:
    """The store is closed: remember how far it came, and seal it."""
    path, wal = folder / DATABASE, folder / f"{DATABASE}-wal"
    try:
        alone = not wal.exists() or wal.stat().st_size == 0
        how = "immutable=1" if alone else "mode=ro"
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)) as connection:
            found = sequences_of(connection)
        sealed = alone and path.stat().st_size <= SEALED_BYTES
        write_mark(
            folder,
            StoreMark(found, _file_digest(path) if sealed else None, _stream_file_digests(folder)),
        )
    except (OSError, sqlite3.Error, Damaged) as error:
        log.warning("the store is not sealed: %s", error, extra={"action": "no_seal"})


def _stream_file_digests(folder: Path) -> dict[str, str]:
    """The embedded bus's files, unless they are too many to be read at every start."""
    root = folder / _STREAMS
    files = sorted(path for path in root.rglob("*") if path.is_file())
    if sum(path.stat().st_size for path in files) > SEALED_BYTES:
        return {}
    return {str(path.relative_to(root)): _file_digest(path) for path in files}


def _log_streams(folder: Path, mark: StoreMark) -> None:
    if not mark.streams or (found := _stream_file_digests(folder)) == mark.streams:
        return
    changed = sorted(name for name, _ in mark.streams.items() ^ found.items())
    log.error(
        "files of the bus changed while no loop ran: %s; what they held and nobody had stored yet may be lost",
        ", ".join(dict.fromkeys(changed[:5])),
        extra={"action": "alert", "reason": "streams_changed"},
    )


class StoreMarkWriter:
    """Keeps the mark near to what is acknowledged, and an eye on the room that is left on the disk."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        seconds: float = SECONDS,
        *,
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self._folder, self._database, self._seconds, self._free = folder, database, seconds, free
        self._written: Mapping[str, int] = {}
        self.trouble: str | None = None
        """Why nothing can be stored, or soon cannot."""

    async def run(self) -> None:
        """For ever."""
        while True:
            with contextlib.suppress(Transient):
                await self.update_mark()
            await asyncio.sleep(self._seconds)

    async def update_mark(self) -> None:
        trouble = await asyncio.to_thread(self._disk_room_trouble)
        try:
            found = await self._database.read(_read_sequences)
            if found != self._written:
                await asyncio.to_thread(write_mark, self._folder, StoreMark(found))
                self._written = found
        except OSError as error:
            trouble = trouble or f"{FILE} cannot be written ({error.strerror})"
        finally:
            self._report_trouble(trouble)

    def _disk_room_trouble(self) -> str | None:
        try:
            free = self._free(self._folder)
        except OSError as error:
            return f"the data directory cannot be looked at ({error.strerror})"
        if free >= LEAST_FREE_BYTES:
            return None
        return f"the disk of {self._folder} is full or nearly so"

    def _report_trouble(self, trouble: str | None) -> None:
        """One line when trouble begins, and one when it is over."""
        before, self.trouble = self.trouble, trouble
        if trouble and trouble != before:
            log.error(
                "%s: make room there; until then what arrives may be refused with 503, and senders keep it",
                trouble,
                extra={"action": "alert", "reason": "disk_full"},
            )
        elif before and not trouble:
            log.warning("there is room on the disk again", extra={"action": "room"})


def _read_sequences(tx: Tx) -> dict[str, int]:
    return _sequences_from_rows(tx.rows(_SEQUENCES))


def _sequences_from_rows(rows: list[tuple[Any, ...]]) -> dict[str, int]:
    if not all(isinstance(name, str) and isinstance(seq, int) for name, seq in rows):
        raise Damaged("The store's counters are damaged: run `upswing repair`.")
    return dict(rows)


def _mark_fields(mark: StoreMark) -> dict[str, Any]:
    return {
        "sequences": dict(mark.sequences),
        "seal": mark.seal,
        "streams": dict(mark.streams),
    }


def _mark_checksum(mark: StoreMark) -> str:
    return sha256(json.dumps(_mark_fields(mark), sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _damaged_error(folder: Path, what: str) -> Damaged:
    return Damaged(
        f"{folder}: {what}: put a whole copy of the directory back, or run `upswing repair --data {folder}`, "
        "which keeps what is sound and says what is lost."
    )
