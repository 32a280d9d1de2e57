"""How does a message of the gateway's recorder become durable? On the bus, else in the spool.

published, acknowledged ─────────────────────── "published"
└▶ bus away ─▶ spool on disk, sent later ── "spooled"
└▶ no room, no disk ──── "later"
larger than the bus takes ───────────────────── "refused"
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from upswing.contracts.topics import DEAD_GATEWAY, GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY
from upswing.errors import Transient
from upswing.gateway.core.episode_redaction import RedactedMessage
from upswing.infra.nats.bus import Bus
from upswing.infra.spool import Spool
from upswing.infra.spool_log import SpoolEntry, SpoolEntryKind
from upswing.records import OutboxEntry

log = logging.getLogger(__name__)
_SUBJECTS = {
    SpoolEntryKind.TRAJECTORY: (GATEWAY_TRAJECTORY, "trajectory_id"),
    SpoolEntryKind.FEEDBACK: (GATEWAY_FEEDBACK, "feedback_id"),
    SpoolEntryKind.DEAD: (DEAD_GATEWAY, "dead_id"),
}
"""The subject of each kind, and where its id stands."""
_RETRY_SECONDS = 0.5
_CLOSE_SECONDS = 1.0
_DRAIN_COUNT, _DRAIN_BYTES = 200, 4 * 1024 * 1024


class Publisher:
    """The bus while it is there, the spool while it is not."""

    def __init__(
        self, nats_url: str, spool: str | None, spool_bytes: int, bus: Bus | None = None
    ) -> None:
        """`bus`: a connection that is there already; else one is made."""
        self._nats_url, self._spool_bytes, self._bus = nats_url, spool_bytes, bus
        self.connected = asyncio.Event()
        """It has been, once."""
        self._spool: Spool | None = None
        if spool:
            self._spool = Spool(Path(spool), f"gateway-{os.getpid()}", spool_bytes)
            self._spool.adopt()

    async def run(self) -> None:
        """Connect, and empty the spool whenever there is something in it."""
        while True:
            try:
                if self._bus is None:
                    self._bus = await Bus.connect(self._nats_url, name="upswing-gateway")
                    self.connected.set()
                await self._drain()
            except Transient as error:
                log.debug("%s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        """Hang up; a bus that does not let go is left."""
        if self._bus is not None:
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._bus.close()

    @property
    def disconnected(self) -> bool:
        return self._bus is None or not self._bus.connected

    async def publish(self, kind: SpoolEntryKind, messages: Sequence[RedactedMessage]) -> list[str]:
        """What became of each: `published`, `spooled`, `later` or `refused`."""
        statuses = ["refused" if self._too_large(message.body) else "" for message in messages]
        unsettled = [position for position, status in enumerate(statuses) if not status]
        sent = await self._send(
            kind, [(messages[p].message_id, messages[p].body) for p in unsettled]
        )
        spool_works = all(sent) or self._spool_works()
        for position, published in zip(unsettled, sent, strict=True):
            accepted = published or (
                spool_works and self._append_to_spool(kind, messages[position].body)
            )
            statuses[position] = ("published" if published else "spooled") if accepted else "later"
        if self._spool and "spooled" in statuses and not self._spool.sync():
            return ["later" if status == "spooled" else status for status in statuses]
        return statuses

    def _too_large(self, body: bytes) -> bool:
        """Our own bus takes all that we make; another one may take less."""
        return self._bus is not None and len(body) > self._bus.max_message_bytes

    async def _send(
        self, kind: SpoolEntryKind, messages: Sequence[tuple[str, bytes]]
    ) -> list[bool]:
        """Which of them the bus has acknowledged."""
        if self._bus is None or not self._bus.connected:
            return [False] * len(messages)
        subject = _SUBJECTS[kind][0]
        entries = [
            OutboxEntry(position, subject, _deduplication_id(kind, message_id, body), body)
            for position, (message_id, body) in enumerate(messages)
        ]
        receipts = {receipt.seq for receipt in await self._bus.publish(entries)}
        return [position in receipts for position in range(len(messages))]

    def _spool_works(self) -> bool:
        """Does the spool keep entries on disk? One that did not may do so again."""
        return self._spool is not None and (
            not self._spool.durability_trouble or self._spool.sync()
        )

    def _append_to_spool(self, kind: SpoolEntryKind, body: bytes) -> bool:
        spool = self._spool
        if spool is None or spool.size + 2 * len(body) > self._spool_bytes:
            return False  # rather than drop what was acknowledged as safe
        spool.append(SpoolEntry(kind, body))
        return not spool.durability_trouble

    async def _drain(self) -> None:
        while self._spool and (entries := self._spool.peek(_DRAIN_COUNT, _DRAIN_BYTES)):
            kind, named = entries[0].kind, self._sendable(entries)
            if not named:
                self._give_up(entries[0])
                continue
            sent = await self._send(kind, named)
            count = sent.index(False) if False in sent else len(sent)
            self._spool.remove(entries[:count])
            if kind is SpoolEntryKind.DEAD and not count and not self.disconnected:
                self._give_up(entries[0])
            elif count < len(named):
                return

    def _sendable(self, entries: Sequence[SpoolEntry]) -> list[tuple[str, bytes]]:
        """Up to the first one that is spoilt, or larger than the bus takes."""
        named: list[tuple[str, bytes]] = []
        for entry in entries:
            name = _message_id(entry)
            if name is None or self._too_large(entry.body):
                break
            named.append((name, entry.body))
        return named

    def _give_up(self, entry: SpoolEntry) -> None:
        """It can never be published, and all others would wait behind it."""
        log.error(
            "a spooled %s of %d bytes cannot be published and is given up",
            entry.kind,
            len(entry.body),
            extra={"action": "given_up"},
        )
        if self._spool:
            self._spool.remove([entry])


def _deduplication_id(kind: SpoolEntryKind, message_id: str, body: bytes) -> str:
    """By what the bus knows a message that comes again.

    A client knows its episode's id, and may publish in the same stream: a message of its own with
    that id would make the bus drop the episode. The hash of what is recorded nobody knows beforehand.
    """
    return sha256(body).hexdigest() if kind is SpoolEntryKind.TRAJECTORY else message_id


def _message_id(entry: SpoolEntry) -> str | None:
    """Its id; None when the file was spoilt."""
    try:
        name = msgspec.json.decode(entry.body)[_SUBJECTS[entry.kind][1]]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name.isprintable() else None
