"""Is it there already? A folder that is made once, whole or not at all, whoever asks first.

It is made beside its place and renamed into it, so a reader finds all of it or nothing. A lock lets
one process do the work while others wait for it; a maker that dies leaves its lock free, and its
half-made folder is swept away by the next. A list of the files' hashes lies beside them: a folder that is
damaged is made again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path

log = logging.getLogger(__name__)
_SUMS, _END = ".sha256", "end"


def make_folder_once(path: Path, make: Callable[[Path], None]) -> Path:
    """`place`, after `make` has filled it; `make` gets an empty folder."""
    if _is_whole(path):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive_lock(path.parent / f".{path.name}.lock"):
        if _is_whole(path):
            return path
        if path.is_dir():
            log.error(
                "%s is damaged and made again",
                path,
                extra={"action": "alert", "reason": "base_damaged"},
            )
            shutil.rmtree(path)
        draft = path.parent / f".{path.name}.making"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            make(draft)
            (draft / _SUMS).write_text(_checksum_lines(draft))
            _sync_folder_to_disk(draft)
            draft.rename(path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return path


def _is_whole(path: Path) -> bool:
    """Whether it is there, with the files that were made; an older version kept no hashes."""
    if not (path / _SUMS).exists():
        return path.is_dir()
    try:
        *lines, last = (path / _SUMS).read_text().splitlines() or [""]
        listed = [line.partition("  ") for line in lines]
        return last == _END and all(_sha256(path / name) == hashed for hashed, _, name in listed)
    except (OSError, ValueError):
        return False


def _checksum_lines(folder: Path) -> str:
    """A line for each file, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _SUMS)
    return "".join(f"{_sha256(path)}  {path.relative_to(folder)}\n" for path in files) + _END


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    """Only one process at a time; the lock is gone with the process that held it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _sync_folder_to_disk(folder: Path) -> None:
    """A power cut after the renaming must not leave a folder of empty files."""
    for path in folder.iterdir():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
