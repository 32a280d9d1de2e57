"""Where does work wait for a loop that is away? In a bounded place that outlives the process.

Everything that is to be sent goes through the spool: written first, removed once acknowledged.
A process writes its own file and holds a lock on it; files whose lock is free belong to processes
that are gone, and are adopted and sent first. A full spool drops its oldest entries: the newest
work says most about the model that acts now.
"""

from __future__ import annotations

import contextlib
import logging
from itertools import takewhile
from pathlib import Path
from threading import RLock

from upswing.infra.spool_log import FileLog, MemoryLog, SpoolEntry, SpoolLog

_logger = logging.getLogger("upswing.sdk")
_SLACK = 8
"""When full, a spool frees one part in so many, so that it does not tidy up at every entry."""


class Spool:
    """Adopted files first, then our own; in memory when the disk says no. Safe among threads."""

    def __init__(self, folder: Path, name: str, limit: int) -> None:
        self._folder, self._name, self._limit = folder, name, limit
        self._lock = RLock()
        self._logs: list[SpoolLog] = []
        self._own: SpoolLog | None = None
        self.dropped = 0
        """Entries given up: the oldest of a full spool, and torn lines."""
        self._unwritten = self._unsynced = ""

    @property
    def durability_trouble(self) -> str:
        """Why entries wait in memory only, or where a power cut would take them."""
        return self._unwritten or self._unsynced

    def __len__(self) -> int:
        return sum(map(len, tuple(self._logs)))  # without the lock: an agent may be asking

    @property
    def size(self) -> int:
        with self._lock:
            return sum(log.size for log in self._logs)

    def adopt(self) -> None:
        """Take over the files of processes that are gone."""
        with self._lock:
            for path in self._orphaned_files():
                if (log := FileLog.adopt(path)) is None:
                    continue
                self.dropped += log.torn
                if not len(log):
                    log.close()
                else:
                    self._logs.insert(sum(held is not self._own for held in self._logs), log)

    def _orphaned_files(self) -> list[Path]:
        ours = {log.path for log in self._logs if isinstance(log, FileLog)}
        with contextlib.suppress(OSError):
            found = {path: path.stat().st_mtime for path in self._folder.glob("*.spool")}
            return sorted(found.keys() - ours, key=found.__getitem__)
        return []

    def append(self, entry: SpoolEntry) -> None:
        line = entry.line()
        with self._lock:
            if len(line) > self._limit:
                self.dropped += 1
                return
            if self.size + len(line) > self._limit:
                self._make_room(len(line))
            try:
                self._append_line(line)
            except OSError as error:
                self._unwritten = f"The spool cannot be written ({error.strerror or error})."
                _logger.error("%s", self._unwritten, extra={"action": "spool_unwritten"})  # noqa: TRY400 - a sentence
                self._own = MemoryLog()
                self._logs.append(self._own)
                self._own.append(line)

    def _append_line(self, line: bytes) -> None:
        if self._own is None:
            self._own = FileLog.create(self._folder / f"{self._name}.spool")
            self._logs.append(self._own)
        if isinstance(self._own, FileLog) and self._own.size_on_disk + len(line) > self._limit:
            self._own.tidy()
        self._own.append(line)

    def _make_room(self, size: int) -> None:
        wanted = self.size + size - self._limit + self._limit // _SLACK
        for log in self._logs:
            before = log.size
            self.dropped += log.drop(wanted)
            wanted -= before - log.size
            if wanted <= 0:
                return

    def peek(self, count: int, size: int) -> list[SpoolEntry]:
        """The next entries of one kind: at most `count`, about `size` bytes, at least one."""
        with self._lock:
            log = next((log for log in self._logs if len(log)), None)
            entries = log.peek(count, size) if log else []
            if log and not entries:  # spoilt under our hands: give it up rather than stop here
                log.remove(1)
                self.dropped += 1
            return list(takewhile(lambda entry: entry.kind is entries[0].kind, entries))

    def remove(self, entries: list[SpoolEntry]) -> None:
        """These, the first ones, are settled. Some of them may have been dropped meanwhile."""
        with self._lock:
            log = next((log for log in self._logs if len(log)), None)
            if log is None:
                return
            ahead = {entry.body for entry in log.peek(len(entries), self._limit)}
            log.remove(sum(entry.body in ahead for entry in entries))
            if not len(log) and log is not self._own:
                log.close()
                self._logs.remove(log)

    def sync(self) -> bool:
        """Entries are going to stay a while: does the disk keep all of them through a power cut?"""
        with self._lock:
            before, self._unsynced = self._unsynced, ""
            for log in self._logs:
                try:
                    log.sync()
                except OSError as error:
                    why = error.strerror or error
                    self._unsynced = f"A power cut would take what the spool holds ({why})."
            if self._unsynced and not before:
                _logger.error("%s", self._unsynced, extra={"action": "spool_unsynced"})
            return not self.durability_trouble

    def close(self) -> None:
        with self._lock:
            for log in self._logs:
                log.close()
            self._logs, self._own = [], None

    def forget(self) -> None:
        """Drop everything without touching the disk: it belongs to the process we came from."""
        for log in self._logs:
            if isinstance(log, FileLog):
                log.forget()
        self._logs, self._own = [], None
