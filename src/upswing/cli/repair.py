"""What is left of a damaged data directory? `upswing repair` rebuilds the store and says what is lost.

the database's sound rows ─┐
the archive's lines ───────┼─▶ a new database, in the place of the old one, which is kept beside it
the streams' messages ─────┘
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upswing.errors import Misuse, UpswingError

if TYPE_CHECKING:
    from upswing.collect.core.admit import AdmissionLimits
    from upswing.infra.nats.bus import Bus
    from upswing.infra.sql.salvage import Salvage
    from upswing.infra.sql.store import SqlStore
    from upswing.redact import Redactor


REPAIR_SOURCE = "repair"
"""How restored trajectories came: not from a gateway, so they are no evidence about a canary. And the key of those whose key
nobody knows: together they are one voice."""


@dataclass(slots=True)
class RepairReport:
    """What came of a repair."""

    kept: dict[str, int]
    lost: dict[str, int]
    tables: list[str]
    names: set[str]
    damaged_copy: str
    gaps: dict[str, tuple[int, int]]
    """Table → the last number that is known of, and the last one that was given out."""
    unmarked: bool = False
    """Nothing says how many rows there were."""
    restored: Counter[str] = field(default_factory=Counter)
    """Table → rows that came back from archive and streams."""
    archive: Counter[str] = field(default_factory=Counter)
    streams: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)
    sound: bool = False
    """Nothing was wrong with the store."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "kept": self.kept,
            "lost": self.lost,
            "unreadable_tables": self.tables,
            "lost_ids": sorted(self.names),
            "damaged_copy": self.damaged_copy,
            "from_archive": dict(self.archive),
            "from_streams": dict(self.streams),
            "restored": dict(self.restored),
            "missing": self.missing(),
            "trouble": self.trouble,
            "sound": self.sound,
            "missing_numbers": {t: list(g) for t, g in self.gaps.items()},
        }

    def missing(self) -> dict[str, int]:
        """Table → rows that were there once and are not now, at most: some of them may have been erased."""
        short = Counter(self.lost)
        for table, (has, had) in self.gaps.items():
            short[table] += had - has
        return {t: n - self.restored[t] for t, n in short.items() if n > self.restored[t]}


def repair(arguments: argparse.Namespace) -> int:
    """Rebuild the store; 0 when nothing is known to be lost."""
    from upswing.config import read_surroundings

    if read_surroundings(os.environ).database_url:
        raise Misuse("DATABASE_URL names PostgreSQL, which is repaired with its own tools.")
    if not arguments.data.is_dir():
        raise Misuse(f"{arguments.data} does not exist: there is nothing to repair.")
    report = rebuild(arguments.data)
    asyncio.run(_refill(arguments.data, report))
    if arguments.json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        print("\n".join(_report_lines(report)))
    return 1 if report.missing() or report.tables or report.unmarked or report.trouble else 0


def rebuild(folder: Path) -> RepairReport:
    """A new database of what is sound in the old one, which stays beside it."""
    from upswing.infra.sql import store_mark
    from upswing.infra.sql.salvage import salvage_database
    from upswing.infra.sql.store import lock_for_writing

    with lock_for_writing(folder):
        before = _sequences(folder)
        had_streams = any((folder / "nats" / "jetstream").rglob("*.blk"))
        old, new = folder / store_mark.DATABASE, folder / f"{store_mark.DATABASE}.repair"
        sound = _is_sound(folder)
        found = salvage_database(old, new, before)
        sound = sound and not (found.lost or found.tables or found.names or found.gaps)
        damaged_copy = ""
        if sound:
            new.unlink()
        else:
            damaged_copy = _keep_damaged_copy(old) if old.exists() else ""
            for left in folder.glob(f"{store_mark.DATABASE}-*"):
                left.unlink()
            new.replace(old)
            store_mark.record_and_seal(folder)
    unmarked = not before and not found.kept and had_streams
    return _report_of(found, damaged_copy, unmarked=unmarked, sound=sound)


def _is_sound(folder: Path) -> bool:
    """Whether a start would take this store as it is."""
    from upswing.errors import Damaged
    from upswing.infra.sql import store_mark
    from upswing.infra.sql.inspection import check_file

    try:
        known = store_mark.check_file(folder)
        return known is not None and check_file(folder, lambda: False)
    except (Damaged, sqlite3.Error):
        return False


