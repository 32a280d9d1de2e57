"""How does the bus feed the intake? Read, decide, store, acknowledge, in that order; nothing twice.

| delivery                                  | what happens                                          |
|-------------------------------------------|-------------------------------------------------------|
| content stored already, byte for byte     | ack                                                   |
| can be taken                              | store, erase the raw form if it was redacted, ack     |
| can never be taken                        | dead letter, erase, ack, at the first delivery        |
| the store is away                         | later, with back-off, without limit                   |
| its taker died four times                 | dead letter (`poison`) at the next delivery           |
| taking it breaks in a way nobody foresaw  | dead letter (`unreadable`) with the traceback, erase  |

Who is the killer, when the taker of many has died? (`collect.suspects`)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Protocol, TypeVar

from upswing.aside import Burial
from upswing.collect.look import Refused, digest
from upswing.collect.service import STAGE, Outcome
from upswing.collect.suspects import DEATHS_TO_POISON, Suspects, Way
from upswing.errors import Died, Reason, Transient
from upswing.ports import Carried, CollectStore, Delivery, Erases, Pulls
from upswing.together import Work, begin

log = logging.getLogger(__name__)
T = TypeVar("T")
FETCH = 256


class PullsOn(Pulls, Protocol):
    """A consumer that knows what was there before it."""

    async def last_seq(self) -> int: ...


class Collector:
    """Feeds an `Intake` from one stream of the bus."""

    def __init__(
        self,
        pull: PullsOn,
        bus: Erases,
        store: CollectStore,
        take: Callable[[Carried], Awaitable[Outcome]],
        bury: Callable[[Carried, Refused], Awaitable[Outcome]],
        burial: Burial | None = None,
        turn: asyncio.Lock | None = None,
    ) -> None:
        """`turn`: collectors of one process share it, for they die together."""
        self._burial = burial or Burial()
        self._pull = pull
        self._bus = bus
        self._store = store
        self._take = take
        self._bury = bury
        self._turn = turn or asyncio.Lock()
        self._suspects = Suspects()

    async def look_back(self) -> None:
        """Learn what was there before us; best before anybody is told where to publish."""
        if self._suspects.backlog is None:
            self._suspects.backlog = await self._pull.last_seq()

    async def run(self) -> None:
        """For ever; a bus that is away is waited for."""
        pause = 0.1
        while True:
            try:
                await self.look_back()
                deliveries = await self._pull.fetch(FETCH, wait_seconds=5)
                pause = 0.1
            except Transient as error:
                log.info("%s", error, extra={"action": "wait_for_bus"})
                await asyncio.sleep(pause)
                pause = min(2.0, pause * 2)
                continue
            if deliveries:
                await self.handle(deliveries)

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """Take a batch: new ones first, then a crowd behind a shared mark, then suspects alone."""
        try:
            marks = await self._left(deliveries)
            unknown = await self._pass_known(deliveries, marks)
        except Transient as error:
            await self._all_later(deliveries, error)
            return
        ways: dict[Way, list[Delivery]] = {way: [] for way in Way}
        for delivery in unknown:
            ways[self._suspects.way(delivery.carried, marks)].append(delivery)
        await self._each(self._settle, ways[Way.NEW])
        if ways[Way.SHARED] or ways[Way.ALONE]:
            async with self._turn:
                if ways[Way.SHARED]:
                    await self._settle_shared(ways[Way.SHARED])
                for delivery in ways[Way.ALONE]:
                    await self._settle_alone(delivery)

    @staticmethod
    async def _each(work: Callable[[Delivery], Work[T]], deliveries: Sequence[Delivery]) -> list[T]:
        tasks = []
        for delivery in deliveries:
            tasks.append(begin(work(delivery)))
            await asyncio.sleep(0)  # lets requests at the other door in between
        return await asyncio.gather(*tasks)

    async def _left(self, deliveries: Sequence[Delivery]) -> Mapping[int, int]:
        """Marks that were left of these messages; those that are new have none."""
        old = [each.carried for each in deliveries if not self._suspects.is_new(each.carried)]
        seqs = [carried.seq for carried in old]
        return await self._store.begun(old[0].stream, seqs) if old else {}

    async def _pass_known(
        self, deliveries: Sequence[Delivery], marks: Mapping[int, int]
    ) -> list[Delivery]:
        """Ack what is stored byte for byte already: our own announcements come back this way."""
        stream = deliveries[0].carried.stream
        contents = {
            delivery.carried.seq: sha256(delivery.carried.payload).digest()
            for delivery in deliveries
        }
        echoes = await self._store.echoes(stream, contents)
        if strange := {seq: contents[seq] for seq, noted in echoes.items() if not noted}:
            await self._store.note_carried(stream, strange)
        if survived := [seq for seq in marks if seq in echoes]:
            await self._store.end_attempts(stream, survived)
        rest = []
        for delivery in deliveries:
            if delivery.carried.seq in echoes:
                await delivery.ack()
            else:
                rest.append(delivery)
        return rest

    async def _settle(self, delivery: Delivery) -> None:
        """A message that nobody can have died of."""
        carried = delivery.carried
        try:
            await self._finish(delivery, await self._taken(carried))
        except Died as error:
            await self._suspect(delivery, error)
        except Transient as error:
            self._suspects.returned(carried)
            await self._all_later([delivery], error)

    async def _settle_shared(self, deliveries: Sequence[Delivery]) -> None:
        """A crowd behind marks that begin and end in one commit.

        A mark ends before its ack: whatever has a mark comes again, and none is left behind.
        """
        stream, seqs = deliveries[0].carried.stream, [each.carried.seq for each in deliveries]
        try:
            await self._store.begin_together(stream, seqs)
            tried = dict(zip(seqs, await self._each(self._tried, deliveries), strict=True))
            lived = [seq for seq in seqs if not isinstance(tried[seq], Died)]
            await self._store.end_attempts(stream, lived)
        except Transient as error:
            await self._all_later(deliveries, error)
            return

        async def finish(delivery: Delivery) -> None:
            try:
                await self._finish(delivery, _raised(tried[delivery.carried.seq]))
            except Transient as error:
                await self._all_later([delivery], error)

        await self._each(finish, deliveries)

    async def _tried(self, delivery: Delivery) -> Outcome | Transient:
        try:
            return await self._taken(delivery.carried)
        except Transient as error:
            return error

    async def _settle_alone(self, delivery: Delivery) -> None:
        """A message that may have killed: nothing else is in hand, so a death now is its own."""
        carried = delivery.carried
        try:
            left = await self._store.begin_attempt(carried.stream, carried.seq)
        except Transient as error:
            await self._all_later([delivery], error)
            return
        deaths = self._suspects.deaths(carried, left)
        try:
            if deaths >= DEATHS_TO_POISON:
                await self._poison(delivery, deaths)
                return
            outcome = await self._taken(carried)
            await self._store.end_attempts(carried.stream, [carried.seq])
            self._suspects.cleared(carried)
            await self._finish(delivery, outcome)
        except Died as error:
            await self._all_later([delivery], error)  # the mark stays, and counts
        except Transient as error:
            await self._spare(carried)
            await self._all_later([delivery], error)

    async def _poison(self, delivery: Delivery, deaths: int) -> None:
        """Nobody looks at it again, so nothing of it is kept but its hash.

        Its mark ends last: until it is gone from the bus, nobody may take it.
        """
        carried = delivery.carried
        poison = Refused(
            Reason.POISON, f"Whoever took it died, {deaths} times.", digest(carried.payload)
        )
        counted = replace(carried, deliveries=max(carried.deliveries, deaths + 1))
        await self._finish(delivery, await self._bury(counted, poison))
        await self._store.end_attempts(carried.stream, [carried.seq])

    async def _suspect(self, delivery: Delivery, error: Died) -> None:
        """A worker died with it in hand: the next time it is taken alone."""
        carried = delivery.carried
        try:
            await self._store.begin_together(carried.stream, [carried.seq])
        except Transient as away:
            log.warning("%s", away, extra={"action": "unmarked"})
        await self._all_later([delivery], error)

    async def _spare(self, carried: Carried) -> None:
        """Nobody died: the store, or the bus, was away."""
        try:
            await self._store.spare_attempt(carried.stream, carried.seq)
        except Transient:
            self._suspects.survived(carried)

    async def _taken(self, carried: Carried) -> Outcome:
        try:
            return await self._take(carried)
        except Transient:
            raise
        except Exception as error:  # noqa: BLE001 - it is told with its traceback
            self._burial.aside.note(STAGE, carried.stream, str(carried.seq), carried.payload, error)
            await self._burial.bury()
            return Outcome(None, erase=True)

    async def _finish(self, delivery: Delivery, outcome: Outcome) -> None:
        """Stored; now erase the raw form if need be; then, and only then, ack."""
        if outcome.erase:
            await self._bus.erase_messages(delivery.carried.stream, [delivery.carried.seq])
        await delivery.ack()

    @staticmethod
    async def _all_later(deliveries: Sequence[Delivery], error: Transient) -> None:
        log.warning("%s", error, extra={"action": "later", "messages": len(deliveries)})
        for delivery in deliveries:
            await delivery.later(min(30.0, 0.5 * 2 ** min(delivery.carried.deliveries, 6)))


def _raised(tried: Outcome | Transient) -> Outcome:
    if isinstance(tried, Transient):
        raise tried
    return tried
