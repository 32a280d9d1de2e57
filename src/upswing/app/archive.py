"""Where do trajectories lie when the stream has forgotten them? Hourly files, local or in S3.

    <TRAJECTORY_STORAGE_PATH>/2025/12/08/13/0000000042.jsonl.gz

A file holds the trajectories stored in that hour, one redacted message per line, at most
`ROWS_PER_FILE`; its name is the sequence number of the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import logging
import zlib
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Misuse, Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.objects import ObjectLocation
from upswing.infra.sql.store import SqlStore
from upswing.records import StoredTrajectory

log = logging.getLogger(__name__)
ROWS_PER_FILE = 5000
KEPT = timedelta(days=90)
SUFFIX = ".jsonl.gz"
CHUNK_BYTES = 4 << 20
"""Of unpacked text that is in memory at once, beside a line that is longer."""


class Archive:
    """The archive in one place."""

    def __init__(
        self, location: str, *, chunk_bytes: int = CHUNK_BYTES, rows_per_file: int = ROWS_PER_FILE
    ) -> None:
        self._chunk_bytes, self.rows_per_file = chunk_bytes, rows_per_file
        self._location = ObjectLocation(location, "TRAJECTORY_STORAGE_PATH")

    @property
    def remote(self) -> bool:
        """Whether it lies in an object store, and not in a folder of this machine."""
        return self._location.root is None

    async def read(
        self, paths: Sequence[str] | None = None, *, skip: Collection[str] = ()
    ) -> AsyncIterator[tuple[str, list[bytes]]]:
        """(file, lines) of all files but those to skip, or of these, some lines at a time.

        What cannot be unpacked is passed over with a word in the log.
        """
        there = await self._list("") if paths is None else paths
        for path in there:
            if path.endswith(SUFFIX) and path not in skip:
                async for lines in self._lines(path):
                    yield path, lines

    async def _lines(self, path: str) -> AsyncIterator[list[bytes]]:
        unpack, rest = zlib.decompressobj(wbits=31), b""
        try:
            with _as_transient():
                async for packed in self._location.chunks(path):
                    while packed:
                        text = await asyncio.to_thread(unpack.decompress, packed, self._chunk_bytes)
                        packed = unpack.unconsumed_tail  # noqa: PLW2901 - what is left to unpack
                        *lines, rest = (rest + text).split(b"\n")
                        yield [line for line in lines if line]
        except zlib.error as error:
            log.warning("%s is damaged: %s", path, error, extra={"action": "archive_damaged"})
            return
        if not unpack.eof:
            log.warning("%s is cut off", path, extra={"action": "archive_damaged"})

    async def write(self, rows: Sequence[StoredTrajectory]) -> str:
        """One file of trajectories that were stored in the same hour; writing it again is fine."""
        path = f"{_folder(rows[0].stored)}/{rows[0].seq:010d}{SUFFIX}"
        body = b"".join(row.admitted.body + b"\n" for row in rows)
        await self._put(path, body)
        return path

    async def remove(self, hour: datetime, trajectory_ids: Collection[str]) -> int:
        """Take these out of the files of an hour; how many lines went."""
        removed = 0
        for path in await self._list(_folder(hour)):
            try:
                lines = gzip.decompress(await self._get(path)).splitlines(keepends=True)
            except (OSError, EOFError, zlib.error):
                log.exception(
                    "%s is damaged", path, extra={"action": "alert", "reason": "archive_damaged"}
                )
                continue
            kept = [line for line in lines if _is_kept(line, trajectory_ids)]
            if len(kept) < len(lines):
                removed += len(lines) - len(kept)
                await self._put(path, b"".join(kept))
        return removed

    async def prune(self, now: datetime) -> int:
        """Delete the files of days that are older than 90 days; how many."""
        limit = (now - KEPT).strftime("%Y/%m/%d")
        old = [path for path in await self._list("") if path[:10] < limit]
        with _as_transient():
            for path in old:
                await self._location.delete(path)
        return len(old)

    async def _put(self, path: str, body: bytes) -> None:
        packed = await asyncio.to_thread(gzip.compress, body, 6, mtime=0)
        with _as_transient():
            await self._location.put(path, packed)

    async def _get(self, path: str) -> bytes:
        with _as_transient():
            return await self._location.get(path)

    async def _list(self, prefix: str) -> list[str]:
        with _as_transient():
            return [thing.key for thing in await self._location.list(prefix)]


async def archive_finished_hours(
    store: SqlStore, archive: Archive, now: datetime, dead_letters: DeadLetterWriter | None = None
) -> int:
    """Write what was stored in hours that are over; how many trajectories.

    What is no line of an archive is set aside: whoever reads the file would stumble over it.
    """
    written, dead_letters = 0, dead_letters or DeadLetterWriter()
    while True:
        cursor = await store.cursor("archive")
        rows = await store.trajectories_after(cursor, archive.rows_per_file)
        same = _leading_hour(rows)
        if not same or not (_is_over(same[0].stored, now) or len(same) == archive.rows_per_file):
            return written
        lines = dead_letters.bad_rows.read_each("archive", "trajectories", same, _line, raw=_body)
        await dead_letters.flush()
        path = await archive.write(lines) if lines else "no file"
        await store.move_cursor("archive", same[-1].seq)
        written += len(lines)
        log.info("archived %d trajectories in %s", len(lines), path, extra={"action": "archive"})


def _leading_hour(rows: Sequence[StoredTrajectory]) -> list[StoredTrajectory]:
    """The first ones, as far as they were stored in the same hour."""
    hour = _folder(rows[0].stored) if rows else ""
    return list(takewhile(lambda row: _folder(row.stored) == hour, rows))


def _is_over(stored: datetime, now: datetime) -> bool:
    """Whether nothing more is stored in this hour; a time far ahead is a mistake, and not waited for."""
    late = timedelta(days=1)
    return _folder(now - timedelta(minutes=1)) > _folder(stored) or stored - now > late


def _body(row: StoredTrajectory) -> bytes:
    return row.admitted.body


def _line(row: StoredTrajectory) -> StoredTrajectory:
    """The row, if its body is one line that says which trajectory it is."""
    if b"\n" in row.admitted.body or b"\r" in row.admitted.body:
        raise ValueError("its body has several lines")
    if from_json(row.admitted.body, _ArchivedLine).trajectory_id is None:
        raise ValueError("its body names no trajectory")
    return row


class _ArchivedLine(msgspec.Struct):
    trajectory_id: str | None = None


def _is_kept(line: bytes, gone: Collection[str]) -> bool:
    """Nobody can say whom a line speaks of that cannot be read, so it goes as well."""
    try:
        named = from_json(line, _ArchivedLine).trajectory_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return named is not None and named not in gone


def _folder(moment: datetime) -> str:
    return moment.strftime("%Y/%m/%d/%H")


@contextlib.contextmanager
def _as_transient() -> Iterator[None]:
    """The loop goes on without its archive until somebody mends the place."""
    try:
        yield
    except Misuse as error:
        raise Transient(str(error)) from error
