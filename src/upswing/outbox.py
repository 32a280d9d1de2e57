"""What the store has committed, the bus must hear: publish, and cross off what it acknowledged.

The store is the truth and never waits for the bus. When the bus is away the outbox grows; when it
comes back the outbox is sent in order. Sending twice does no harm: the message id is the content's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from upswing.errors import Transient
from upswing.ports import OutboxEntry, Receipt

log = logging.getLogger(__name__)
_BATCH = 256
_GIVE_WAY_SECONDS = 0.4
"""How long a batch waits while agents crowd at the doors: being acknowledged comes first."""
_POLL_SECONDS = 1.0
"""The safety net: every commit also wakes the relay at once."""


class HasOutbox(Protocol):
    async def outbox(self, limit: int) -> list[OutboxEntry]: ...

    async def delivered(self, receipts: Sequence[Receipt]) -> None: ...


class Publishes(Protocol):
    async def publish(self, entries: Sequence[OutboxEntry]) -> list[Receipt]: ...


class Relay:
    """Moves the outbox to the bus."""

    def __init__(
        self, store: HasOutbox, bus: Publishes, crowded: Callable[[], bool] = lambda: False
    ) -> None:
        self._store = store
        self._bus = bus
        self._crowded = crowded
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something was committed."""
        self._woken.set()

    async def run(self) -> None:
        """For ever."""
        pause = 0.05
        while True:
            self._woken.clear()
            try:
                left = await self.send()
                pause = 0.05 if not left else min(2.0, pause * 2)
            except Transient as error:
                log.warning("%s", error, extra={"action": "relay"})
                left, pause = True, min(2.0, pause * 2)
            if left:
                await asyncio.sleep(pause)
                continue
            try:
                await asyncio.wait_for(self._woken.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue

    async def send(self) -> bool:
        """Send what there is; true when something could not be sent."""
        while entries := await self._store.outbox(_BATCH):
            receipts = await self._bus.publish(entries)
            if receipts:
                await self._store.delivered(receipts)
            if self._crowded():
                await asyncio.sleep(_GIVE_WAY_SECONDS)
            if len(receipts) < len(entries):
                return True
        return False
