"""A client says that an episode is over, or what a user thought of it: when may it be told "kept"?

An acknowledgement means durable: the answer waits for the bus, or says that it did not come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from upswing.contracts import Feedback
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.gateway.book import Episode
from upswing.gateway.desk_service import Reply, reply
from upswing.gateway.feedback import read_feedback
from upswing.gateway.frames import Kept
from upswing.gateway.limits import Limits
from upswing.gateway.ports import Keeper
from upswing.gateway.recorder_service import Recorder, Waiting


class End(Struct, frozen=True):
    """What a client may say at the end."""

    outcome: Any = None
    """`metadata.outcome` of the trajectory: a status, or a status and the share that is done."""
    metadata: dict[str, Any] = {}


class Endings:
    """Ends of episodes, and feedback."""

    def __init__(
        self, recorder: Recorder, keeper: Keeper | None, limits: Limits,
        *, clock: Callable[[], datetime], new_id: Callable[[], UUID],
    ) -> None:  # fmt: skip
        self._recorder, self._keeper, self._limits = recorder, keeper, limits
        self._clock, self._new_id = clock, new_id

    async def close(self, owner: str, episode_id: str, body: bytes) -> Reply:
        """End an episode; said again, it says the same."""
        said = _read(body)
        deadline = monotonic() + self._limits.close_seconds
        episode = self._recorder.book.get(owner, episode_id)
        ended = (
            self._recorder.fate(owner, episode_id)
            if episode is None
            else await self._ended(episode, said, deadline)
        )
        if ended is None:
            raise Misuse(f"No episode {episode_id!r} is open here.")
        kept = await self._recorder.durable(ended, max(0.0, deadline - monotonic()))
        if kept is None:
            raise Transient("The episode has ended and waits to be recorded; ask again.")
        if kept.reason:
            raise Rejected(Reason(kept.reason), f"The episode cannot be recorded: {kept.detail}")
        return reply(200, {
            "episode_id": episode_id, "trajectory_id": kept.trajectory_id, "recorded": kept.durable,
            "state": kept.word, "detail": kept.detail,
        })  # fmt: skip

    async def _ended(self, episode: Episode, said: End, deadline: float) -> Waiting | Kept:
        while episode.flights and monotonic() < deadline:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.005)
        if episode.flights:
            raise Conflict("A request of this episode is under way.")
        if said.outcome is not None:
            episode.outcome = said.outcome
        episode.about = {**episode.about, **said.metadata}
        return self._recorder.end(episode, "close")

    async def feedback(self, body: bytes) -> Reply:
        """Take a user's word."""
        word = read_feedback(body, feedback_id=str(self._new_id()), now=self._clock())
        if self._keeper is None:
            raise Transient("Recording is off, so feedback has nowhere to go.")
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                kept = await self._keeper.say(_written(word))
        except TimeoutError:
            raise Transient("The recorder does not answer; try again later.") from None
        if kept.word == "refused":
            raise Rejected(Reason(kept.reason or Reason.SCHEMA), kept.detail)
        if not kept.durable:
            raise Transient("The bus is away; try again later.")
        return reply(200, {"feedback_id": word.feedback_id})


def _written(word: Feedback) -> bytes:
    try:
        return msgspec.json.encode(word)
    except (OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise Rejected(Reason.SCHEMA, f"The feedback cannot be written: {error}.") from None


def _read(body: bytes) -> End:
    if not body.strip():
        return End()
    try:
        return msgspec.json.decode(body, type=End)
    except msgspec.ValidationError as error:
        raise Rejected(Reason.SCHEMA, f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rejected(Reason.MALFORMED, f"The body is not JSON: {error}.") from None
