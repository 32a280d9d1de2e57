"""Where does work wait for a loop that is away? In a bounded file that outlives the process.

Everything that is to be sent goes through the spool: written first, removed once acknowledged.
A process writes its own file and holds a lock on it; files whose lock is free belong to processes
that are gone, and are adopted and sent first. A full spool drops its oldest entries: the newest
work says most about the model that acts now.

A file is one header line with the offset of the first entry still to send, then one line per
entry: its kind, a checksum, its JSON. A line whose checksum is wrong (a power cut) is skipped.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice, takewhile
from pathlib import Path
from threading import RLock
from typing import Protocol

_HEADER = b"upswing-spool 1 %016d\n"
_START = len(_HEADER % 0)
_SLACK = 8
"""When full, a spool frees one part in so many, so that it does not tidy up at every entry."""


class Kind(StrEnum):
    """What an entry is."""

    TRAJECTORY = "trajectory"
    FEEDBACK = "feedback"


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, redacted, as it will be sent."""

    kind: Kind
    body: bytes

    def line(self) -> bytes:
        return b"%s %08x %s\n" % (self.kind.encode(), zlib.crc32(self.body), self.body)


def _read(line: bytes) -> Entry | None:
    try:
        kind, checksum, body = line.rstrip(b"\n").split(b" ", 2)
        whole = line.endswith(b"\n") and int(checksum, 16) == zlib.crc32(body)
        return Entry(Kind(kind.decode()), body) if whole else None
    except ValueError:
        return None


def _fitting(sizes: Iterable[int], count: int, size: int) -> list[int]:
    """The first of these sizes: at most `count`, together at most `size`, but at least one."""
    taken: list[int] = []
    for each in islice(sizes, count):
        size -= each
        if taken and size < 0:
            break
        taken.append(each)
    return taken


class Log(Protocol):
    """Entries in order: added at the end, looked at and removed at the front."""

    size: int
    """Bytes of the entries it holds."""

    def __len__(self) -> int: ...
    def append(self, line: bytes) -> None: ...
    def peek(self, count: int, size: int) -> list[Entry]: ...
    def remove(self, count: int) -> None: ...
    def drop(self, size: int) -> int: ...
    def close(self) -> None: ...


