"""How does what agents send become rows? Read, decide, store, acknowledge, in that order.

`Intake` takes one message from any door. `Collector` feeds it from the bus:

| delivery                                  | what happens                                          |
|-------------------------------------------|-------------------------------------------------------|
| content stored already, byte for byte     | ack                                                   |
| can be taken                              | store, erase the raw form if it was redacted, ack     |
| can never be taken                        | dead letter, erase, ack, at the first delivery        |
| the store is away                         | later, with back-off, without limit                   |
| its taker died four times                 | dead letter (`poison`) at the fifth delivery          |
| taking it breaks in a way nobody foresaw  | dead letter (`unreadable`) with the traceback, erase  |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Protocol
from uuid import UUID

from msgspec import UNSET

from upswing.aside import Burial
from upswing.collect.bury import cut
from upswing.collect.look import Kind, Passed, PassedFeedback, Refused, Verdict, digest
from upswing.collect.metrics import CollectMetrics
from upswing.contracts import DeadLetter
from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.errors import Reason, Rejected, Transient
from upswing.ports import Carried, CollectStore, Taken
from upswing.together import begin

log = logging.getLogger(__name__)
STAGE = "collect"
DEATHS_TO_POISON = 4
FETCH = 256
CROWD = 24
"""Messages in hand at once that make a crowd."""
_ANSWERED = frozenset({"http", "steps"})
"""Doors whose sender hears why something is refused, and can send it again."""


class OptOuts(Protocol):
    def opted_out(self, user_id: str | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message, and whether its raw form must be erased."""

    taken: Taken | None
    rejected: Rejected | None = None
    id: str | None = None
    erase: bool = False
    note: str = ""
    """What its sender should know although it was taken."""

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
        look: Callable[[Kind, bytes], Awaitable[Verdict]],
        metrics: CollectMetrics,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._optouts = optouts
        self._look = look
        self._metrics = metrics
        self._clock = clock
        self._new_id = new_id
        self._stored = stored
        self._in_hand = 0

    @property
    def crowded(self) -> bool:
        """Many wait for their acknowledgement; what can wait should."""
        return self._in_hand > CROWD

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
        self._in_hand += 1
        try:
            return await self._trajectory(raw, door, subject, stream_seq, deliveries)
        finally:
            self._in_hand -= 1

    async def _trajectory(
        self, raw: bytes, door: str, subject: str, stream_seq: int | None, deliveries: int
    ) -> Outcome:
        verdict = await self._look(Kind.TRAJECTORY, raw)
        if not isinstance(verdict, Passed):
            return await self.bury(
                _refused(verdict), door=door, subject=subject, deliveries=deliveries
            )
        row, redacted = verdict.admitted, verdict.findings > 0
        self._metrics.redacted(verdict.findings)
        if self._optouts.opted_out(row.user_id):
            return self.dropped(door, row.trajectory_id)
        if verdict.unread and door in _ANSWERED:
            unread = Refused(
                Reason.SCHEMA, verdict.unread, digest(raw), cut(row.body.decode()), row.user_id
            )
            return await self.bury(unread, door=door, subject=subject, deliveries=deliveries)
        taken = await self._store.take(
            row,
            door=door,
            now=self._clock(),
            stream_seq=None if redacted else stream_seq,
            announce=stream_seq is None or redacted,
        )
        if taken is Taken.CONFLICT:
            known = f"Trajectory {row.trajectory_id} is known with other content."
            return await self.bury(
                _conflict(known, raw, row.body, row.user_id),
                door=door,
                subject=subject,
                deliveries=deliveries,
            )
        self._metrics.taken(door, taken)
        if taken is Taken.STORED:
            self._metrics.stored(row.agent_type, row.domain, row.turns)
            self._stored()
        erase = redacted or taken is Taken.ERASED
        return Outcome(taken, id=row.trajectory_id, erase=erase, note=_noted(verdict.unread))

    async def feedback(
        self,
        raw: bytes,
        *,
        door: str,
        principal: str,
        trusted: bool = False,
        subject: str = FEEDBACK,
        stream_seq: int | None = None,
        deliveries: int = 1,
    ) -> Outcome:
        """Take a user's word."""
        verdict = await self._look(Kind.FEEDBACK, raw)
        if not isinstance(verdict, PassedFeedback):
            return await self.bury(
                _refused(verdict), door=door, subject=subject, deliveries=deliveries
            )
        word = replace(verdict.admitted, principal=principal, trusted=trusted)
        redacted = verdict.findings > 0
        self._metrics.redacted(verdict.findings)
        if self._optouts.opted_out(word.user_id):
            return self.dropped(door, word.feedback_id)
        taken = await self._store.take_feedback(
            word,
            now=self._clock(),
            announce=stream_seq is None or redacted,
            stream_seq=None if redacted else stream_seq,
        )
        if taken in _NO_WORD:
            reason, sentence = _NO_WORD[taken]
            refused = Refused(reason, sentence, digest(raw), cut(word.body.decode()), word.user_id)
            return await self.bury(refused, door=door, subject=subject, deliveries=deliveries)
        self._metrics.taken(door, f"feedback_{taken}")
        if taken is Taken.STORED:
            self._stored()
        return Outcome(taken, id=word.feedback_id, erase=redacted or taken is Taken.ERASED)

    def dropped(self, door: str, key: str) -> Outcome:
        """Its user does not want to be recorded."""
        self._metrics.taken(door, Taken.OPTED_OUT)
        return Outcome(Taken.OPTED_OUT, id=key, erase=True)

    async def bury(
        self, refused: Refused, *, door: str, subject: str, deliveries: int = 1
    ) -> Outcome:
        """Keep a dead letter of a message that can never be taken."""
        letter = DeadLetter(
            dead_id=self._new_id(),
            timestamp=self._clock(),
            subject=subject,
            reason=refused.reason.value,
            detail=refused.detail,
            deliveries=max(1, deliveries),
            payload=UNSET if refused.payload is None else refused.payload,
            sha256=refused.sha256,
        )
        await self._store.bury(letter, stage=STAGE, user_id=refused.user_id)
        self._metrics.refused(door, refused.reason)
        self._stored()
        log.info(
            "refused: %s",
            refused.detail,
            extra={"action": "refuse", "reason": refused.reason.value},
        )
        return Outcome(None, rejected=Rejected(refused.reason, refused.detail), erase=True)


