"""Who makes durable what the gateway heard? A child process: it redacts, publishes, and says so.

    stdin   4 bytes length, 1 byte kind, the message; the first message says how to set up
    stdout  4 bytes length, what became of each, in the order of the questions

    episode ─▶ trajectory ─▶ redacted ─▶ durable (see `gateway_publisher`)
                    └▶ refused, with a dead letter that is durable too

When a task of it breaks, that is logged and the process ends: the gateway starts another one. Its
work yields to that of the gateway: it runs at a lower priority.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from upswing.config import Settings
from upswing.contracts.typed import from_msgpack
from upswing.errors import Reason, Rejected
from upswing.gateway.dead import Refusal, letter_of, refusal_of
from upswing.gateway.frames import EpisodeFrame, Kept, read_batch, write_kept
from upswing.gateway.worker import Clean, bounds_of, clean, clean_feedback, redactor_of
from upswing.gateway_publisher import Publisher
from upswing.logs import set_up_logging
from upswing.pulse import Beats
from upswing.redact import Redactor
from upswing.sdk.logs import Kind
from upswing.together import begin, helped

log = logging.getLogger(__name__)
HEADER = 5
EPISODES, WORD, BURY, SETUP = b"e", b"f", b"d", b"s"
_NICE = 5
_UNDER_WAY = 4
"""Questions whose acknowledgement is awaited while the next is redacted."""
_FIRST_SECONDS = 2.0
"""For the bus to be there; then work begins without it."""


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


class Keeper:
    """Answers the gateway's questions, in order."""

    def __init__(self, setup: Setup, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._redactor: Redactor = redactor_of(setup.settings)
        self._bounds = bounds_of(setup.settings)
        set_up_logging(self._redactor)
        self._redactor.text("warm up")
        self._publisher = Publisher(setup.nats_url, setup.spool, setup.spool_bytes)
        self._answers: asyncio.Queue[asyncio.Task[bytes]] = asyncio.Queue(_UNDER_WAY)

    async def run(self) -> None:
        """Until there are no more questions, or something of it breaks."""
        await helped(self._listen(), publisher=self._publisher.run(), writer=self._write())
        await self._publisher.close()

    async def _listen(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_SECONDS):
                await self._publisher.connected.wait()
        while (asked := await read(self._reader)) is not None:
            kind, message = asked
            work = {EPISODES: self._episodes, WORD: self._word, BURY: self._bury}[kind]
            await self._answers.put(begin(work(message)))
        await self._answers.join()

    async def _write(self) -> None:
        while True:
            answer = await (await self._answers.get())
            sys.stdout.buffer.write(len(answer).to_bytes(4, "big") + answer)
            sys.stdout.buffer.flush()
            self._answers.task_done()

    # --- questions -------------------------------------------------------------------------------

    async def _episodes(self, batch: bytes) -> bytes:
        frames = read_batch(batch)
        kept: dict[int, Kept] = {}
        cleaned: dict[int, Clean] = {}
        for place, frame in enumerate(frames):
            try:
                cleaned[place] = clean(frame, self._redactor, self._bounds)
            except Rejected as error:
                kept[place] = _refused(frame, error)
            await asyncio.sleep(0)  # the bus has to be heard between two of them
        words = await self._publisher.publish(Kind.TRAJECTORY, list(cleaned.values()))
        for (place, message), word in zip(cleaned.items(), words, strict=True):
            kept[place] = _kept(message, word)
        refusals = [refusal_of(frames[p], each) for p, each in kept.items() if each.reason]
        if "later" in await self._letters(refusals):  # then nothing is settled with them
            kept = {p: Kept(k.trajectory_id, "later") if k.reason else k for p, k in kept.items()}
        return write_kept([kept[place] for place in range(len(frames))])

    async def _word(self, raw: bytes) -> bytes:
        try:
            cleaned = clean_feedback(raw, self._redactor, self._bounds)
        except Rejected as error:
            _noted(error)
            return write_kept([Kept("", "refused", error.detail, error.reason)])
        words = await self._publisher.publish(Kind.FEEDBACK, [cleaned])
        return write_kept([_kept(cleaned, words[0])])

    async def _bury(self, raw: bytes) -> bytes:
        refusal = from_msgpack(raw, Refusal)
        (word,) = await self._letters([refusal])
        return write_kept([Kept(refusal.trajectory_id, word)])

    async def _letters(self, refusals: Sequence[Refusal]) -> list[str]:
        """Leave a dead letter of each; `later` only while there is no place for it at all."""
        now = datetime.now(UTC)  # noqa: TID251 - a process of its own has a clock of its own
        letters = [letter_of(refusal, now, self._redactor) for refusal in refusals]
        words = await self._publisher.publish(Kind.DEAD, letters)
        if "later" in words and not self._publisher.away:
            log.error("no dead letter could be left", extra={"action": "no_letter"})
            return ["lost" if word == "later" else word for word in words]
        return words


def _kept(message: Clean, word: str) -> Kept:
    if word == "refused":
        told = f"The message has {len(message.body)} bytes, which the bus does not take."
        return Kept(message.name, word, told, Reason.TOO_LARGE)
    return Kept(message.name, word)


def _refused(frame: EpisodeFrame, error: Rejected) -> Kept:
    _noted(error)
    return Kept(frame.trajectory_id, "refused", error.detail, error.reason)


def _noted(error: Rejected) -> None:
    """What nobody foresaw is ours to mend."""
    if error.__cause__ is not None:
        log.error("%s", error, exc_info=error.__cause__, extra={"action": "unreadable"})


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
    if asked is None:
        return
    try:
        await Keeper(from_msgpack(asked[1], Setup), reader).run()
    except Exception:
        log.exception("the recorder broke", extra={"action": "broke"})
        logging.shutdown()
        os._exit(1)  # at once: a connection to the bus might not let go, and nothing here is lost


def main() -> None:
    """Until there are no more questions. When something of it breaks, the log says what, and it ends."""
    Beats().from_thread()
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    asyncio.run(serve())


if __name__ == "__main__":
    main()
