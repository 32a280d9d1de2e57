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
from upswing.dataset.filtering import ExclusionReason, TrajectoryCandidate, TrajectoryRecords
from upswing.dataset.unstored import build_candidate, missing_ranges, trajectory_id_in
from upswing.errors import Misuse, Reason, Rejected
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.datasets import DataSets


class ArchiveReader(Protocol):
    """Reads the lines of a trajectory archive."""

    @property
    def remote(self) -> bool: ...

    def read(
        self, paths: Sequence[str] | None = None, *, skip: Collection[str] = ()
    ) -> AsyncIterator[tuple[str, list[bytes]]]: ...


@dataclass(frozen=True, slots=True)
class SourceContents:
    """The candidates that a source holds."""

    source: str
    candidates: list[TrajectoryCandidate]
    files: Mapping[str, str] = field(default_factory=dict)
    """Which file of the archive holds the text, for what the store does not hold."""
    left_out: Counter[ExclusionReason] = field(default_factory=Counter)


@dataclass(slots=True)
class ArchiveScan:
    """What an archive holds, collected while it is read."""

    trajectory_ids: set[str] = field(default_factory=set)
    archive_only: list[TrajectoryCandidate] = field(default_factory=list)
    """Those that the store lacks."""
    file_of: dict[str, str] = field(default_factory=dict)
    """Which file holds them."""
    left_out: Counter[ExclusionReason] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    unstored_files: set[str] = field(default_factory=set)
    """Files that hold something that the store does not."""

    def note_lines(
        self, path: str, lines: Sequence[bytes], stored: Collection[str]
    ) -> dict[str, bytes]:
        """Record the ids of these lines; returns the lines that the store lacks."""
        self.files.add(path)
        lacking: dict[str, bytes] = {}
        for line in lines:
            name = trajectory_id_in(line)
            if name is None:
                self.left_out[ExclusionReason.UNREADABLE] += 1
                self.unstored_files.add(path)
            elif name not in self.trajectory_ids:
                self.trajectory_ids.add(name)
                if name not in stored:
                    lacking[name] = line
        return lacking

    def add_candidates(
        self, path: str, lines: Mapping[str, bytes], records: TrajectoryRecords
    ) -> None:
        """Add these lines as candidates, unless they are erased or unreadable."""
        self.unstored_files.add(path)
        for name, line in lines.items():
            if name in records.erased:
                self.left_out[ExclusionReason.ERASED] += 1
                continue
            try:
                self.archive_only.append(build_candidate(decode_trajectory(line), records))
                self.file_of[name] = path
            except (Rejected, ValueError, TypeError, OverflowError):
                self.left_out[ExclusionReason.UNREADABLE] += 1


class TrajectorySources:
    """Finds the candidates of each kind of source."""

    def __init__(
        self, store: DataSets, *, archive: ArchiveReader | None = None, bus: Bus | None = None
    ) -> None:
        self._store = store
        self._archive = archive
        self._bus = bus
        self._known_files: set[str] = set()
        """Files of the local archive whose every line the store holds: no need to read them again."""

    async def find(self, dataset: Dataset, ancestor_jobs: Sequence[str]) -> SourceContents:
        """The candidates of a source; `Misuse` or `Rejected` when there is no such source."""
        match dataset.source:
            case "local":
                return await self._find_local(ancestor_jobs)
            case "s3":
                return await self._find_remote(ancestor_jobs)
            case "nats_stream":
                name = TRAJECTORIES if dataset.stream_name is UNSET else dataset.stream_name
                return await self._find_in_stream(name, ancestor_jobs)
            case "clickhouse":
                raise Rejected(
                    Reason.SCHEMA,
                    "Data sets cannot be read from ClickHouse: ask for `local`, `nats_stream` or `s3`.",
                )

    async def read_lines(self, files: Collection[str]) -> AsyncIterator[list[bytes]]:
        """What these files of the archive hold, some lines at a time."""
        if files and self._archive is not None:
            async for _, lines in self._archive.read(sorted(files)):
                yield lines

    async def _find_local(self, ancestor_jobs: Sequence[str]) -> SourceContents:
        known = await self._store.candidates(ancestor_jobs)
        if self._archive is None or self._archive.remote:
            return SourceContents("local", known)
        stored = {each.trajectory_id for each in known}
        scan = await self._scan_archive(stored, ancestor_jobs, skip=self._known_files)
        self._known_files |= scan.files - scan.unstored_files
        return SourceContents("local", [*known, *scan.archive_only], scan.file_of, scan.left_out)

    async def _find_remote(self, ancestor_jobs: Sequence[str]) -> SourceContents:
        if self._archive is None:
            raise Misuse(
                "No archive is configured: name one with TRAJECTORY_STORAGE_PATH=s3://…, or ask for `local`."
            )
        if not self._archive.remote:
            raise Misuse(
                "TRAJECTORY_STORAGE_PATH names a folder of this machine: ask for `local`, which reads it too."
            )
        known = {each.trajectory_id: each for each in await self._store.candidates(ancestor_jobs)}
        scan = await self._scan_archive(known.keys(), ancestor_jobs)
        both = [known[name] for name in scan.trajectory_ids if name in known]
        return SourceContents("s3", [*both, *scan.archive_only], scan.file_of, scan.left_out)

    async def _scan_archive(
        self, stored: Collection[str], ancestor_jobs: Sequence[str], skip: Collection[str] = ()
    ) -> ArchiveScan:
        """Everything that the archive holds."""
        scan = ArchiveScan()
        if self._archive is None:
            return scan
        async for path, lines in self._archive.read(skip=frozenset(skip)):
            lacking = scan.note_lines(path, lines, stored)
            if lacking:
                records = await self._store.records_of_removed(list(lacking), ancestor_jobs)
                scan.add_candidates(path, lacking, records)
        return scan

    async def _find_in_stream(self, stream: str, ancestor_jobs: Sequence[str]) -> SourceContents:
        if self._bus is None:
            raise Misuse("There is no bus to read a stream from: ask for `local`.")
        first, last = await self._bus.held_range(stream)
        carried = await self._store.carried(stream, first)
        found_ids = {name for name in carried.values() if name}
        left_out: Counter[ExclusionReason] = Counter()
        for start, end in missing_ranges(carried.keys(), first, last):
            async for payload in self._bus.messages(stream, start, end):
                name = trajectory_id_in(payload)
                if name is None:
                    left_out[ExclusionReason.UNREADABLE] += 1
                else:
                    found_ids.add(name)
        known = {each.trajectory_id: each for each in await self._store.candidates(ancestor_jobs)}
        missing = sorted(found_ids - known.keys())
        erased = (await self._store.records_of_removed(missing)).erased
        left_out[ExclusionReason.ERASED] += len(erased)
        left_out[ExclusionReason.NOT_TAKEN] += len(missing) - len(erased)
        both = [known[name] for name in found_ids if name in known]
        return SourceContents(f"nats_stream {stream}", both, left_out=left_out)
