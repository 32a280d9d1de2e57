"""Where do trajectories lie when the stream has forgotten them? Hourly files, local or in S3.

    <TRAJECTORY_STORAGE_PATH>/2025/12/08/13/0000000042.jsonl.gz

A file holds the trajectories stored in that hour, one redacted message per line, at most
`ROWS_PER_FILE`; its name is the sequence number of the first.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from upswing.errors import Misuse, Transient
from upswing.ports import StoredTrajectory

log = logging.getLogger(__name__)
ROWS_PER_FILE = 5000
KEPT = timedelta(days=90)


class Archive:
    """The archive in one place."""

    def __init__(self, place: str) -> None:
        try:
            if urlsplit(place).scheme in {"", "file"}:
                folder = Path(urlsplit(place).path).expanduser()
                self._store: Any = LocalStore(prefix=folder, mkdir=True)
            else:
                self._store = from_url(place)
        except (BaseError, ValueError, OSError) as error:
            raise Misuse(f"TRAJECTORY_STORAGE_PATH={place} cannot be used: {error}.") from None

    async def write(self, rows: Sequence[StoredTrajectory]) -> str:
        """One file of trajectories that were stored in the same hour; writing it again is fine."""
        path = f"{_folder(rows[0].stored)}/{rows[0].seq:010d}.jsonl.gz"
        body = b"".join(row.admitted.body + b"\n" for row in rows)
        await self._put(path, body)
        return path

    async def remove(self, hour: datetime, trajectory_ids: Collection[str]) -> int:
        """Take these out of the files of an hour; how many lines went."""
        removed = 0
        for path in await self._list(_folder(hour)):
            lines = gzip.decompress(await self._get(path)).splitlines(keepends=True)
            kept = [
                line
                for line in lines
                if msgspec.json.decode(line)["trajectory_id"] not in trajectory_ids
            ]
            if len(kept) < len(lines):
                removed += len(lines) - len(kept)
                await self._put(path, b"".join(kept))
        return removed

    async def prune(self, now: datetime) -> int:
        """Delete the files of days that are older than 90 days; how many."""
        limit = (now - KEPT).strftime("%Y/%m/%d")
        old = [path for path in await self._list("") if path[:10] < limit]
        for path in old:
            await obstore.delete_async(self._store, path)
        return len(old)

    async def _put(self, path: str, body: bytes) -> None:
        packed = await asyncio.to_thread(gzip.compress, body, 6, mtime=0)
        try:
            await obstore.put_async(self._store, path, packed)
        except (BaseError, OSError) as error:
            raise Transient(f"The archive cannot be written just now: {error}.") from error

    async def _get(self, path: str) -> bytes:
        found = await obstore.get_async(self._store, path)
        return bytes(await found.bytes_async())

    async def _list(self, prefix: str) -> list[str]:
        try:
            batches = await asyncio.to_thread(
                lambda: list(obstore.list(self._store, prefix=prefix or None))
            )
        except (BaseError, OSError) as error:
            raise Transient(f"The archive cannot be read just now: {error}.") from error
        return sorted(item["path"] for batch in batches for item in batch)


class Source(Protocol):
    async def cursor(self, name: str) -> int: ...

    async def move_cursor(self, name: str, seq: int) -> None: ...

    async def trajectories_after(self, seq: int, limit: int = 500) -> list[StoredTrajectory]: ...


async def archive_finished_hours(source: Source, archive: Archive, now: datetime) -> int:
    """Write what was stored in hours that are over; how many trajectories."""
    written = 0
    while True:
        rows = await source.trajectories_after(await source.cursor("archive"), ROWS_PER_FILE)
        same = [row for row in rows if rows and _folder(row.stored) == _folder(rows[0].stored)]
        over = bool(same) and (_folder(now - timedelta(minutes=1)) > _folder(same[0].stored))
        if not same or not (over or len(same) == ROWS_PER_FILE):
            return written
        path = await archive.write(same)
        await source.move_cursor("archive", same[-1].seq)
        written += len(same)
        log.info("archived %d trajectories in %s", len(same), path, extra={"action": "archive"})


def _folder(moment: datetime) -> str:
    return moment.strftime("%Y/%m/%d/%H")
