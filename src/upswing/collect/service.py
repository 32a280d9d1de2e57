"""How does what agents send become rows? Read, decide, store, acknowledge, in that order.

`Intake` takes one message from any door. `Collector` feeds it from the bus:

| delivery                                  | what happens                                          |
|-------------------------------------------|-------------------------------------------------------|
| content stored already, byte for byte     | ack                                                   |
| can be taken                              | store, erase the raw form if it was redacted, ack     |
| can never be taken                        | dead letter, erase, ack, at the first delivery        |
| the store is away                         | later, with back-off, without limit                   |
| its taker died four times                 | dead letter (`poison`) at the fifth delivery          |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Protocol
from uuid import UUID

from upswing.collect.admit import Admission, Limits, admit, admit_feedback
from upswing.collect.bury import dead_letter
from upswing.collect.metrics import CollectMetrics
from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.errors import Conflict, Reason, Rejected, Transient
from upswing.ports import Carried, CollectStore, Taken
from upswing.redact import Redactor

log = logging.getLogger(__name__)
STAGE = "collect"
DEATHS_TO_POISON = 4
FETCH = 256
LARGE = 256 * 1024
"""A larger message is looked at in a thread, so that it does not hold up the others."""


class OptOuts(Protocol):
    def opted_out(self, user_id: str | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message, and whether its raw form must be erased."""

    taken: Taken | None
    rejected: Rejected | None = None
    id: str | None = None
    erase: bool = False

    @property
    def word(self) -> str:
        return (
            self.taken.value
            if self.taken
            else (self.rejected.reason.value if self.rejected else "")
        )


