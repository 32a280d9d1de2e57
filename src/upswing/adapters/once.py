"""Is it there already? A folder that is made once, whole or not at all, whoever asks first.

It is made beside its place and renamed into it, so a reader finds all of it or nothing. A lock lets
one process do the work while others wait for it; a maker that dies leaves its lock free, and its
half-made folder is swept away by the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """`place`, after `make` has filled it; `make` gets an empty folder."""
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.parent / f".{place.name}.lock"):
        if place.is_dir():
            return place
        draft = place.parent / f".{place.name}.making"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        try:
            make(draft)
            _to_disk(draft)
            draft.rename(place)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return place


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Only one process at a time; the lock is gone with the process that held it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _to_disk(folder: Path) -> None:
    """A power cut after the renaming must not leave a folder of empty files."""
    for path in folder.iterdir():
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
