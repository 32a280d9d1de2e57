"""How do training requests on the bus become jobs? Read, place, erase if need be, acknowledge.

| delivery                          | what happens                                             |
|-----------------------------------|----------------------------------------------------------|
| a request                         | a job, then ack                                          |
| our own announcement, or a repeat | known by its id: ack                                     |
| can never be taken                | dead letter, erase, ack, at the first delivery           |
| holds something private           | stored clean and announced anew, erased, ack             |
| the store is away                 | later, with back-off, without limit                      |
| its taker died four times         | dead letter (`poison`) at the fifth                      |
| taking it breaks unforeseen       | dead letter (`unreadable`) with the traceback, erase     |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Protocol
from uuid import UUID

from msgspec import UNSET

from upswing.aside import Burial
from upswing.contracts import DeadLetter
from upswing.errors import Reason, Rejected, Transient
from upswing.ports import Carried, Delivery, Erases, Pulls
from upswing.train.service import Placed

log = logging.getLogger(__name__)
STAGE = "train"
DEATHS_TO_POISON = 4
_FETCH = 32


class Refused(Protocol):
    """What may be kept of a message that cannot be taken: all of it redacted."""

    @property
    def reason(self) -> Reason: ...
    @property
    def detail(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def payload(self) -> str | None: ...
    @property
    def user_id(self) -> str | None: ...


class Attempts(Protocol):
    async def begin_attempt(self, stream: str, seq: int) -> int: ...

    async def end_attempt(self, stream: str, seq: int) -> None: ...

    async def bury(self, letter: DeadLetter, *, stage: str, user_id: str | None = None) -> None: ...


class Takes(Protocol):
    async def by_nats(self, raw: bytes) -> Placed: ...


class _Poison:
    """Nobody looks at it again, so nothing of it is kept but its hash."""

    reason = Reason.POISON
    payload = None
    user_id = None

    def __init__(self, carried: Carried, deaths: int) -> None:
        self.detail = f"Whoever took it died, {deaths} times."
        self.sha256 = sha256(carried.payload).hexdigest()


class Requests:
    """Feeds a desk from the bus."""

    def __init__(
        self,
        pull: Pulls,
        bus: Erases,
        store: Attempts,
        desk: Takes,
        *,
        refuse: Callable[[bytes, Rejected], Refused],
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        changed: Callable[[], None] = lambda: None,
        burial: Burial | None = None,
    ) -> None:
        self._burial = burial or Burial()
        self._pull = pull
        self._bus = bus
        self._store = store
        self._desk = desk
        self._refuse = refuse
        self._clock = clock
        self._new_id = new_id
        self._changed = changed

    async def run(self) -> None:
        """For ever; a bus that is away is waited for."""
        pause = 0.1
        while True:
            try:
                deliveries = await self._pull.fetch(_FETCH, wait_seconds=5)
                pause = 0.1
            except Transient as error:
                log.info("%s", error, extra={"action": "wait_for_bus"})
                await asyncio.sleep(pause)
                pause = min(2.0, pause * 2)
                continue
            for delivery in deliveries:
                await self.handle(delivery)

    async def handle(self, delivery: Delivery) -> None:
        """One message, behind a mark that outlives its taker."""
        carried = delivery.carried
        try:
            deaths = await self._store.begin_attempt(carried.stream, carried.seq)
            if deaths >= DEATHS_TO_POISON:
                erase = await self._bury(carried, _Poison(carried, deaths))
            else:
                erase = await self._take(carried)
            if erase:
                await self._bus.erase_messages(carried.stream, [carried.seq])
            await delivery.ack()
            await self._store.end_attempt(carried.stream, carried.seq)
        except Transient as error:
            log.warning("%s", error, extra={"action": "later"})
            await self._unmarked(carried)
            await delivery.later(min(30.0, 0.5 * 2 ** min(carried.deliveries, 6)))

    async def _take(self, carried: Carried) -> bool:
        """True when the raw form must not stay on the bus."""
        try:
            return (await self._desk.by_nats(carried.payload)).redacted
        except Rejected as error:
            return await self._bury(carried, self._refuse(carried.payload, error))
        except Transient:
            raise
        except Exception as error:  # noqa: BLE001 - it is told with its traceback
            self._burial.aside.note(STAGE, carried.stream, str(carried.seq), carried.payload, error)
            await self._burial.bury()
            return True

    async def _bury(self, carried: Carried, refused: Refused) -> bool:
        letter = DeadLetter(
            dead_id=self._new_id(),
            timestamp=self._clock(),
            subject=carried.subject,
            reason=refused.reason.value,
            detail=refused.detail,
            deliveries=max(1, carried.deliveries),
            payload=UNSET if refused.payload is None else refused.payload,
            sha256=refused.sha256,
        )
        await self._store.bury(letter, stage=STAGE, user_id=refused.user_id)
        self._changed()
        log.info("refused: %s", refused.detail, extra={"action": "refuse", "reason": letter.reason})
        return True

    async def _unmarked(self, carried: Carried) -> None:
        """Nobody died: the store, or the bus, was away."""
        try:
            await self._store.end_attempt(carried.stream, carried.seq)
        except Transient:
            return
