"""Who makes durable what the gateway heard? A child process: it redacts, publishes, and says so.

    stdin   4 bytes length, 1 byte kind, the message; the first message says how to set up
    stdout  4 bytes length, what became of each, in the order of the questions

    episode ─▶ trajectory ─▶ redacted ─▶ published, acknowledged          "published"
                    └▶ refused               └▶ bus away ─▶ spool on disk  "spooled"
                                                    └▶ no room, no disk    "later"

Its work yields to that of the gateway: it runs at a lower priority.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from upswing.adapters.nats.bus import Bus
from upswing.config import Settings
from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.errors import Rejected, Transient
from upswing.gateway.frames import Kept, read_batch, write_kept
from upswing.gateway.worker import Clean, clean, clean_feedback, redactor_of
from upswing.ports import OutboxEntry
from upswing.redact import Redactor
from upswing.sdk.logs import Entry, Kind
from upswing.sdk.spool import Spool

log = logging.getLogger(__name__)
HEADER = 5
EPISODES, WORD, SETUP = b"e", b"f", b"s"
_SUBJECTS = {Kind.TRAJECTORY: TRAJECTORY, Kind.FEEDBACK: FEEDBACK}
_NICE = 5
_UNDER_WAY = 4
"""Questions whose acknowledgement is awaited while the next is redacted."""
_FIRST_SECONDS = 2.0
"""For the bus to be there; then work begins without it."""
_RETRY_SECONDS = 0.5
_DRAIN_COUNT, _DRAIN_BYTES = 200, 4 * 1024 * 1024


class Setup(msgspec.Struct, frozen=True):
    """How the child is to work."""

    settings: Settings
    nats_url: str
    spool: str | None = None
    """A folder for what waits while the bus is away; None: the gateway keeps it in memory."""
    spool_bytes: int = 256 * 1024 * 1024


def question(kind: bytes, message: bytes) -> bytes:
    """A frame for the child's stdin."""
    return len(message).to_bytes(4, "big") + kind + message


class Publisher:
    """The bus while it is there, the spool while it is not."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._bus: Bus | None = None
        self.connected = asyncio.Event()
        self._spool: Spool | None = None
        if setup.spool:
            self._spool = Spool(Path(setup.spool), f"gateway-{os.getpid()}", setup.spool_bytes)
            self._spool.adopt()

    async def run(self) -> None:
        """Connect, and empty the spool whenever there is something in it."""
        while True:
            try:
                if self._bus is None:
                    self._bus = await Bus.connect(self._setup.nats_url, name="upswing-gateway")
                    self.connected.set()
                await self._drain()
            except Transient:
                pass
            except Exception:
                log.exception("the spool waits", extra={"action": "alert"})
            await asyncio.sleep(_RETRY_SECONDS)

    async def publish(self, kind: Kind, messages: Sequence[Clean]) -> list[str]:
        """What became of each: `published`, `spooled` or `later`."""
        taken = await self._send(kind, [(clean.name, clean.body) for clean in messages])
        words = ["published" if sent else "" for sent in taken]
        unsent = [place for place, word in enumerate(words) if not word]
        for place in unsent:
            words[place] = self._spooled(Entry(kind, messages[place].body))
        if self._spool and "spooled" in words:
            self._spool.sync()
        return words

    async def _send(self, kind: Kind, messages: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Which of them the bus has acknowledged."""
        if self._bus is None or not self._bus.connected:
            return [False] * len(messages)
        entries = [
            OutboxEntry(place, _SUBJECTS[kind], name, body)
            for place, (name, body) in enumerate(messages)
        ]
        receipts = {receipt.seq for receipt in await self._bus.publish(entries)}
        return [place in receipts for place in range(len(messages))]

    def _spooled(self, entry: Entry) -> str:
        spool = self._spool
        if spool is None or spool.size + 2 * len(entry.body) > self._setup.spool_bytes:
            return "later"  # rather than drop what somebody was told is safe
        spool.append(entry)
        return "later" if spool.trouble else "spooled"

    async def _drain(self) -> None:
        while self._spool and (entries := self._spool.peek(_DRAIN_COUNT, _DRAIN_BYTES)):
            kind = entries[0].kind
            key = "trajectory_id" if kind is Kind.TRAJECTORY else "feedback_id"
            named = [(_name_in(entry.body, key), entry.body) for entry in entries]
            spoilt = next((place for place, (name, _) in enumerate(named) if name is None), None)
            if spoilt == 0:
                self._spool.remove(entries[:1])
                log.error("a spooled message cannot be read", extra={"action": "alert"})
                continue
            entries = entries[:spoilt]
            sent = await self._send(kind, [(name or "", body) for name, body in named[:spoilt]])
            count = sent.index(False) if False in sent else len(sent)
            self._spool.remove(entries[:count])
            if count < len(entries):
                return


