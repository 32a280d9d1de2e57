"""Where do a validation's sample scores and the pinned tasks stay? In files, or in memory for tests.

    <folder>/runs/<hash of the run>.jsonl   one sample score a line, appended and synced
    <folder>/pins/<task>.json               one pinned task
    <folder>/scores/<hash of a model>.jsonl what it reached as a baseline: hashes and numbers

A line that a crash cut short is no sample score: the task is done again. Pinned tasks hold parts of
trajectories, so erasing a user takes theirs along.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from upswing.contracts.typed import from_json
from upswing.contracts.validation import SampleScore
from upswing.errors import Misuse
from upswing.validate.core.task import ValidationTask

log = logging.getLogger(__name__)
T = TypeVar("T", bound=msgspec.Struct)
MAX_BASELINES = 8
"""Baselines whose scores are kept."""


class MemorySampleScores:
    """The twin without a disk."""

    def __init__(self) -> None:
        self._runs: dict[str, list[SampleScore]] = {}

    async def load(self, run_id: str) -> Sequence[SampleScore]:
        return tuple(self._runs.get(run_id, ()))

    async def append(self, run_id: str, sample_scores: Sequence[SampleScore]) -> None:
        self._runs.setdefault(run_id, []).extend(sample_scores)

    async def delete(self, run_id: str) -> None:
        self._runs.pop(run_id, None)


class FileSampleScores:
    """One file a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "runs"
        self._lock = asyncio.Lock()

    async def load(self, run_id: str) -> Sequence[SampleScore]:
        return await asyncio.to_thread(lambda: tuple(_read_sample_scores(self._path(run_id))))

    async def append(self, run_id: str, sample_scores: Sequence[SampleScore]) -> None:
        lines = b"".join(
            msgspec.json.encode(sample_score) + b"\n" for sample_score in sample_scores
        )
        async with self._lock:
            await asyncio.to_thread(_append_durably, self._path(run_id), lines)

    async def delete(self, run_id: str) -> None:
        """Once its report is kept, a run needs its sample scores no longer."""
        await asyncio.to_thread(self._path(run_id).unlink, missing_ok=True)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{sha256(run_id.encode()).hexdigest()[:32]}.jsonl"


class BaselineScores:
    """What baselines reached, by model; of the models that were asked last."""

    def __init__(
        self,
        folder: Path,
        own_sampling: str,
        other_sampling: str = "",
        *,
        deterministic: bool = False,
    ) -> None:
        """`own_sampling` tells how the user's own tasks are sampled, `other_sampling` how all others are."""
        self.deterministic = deterministic
        self._folder, self._about = folder / "scores", {True: own_sampling, False: other_sampling}
        self._lock = asyncio.Lock()

    def score_key(self, fingerprint: str, seed: int, *, own: bool) -> str:
        text = f"{fingerprint}/{seed}/{self._about[own]}"
        return sha256(text.encode()).hexdigest()[:32]

    async def load_scores(self, model: str) -> Mapping[str, float]:
        return await asyncio.to_thread(_read_scores, self._path(model))

    async def save_scores(self, model: str, scores: Mapping[str, float]) -> None:
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in scores.items())
        async with self._lock:
            await asyncio.to_thread(self._write, self._path(model), lines)

    def _write(self, path: Path, lines: bytes) -> None:
        _append_durably(path, lines)
        files = sorted(self._folder.glob("*.jsonl"), key=lambda each: -each.stat().st_mtime)
        for each in files[MAX_BASELINES:]:
            each.unlink(missing_ok=True)

    def _path(self, model: str) -> Path:
        return self._folder / f"{sha256(model.encode()).hexdigest()[:32]}.jsonl"


