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

from upswing.adapters.nats.bus import Bus
from upswing.contracts.topics import DEAD_GATEWAY, GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY
from upswing.errors import Transient
from upswing.gateway.worker import Clean
from upswing.ports import OutboxEntry
from upswing.sdk.logs import Entry, Kind
from upswing.sdk.spool import Spool

log = logging.getLogger(__name__)
_PLACES = {
    Kind.TRAJECTORY: (GATEWAY_TRAJECTORY, "trajectory_id"),
    Kind.FEEDBACK: (GATEWAY_FEEDBACK, "feedback_id"),
    Kind.DEAD: (DEAD_GATEWAY, "dead_id"),
}
"""The subject of each kind, and where its id stands."""
_RETRY_SECONDS = 0.5
_GOODBYE_SECONDS = 1.0
_DRAIN_COUNT, _DRAIN_BYTES = 200, 4 * 1024 * 1024


class Publisher:
    """The bus while it is there, the spool while it is not."""

    def __init__(self, nats_url: str, spool: str | None, spool_bytes: int) -> None:
        self._nats_url, self._spool_bytes = nats_url, spool_bytes
        self._bus: Bus | None = None
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
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._bus.close()

    @property
    def away(self) -> bool:
        return self._bus is None or not self._bus.connected

    async def publish(self, kind: Kind, messages: Sequence[Clean]) -> list[str]:
        """What became of each: `published`, `spooled`, `later` or `refused`."""
        words = ["refused" if self._too_large(message.body) else "" for message in messages]
        open_ = [place for place, word in enumerate(words) if not word]
        sent = await self._send(kind, [(messages[p].name, messages[p].body) for p in open_])
        keeps = all(sent) or self._keeps()
        for place, taken in zip(open_, sent, strict=True):
            kept = taken or (keeps and self._spooled(kind, messages[place].body))
            words[place] = ("published" if taken else "spooled") if kept else "later"
        if self._spool and "spooled" in words and not self._spool.sync():
            return ["later" if word == "spooled" else word for word in words]
        return words

    def _too_large(self, body: bytes) -> bool:
        """Our own bus takes all that we make; another one may take less."""
        return self._bus is not None and len(body) > self._bus.most_bytes

    async def _send(self, kind: Kind, messages: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Which of them the bus has acknowledged."""
        if self._bus is None or not self._bus.connected:
            return [False] * len(messages)
        subject = _PLACES[kind][0]
        entries = [
            OutboxEntry(place, subject, _msg_id(kind, name, body), body)
            for place, (name, body) in enumerate(messages)
        ]
        receipts = {receipt.seq for receipt in await self._bus.publish(entries)}
        return [place in receipts for place in range(len(messages))]

    def _keeps(self) -> bool:
        """Does the spool keep entries on disk? One that did not may do so again."""
        return self._spool is not None and (not self._spool.trouble or self._spool.sync())

    def _spooled(self, kind: Kind, body: bytes) -> bool:
        spool = self._spool
        if spool is None or spool.size + 2 * len(body) > self._spool_bytes:
            return False  # rather than drop what somebody was told is safe
        spool.append(Entry(kind, body))
        return not spool.trouble

    async def _drain(self) -> None:
        while self._spool and (entries := self._spool.peek(_DRAIN_COUNT, _DRAIN_BYTES)):
            kind, named = entries[0].kind, self._sendable(entries)
            if not named:
                self._give_up(entries[0])
                continue
            sent = await self._send(kind, named)
            count = sent.index(False) if False in sent else len(sent)
            self._spool.remove(entries[:count])
            if kind is Kind.DEAD and not count and not self.away:
                self._give_up(entries[0])
            elif count < len(named):
                return

    def _sendable(self, entries: Sequence[Entry]) -> list[tuple[str, bytes]]:
        """Up to the first one that is spoilt, or larger than the bus takes."""
        named: list[tuple[str, bytes]] = []
        for entry in entries:
            name = _name_of(entry)
            if name is None or self._too_large(entry.body):
                break
            named.append((name, entry.body))
        return named

    def _give_up(self, entry: Entry) -> None:
        """It can never be published, and all others would wait behind it."""
        log.error(
            "a spooled %s of %d bytes cannot be published and is given up", entry.kind,
            len(entry.body), extra={"action": "given_up"},
        )  # fmt: skip
        if self._spool:
            self._spool.remove([entry])


def _msg_id(kind: Kind, name: str, body: bytes) -> str:
    """By what the bus knows a message that comes again.

    An episode's id is told to its client, who may publish in the same stream: a message of its own with
    that id would make the bus drop the episode. The hash of what is recorded nobody knows beforehand.
    """
    return sha256(body).hexdigest() if kind is Kind.TRAJECTORY else name


def _name_of(entry: Entry) -> str | None:
    """Its id; None when the file was spoilt."""
    try:
        name = msgspec.json.decode(entry.body)[_PLACES[entry.kind][1]]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name.isprintable() else None