class Intake:
    """Takes one message at a time from any door; the answer means durable."""

    def __init__(
        self,
        store: CollectStore,
        optouts: OptOuts,
        redactor: Redactor,
        metrics: CollectMetrics,
        *,
        limits: Limits,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._optouts = optouts
        self._redactor = redactor
        self._metrics = metrics
        self.limits = limits
        self._clock = clock
        self._new_id = new_id
        self._stored = stored

    async def trajectory(
        self,
        raw: bytes,
        *,
        door: str,
        subject: str = TRAJECTORY,
        stream_seq: int | None = None,
        deliveries: int = 1,
    ) -> Outcome:
        """Take a trajectory: stored once, or dropped, or buried with a reason."""
        try:
            admission = await self._admitted(raw)
            admitted = admission.admitted
            self._metrics.redacted(admission.findings)
            if self._optouts.opted_out(admitted.user_id):
                self._metrics.taken(door, Taken.OPTED_OUT)
                return Outcome(Taken.OPTED_OUT, id=admitted.trajectory_id, erase=True)
            taken = await self._store.take(
                admitted,
                door=door,
                now=self._clock(),
                stream_seq=None if admission.redacted else stream_seq,
                announce=stream_seq is None or admission.redacted,
            )
            if taken is Taken.CONFLICT:
                raise Conflict(f"Trajectory {admitted.trajectory_id} is known with other content.")
        except Rejected as error:
            return await self._refuse(raw, error, door=door, subject=subject, deliveries=deliveries)
        self._metrics.taken(door, taken)
        if taken is Taken.STORED:
            self._metrics.stored(admitted.agent_type, admitted.domain, admitted.turns)
            self._stored()
        return Outcome(
            taken, id=admitted.trajectory_id, erase=admission.redacted or taken is Taken.ERASED
        )

    async def feedback(
        self, raw: bytes, *, door: str, principal: str, subject: str = FEEDBACK, deliveries: int = 1
    ) -> Outcome:
        """Take a user's word."""
        try:
            admitted, redacted = admit_feedback(raw, self._redactor, self.limits, principal)
            if self._optouts.opted_out(admitted.user_id):
                self._metrics.taken(door, Taken.OPTED_OUT)
                return Outcome(Taken.OPTED_OUT, id=admitted.feedback_id, erase=True)
            announce = door != "nats" or redacted
            taken = await self._store.take_feedback(admitted, now=self._clock(), announce=announce)
            if taken is Taken.CONFLICT:
                raise Conflict(f"Feedback {admitted.feedback_id} is known with other content.")
        except Rejected as error:
            return await self._refuse(raw, error, door=door, subject=subject, deliveries=deliveries)
        self._metrics.taken(door, f"feedback_{taken}")
        if taken is Taken.STORED:
            self._stored()
        return Outcome(taken, id=admitted.feedback_id, erase=redacted)

    async def bury(
        self, raw: bytes, error: Rejected, *, door: str, subject: str, deliveries: int = 1
    ) -> Outcome:
        """Refuse a message that another part found wanting."""
        return await self._refuse(raw, error, door=door, subject=subject, deliveries=deliveries)

    async def _admitted(self, raw: bytes) -> Admission:
        if len(raw) > LARGE:
            return await asyncio.to_thread(admit, raw, self._redactor, self.limits)
        return admit(raw, self._redactor, self.limits)

    async def _refuse(
        self, raw: bytes, error: Rejected, *, door: str, subject: str, deliveries: int
    ) -> Outcome:
        letter = dead_letter(
            raw, error, self._redactor,
            subject=subject, deliveries=deliveries, dead_id=self._new_id(), now=self._clock(),
        )  # fmt: skip
        await self._store.bury(letter, stage=STAGE)
        self._metrics.refused(door, error.reason)
        self._stored()
        log.info(
            "refused: %s", letter.detail, extra={"action": "refuse", "reason": error.reason.value}
        )
        return Outcome(None, rejected=error, erase=True)


class Delivery(Protocol):
    @property
    def carried(self) -> Carried: ...

    async def ack(self) -> None: ...

    async def later(self, seconds: float) -> None: ...


class Pulls(Protocol):
    async def fetch(self, most: int, wait_seconds: float) -> Sequence[Delivery]: ...


class Erases(Protocol):
    async def erase_messages(self, stream: str, seqs: Sequence[int]) -> None: ...


class Collector:
    """Feeds an `Intake` from one stream of the bus."""

    def __init__(
        self,
        pull: Pulls,
        bus: Erases,
        store: CollectStore,
        take: Callable[[Carried], Awaitable[Outcome]],
        bury: Callable[[Carried, Rejected], Awaitable[Outcome]],
    ) -> None:
        self._pull = pull
        self._bus = bus
        self._store = store
        self._take = take
        self._bury = bury

    async def run(self) -> None:
        """For ever; a bus that is away is waited for."""
        pause = 0.1
        while True:
            try:
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
        """Take a batch: new ones share commits, repeated ones go one by one behind a mark."""
        try:
            unknown = await self._pass_known(deliveries)
        except Transient as error:
            await self._all_later(deliveries, error)
            return
        tasks = []
        for delivery in unknown:
            if delivery.carried.deliveries == 1:
                tasks.append(asyncio.create_task(self._settle(delivery)))
                await asyncio.sleep(0)  # lets requests at the other door in between
        await asyncio.gather(*tasks)
        for delivery in unknown:
            if delivery.carried.deliveries > 1:
                await self._settle_marked(delivery)

    async def _pass_known(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Ack what is stored byte for byte already: our own announcements come back this way."""
        hashes = [sha256(delivery.carried.payload).digest() for delivery in deliveries]
        known = await self._store.known(hashes)
        echoes = [
            (delivery.carried.seq, content)
            for delivery, content in zip(deliveries, hashes, strict=True)
            if content in known
        ]
        if echoes:
            await self._store.note_carried(deliveries[0].carried.stream, echoes)
        rest = []
        for delivery, content in zip(deliveries, hashes, strict=True):
            if content in known:
                await delivery.ack()
            else:
                rest.append(delivery)
        return rest

    async def _settle_marked(self, delivery: Delivery) -> None:
        """A message that comes again may be one that kills its taker: count how often it began."""
        carried = delivery.carried
        try:
            deaths = 1 + await self._store.begin_attempt(carried.stream, carried.seq)
            if deaths >= DEATHS_TO_POISON:
                error = Rejected(Reason.POISON, f"Whoever took it died, {deaths} times.")
                await self._finish(delivery, await self._bury(carried, error))
            else:
                await self._settle(delivery)
            await self._store.end_attempt(carried.stream, carried.seq)
        except Transient as error:
            await self._all_later([delivery], error)

    async def _settle(self, delivery: Delivery) -> None:
        try:
            await self._finish(delivery, await self._take(delivery.carried))
        except Transient as error:
            await self._all_later([delivery], error)

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
