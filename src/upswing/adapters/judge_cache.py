"""Which questions were answered already? Answers on disk, so that none is paid for twice.

    <folder>/3f/3fa9….json   {"answer": …, "trajectories": […]}

The file's name is the hash of model and question; the question itself is not kept. The ids of the
trajectories stand beside the answer, so that erasing a user can take their answers along.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Misuse


class _Kept(msgspec.Struct, frozen=True):
    answer: str
    trajectories: list[str]


class JudgeCache:
    """Answers in a folder. A damaged file counts as no answer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, key: str) -> str | None:
        kept = await asyncio.to_thread(_read, self._path(key))
        return kept.answer if kept else None

    async def put(self, key: str, answer: str, trajectory_ids: Sequence[str]) -> None:
        await asyncio.to_thread(_write, self._path(key), _Kept(answer, list(trajectory_ids)))

    async def forget(self, trajectory_ids: Collection[str]) -> int:
        """Delete every answer that speaks of one of these; how many went."""
        return await asyncio.to_thread(self._forget, frozenset(trajectory_ids))

    async def prune(self, before: datetime) -> int:
        """Delete the answers written before this moment; how many went."""
        return await asyncio.to_thread(self._prune, before.timestamp())

    def _forget(self, gone: frozenset[str]) -> int:
        named = [path for path in self._files() if _speaks_of(_read(path), gone)]
        for path in named:
            path.unlink(missing_ok=True)
        return len(named)

    def _prune(self, before: float) -> int:
        old = [path for path in self._files() if path.stat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def _files(self) -> Iterator[Path]:
        return self._folder.glob("??/*.json")

    def _path(self, key: str) -> Path:
        if not key.isalnum():
            raise Misuse("A key of the judge's cache is a hash in hexadecimal.")
        return self._folder / key[:2] / f"{key}.json"


class MemoryJudgeCache:
    """The same, for tests and for a run that leaves no files."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    async def get(self, key: str) -> str | None:
        return self._kept[key].answer if key in self._kept else None

    async def put(self, key: str, answer: str, trajectory_ids: Sequence[str]) -> None:
        self._kept[key] = _Kept(answer, list(trajectory_ids))

    async def forget(self, trajectory_ids: Collection[str]) -> int:
        gone = frozenset(trajectory_ids)
        named = [key for key, kept in self._kept.items() if _speaks_of(kept, gone)]
        for key in named:
            del self._kept[key]
        return len(named)


def _speaks_of(kept: _Kept | None, gone: frozenset[str]) -> bool:
    """Nobody can say whom a damaged file speaks of, so it goes as well."""
    return kept is None or not gone.isdisjoint(kept.trajectories)


def _read(path: Path) -> _Kept | None:
    try:
        return from_json(path.read_bytes(), _Kept)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _write(path: Path, kept: _Kept) -> None:
    """Whole or not at all: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(kept))
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