def _report_of(found: Salvage, damaged_copy: str, *, unmarked: bool, sound: bool) -> RepairReport:
    return RepairReport(
        dict(found.kept),
        dict(found.lost),
        found.tables,
        found.names,
        damaged_copy,
        found.gaps,
        unmarked,
        sound=sound,
    )


def _sequences(folder: Path) -> dict[str, int]:
    from upswing.errors import Damaged
    from upswing.infra.sql import store_mark

    try:
        known = store_mark.read_mark(folder)
    except Damaged:
        return {}
    return dict(known.sequences) if known else {}


def _keep_damaged_copy(old: Path) -> str:
    """Beside the database, under the first free name; its log goes with it."""
    number = 1
    while (kept := old.with_name(f"{old.name}.damaged-{number}")).exists():
        number += 1
    os.link(old, kept)
    wal = old.with_name(f"{old.name}-wal")
    if wal.exists():
        wal.replace(kept.with_name(f"{kept.name}-wal"))
    return str(kept)


async def _refill(folder: Path, report: RepairReport) -> None:
    """What the archive and the streams still have."""
    from upswing.app.archive import Archive
    from upswing.collect.worker import limits_of
    from upswing.collect.worker_pool import make_redactor
    from upswing.config import read_settings, read_surroundings
    from upswing.infra.sql.store import open_store

    settings, surroundings = read_settings(folder, os.environ), read_surroundings(os.environ)
    store = open_store(folder)
    try:
        await store.prepare()
        taking = _Refill(store, make_redactor(settings), limits_of(settings), report)
        await taking.streams(folder, surroundings.nats_url)  # these know whose key it was
        if surroundings.storage_path:
            await taking.archive(Archive(surroundings.storage_path))
        await _mend_revoked(folder, store, report)
    finally:
        store.close()


async def _mend_revoked(folder: Path, store: SqlStore, report: RepairReport) -> None:
    """No key that was revoked works again, whichever of the two places remembers it."""
    from upswing.infra.sql.keys import Keys
    from upswing.infra.sql.revoked import FILE, Revoked

    keys = Keys(store.database)
    await keys.load()
    if not Revoked(folder).repair_file(keys.revoked_by_hand()):
        report.trouble.append(
            f"{FILE} was damaged: look through `upswing keys list` for keys that should not work."
        )


class _Refill:
    """Takes copies of what was stored once, each through the one admission."""

    def __init__(
        self, store: SqlStore, redactor: Redactor, limits: AdmissionLimits, report: RepairReport
    ) -> None:
        self._store, self._redactor, self._limits, self._report = store, redactor, limits, report

    async def archive(self, archive: Any) -> None:
        try:
            async for _, lines in archive.read():
                for line in lines:
                    await self._trajectory("", line, self._report.archive)
        except UpswingError as error:
            self._report.trouble.append(f"The archive could not be read to its end: {error}")

    async def streams(self, folder: Path, url: str | None) -> None:
        try:
            if url or (folder / "nats").is_dir():
                async with _open_bus(folder, url) as bus:
                    await self._stream(bus)
        except (UpswingError, OSError) as error:
            self._report.trouble.append(f"The streams could not be read to their end: {error}")

    async def _stream(self, bus: Bus) -> None:
        from upswing.contracts.topics import FEEDBACKS, TRAJECTORIES

        for stream, take in ((TRAJECTORIES, self._trajectory), (FEEDBACKS, self._feedback)):
            first, last = await bus.held_range(stream)
            async for subject, raw in bus.messages_with_subjects(stream, first, last):
                await take(subject, raw, self._report.streams)

    async def _trajectory(self, subject: str, raw: bytes, counts: Counter[str]) -> None:
        """Whose key it came with is believed where a gateway says it."""
        from dataclasses import replace

        from upswing.app.loop import now
        from upswing.collect.core.admit import admit
        from upswing.contracts.topics import GATEWAY_TRAJECTORY
        from upswing.errors import Rejected

        try:
            row = admit(raw, self._redactor, self._limits).admitted
        except Rejected:
            counts["refused"] += 1
            return
        if subject != GATEWAY_TRAJECTORY:
            row = replace(row, key_id=REPAIR_SOURCE, many=False)
        stored = await self._store.take(
            row, door=REPAIR_SOURCE, now=now(), stream_seq=None, announce=False
        )
        counts[stored.name.lower()] += 1
        self._report.restored["trajectories"] += stored.name == "STORED"
        self._report.names.discard(row.trajectory_id)

    async def _feedback(self, subject: str, raw: bytes, counts: Counter[str]) -> None:
        from dataclasses import replace

        from upswing.app.loop import now
        from upswing.collect.core.admit import admit_feedback
        from upswing.contracts.topics import GATEWAY_FEEDBACK
        from upswing.errors import Rejected
        from upswing.principals import GATEWAY, OPERATOR

        try:
            feedback, _findings = admit_feedback(raw, self._redactor, self._limits)
        except Rejected:
            counts["refused"] += 1
            return
        if subject != GATEWAY_FEEDBACK:
            feedback = replace(feedback, principal=REPAIR_SOURCE, many=False)
        elif not feedback.principal:
            feedback = replace(feedback, principal=GATEWAY, many=True)
        elif feedback.principal == OPERATOR and feedback.user_id:
            feedback = replace(feedback, trusted=True)
        stored = await self._store.take_feedback(feedback, now=now(), announce=False)
        counts[stored.name.lower()] += 1
        self._report.restored["feedback"] += stored.name == "STORED"
        self._report.names.discard(feedback.feedback_id)


