"""How does the gateway hand episodes and feedback to its recorder, which runs in another process?"""

from __future__ import annotations

import logging

import msgspec

from upswing.gateway.core.dead_letter import RejectedEpisode
from upswing.gateway.core.frames import RecordOutcome, decode_outcomes, encode_batch
from upswing.gateway.recorder.child import (
    DEAD_LETTER,
    EPISODES,
    FEEDBACK,
    SETUP,
    RecorderSetup,
    encode_request,
)
from upswing.infra.child_workers import NotStarted, WorkerProcess

log = logging.getLogger(__name__)


class RecorderClient:
    """Makes episodes and feedback durable, in a child process that is restarted when it dies."""

    def __init__(
        self, setup: RecorderSetup, module: str = "upswing.gateway.recorder.child"
    ) -> None:
        """`module`: a test may have one that breaks."""
        first_request = encode_request(SETUP, msgspec.msgpack.encode(setup))
        self._child = WorkerProcess(module, first_request)

    async def start(self) -> None:
        await self._child.start()

    async def stop(self) -> None:
        await self._child.stop()

    async def record_episodes(self, frames: list[bytes]) -> list[RecordOutcome]:
        """What became of each episode, in order; `Transient` when nobody can say, so ask again."""
        try:
            return decode_outcomes(
                await self._child.request(encode_request(EPISODES, encode_batch(frames)))
            )
        except NotStarted as error:  # nobody died of them
            log.warning("%s", error, extra={"action": "no_keeper"})
            return [RecordOutcome("", "later") for _ in frames]

    async def record_feedback(self, feedback: bytes) -> RecordOutcome:
        """What became of feedback.v1."""
        return decode_outcomes(await self._child.request(encode_request(FEEDBACK, feedback)))[0]

    async def record_dead_letter(self, rejected: RejectedEpisode) -> RecordOutcome:
        """Leave a dead letter of an episode that is given up."""
        message = encode_request(DEAD_LETTER, msgspec.msgpack.encode(rejected))
        return decode_outcomes(await self._child.request(message))[0]
