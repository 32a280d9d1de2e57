"""How are the parts that the loop rests on? Looked at every few seconds, for metrics and alerts alike.

What takes a question to somebody else or a look at many rows is read once a minute. A fact that cannot be read
just now keeps its last value: not knowing is no alarm.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from upswing.errors import Transient
from upswing.infra.sql.database import Database
from upswing.monitor.core.conditions import DiskSpace, LoopConditions, RewardDrift
from upswing.monitor.training_history import TrainingHistory
from upswing.records import JudgeUse

log = logging.getLogger(__name__)
_SECONDS, _SLOW_SECONDS = 10.0, 60.0


async def _unknown() -> None:
    """Of a part that this loop does not have."""


@dataclass(frozen=True, slots=True)
class ConditionSources:
    """Whom to ask; `_unknown` where there is no such part."""

    bus_connected: Callable[[], bool]
    bus_sync_always: Callable[[], Awaitable[bool | None]] = _unknown
    model_server_answers: Callable[[], Awaitable[bool | None]] = _unknown
    judge: Callable[[], Awaitable[JudgeUse | None]] = _unknown
    drift: Callable[[], Awaitable[RewardDrift | None]] = _unknown
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Name of a disk → a folder on it."""
    gateway_answers: Callable[[], Awaitable[bool | None]] = _unknown


class ConditionReader:
    """Reads the conditions for ever, and keeps the newest."""

    def __init__(
        self,
        sources: ConditionSources,
        database: Database,
        *,
        on_read: Sequence[Callable[[LoopConditions], None]] = (),
        seconds: float = _SECONDS,
        slow_seconds: float = _SLOW_SECONDS,
    ) -> None:
        """`on_read` is called after every round; `slow_seconds` pass between two questions to others."""
        self._sources, self._training = sources, TrainingHistory(database)
        self._on_read, self._seconds, self._slow_seconds = on_read, seconds, slow_seconds
        self._asked_at = float("-inf")
        self.newest = LoopConditions(bus_connected=sources.bus_connected())

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.read()
            await asyncio.sleep(self._seconds)

    async def read(self, *, everything: bool = False) -> LoopConditions:
        """One round; `everything`: also what is read once a minute otherwise."""
        sources, at = self._sources, asyncio.get_running_loop().time()
        is_back = sources.bus_connected() and not self.newest.bus_connected
        self.newest = replace(self.newest, bus_connected=sources.bus_connected())
        await self._read_fact("disks", self._disks)
        await self._read_fact("active_jobs", self._training.active)
        await self._read_fact("failed_jobs_in_a_row", self._training.failed_in_a_row)
        await self._read_fact("gateway_answers", sources.gateway_answers)
        await self._read_fact("model_server_answers", sources.model_server_answers)
        await self._read_fact("judge", sources.judge)
        # A bus that was away may be another one now.
        if everything or is_back or at - self._asked_at >= self._slow_seconds:
            self._asked_at = at
            await self._read_fact("bus_sync_always", sources.bus_sync_always)
            await self._read_fact("drift", sources.drift)
        for heard in self._on_read:
            heard(self.newest)
        return self.newest

    async def _read_fact(self, name: str, read: Callable[[], Awaitable[Any]]) -> None:
        try:
            self.newest = replace(self.newest, **{name: await read()})
        except (Transient, OSError) as error:
            log.warning("%s is not known just now: %s", name, error, extra={"action": "conditions"})

    async def _disks(self) -> tuple[DiskSpace, ...]:
        return await asyncio.to_thread(
            lambda: tuple(_disk_space(*item) for item in self._sources.folders.items())
        )


def _disk_space(name: str, folder: Path) -> DiskSpace:
    """A folder that is made later lies on its parent's disk."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    usage = shutil.disk_usage(there)
    return DiskSpace(name, usage.free, usage.total)
