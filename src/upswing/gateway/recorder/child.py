"""Who makes episodes and feedback durable? A child process: it redacts, publishes, and acknowledges.

    stdin   4 bytes length, 1 byte kind, the message; the first message says how to set up
    stdout  4 bytes length, what became of each, in the order of the requests

    episode ─▶ trajectory ─▶ redacted ─▶ durable (see `publisher`)
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
from upswing.gateway.core.dead_letter import RejectedEpisode, dead_letter_of, rejected_episode
from upswing.gateway.core.episode_redaction import (
    RedactedMessage,
    make_redactor,
    message_bounds,
    redact_episode,
    redact_feedback_message,
)
from upswing.gateway.core.frames import EpisodeFrame, RecordOutcome, decode_batch, encode_outcomes
from upswing.gateway.recorder.publisher import Publisher
from upswing.infra.heartbeat import Beats
from upswing.infra.spool_log import SpoolEntryKind
from upswing.infra.tasks import run_with_helpers, start_task
from upswing.logs import LogOptions, set_up_logging
from upswing.redact import Redactor

log = logging.getLogger(__name__)
HEADER = 5
EPISODES, FEEDBACK, DEAD_LETTER, SETUP = b"e", b"f", b"d", b"s"
_NICENESS = 5
_MAX_IN_FLIGHT = 4
"""Requests whose acknowledgement is awaited while the next is redacted."""
_BUS_WAIT_SECONDS = 2.0
"""For the bus to be there; then work begins without it."""


class RecorderSetup(msgspec.Struct, frozen=True):
    """How the child is to work."""

    settings: Settings
    nats_url: str
    spool: str | None = None
    """A folder for what waits while the bus is away; None: the gateway keeps it in memory."""
    spool_bytes: int = 256 * 1024 * 1024


def encode_request(request_type: bytes, message: bytes) -> bytes:
    """A frame for the child's stdin."""
    return len(message).to_bytes(4, "big") + request_type + message