_NO_WORD = {
    Taken.CONFLICT: (Reason.CONFLICT, "This feedback id is known with other content."),
    Taken.NOT_YOURS: (Reason.NOT_YOURS, "This trajectory is another user's."),
}


def _noted(unread: str) -> str:
    """It was taken all the same: nobody would send it again."""
    if not unread:
        return ""
    log.warning("taken without an outcome: %s", unread, extra={"action": "outcome_unread"})
    return f"{unread} It was taken, and counts as one whose outcome nobody states."


def _refused(verdict: Verdict) -> Refused:
    if isinstance(verdict, Refused):
        return verdict
    raise TypeError(f"a {type(verdict).__name__} came back for another kind of message")


def _conflict(sentence: str, raw: bytes, clean: bytes, user_id: str | None) -> Refused:
    return Refused(Reason.CONFLICT, sentence, digest(raw), cut(clean.decode()), user_id)


class Delivery(Protocol):
    @property
    def carried(self) -> Carried: ...

    async def ack(self) -> None: ...

    async def later(self, seconds: float) -> None: ...


class Pulls(Protocol):
    async def last_seq(self) -> int: ...

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
        bury: Callable[[Carried, Refused], Awaitable[Outcome]],
        burial: Burial | None = None,
    ) -> None:
        self._burial = burial or Burial()
        self._pull = pull
        self._bus = bus
        self._store = store
        self._take = take
        self._bury = bury
        self._backlog: int | None = None
        """The last message that was there before us; until we know it, every message may be."""

    async def look_back(self) -> None:
        """Learn what was there before us; best before anybody is told where to publish."""
        if self._backlog is None:
            self._backlog = await self._pull.last_seq()

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
        """Take a batch: new ones share commits, others go one by one behind a mark."""
        try:
            unknown = await self._pass_known(deliveries)
        except Transient as error:
            await self._all_later(deliveries, error)
            return
        tasks = []
        for delivery in unknown:
            if self._is_new(delivery):
                tasks.append(begin(self._settle(delivery)))
                await asyncio.sleep(0)  # lets requests at the other door in between
        await asyncio.gather(*tasks)
        for delivery in unknown:
            if not self._is_new(delivery):
                await self._settle_marked(delivery)

    def _is_new(self, delivery: Delivery) -> bool:
        """Nobody can have died of it: it came once, and after us.

        The count alone is not enough. When the bus died together with us it may have forgotten
        that it delivered.
        """
        carried = delivery.carried
        return carried.deliveries == 1 and carried.seq > (self._backlog or 0)

    async def _pass_known(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Ack what is stored byte for byte already: our own announcements come back this way."""
        stream = deliveries[0].carried.stream
        contents = {
            delivery.carried.seq: sha256(delivery.carried.payload).digest()
            for delivery in deliveries
        }
        echoes = await self._store.echoes(stream, contents)
        if strange := {seq: contents[seq] for seq, noted in echoes.items() if not noted}:
            await self._store.note_carried(stream, strange)
        rest = []
        for delivery in deliveries:
            if delivery.carried.seq in echoes:
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
                # Nobody looks at it again, so nothing of it is kept but its hash.
                sentence = f"Whoever took it died, {deaths} times."
                poison = Refused(Reason.POISON, sentence, digest(carried.payload))
                counted = replace(carried, deliveries=max(carried.deliveries, deaths + 1))
                await self._finish(delivery, await self._bury(counted, poison))
            else:
                await self._settle(delivery)
            await self._store.end_attempt(carried.stream, carried.seq)
        except Transient as error:
            await self._all_later([delivery], error)

    async def _settle(self, delivery: Delivery) -> None:
        try:
            await self._finish(delivery, await self._taken(delivery.carried))
        except Transient as error:
            await self._all_later([delivery], error)

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
