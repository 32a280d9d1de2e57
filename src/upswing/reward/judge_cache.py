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


class _CachedAnswer(msgspec.Struct, frozen=True):
    answer: str
    trajectories: list[str]


class JudgeCache:
    """Answers in a folder. A damaged file counts as no answer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def get(self, key: str) -> str | None:
        kept = await asyncio.to_thread(_read_answer, self._path_of_answer(key))
        return kept.answer if kept else None

    async def put(self, key: str, answer: str, trajectory_ids: Sequence[str]) -> None:
        await asyncio.to_thread(
            _write_answer, self._path_of_answer(key), _CachedAnswer(answer, list(trajectory_ids))
        )

    async def forget(self, trajectory_ids: Collection[str]) -> int:
        """Delete every answer that speaks of one of these; how many went."""
        return await asyncio.to_thread(self._delete_answers_about, frozenset(trajectory_ids))

    async def prune(self, before: datetime) -> int:
        """Delete the answers written before this moment; how many went."""
        return await asyncio.to_thread(self._delete_answers_before, before.timestamp())

    def _delete_answers_about(self, gone: frozenset[str]) -> int:
        named = [path for path in self._answer_files() if _mentions_any(_read_answer(path), gone)]
        for path in named:
            path.unlink(missing_ok=True)
        return len(named)

    def _delete_answers_before(self, before: float) -> int:
        old = [path for path in self._answer_files() if path.stat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def _answer_files(self) -> Iterator[Path]:
        return self._folder.glob("??/*.json")

    def _path_of_answer(self, key: str) -> Path:
        if not key.isalnum():
            raise Misuse("A key of the judge's cache is a hash in hexadecimal.")
        return self._folder / key[:2] / f"{key}.json"


def _mentions_any(kept: _CachedAnswer | None, gone: frozenset[str]) -> bool:
    """Nobody can say whom a damaged file speaks of, so it goes as well."""
    return kept is None or not gone.isdisjoint(kept.trajectories)


def _read_answer(path: Path) -> _CachedAnswer | None:
    try:
        return from_json(path.read_bytes(), _CachedAnswer)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _write_answer(path: Path, kept: _CachedAnswer) -> None:
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