class RecorderServer:
    """Answers the gateway's requests, in order."""

    def __init__(self, setup: RecorderSetup, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._redactor: Redactor = make_redactor(setup.settings)
        self._bounds = message_bounds(setup.settings)
        set_up_logging(self._redactor, LogOptions.chosen(None, None, "recorder"))
        self._redactor.text("warm up")
        self._publisher = Publisher(setup.nats_url, setup.spool, setup.spool_bytes)
        self._responses: asyncio.Queue[asyncio.Task[bytes]] = asyncio.Queue(_MAX_IN_FLIGHT)

    async def run(self) -> None:
        """Until there are no more requests, or something of it breaks."""
        await run_with_helpers(
            self._read_requests(), publisher=self._publisher.run(), writer=self._write_responses()
        )
        await self._publisher.close()

    async def _read_requests(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BUS_WAIT_SECONDS):
                await self._publisher.connected.wait()
        while (request := await read_request(self._reader)) is not None:
            request_type, message = request
            handler = {
                EPISODES: self._record_episodes,
                FEEDBACK: self._record_feedback,
                DEAD_LETTER: self._record_dead_letter,
            }[request_type]
            await self._responses.put(start_task(handler(message)))
        await self._responses.join()

    async def _write_responses(self) -> None:
        while True:
            answer = await (await self._responses.get())
            sys.stdout.buffer.write(len(answer).to_bytes(4, "big") + answer)
            sys.stdout.buffer.flush()
            self._responses.task_done()

    # --- requests --------------------------------------------------------------------------------

    async def _record_episodes(self, batch: bytes) -> bytes:
        frames = decode_batch(batch)
        outcomes: dict[int, RecordOutcome] = {}
        redacted: dict[int, RedactedMessage] = {}
        for position, frame in enumerate(frames):
            try:
                redacted[position] = redact_episode(frame, self._redactor, self._bounds)
            except Rejected as error:
                outcomes[position] = _refused_outcome(frame, error)
            await asyncio.sleep(0)  # lets the bus connection work between two of them
        statuses = await self._publisher.publish(SpoolEntryKind.TRAJECTORY, list(redacted.values()))
        for (position, message), status in zip(redacted.items(), statuses, strict=True):
            outcomes[position] = _publish_outcome(message, status)
        rejected_episodes = [
            rejected_episode(frames[p], each) for p, each in outcomes.items() if each.reason
        ]
        letters = await self._publish_dead_letters(rejected_episodes)
        if "later" in letters:  # then nothing is settled with them
            outcomes = {
                p: RecordOutcome(k.trajectory_id, "later") if k.reason else k
                for p, k in outcomes.items()
            }
        return encode_outcomes([outcomes[position] for position in range(len(frames))])

    async def _record_feedback(self, raw: bytes) -> bytes:
        try:
            redacted = redact_feedback_message(raw, self._redactor, self._bounds)
        except Rejected as error:
            _log_unexpected(error)
            return encode_outcomes([RecordOutcome("", "refused", error.detail, error.reason)])
        statuses = await self._publisher.publish(SpoolEntryKind.FEEDBACK, [redacted])
        return encode_outcomes([_publish_outcome(redacted, statuses[0])])

    async def _record_dead_letter(self, raw: bytes) -> bytes:
        rejected = from_msgpack(raw, RejectedEpisode)
        (status,) = await self._publish_dead_letters([rejected])
        return encode_outcomes([RecordOutcome(rejected.trajectory_id, status)])

    async def _publish_dead_letters(
        self, rejected_episodes: Sequence[RejectedEpisode]
    ) -> list[str]:
        """Leave a dead letter of each; `later` only while there is no place for it at all."""
        now = datetime.now(UTC)  # noqa: TID251 - a process of its own has a clock of its own
        letters = [dead_letter_of(rejected, now, self._redactor) for rejected in rejected_episodes]
        statuses = await self._publisher.publish(SpoolEntryKind.DEAD, letters)
        if "later" in statuses and not self._publisher.disconnected:
            log.error("no dead letter could be left", extra={"action": "no_letter"})
            return ["lost" if status == "later" else status for status in statuses]
        return statuses


def _publish_outcome(message: RedactedMessage, status: str) -> RecordOutcome:
    if status == "refused":
        detail = f"The message has {len(message.body)} bytes, which the bus does not take."
        return RecordOutcome(message.message_id, status, detail, Reason.TOO_LARGE)
    return RecordOutcome(message.message_id, status)


def _refused_outcome(frame: EpisodeFrame, error: Rejected) -> RecordOutcome:
    _log_unexpected(error)
    return RecordOutcome(frame.trajectory_id, "refused", error.detail, error.reason)


def _log_unexpected(error: Rejected) -> None:
    """What nobody foresaw is ours to mend."""
    if error.__cause__ is not None:
        log.error("%s", error, exc_info=error.__cause__, extra={"action": "unreadable"})


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """The next request, or None at the end."""
    try:
        header = await reader.readexactly(HEADER)
        return header[4:], await reader.readexactly(int.from_bytes(header[:4], "big"))
    except asyncio.IncompleteReadError:
        return None


async def serve() -> None:
    """Answer requests on stdin until it ends; the first one is the setup."""
    reader = asyncio.StreamReader(limit=8 * 1024 * 1024)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    request = await read_request(reader)
    if request is None:
        return
    try:
        await RecorderServer(from_msgpack(request[1], RecorderSetup), reader).run()
    except Exception:
        log.exception("the recorder broke", extra={"action": "broke"})
        logging.shutdown()
        os._exit(1)  # at once: a connection to the bus might not let go, and nothing here is lost


def main() -> None:
    """Until there are no more requests. When something of it breaks, the log says what, and it ends."""
    Beats().start_in_thread()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    asyncio.run(serve())


if __name__ == "__main__":
    main()
