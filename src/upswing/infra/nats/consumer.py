"""How does a stage process a stream? Process, erase, acknowledge, in that order; nothing twice, and poison is found.

| delivery                                  | what happens                                          |
|-------------------------------------------|-------------------------------------------------------|
| content stored already, byte for byte     | ack                                                   |
| processed                                 | erase the raw form where it may not stay, ack         |
| rejected by the stage                     | its dead letter is its effect: erase, ack             |
| the store is away                         | later, with back-off, without limit                   |
| its consumer crashed four times           | dead letter (`poison`) at the next delivery           |
| an unexpected error                       | dead letter (`unreadable`) with the traceback, erase  |

Which message is the killer, when the consumer of many has crashed? (`infra.nats.crash_suspects`)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from upswing.errors import Died, Reason, Rejected, Transient
from upswing.infra.backoff import Backoff
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus, Delivery, Pull
from upswing.infra.nats.crash_suspects import CRASHES_TO_POISON, CrashSuspects, Isolation
from upswing.infra.sql.attempts import Attempts
from upswing.infra.tasks import Work, start_task
from upswing.records import StreamMessage

log = logging.getLogger(__name__)
T = TypeVar("T")
BATCH_SIZE = 256
_FETCH_SECONDS = 5.0
_BUS_AWAY = Backoff(0.1, 2.0)
"""Seconds between two tries to reach the bus."""
_REDELIVERY = Backoff(1.0, 30.0)
"""Seconds until a message comes again that could not be handled now, by its deliveries."""


async def _none_stored(_: Sequence[StreamMessage]) -> Collection[int]:
    return ()


@dataclass(frozen=True, slots=True)
class MessageHandler:
    """What a stage does with the messages of one stream."""

    stage: str
    process: Callable[[StreamMessage], Awaitable[bool]]
    """Durable when it returns, a dead letter of the stage's own included; True: the raw form must not stay
    on the bus."""
    reject_poison: Callable[[StreamMessage, Rejected], Awaitable[None]]
    """Keeps a dead letter of a message that nobody processes again; of its content only the hash."""
    find_stored: Callable[[Sequence[StreamMessage]], Awaitable[Collection[int]]] = _none_stored
    """The numbers of messages that need no processing, because their content is stored already."""
    in_order: bool = False
    """One message after the other, instead of a batch at once."""


class StreamConsumer:
    """Feeds a handler from one stream of the bus."""

    def __init__(
        self,
        pull: Pull,
        bus: Bus,
        attempts: Attempts,
        handler: MessageHandler,
        *,
        dead_letters: DeadLetterWriter | None = None,
        alone: asyncio.Lock | None = None,
        suspects: CrashSuspects | None = None,
    ) -> None:
        """`alone`: consumers of one process share it, for they crash together."""
        self._pull, self._bus, self._attempts, self._handler = pull, bus, attempts, handler
        self._dead_letters = dead_letters or DeadLetterWriter()
        self._alone = alone or asyncio.Lock()
        self._suspects = suspects or CrashSuspects()
        self._poison = set[int]()
        """Sequence numbers of what was rejected: a copy that is under way already is not processed."""

    async def learn_backlog(self) -> None:
        """Learn what was there before us; best before anybody is told where to publish."""
        if self._suspects.backlog is None:
            self._suspects.backlog = await self._pull.last_seq()

    async def run(self) -> None:
        """For ever; a bus that is away is waited for."""
        failures = 0
        while True:
            try:
                await self.learn_backlog()
                deliveries = await self._pull.fetch(BATCH_SIZE, wait_seconds=_FETCH_SECONDS)
                failures = 0
            except Transient as error:
                failures += 1
                log.info("%s", error, extra={"action": "wait_for_bus"})
                await asyncio.sleep(_BUS_AWAY.seconds(failures))
                continue
            if deliveries:
                await self.handle(deliveries)

    async def handle(self, deliveries: Sequence[Delivery]) -> None:
        """Process a batch: new messages first, then those behind a shared mark, then suspects alone."""
        try:
            marks = await self._read_crash_marks(deliveries)
            pending = await self._ack_stored(deliveries, marks)
        except Transient as error:
            await self._retry_later(deliveries, error)
            return
        batches: dict[Isolation, list[Delivery]] = {isolation: [] for isolation in Isolation}
        for delivery in pending:
            if delivery.message.seq in self._poison:
                await delivery.ack()
                continue
            batches[self._suspects.isolation(delivery.message, marks)].append(delivery)
        await self._run_for_each(self._process_without_mark, batches[Isolation.UNMARKED])
        if batches[Isolation.SHARED_MARK] or batches[Isolation.ALONE]:
            async with self._alone:
                if batches[Isolation.SHARED_MARK]:
                    await self._process_behind_marks(batches[Isolation.SHARED_MARK])
                for delivery in batches[Isolation.ALONE]:
                    await self._process_alone(delivery)

    async def _run_for_each(
        self, work: Callable[[Delivery], Work[T]], deliveries: Sequence[Delivery]
    ) -> list[T]:
        if self._handler.in_order:
            return [await work(delivery) for delivery in deliveries]
        tasks = []
        for delivery in deliveries:
            tasks.append(start_task(work(delivery)))
            await asyncio.sleep(0)  # lets HTTP requests in between
        return await asyncio.gather(*tasks)

    async def _read_crash_marks(self, deliveries: Sequence[Delivery]) -> Mapping[int, int]:
        """Marks that were left of these messages; those that are new have none."""
        old = [each.message for each in deliveries if not self._suspects.is_new(each.message)]
        seqs = [message.seq for message in old]
        return await self._attempts.begun_attempts(old[0].stream, seqs) if old else {}

    async def _ack_stored(
        self, deliveries: Sequence[Delivery], marks: Mapping[int, int]
    ) -> list[Delivery]:
        """Acknowledge what is stored already: our own announcements come back this way."""
        stored = await self._handler.find_stored([each.message for each in deliveries])
        if survived := [seq for seq in marks if seq in stored]:
            await self._attempts.end_attempts(deliveries[0].message.stream, survived)
        pending = []
        for delivery in deliveries:
            if delivery.message.seq in stored:
                await delivery.ack()
            else:
                pending.append(delivery)
        return pending

    async def _process_without_mark(self, delivery: Delivery) -> None:
        """A message that nothing can have crashed on."""
        message = delivery.message
        try:
            await self._finish(delivery, erase=await self._process(message))
        except Died as error:
            await self._mark_suspect(delivery, error)
        except Transient as error:
            self._suspects.note_returned(message)
            await self._retry_later([delivery], error)

    async def _process_behind_marks(self, deliveries: Sequence[Delivery]) -> None:
        """A batch behind marks that begin and end in one commit.

        A mark ends before its ack: whatever has a mark comes again, and none is left behind.
        """
        stream, seqs = deliveries[0].message.stream, [each.message.seq for each in deliveries]
        try:
            await self._attempts.begin_together(stream, seqs)
            results = await self._run_for_each(self._try_process, deliveries)
            tried = dict(zip(seqs, results, strict=True))
            lived = [seq for seq in seqs if not isinstance(tried[seq], Died)]
            await self._attempts.end_attempts(stream, lived)
        except Transient as error:
            await self._retry_later(deliveries, error)
            return

        async def finish(delivery: Delivery) -> None:
            result = tried[delivery.message.seq]
            try:
                if isinstance(result, Transient):
                    raise result
                await self._finish(delivery, erase=result)
            except Transient as error:
                await self._retry_later([delivery], error)

        await self._run_for_each(finish, deliveries)

    async def _try_process(self, delivery: Delivery) -> bool | Transient:
        try:
            return await self._process(delivery.message)
        except Transient as error:
            return error

    async def _process_alone(self, delivery: Delivery) -> None:
        """A message that may have crashed a consumer: nothing else is in hand, so a crash now is its own."""
        message = delivery.message
        if message.seq in self._poison:
            await delivery.ack()
            return
        try:
            marks_left = await self._attempts.begin_attempt(message.stream, message.seq)
        except Transient as error:
            await self._retry_later([delivery], error)
            return
        crashes = self._suspects.count_crashes(message, marks_left)
        try:
            if crashes >= CRASHES_TO_POISON:
                await self._reject_poison(delivery, crashes)
                return
            erase = await self._process(message)
            await self._attempts.end_attempts(message.stream, [message.seq])
            self._suspects.clear(message)
            await self._finish(delivery, erase=erase)
        except Died as error:
            await self._retry_later([delivery], error)  # the mark stays, and counts
        except Transient as error:
            await self._remove_crash_mark(message)
            await self._retry_later([delivery], error)

    async def _reject_poison(self, delivery: Delivery, crashes: int) -> None:
        """Nobody processes it again, so nothing of it is kept but its hash.

        Its mark ends last: until it is gone from the bus, nobody may process it.
        """
        message = delivery.message
        poison = Rejected(Reason.POISON, f"Its consumer crashed on it, {crashes} times.")
        counted = replace(message, deliveries=max(message.deliveries, crashes + 1))
        await self._handler.reject_poison(counted, poison)
        await self._finish(delivery, erase=True)
        self._poison.add(message.seq)
        await self._attempts.end_attempts(message.stream, [message.seq])

    async def _mark_suspect(self, delivery: Delivery, error: Died) -> None:
        """A worker crashed with it in hand: the next time it is processed alone."""
        message = delivery.message
        try:
            await self._attempts.begin_together(message.stream, [message.seq])
        except Transient as away:
            log.warning("%s", away, extra={"action": "unmarked"})
        await self._retry_later([delivery], error)

    async def _remove_crash_mark(self, message: StreamMessage) -> None:
        """Nothing crashed: the store, or the bus, was away."""
        try:
            await self._attempts.spare_attempt(message.stream, message.seq)
        except Transient:
            self._suspects.note_stale_crash_mark(message)

    async def _process(self, message: StreamMessage) -> bool:
        """True: the raw form must not stay on the bus."""
        try:
            return await self._handler.process(message)
        except Transient:
            raise
        except Exception as error:  # noqa: BLE001 - the dead letter has its traceback
            self._dead_letters.bad_rows.add(
                self._handler.stage, message.stream, str(message.seq), message.payload, error
            )
            await self._dead_letters.flush()
            return True

    async def _finish(self, delivery: Delivery, *, erase: bool) -> None:
        """Stored; now erase the raw form if need be; then, and only then, ack."""
        if erase:
            await self._bus.erase_messages(delivery.message.stream, [delivery.message.seq])
        await delivery.ack()

    @staticmethod
    async def _retry_later(deliveries: Sequence[Delivery], error: Transient) -> None:
        log.warning("%s", error, extra={"action": "later", "messages": len(deliveries)})
        for delivery in deliveries:
            await delivery.redeliver_later(_REDELIVERY.seconds(delivery.message.deliveries))


class ConsumerFactory:
    """Makes the consumers of one process. They crash together: one of them at a time processes suspects."""

    def __init__(self, bus: Bus, attempts: Attempts, dead_letters: DeadLetterWriter) -> None:
        self._bus, self._attempts, self._dead_letters = bus, attempts, dead_letters
        self._alone = asyncio.Lock()

    def make(self, stream: str, subject: str, name: str, handler: MessageHandler) -> StreamConsumer:
        """A consumer of a stream's messages on `subject`, durable by its name."""
        return StreamConsumer(
            self._bus.pull(stream, subject, name),
            self._bus,
            self._attempts,
            handler,
            dead_letters=self._dead_letters,
            alone=self._alone,
        )
