"""What has to be done now and then, though nobody asks? Archive, erase what waits, forget what is old."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime

from upswing.adapters.archive import KEPT, Archive, archive_finished_hours
from upswing.adapters.judge_cache import JudgeCache
from upswing.adapters.nats.bus import Bus
from upswing.adapters.sql.store import SqlStore
from upswing.adapters.sql.users import ArchivedCopy, Users
from upswing.aside import Burial
from upswing.collect.metrics import CollectMetrics
from upswing.contracts.topics import STREAMS
from upswing.errors import Damaged, Transient

log = logging.getLogger(__name__)
_SECONDS = 30

Chore = Callable[[], Awaitable[object]]
Forget = Callable[[Collection[str]], Awaitable[object]]


class Upkeep:
    """The chores, one after the other, for ever."""

    def __init__(
        self, store: SqlStore, users: Users, bus: Bus, archive: Archive | None,
        judge_cache: JudgeCache, metrics: CollectMetrics, *, clock: Callable[[], datetime],
        others: Sequence[Chore], forget: Sequence[Forget] = (), burial: Burial | None = None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """`others`: chores of the stages. `forget`: who else keeps parts of trajectories.

        `failed` counts chores that broke.
        """
        self._burial, self._failed = burial or Burial(), failed
        self._store, self._users, self._bus, self._archive = store, users, bus, archive
        self._judge_cache, self._metrics, self._clock = judge_cache, metrics, clock
        self._others = others
        self._forget = (judge_cache.forget, *forget)

    async def run(self) -> None:
        """For ever; what cannot be done now is done next time."""
        while True:
            await self.round()
            await asyncio.sleep(_SECONDS)

    async def round(self) -> None:
        """Every chore once; one that fails keeps no other from its turn."""
        chores = [
            self.sweep, self._count_outbox, self._prune_judge_cache, self._write_archive,
            self._prune_archive, self._forget_carried, *self._others, self._burial.bury,
        ]  # fmt: skip
        for chore in chores:
            await self._one(chore)

    async def _one(self, chore: Chore) -> None:
        try:
            await chore()
        except Transient as error:
            log.warning("%s", error, extra={"action": "upkeep"})
        except Damaged:
            raise
        except Exception:
            name = getattr(chore, "__qualname__", "chore")
            log.exception("%s broke", name, extra={"action": "alert"})
            self._failed("upkeep")

    async def _count_outbox(self) -> None:
        self._metrics.outbox.set((await self._store.counts())["outbox"])

    async def _prune_judge_cache(self) -> None:
        await self._judge_cache.prune(self._clock() - KEPT)

    async def _write_archive(self) -> None:
        if self._archive:
            await archive_finished_hours(self._store, self._archive, self._clock(), self._burial)

    async def _prune_archive(self) -> None:
        if self._archive:
            await self._archive.prune(self._clock())

    async def _forget_carried(self) -> None:
        for stream in STREAMS:
            first = await self._bus.first_seq(stream.name)
            await self._store.forget_carried(stream.name, first)

    async def sweep(self) -> tuple[int, int]:
        """Erase doomed copies; how many messages and archive copies still wait."""
        messages = await self._users.doomed()
        try:
            await self._burial.each("upkeep", "carried", messages, self._erase)
        except Transient as error:
            log.warning("%s", error, extra={"action": "sweep"})
        copies = await self._users.archived_copies()
        try:
            await self._sweep_archive(copies)
        except Transient as error:
            log.warning("%s", error, extra={"action": "sweep"})
        return len(await self._users.doomed()), len(await self._users.archived_copies())

    async def _erase(self, message: tuple[str, int]) -> None:
        stream, seq = message
        await self._bus.erase_messages(stream, [seq])
        self._metrics.erased()
        await self._users.gone([message])

    async def _sweep_archive(self, copies: Sequence[ArchivedCopy]) -> None:
        hours = {copy.stored.replace(minute=0, second=0, microsecond=0) for copy in copies}
        if self._archive:
            for hour in hours:
                await self._archive.remove(hour, {copy.trajectory_id for copy in copies})
        if copies:
            for forget in self._forget:
                await forget({copy.trajectory_id for copy in copies})
            await self._users.unarchived(copies)
