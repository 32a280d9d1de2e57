"""What the store has committed, the bus must hear: publish, and cross off what it acknowledged.

The store is the truth and never waits for the bus. When the bus is away the outbox grows; when it
comes back the outbox is sent in order. Sending twice does no harm: the message id is the content's.

A message that the bus can never take is buried: it would hold up all that stand behind it. So is one
that the bus leaves out again and again, while it takes others of the same batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from upswing.errors import Reason, Rejected, Transient
from upswing.infra.backoff import Backoff
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.store import SqlStore
from upswing.records import OutboxEntry, Receipt

log = logging.getLogger(__name__)
STAGE = "relay"
_BATCH = 256
_MISSES = 20
"""Times that the bus may leave a message out while it takes others."""
_GIVE_WAY_SECONDS = 0.4
"""How long a batch waits while agents crowd at the doors: being acknowledged comes first."""
_POLL_SECONDS = 1.0
_RETRIES = Backoff(0.1, 2.0)
"""Seconds until what could not be sent is tried again."""
"""The safety net: every commit also wakes the relay at once."""


class Relay:
    """Moves the outbox to the bus."""

    def __init__(
        self,
        store: SqlStore,
        bus: Bus,
        crowded: Callable[[], bool] = lambda: False,
        *,
        check: Callable[[OutboxEntry], None] = lambda _: None,
        dead_letters: DeadLetterWriter | None = None,
    ) -> None:
        """`check` raises `Rejected` for a message that the bus can never take."""
        self._check, self._dead_letters = check, dead_letters or DeadLetterWriter()
        self._missed: Counter[int] = Counter()
        self._store = store
        self._bus = bus
        self._crowded = crowded
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something was committed."""
        self._woken.set()

    async def run(self) -> None:
        """For ever."""
        failures = 0
        while True:
            self._woken.clear()
            try:
                left = await self.send()
                failures = failures + 1 if left else 0
            except Transient as error:
                log.warning("%s", error, extra={"action": "relay"})
                left, failures = True, failures + 1
            if left:
                await asyncio.sleep(_RETRIES.seconds(failures))
                continue
            try:
                await asyncio.wait_for(self._woken.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue

    async def send(self) -> bool:
        """Send what there is; true when something could not be sent."""
        while entries := await self._store.outbox(_BATCH):
            sendable = await self._drop_unsendable(entries)
            receipts = await self._bus.publish(sendable) if sendable else []
            if receipts:
                await self._store.mark_delivered(receipts)
            if self._crowded():
                await asyncio.sleep(_GIVE_WAY_SECONDS)
            if len(receipts) < len(sendable):
                await self._count_misses(sendable, receipts)
                return True
        return False

    async def _drop_unsendable(self, entries: Sequence[OutboxEntry]) -> list[OutboxEntry]:
        def checked(entry: OutboxEntry) -> OutboxEntry:
            self._check(entry)
            return entry

        found = self._dead_letters.bad_rows.read_each(
            STAGE, "outbox", entries, checked, raw=_describe_entry
        )
        await self._dead_letter({each.seq for each in entries} - {each.seq for each in found})
        return found

    async def _count_misses(self, sent: Sequence[OutboxEntry], receipts: Sequence[Receipt]) -> None:
        """The bus is there and took others: whom it leaves out every time, it does not want."""
        taken = {receipt.seq for receipt in receipts}
        if not taken:
            return  # it is away
        left = {entry.seq: entry for entry in sent if entry.seq not in taken}
        self._missed = Counter({seq: self._missed[seq] + 1 for seq in left})
        unwanted = [entry for seq, entry in left.items() if self._missed[seq] >= _MISSES]
        for entry in unwanted:
            why = Rejected(Reason.UNREADABLE, f"The bus took others, and not it, {_MISSES} times.")
            self._dead_letters.bad_rows.add(
                STAGE, "outbox", str(entry.seq), _describe_entry(entry), why
            )
        await self._dead_letter({entry.seq for entry in unwanted})

    async def _dead_letter(self, seqs: Collection[int]) -> None:
        if seqs:
            await self._dead_letters.flush()
            await self._store.discard(tuple(seqs))


def _describe_entry(entry: OutboxEntry) -> bytes:
    return f"{entry.subject} {entry.msg_id} ".encode("utf-8", "replace") + entry.payload
