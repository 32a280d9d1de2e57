"""Where do a job's trajectories come from, and what of them may be used?

| source        | which trajectories                   | their text                                |
|---------------|--------------------------------------|-------------------------------------------|
| `local`       | the store's, and those that only an  | the store's, else the archive's           |
|               | archive on this machine still holds  |                                           |
| `s3`          | the archive's in an object store     | the store's, else the archive's           |
| `nats_stream` | the stream's                         | the store's: a message that is not taken  |
|               |                                      | yet is counted, and never trained on      |
| `clickhouse`  | refused                              |                                           |

Rewards, opt-outs and erasures are always the store's, so an old copy brings nothing back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import UNSET

from upswing.contracts import decode_trajectory
from upswing.contracts.topics import TRAJECTORIES
from upswing.contracts.training import Dataset
from upswing.dataset.sift import Candidate, LeftOut, Remains
from upswing.dataset.stray import candidate_of, gaps, name_of
from upswing.errors import Misuse, Reason, Rejected


class Store(Protocol):
    """What data sets ask of the store."""

    async def candidates(self, ancestors: Sequence[str] = ()) -> list[Candidate]: ...

    def bodies(self, trajectory_ids: Sequence[str]) -> AsyncIterator[list[tuple[str, bytes]]]: ...

    async def remains(
        self, trajectory_ids: Sequence[str], ancestors: Sequence[str] = ()
    ) -> Remains: ...

    async def carried(self, stream: str, first: int) -> dict[int, str]: ...

    async def demonstrations(self) -> dict[str, str]: ...

    async def note_trained(self, job_id: str, trained: Sequence[tuple[str, int]]) -> None: ...


class Shelves(Protocol):
    """An archive, as far as it is read."""

    @property
    def remote(self) -> bool: ...

    def read(
        self, paths: Sequence[str] | None = None, *, skip: Collection[str] = ()
    ) -> AsyncIterator[tuple[str, list[bytes]]]: ...


class Streams(Protocol):
    """The bus, as far as it is looked at."""

    async def held(self, stream: str) -> tuple[int, int]: ...

    def messages(self, stream: str, first: int, last: int) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class Found:
    """What a source has."""

    source: str
    candidates: list[Candidate]
    files: Mapping[str, str] = field(default_factory=dict)
    """Which file of the archive holds the text, for what the store does not hold."""
    left_out: Counter[LeftOut] = field(default_factory=Counter)


@dataclass(slots=True)
class Shelf:
    """What an archive holds, as it is read."""

    names: set[str] = field(default_factory=set)
    strays: list[Candidate] = field(default_factory=list)
    """Those that the store lacks."""
    places: dict[str, str] = field(default_factory=dict)
    """Which file holds them."""
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    """Files that hold something that the store does not."""

    def look(self, path: str, lines: Sequence[bytes], stored: Collection[str]) -> dict[str, bytes]:
        """Note the names of these lines; those come back that the store lacks."""
        self.files.add(path)
        lacking: dict[str, bytes] = {}
        for line in lines:
            name = name_of(line)
            if name is None:
                self.left_out[LeftOut.UNREADABLE] += 1
                self.needed.add(path)
            elif name not in self.names:
                self.names.add(name)
                if name not in stored:
                    lacking[name] = line
        return lacking

    def take(self, path: str, lines: Mapping[str, bytes], remains: Remains) -> None:
        """These are candidates, as far as they may be."""
        self.needed.add(path)
        for name, line in lines.items():
            if name in remains.erased:
                self.left_out[LeftOut.ERASED] += 1
                continue
            try:
                self.strays.append(candidate_of(decode_trajectory(line), remains))
                self.places[name] = path
            except (Rejected, ValueError, TypeError, OverflowError):
                self.left_out[LeftOut.UNREADABLE] += 1


class Sources:
    """Finds out what there is."""

    def __init__(
        self, store: Store, *, archive: Shelves | None = None, bus: Streams | None = None
    ) -> None:
        self._store = store
        self._archive = archive
        self._bus = bus
        self._known_files: set[str] = set()
        """Files of the local archive whose every line the store holds: no need to read them again."""

    async def find(self, dataset: Dataset, ancestors: Sequence[str]) -> Found:
        """The candidates of a source; `Misuse` or `Rejected` when there is no such source."""
        match dataset.source:
            case "local":
                return await self._local(ancestors)
            case "s3":
                return await self._remote(ancestors)
            case "nats_stream":
                name = TRAJECTORIES if dataset.stream_name is UNSET else dataset.stream_name
                return await self._stream(name, ancestors)
            case "clickhouse":
                raise Rejected(
                    Reason.SCHEMA,
                    "Data sets cannot be read from ClickHouse: ask for `local`, `nats_stream` or `s3`.",
                )

    async def lines(self, files: Collection[str]) -> AsyncIterator[list[bytes]]:
        """What these files of the archive hold, some lines at a time."""
        if files and self._archive is not None:
            async for _, lines in self._archive.read(sorted(files)):
                yield lines

    async def _local(self, ancestors: Sequence[str]) -> Found:
        known = await self._store.candidates(ancestors)
        if self._archive is None or self._archive.remote:
            return Found("local", known)
        stored = {each.trajectory_id for each in known}
        shelf = await self._archived(stored, ancestors, skip=self._known_files)
        self._known_files |= shelf.files - shelf.needed
        return Found("local", [*known, *shelf.strays], shelf.places, shelf.left_out)

    async def _remote(self, ancestors: Sequence[str]) -> Found:
        if self._archive is None:
            raise Misuse(
                "No archive is configured: name one with TRAJECTORY_STORAGE_PATH=s3://…, or ask for `local`."
            )
        if not self._archive.remote:
            raise Misuse(
                "TRAJECTORY_STORAGE_PATH names a folder of this machine: ask for `local`, which reads it too."
            )
        known = {each.trajectory_id: each for each in await self._store.candidates(ancestors)}
        shelf = await self._archived(known.keys(), ancestors)
        both = [known[name] for name in shelf.names if name in known]
        return Found("s3", [*both, *shelf.strays], shelf.places, shelf.left_out)

    async def _archived(
        self, stored: Collection[str], ancestors: Sequence[str], skip: Collection[str] = ()
    ) -> Shelf:
        """Everything that the archive holds."""
        shelf = Shelf()
        if self._archive is None:
            return shelf
        async for path, lines in self._archive.read(skip=frozenset(skip)):
            lacking = shelf.look(path, lines, stored)
            if lacking:
                remains = await self._store.remains(list(lacking), ancestors)
                shelf.take(path, lacking, remains)
        return shelf

    async def _stream(self, stream: str, ancestors: Sequence[str]) -> Found:
        if self._bus is None:
            raise Misuse("There is no bus to read a stream from: ask for `local`.")
        first, last = await self._bus.held(stream)
        carried = await self._store.carried(stream, first)
        told = {name for name in carried.values() if name}
        left_out: Counter[LeftOut] = Counter()
        for start, end in gaps(carried.keys(), first, last):
            async for payload in self._bus.messages(stream, start, end):
                name = name_of(payload)
                if name is None:
                    left_out[LeftOut.UNREADABLE] += 1
                else:
                    told.add(name)
        known = {each.trajectory_id: each for each in await self._store.candidates(ancestors)}
        missing = sorted(told - known.keys())
        erased = (await self._store.remains(missing)).erased
        left_out[LeftOut.ERASED] += len(erased)
        left_out[LeftOut.NOT_TAKEN] += len(missing) - len(erased)
        both = [known[name] for name in told if name in known]
        return Found(f"nats_stream {stream}", both, left_out=left_out)
