"""Which checkpoints are there, which is the newest, which may go?

    <folder>/step-000050/   best/   final/      whole checkpoints
    <folder>/.new-…   .old-…   .gone-…          what a crash may leave behind; `settle` cleans up

One process writes in a folder.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from upswing.adapters.checkpoints.checking import verify
from upswing.adapters.checkpoints.manifest import Refused

log = logging.getLogger(__name__)
_STEP = re.compile(r"step-(\d{6,12})")
_NEW, _OLD, _GONE = ".new-", ".old-", ".gone-"
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux."""
_HERE = -100
"""AT_FDCWD: paths are taken as they are."""


def step_name(step: int) -> str:
    """The name of a step's checkpoint; names sort like steps.

    >>> step_name(50)
    'step-000050'
    """
    return f"step-{step:06d}"


def newest(
    folder: Path, *, at_most_step: int | None = None, base: Path | str | None = None
) -> Path | None:
    """The newest checkpoint of a step that verifies; broken ones are passed over."""
    for step, path in sorted(_steps(folder), reverse=True):
        if at_most_step is not None and step > at_most_step:
            continue
        try:
            verify(path, base=base)
        except Refused as error:
            log.warning("%s is passed over: %s", path, error, extra={"action": "skip_checkpoint"})
        else:
            return path
    return None


def prune(folder: Path, keep: int, protect: Collection[str] = ("best", "final")) -> list[Path]:
    """Delete all but the newest `keep` checkpoints of steps; what went."""
    steps = sorted(_steps(folder), reverse=True)
    gone = [path for _, path in steps[keep:] if path.name not in protect]
    for path in gone:
        aside = Path(tempfile.mkdtemp(prefix=_GONE, dir=folder))
        path.rename(aside / path.name)  # at once, so that no half of it keeps its name
        shutil.rmtree(aside)
    return gone


def _steps(folder: Path) -> Iterator[tuple[int, Path]]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if found := _STEP.fullmatch(path.name):
            yield int(found[1]), path


def fresh(folder: Path, name: str) -> Path:
    """A folder to write the checkpoint `name` into, unseen until `put_in_place`."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{_NEW}{name}-", dir=folder))


def put_in_place(new: Path, place: Path) -> None:
    """Give a finished folder its name, instead of what had it; durable when this returns.

    A crash at any point leaves the old one or the new one. Where the system cannot exchange two
    names at once, it may leave the old one under its other name, and `settle` takes it back.
    """
    for file in new.iterdir():
        _sync(file)
    _sync(new)
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
        aside = place.with_name(_OLD + place.name)
        place.rename(aside)
        new.rename(place)
        shutil.rmtree(aside)
    _sync(place.parent)
    shutil.rmtree(new, ignore_errors=True)


def settle(folder: Path) -> None:
    """Finish what a crash interrupted."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(_OLD):
            place = folder / path.name.removeprefix(_OLD)
            if not place.exists():
                path.rename(place)
                continue
        if path.name.startswith((_NEW, _OLD, _GONE)):
            shutil.rmtree(path, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, where the system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return bool(done == 0)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