class Keeper:
    """Answers the gateway's questions, in order."""

    def __init__(self, setup: Setup, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._redactor: Redactor = redactor_of(setup.settings)
        self._redactor.text("warm up")
        self._publisher = Publisher(setup)
        self._answers: asyncio.Queue[asyncio.Task[bytes]] = asyncio.Queue(_UNDER_WAY)

    async def run(self) -> None:
        """Until there are no more questions."""
        helpers = [asyncio.create_task(self._publisher.run()), asyncio.create_task(self._write())]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_SECONDS):
                await self._publisher.connected.wait()
        while (asked := await read(self._reader)) is not None:
            kind, message = asked
            work = self._episodes(message) if kind == EPISODES else self._word(message)
            await self._answers.put(asyncio.create_task(work))
        await self._answers.join()
        for helper in helpers:
            helper.cancel()

    async def _write(self) -> None:
        while True:
            answer = await (await self._answers.get())
            sys.stdout.buffer.write(len(answer).to_bytes(4, "big") + answer)
            sys.stdout.buffer.flush()
            self._answers.task_done()

    async def _episodes(self, batch: bytes) -> bytes:
        kept: list[Kept | None] = []
        cleaned: list[Clean] = []
        for frame in read_batch(batch):
            try:
                cleaned.append(clean(frame, self._redactor))
                kept.append(None)
            except Rejected as error:
                kept.append(Kept(frame.trajectory_id, "refused", error.detail))
            except Exception as error:
                log.exception("an episode cannot be recorded", extra={"action": "alert"})
                told = f"Recording it broke down: {type(error).__name__}."
                kept.append(Kept(frame.trajectory_id, "refused", told))
            await asyncio.sleep(0)  # the bus has to be heard between two of them
        words = iter(await self._publisher.publish(Kind.TRAJECTORY, cleaned))
        names = iter(cleaned)
        return write_kept([each or Kept(next(names).name, next(words)) for each in kept])

    async def _word(self, raw: bytes) -> bytes:
        try:
            cleaned = clean_feedback(raw, self._redactor)
        except Rejected as error:
            return write_kept([Kept("", "refused", error.detail)])
        except Exception as error:
            log.exception("a word cannot be taken", extra={"action": "alert"})
            return write_kept([Kept("", "refused", f"It broke down: {type(error).__name__}.")])
        words = await self._publisher.publish(Kind.FEEDBACK, [cleaned])
        return write_kept([Kept(cleaned.name, words[0])])


def _name_in(body: bytes, key: str) -> str | None:
    """The id of a spooled message; None when the file was spoilt."""
    try:
        name = msgspec.json.decode(body)[key]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name.isprintable() else None


async def read(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """The next question, or None at the end."""
    try:
        header = await reader.readexactly(HEADER)
        return header[4:], await reader.readexactly(int.from_bytes(header[:4], "big"))
    except asyncio.IncompleteReadError:
        return None


async def serve() -> None:
    reader = asyncio.StreamReader(limit=8 * 1024 * 1024)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    asked = await read(reader)
    if asked is not None:
        await Keeper(msgspec.msgpack.decode(asked[1], type=Setup), reader).run()


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    asyncio.run(serve())