def _table_loss(report: RepairReport, table: str) -> str:
    """Of those numbers that are not there, whichever did not come back."""
    parts = []
    if table in report.gaps:
        has, had = report.gaps[table]
        parts.append(f"of the numbers {has + 1} to {had}")
    if table in report.lost:
        parts.append(f"{report.lost[table]} could not be read")
    if table == "rewards":
        parts.append("the next start scores anew")
    return f" ({', '.join(parts)})"


@contextlib.asynccontextmanager
async def _open_bus(folder: Path, url: str | None) -> AsyncIterator[Bus]:
    """The bus of this directory, for as long as it is read."""
    from upswing.contracts.topics import ROLES
    from upswing.infra.instance import read_secrets
    from upswing.infra.nats.bus import Bus
    from upswing.infra.nats.permissions import OPERATOR
    from upswing.infra.nats.server import EmbeddedServer

    server = None
    if not url:
        secret = read_secrets(folder)
        passwords = {role: secret[f"nats_{role}"] for role in (OPERATOR, *ROLES)}
        server = EmbeddedServer(folder / "nats", passwords)
        await server.start()
        url = server.url(OPERATOR)
    try:
        bus = await Bus.connect(url)
        try:
            yield bus
        finally:
            await bus.close()
    finally:
        if server:
            await server.stop()


def _report_lines(report: RepairReport) -> list[str]:
    return _lines_of_sound_store(report) if report.sound else _lines_of_repair(report)


def _lines_of_sound_store(report: RepairReport) -> list[str]:
    """Nothing was restored, since nothing was lost; what waited in the streams was never there."""
    lines = ["Nothing was wrong with the store: it is as it was."]
    lines += [f"{table}: {kept}." for table, kept in sorted(report.kept.items())]
    lines += [
        f"{table}: {count} more lay in the streams or the archive and were in no store yet; now they are."
        for table, count in sorted(report.restored.items())
        if count
    ]
    return lines + report.trouble


def _lines_of_repair(report: RepairReport) -> list[str]:
    missing = report.missing()
    known = {*report.kept, *report.restored, *report.lost, *report.gaps}
    lines = [
        f"{table}: {report.kept.get(table, 0)} kept, {report.restored[table]} restored, "
        f"{missing.get(table, 0) or 'none'} missing{_table_loss(report, table) if table in missing else ''}."
        for table in sorted(known)
    ]
    if report.unmarked:
        lines.append("How many rows there were is not known: upswing.mark is missing or damaged.")
    elif not missing and not report.tables and not report.trouble:
        lines.append("Nothing is missing.")
    if report.restored.total():
        lines.append(
            "What was restored lay in the streams or the archive: some of it may never have reached the store."
        )
    lines += [f"Lost: all of {table}, which cannot be read." for table in report.tables]
    if report.names:
        lines.append(f"Not found again: {', '.join(sorted(report.names)[:20])}.")
    lines += report.trouble
    if report.damaged_copy:
        lines.append(
            f"The damaged database is kept in {report.damaged_copy}; delete it when nobody needs it."
        )
    return lines