class MemoryLog:
    """The twin without a disk: for tests, and for when the disk cannot be written."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self.size = 0

    def __len__(self) -> int:
        return len(self._lines)

    def append(self, line: bytes) -> None:
        self._lines.append(line)
        self.size += len(line)

    def peek(self, count: int, size: int) -> list[Entry]:
        fitting = _fitting(map(len, self._lines), count, size)
        return [entry for line in islice(self._lines, len(fitting)) if (entry := _read(line))]

    def remove(self, count: int) -> None:
        for _ in range(count):
            self.size -= len(self._lines.popleft())

    def drop(self, size: int) -> int:
        before, dropped = self.size, 0
        while self._lines and before - self.size < size:
            self.remove(1)
            dropped += 1
        return dropped

    def close(self) -> None:
        """Nothing to let go of."""


class FileLog:
    """One spool file, locked for as long as it is open. `torn` lines were skipped on opening."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self._fd = path, fd
        self._sizes: deque[int] = deque()
        self._first = self._end = _START
        self.size = self.torn = 0

    @classmethod
    def create(cls, path: Path) -> FileLog:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = cls(path, -1)
        log._rewrite(b"")
        return log

    @classmethod
    def adopt(cls, path: Path) -> FileLog | None:
        """The file of a process that is gone, or None while its owner lives."""
        fd = -1
        try:
            fd = os.open(path, os.O_RDWR)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino != os.fstat(fd).st_ino:  # tidied up in between
                raise BlockingIOError
            path.with_suffix(".tidy").unlink(missing_ok=True)
            log = cls(path, fd)
            log._load()
        except OSError:
            if fd >= 0:
                os.close(fd)
            return None
        return log

    def _load(self) -> None:
        whole = self._bytes(0, os.fstat(self._fd).st_size)
        header = whole[:_START].split()
        first = int(header[2]) if len(header) == 3 and header[2].isdigit() else _START
        if not _START <= first <= len(whole) or whole[first - 1 : first] != b"\n":
            first = _START  # a mark that fits no line: sending again is harmless, skipping is not
        lines = whole[first:].splitlines(keepends=True)
        good = [line for line in lines if _read(line)]
        self.torn = len(lines) - len(good)
        self._sizes, self.size = deque(map(len, good)), sum(map(len, good))
        self._first, self._end = first, len(whole)
        if self.torn:
            self._rewrite(b"".join(good))

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def on_disk(self) -> int:
        return self._end

    def append(self, line: bytes) -> None:
        if os.pwrite(self._fd, line, self._end) != len(line):  # a disk that is just full
            os.ftruncate(self._fd, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end += len(line)
        self._sizes.append(len(line))
        self.size += len(line)

    def peek(self, count: int, size: int) -> list[Entry]:
        near = self._bytes(self._first, sum(_fitting(self._sizes, count, size)))
        lines = near.splitlines(keepends=True)
        return [entry for line in lines if (entry := _read(line))]

    def remove(self, count: int) -> None:
        gone = sum(self._sizes.popleft() for _ in range(count))
        self._first += gone
        self.size -= gone
        if not self._sizes:
            self._first = self._end = _START
        # The mark first: a crash in between leads to sending again, never to skipping.
        os.pwrite(self._fd, _HEADER % self._first, 0)
        if not self._sizes:
            os.ftruncate(self._fd, _START)

    def drop(self, size: int) -> int:
        """Give up the oldest entries, at least `size` bytes of them if there are so many."""
        count = gone = 0
        while count < len(self._sizes) and gone < size:
            gone += self._sizes[count]
            count += 1
        if count:
            self.remove(count)
        return count

    def tidy(self) -> None:
        """Give the room of removed entries back to the disk."""
        if self._first > _START:
            self._rewrite(self._bytes(self._first, self.size))

    def sync(self) -> None:
        os.fsync(self._fd)

    def _rewrite(self, entries: bytes) -> None:
        fresh = self.path.with_suffix(".tidy")
        fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(fd, "wb", closefd=False) as file:
            file.write(_HEADER % _START + entries)
        os.fsync(fd)
        fresh.rename(self.path)  # only now, with its lock held, can another process find it
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._first, self._end = fd, _START, _START + len(entries)

    def _bytes(self, start: int, size: int) -> bytes:
        return os.pread(self._fd, size, start)

    def close(self) -> None:
        """Let go of the file; an empty one goes away, another is for the next process."""
        if self._fd >= 0:
            if not self._sizes:
                self.path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = -1

    def forget(self) -> None:
        """In a forked child: the file, its lock and its entries are the parent's."""
        os.close(self._fd)
        self._fd = -1


class Spool:
    """Adopted files first, then our own; in memory when the disk says no. Safe among threads."""

    def __init__(self, folder: Path, name: str, limit: int) -> None:
        self._folder, self._name, self._limit = folder, name, limit
        self._lock = RLock()
        self._logs: list[Log] = []
        self._own: Log | None = None
        self.dropped = 0
        """Entries given up: the oldest of a full spool, and torn lines."""
        self.trouble = ""
        """Why entries wait in memory only."""

    def __len__(self) -> int:
        with self._lock:
            return sum(len(log) for log in self._logs)

    @property
    def size(self) -> int:
        with self._lock:
            return sum(log.size for log in self._logs)

    def adopt(self) -> None:
        """Take over the files of processes that are gone."""
        with self._lock:
            for path in self._orphans():
                if (log := FileLog.adopt(path)) is None:
                    continue
                self.dropped += log.torn
                if not len(log):
                    log.close()
                else:
                    self._logs.insert(sum(held is not self._own for held in self._logs), log)

    def _orphans(self) -> list[Path]:
        ours = {log.path for log in self._logs if isinstance(log, FileLog)}
        with contextlib.suppress(OSError):
            found = {path: path.stat().st_mtime for path in self._folder.glob("*.spool")}
            return sorted(found.keys() - ours, key=found.__getitem__)
        return []

    def append(self, entry: Entry) -> None:
        line = entry.line()
        with self._lock:
            if len(line) > self._limit:
                self.dropped += 1
                return
            if self.size + len(line) > self._limit:
                self._make_room(len(line))
            try:
                self._append(line)
            except OSError as error:
                self.trouble = f"The spool cannot be written ({error.strerror or error})."
                self._own = MemoryLog()
                self._logs.append(self._own)
                self._own.append(line)

    def _append(self, line: bytes) -> None:
        if self._own is None:
            self._own = FileLog.create(self._folder / f"{self._name}.spool")
            self._logs.append(self._own)
        if isinstance(self._own, FileLog) and self._own.on_disk + len(line) > self._limit:
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

    def peek(self, count: int, size: int) -> list[Entry]:
        """The next entries of one kind: at most `count`, about `size` bytes, at least one."""
        with self._lock:
            log = next((log for log in self._logs if len(log)), None)
            entries = log.peek(count, size) if log else []
            return list(takewhile(lambda entry: entry.kind is entries[0].kind, entries))

    def remove(self, entries: list[Entry]) -> None:
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

    def sync(self) -> None:
        """Entries are going to stay a while: have the disk keep them through a power cut."""
        with self._lock, contextlib.suppress(OSError):
            if isinstance(self._own, FileLog):
                self._own.sync()

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
