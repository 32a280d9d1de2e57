"""How are entries kept in order until they are settled? In a file that survives a crash.

A file is one header line with the offset of the first entry still to send, then one line per
entry: its kind, a checksum, its JSON. A line whose checksum is wrong (a power cut) is skipped.

`sync` is what makes entries outlive a power cut: the file, and the folders that name it. It succeeds
or raises; what a disk did not take is written anew into another file, because the kernel forgets
it and would call the next try a success.
"""

from __future__ import annotations

import errno
import fcntl
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Protocol

_HEADER = b"upswing-spool 1 %016d\n"
_START = len(_HEADER % 0)
_NO_SUCH_CALL = {errno.EINVAL, errno.ENOTSUP}
"""Some network file systems answer so for a folder: they keep names by themselves."""


class SpoolEntryKind(StrEnum):
    """What an entry is."""

    TRAJECTORY = "trajectory"
    FEEDBACK = "feedback"
    DEAD = "dead"
    """Of the gateway's recorder: why an episode was refused."""


@dataclass(frozen=True, slots=True)
class SpoolEntry:
    """One message, redacted, as it will be sent."""

    kind: SpoolEntryKind
    body: bytes

    def line(self) -> bytes:
        return b"%s %08x %s\n" % (self.kind.encode(), zlib.crc32(self.body), self.body)


def _parse_entry(line: bytes) -> SpoolEntry | None:
    try:
        kind, checksum, body = line.rstrip(b"\n").split(b" ", 2)
        whole = line.endswith(b"\n") and int(checksum, 16) == zlib.crc32(body)
        return SpoolEntry(SpoolEntryKind(kind.decode()), body) if whole else None
    except ValueError:
        return None


def _parse_entries(lines: Iterable[bytes]) -> Iterator[SpoolEntry]:
    """Up to the first line that cannot be read, so that entries and lines keep step."""
    for line in lines:
        if (entry := _parse_entry(line)) is None:
            return
        yield entry


def _fitting_sizes(sizes: Iterable[int], count: int, size: int) -> list[int]:
    """The first of these sizes: at most `count`, together at most `size`, but at least one."""
    taken: list[int] = []
    for each in islice(sizes, count):
        size -= each
        if taken and size < 0:
            break
        taken.append(each)
    return taken


def _make_folder(folder: Path) -> None:
    """The folder and those above it, each kept by the one that names it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in reversed(missing):
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """A file is found after a power cut only if its name is on the disk, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SUCH_CALL:
            raise
    finally:
        os.close(handle)


class SpoolLog(Protocol):
    """Entries in order: added at the end, looked at and removed at the front."""

    size: int
    """Bytes of the entries it holds."""

    def __len__(self) -> int: ...
    def append(self, line: bytes) -> None: ...
    def peek(self, count: int, size: int) -> list[SpoolEntry]: ...
    def remove(self, count: int) -> None: ...
    def drop(self, size: int) -> int: ...
    def sync(self) -> None: ...
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

    def peek(self, count: int, size: int) -> list[SpoolEntry]:
        fitting = _fitting_sizes(map(len, self._lines), count, size)
        return list(_parse_entries(islice(self._lines, len(fitting))))

    def remove(self, count: int) -> None:
        for _ in range(count):
            self.size -= len(self._lines.popleft())

    def drop(self, size: int) -> int:
        before, dropped = self.size, 0
        while self._lines and before - self.size < size:
            self.remove(1)
            dropped += 1
        return dropped

    def sync(self) -> None:
        """There is no disk to wait for."""

    def close(self) -> None:
        """Nothing to let go of."""


class FileLog:
    """One spool file, locked for as long as it is open. `torn` lines were skipped on opening."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self._fd = path, fd
        self._sizes: deque[int] = deque()
        self._first = self._end = _START
        self.size = self.torn = 0
        self._dirty = True
        """Something was written since the disk last said that it has everything."""
        self._doubtful = False
        """The disk failed to keep this file."""

    @classmethod
    def create(cls, path: Path) -> FileLog:
        _make_folder(path.parent)
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        log = cls(path, -1)
        try:
            log._rewrite(b"")
        except OSError:
            log.close()
            raise
        return log

    @classmethod
    def adopt(cls, path: Path) -> FileLog | None:
        """The file of a process that is gone, or None while its owner lives."""
        fd, log = -1, None
        try:
            fd = os.open(path, os.O_RDWR)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino != os.fstat(fd).st_ino:  # tidied up in between
                raise BlockingIOError
            path.with_suffix(".tidy").unlink(missing_ok=True)
            log = cls(path, fd)
            log._load()
        except OSError:
            fd = log._fd if log else fd
            if fd >= 0:
                os.close(fd)
            return None
        return log

    def _load(self) -> None:
        whole = self._read_bytes(0, os.fstat(self._fd).st_size)
        header = whole[:_START].split()
        first = int(header[2]) if len(header) == 3 and header[2].isdigit() else _START
        if not _START <= first <= len(whole) or whole[first - 1 : first] != b"\n":
            first = _START  # a mark that fits no line: sending again is harmless, skipping is not
        lines = whole[first:].splitlines(keepends=True)
        good = [line for line in lines if _parse_entry(line)]
        self.torn = len(lines) - len(good)
        self._sizes, self.size = deque(map(len, good)), sum(map(len, good))
        self._first, self._end = first, len(whole)
        if self.torn:
            self._rewrite(b"".join(good))

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def size_on_disk(self) -> int:
        return self._end

    def append(self, line: bytes) -> None:
        self._dirty = True
        if os.pwrite(self._fd, line, self._end) != len(line):  # a disk that is just full
            os.ftruncate(self._fd, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._end += len(line)
        self._sizes.append(len(line))
        self.size += len(line)

    def peek(self, count: int, size: int) -> list[SpoolEntry]:
        near = self._read_bytes(self._first, sum(_fitting_sizes(self._sizes, count, size)))
        return list(_parse_entries(near.splitlines(keepends=True)))

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
            self._rewrite(self._read_bytes(self._first, self.size))

    def sync(self) -> None:
        """Have the disk keep everything through a power cut; OSError when it does not."""
        if self._dirty and not self._doubtful:
            try:
                os.fsync(self._fd)
            except OSError:
                self._doubtful = True
        if self._doubtful:
            self._rewrite(self._read_bytes(self._first, self.size))
        self._dirty = False

    def _rewrite(self, entries: bytes) -> None:
        fresh = self.path.with_suffix(".tidy")
        fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(fd, "wb", closefd=False) as file:
                file.write(_HEADER % _START + entries)
            if entries:
                os.fsync(fd)
            fresh.rename(self.path)  # only now, with its lock held, can another process find it
        except OSError:
            os.close(fd)
            fresh.unlink(missing_ok=True)
            raise
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._first, self._end = fd, _START, _START + len(entries)
        self._doubtful = True
        _sync_folder(self.path.parent)
        self._doubtful = False

    def _read_bytes(self, start: int, size: int) -> bytes:
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
