"""Which checkpoints are there, which is the newest, which may be deleted?

    <folder>/step-000050/   best/   final/      whole checkpoints
    <folder>/.new-…   .old-…   .gone-…          what a crash may leave behind; `recover_folders` cleans up

One process writes in a folder.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.manifest import InvalidCheckpoint

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


def newest_checkpoint(
    folder: Path, *, at_most_step: int | None = None, base: Path | str | None = None
) -> Path | None:
    """The newest checkpoint of a step that verifies; broken ones are passed over."""
    for step, path in sorted(_step_folders(folder), reverse=True):
        if at_most_step is not None and step > at_most_step:
            continue
        try:
            verify(path, base=base)
        except InvalidCheckpoint as error:
            log.warning("%s is passed over: %s", path, error, extra={"action": "skip_checkpoint"})
        else:
            return path
    return None


def prune_checkpoints(
    folder: Path, keep: int, protect: Collection[str] = ("best", "final")
) -> list[Path]:
    """Delete all but the newest `keep` checkpoints of steps; what went."""
    steps = sorted(_step_folders(folder), reverse=True)
    gone = [path for _, path in steps[keep:] if path.name not in protect]
    for path in gone:
        aside = Path(tempfile.mkdtemp(prefix=_GONE, dir=folder))
        path.rename(aside / path.name)  # at once, so that no half of it keeps its name
        shutil.rmtree(aside)
    return gone


def _step_folders(folder: Path) -> Iterator[tuple[int, Path]]:
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if found := _STEP.fullmatch(path.name):
            yield int(found[1]), path


def create_staging_folder(folder: Path, name: str) -> Path:
    """A folder to write the checkpoint `name` into, unseen until `publish_folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{_NEW}{name}-", dir=folder))


def publish_folder(
    staged: Path, target: Path, *, swap_names: Callable[[Path, Path], bool] | None = None
) -> None:
    """Give a finished folder its name, instead of what had it; durable when this returns.

    A crash at any point leaves the old one or the new one. Where the system cannot exchange two
    names at once, it may leave the old one under its other name, and `recover_folders` takes it back.
    """
    for file in staged.iterdir():
        _fsync_path(file)
    _fsync_path(staged)
    if not target.exists():
        staged.rename(target)
    elif not (swap_names or exchange_names)(staged, target):
        aside = target.with_name(_OLD + target.name)
        target.rename(aside)
        staged.rename(target)
        shutil.rmtree(aside)
    _fsync_path(target.parent)
    shutil.rmtree(staged, ignore_errors=True)


def recover_folders(folder: Path) -> None:
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


def exchange_names(first: Path, second: Path) -> bool:
    """Exchange two names in one step, where the system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done = rename(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE)
    return bool(done == 0)


def _fsync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
