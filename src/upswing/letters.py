"""What of a gateway's dead letters does the loop keep? All of them, beside its own.

A gateway has no store. What it could not record it tells on the bus; here it becomes a row that
`upswing dead` shows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from upswing.contracts import DeadLetter, decode
from upswing.errors import Reason, Rejected, Transient
from upswing.ports import Delivery, Pulls

log = logging.getLogger(__name__)
STAGE = "gateway"
_FETCH = 50
_WAIT_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


class Buries(Protocol):
    async def bury(
        self, letter: DeadLetter, *, stage: str, user_id: str | None = None, heard: bool = False
    ) -> None: ...


class Letters:
    """From the bus into the store."""

    def __init__(
        self, pull: Pulls, store: Buries, counted: Callable[[str, Reason], None]
    ) -> None:  # fmt: skip
        """`counted` hears the door and the reason of each."""
        self._pull, self._store, self._counted = pull, store, counted

    async def run(self) -> None:
        """For ever; a bus that is away is waited for."""
        pause = _FIRST_PAUSE
        while True:
            try:
                deliveries = await self._pull.fetch(_FETCH, wait_seconds=_WAIT_SECONDS)
                pause = _FIRST_PAUSE
            except Transient as error:
                log.info("%s", error, extra={"action": "wait_for_bus"})
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)
                continue
            for delivery in deliveries:
                await self._take(delivery)

    async def _take(self, delivery: Delivery) -> None:
        try:
            letter = decode(DeadLetter, delivery.carried.payload)
            await self._store.bury(letter, stage=STAGE, heard=True)
        except Rejected as error:  # whoever may publish here is one of ours, but perhaps older
            log.warning("a dead letter cannot be read: %s", error, extra={"action": "bad_letter"})
        except Transient as error:
            log.warning("%s", error, extra={"action": "later"})
            await delivery.later(min(30.0, 0.5 * 2 ** min(delivery.carried.deliveries, 6)))
            return
        else:
            self._counted(STAGE, _reason(letter.reason))
        await delivery.ack()


def _reason(word: str) -> Reason:
    return Reason(word) if word in set(Reason) else Reason.POISON
