"""A client says that an episode is over, or what a user thought of it: when may it be told "kept"?

An acknowledgement means durable: the answer waits for the bus, or says that it did not come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from uuid import UUID

import msgspec
from msgspec import UNSET

from upswing.contracts import Feedback
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.gateway.book import Episode
from upswing.gateway.desk_service import Reply, reply
from upswing.gateway.feedback import read_feedback
from upswing.gateway.limits import Limits
from upswing.gateway.ports import Keeper
from upswing.gateway.recorder_service import Recorder, Waiting
from upswing.gateway.said import AT_FIRST, End, check_same, read_end


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
        said = read_end(body)
        deadline = monotonic() + self._limits.close_seconds
        episode = self._recorder.book.get(owner, episode_id)
        if episode is not None:
            await self._end(episode, said, deadline)
        ended = self._recorder.fate(owner, episode_id)
        if ended is None:
            raise Misuse(f"No episode {episode_id!r} is open here.")
        held = self._recorder.said(owner, episode_id)
        if isinstance(ended, Waiting) or ended.durable:
            check_same(said, held)
        kept = await self._recorder.durable(ended, max(0.0, deadline - monotonic()))
        if kept is None:
            raise Transient("The episode has ended and waits to be recorded; ask again.")
        if kept.reason:
            raise Rejected(Reason(kept.reason), f"The episode cannot be recorded: {kept.detail}")
        return reply(200, {
            "episode_id": episode_id, "trajectory_id": kept.trajectory_id, "recorded": kept.durable,
            "state": kept.word, "detail": " ".join((*filter(None, [kept.detail]), *held.notes)),
        })  # fmt: skip

    async def _end(self, episode: Episode, said: End, deadline: float) -> None:
        while episode.flights and monotonic() < deadline:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.005)
        if episode.flights:
            raise Conflict("A request of this episode is under way.")
        if episode.ended:  # by another close, meanwhile
            return
        if said.outcome is not None:
            episode.outcome = said.outcome
        later = {key: told for key, told in said.metadata.items() if key not in AT_FIRST}
        episode.about = {**episode.about, **later}
        self._recorder.end(episode, "close")

    async def feedback(self, owner: str, body: bytes) -> Reply:
        """Take a user's word; where it does not say whose, it is that of the episode's user."""
        word = read_feedback(body, feedback_id=str(self._new_id()), now=self._clock())
        if word.user_id is UNSET:
            aimed = None if word.trajectory_id is UNSET else str(word.trajectory_id)
            told = self._recorder.user_of(owner, word.episode_id or None, aimed)
            word = msgspec.structs.replace(word, user_id=told) if told else word
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