class MemoryPinStore(Generic[T]):
    """The twin without a disk."""

    def __init__(self, task_type: type[T]) -> None:
        self._kind = task_type
        self._kept: dict[str, T] = {}

    async def add(self, task: T) -> bool:
        name = _pin_name(task)
        new = name not in self._kept
        self._kept.setdefault(name, task)
        return new

    async def pinned(self) -> Sequence[T]:
        return tuple(self._kept[name] for name in sorted(self._kept))

    async def has_trajectory(self, trajectory_id: str) -> bool:
        return any(_is_of_trajectory(name, {trajectory_id}) for name in self._kept)

    async def forget(self, trajectory_ids: Collection[str]) -> int:
        gone = [name for name in self._kept if _is_of_trajectory(name, trajectory_ids)]
        for name in gone:
            del self._kept[name]
        return len(gone)


class FilePinStore(Generic[T]):
    """One file a task; `task_type` is the type of the tasks."""

    def __init__(self, folder: Path, task_type: type[T]) -> None:
        self._folder, self._kind = folder / "pins", task_type

    async def add(self, task: T) -> bool:
        return await asyncio.to_thread(self._write, task)

    async def pinned(self) -> Sequence[T]:
        return await asyncio.to_thread(self._all)

    async def has_trajectory(self, trajectory_id: str) -> bool:
        """Whether a task was made of this trajectory."""
        names = await asyncio.to_thread(lambda: [path.stem for path in self._files()])
        return any(_is_of_trajectory(name, {trajectory_id}) for name in names)

    async def forget(self, trajectory_ids: Collection[str]) -> int:
        """Delete the tasks made of these trajectories; how many went."""
        return await asyncio.to_thread(self._forget, frozenset(trajectory_ids))

    def _write(self, task: T) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{_pin_name(task)}.json"
        if path.exists():
            return False
        temporary = path.with_suffix(f".{os.getpid()}.new")
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(task))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _fsync_folder(self._folder)
        return True

    def _all(self) -> tuple[T, ...]:
        """A pin that cannot be read is logged as an alert; the others are used."""
        return tuple(task for path in self._files() if (task := self._read(path)) is not None)

    def _read(self, path: Path) -> T | None:
        try:
            return from_json(path.read_bytes(), self._kind)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message = "The pinned task %s cannot be read"
            log.exception(message, path.name, extra={"action": "alert", "reason": "pin_unreadable"})
            return None

    def _forget(self, trajectory_ids: Collection[str]) -> int:
        gone = [path for path in self._files() if _is_of_trajectory(path.stem, trajectory_ids)]
        for path in gone:
            path.unlink(missing_ok=True)
        if gone:
            _fsync_folder(self._folder)
        return len(gone)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))


PinStore = MemoryPinStore[ValidationTask] | FilePinStore[ValidationTask]
"""Where pinned tasks are kept. The same task twice is kept once; it is durable when `add` returns."""


def _pin_name(task: msgspec.Struct) -> str:
    name = str(getattr(task, "task_id", ""))
    if not name or not all(c.isalnum() or c in "._-" for c in name) or name.startswith("."):
        raise Misuse(f"A pinned task cannot be called {name[:80]!r}.")
    return name


def _is_of_trajectory(name: str, trajectory_ids: Collection[str]) -> bool:
    """Whether a pin is of one of these trajectories: its name says so."""
    return name.removeprefix("pin-").rpartition("-")[0] in trajectory_ids


def _read_sample_scores(path: Path) -> Iterator[SampleScore]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return
    for line in raw.split(b"\n"):
        try:
            yield from_json(line, SampleScore)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue


def _read_scores(path: Path) -> dict[str, float]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    path.touch()
    found = {}
    for line in raw.split(b"\n"):
        try:
            name, score = from_json(line, tuple[str, float])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if 0 <= score <= 1:
            found[name] = score
    return found


def _append_durably(path: Path, lines: bytes) -> None:
    new = not path.exists()
    if new:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("ab") as file:
        if file.tell() and not _ends_with_newline(path):
            file.write(b"\n")  # a crash left half a line
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    if new:
        _fsync_folder(path.parent)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _fsync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
