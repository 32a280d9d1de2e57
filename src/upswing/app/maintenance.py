"""What has to be done now and then, though nobody asks? Archive, erase what waits, forget what is old."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from upswing.app.archive import KEPT, Archive, archive_finished_hours
from upswing.collect.metrics import CollectMetrics
from upswing.contracts.topics import STREAMS
from upswing.errors import Damaged, Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.store import SqlStore
from upswing.infra.sql.users import ArchivedCopy, Users
from upswing.reward.judge_cache import JudgeCache

log = logging.getLogger(__name__)
_SECONDS = 30

Chore = Callable[[], Awaitable[object]]
Forget = Callable[[Collection[str]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class TrajectoryStores:
    """Everything that holds copies of trajectories."""

    store: SqlStore
    users: Users
    bus: Bus
    archive: Archive | None
    judge_cache: JudgeCache


class Maintenance:
    """Periodic chores, one after the other, for ever."""

    def __init__(
        self,
        stores: TrajectoryStores,
        metrics: CollectMetrics,
        *,
        clock: Callable[[], datetime],
        stage_chores: Sequence[Chore],
        forget: Sequence[Forget] = (),
        dead_letters: DeadLetterWriter | None = None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`stage_chores` belong to the stages. `forget`: who else keeps parts of trajectories.

        `failed` counts chores that broke.
        """
        self._dead_letters, self._failed = dead_letters or DeadLetterWriter(), failed
        self._store, self._users, self._bus = stores.store, stores.users, stores.bus
        self._archive, self._judge_cache = stores.archive, stores.judge_cache
        self._metrics, self._clock, self._stage_chores = metrics, clock, stage_chores
        self._forget = (stores.judge_cache.forget, *forget)

    async def run(self) -> None:
        """For ever; what cannot be done now is done next time."""
        while True:
            await self.run_once()
            await asyncio.sleep(_SECONDS)

    async def run_once(self) -> None:
        """Every chore once; one that fails keeps no other from its turn."""
        chores = [
            self.erase_pending,
            self._count_outbox,
            self._prune_judge_cache,
            self._write_archive,
            self._prune_archive,
            self._prune_carried,
            *self._stage_chores,
            self._dead_letters.flush,
        ]
        for chore in chores:
            await self._run_chore(chore)

    async def _run_chore(self, chore: Chore) -> None:
        try:
            await chore()
        except Transient as error:
            log.warning("%s", error, extra={"action": "upkeep"})
        except Damaged:
            raise
        except Exception:
            name = getattr(chore, "__qualname__", "chore")
            log.exception(
                "%s broke", name, extra={"action": "alert", "reason": "chore_broke", "part": name}
            )
            self._failed("upkeep")

    async def _count_outbox(self) -> None:
        self._metrics.outbox.set((await self._store.counts())["outbox"])

    async def _prune_judge_cache(self) -> None:
        await self._judge_cache.prune(self._clock() - KEPT)

    async def _write_archive(self) -> None:
        if self._archive:
            await archive_finished_hours(
                self._store, self._archive, self._clock(), self._dead_letters
            )

    async def _prune_archive(self) -> None:
        if self._archive:
            await self._archive.prune(self._clock())

    async def _prune_carried(self) -> None:
        for stream in STREAMS:
            first = await self._bus.first_seq(stream.name)
            await self._store.forget_carried(stream.name, first)

    async def erase_pending(self) -> tuple[int, int]:
        """Erase doomed copies; how many messages and archive copies still wait."""
        messages = await self._users.messages_to_erase()
        try:
            await self._dead_letters.process_each(
                "upkeep", "carried", messages, self._erase_message
            )
        except Transient as error:
            log.warning("%s", error, extra={"action": "sweep"})
        copies = await self._users.archived_copies()
        try:
            await self._erase_archived(copies)
        except Transient as error:
            log.warning("%s", error, extra={"action": "sweep"})
        return len(await self._users.messages_to_erase()), len(await self._users.archived_copies())

    async def _erase_message(self, message: tuple[str, int]) -> None:
        stream, seq = message
        await self._bus.erase_messages(stream, [seq])
        self._metrics.erased()
        await self._users.mark_messages_erased([message])

    async def _erase_archived(self, copies: Sequence[ArchivedCopy]) -> None:
        hours = {copy.stored.replace(minute=0, second=0, microsecond=0) for copy in copies}
        if self._archive:
            for hour in hours:
                await self._archive.remove(hour, {copy.trajectory_id for copy in copies})
        if copies:
            for forget in self._forget:
                await forget({copy.trajectory_id for copy in copies})
            await self._users.mark_copies_erased(copies)
