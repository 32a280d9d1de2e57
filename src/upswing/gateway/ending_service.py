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
from msgspec import UNSET, UnsetType

from upswing.contracts import Feedback
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.gateway.book import Episode
from upswing.gateway.desk_service import Reply, reply
from upswing.gateway.feedback import read_feedback
from upswing.gateway.keys import key_told, sender_of
from upswing.gateway.limits import Limits
from upswing.gateway.ports import Desk, Keeper
from upswing.gateway.recorder_service import Recorder, Waiting
from upswing.gateway.said import End, check_same, later, read_end
from upswing.senders import may_speak

_NOT_YOURS = (
    "This episode is another user's, or another key's: a key speaks for a user whose episode it recorded. "
    "Leave the user out, name the episode's, or use an operator's key."
)


class Endings:
    """Ends of episodes, and feedback."""

    def __init__(
        self, recorder: Recorder, keeper: Keeper | None, limits: Limits,
        *, clock: Callable[[], datetime], new_id: Callable[[], UUID], desk: Desk | None = None,
    ) -> None:  # fmt: skip
        self._desk = desk
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
        told = later(said.metadata, trusted=sender_of(episode.principal).many)
        episode.about = {**episode.about, **told}
        self._recorder.end(episode, "close")

    async def feedback(self, owner: str, body: bytes, user: bytes | None = None) -> Reply:
        """Take a user's word; where it does not say whose, it is that of the episode's user.

        `user` is whom the request's header names.
        """
        new_id = str(self._new_id())
        word, dry = read_feedback(body, feedback_id=new_id, now=self._clock(), user=user)
        word = _signed(await self._checked(owner, word), owner)
        if dry:
            return reply(200, {"feedback_id": word.feedback_id})
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

    async def _checked(self, owner: str, word: Feedback) -> Feedback:
        """The word with its user, or `Rejected` when this key may not speak so."""
        sender = sender_of(owner)
        aimed = None if word.trajectory_id is UNSET else str(word.trajectory_id)
        episode = None if isinstance(word.episode_id, UnsetType) else word.episode_id
        found = self._recorder.recorded(owner, episode, aimed)
        named = None if isinstance(word.user_id, UnsetType) else word.user_id
        if found is None:
            if self._desk is not None and not sender.operator and (named or not sender.many):
                await self._desk.check_feedback(_written(_signed(word, owner)))
            return word
        key, user = sender_of(found[0]).key_id, found[1]
        if not may_speak(
            named, user, trusted=sender.operator, key=sender.key_id, recorded_by=key,
            many=sender.many,
        ):  # fmt: skip
            raise Rejected(Reason.NOT_YOURS, _NOT_YOURS)
        return msgspec.structs.replace(word, user_id=user) if named is None and user else word


def _signed(word: Feedback, owner: str) -> Feedback:
    """With whose key it came, whatever the client says of that."""
    said = {} if isinstance(word.metadata, UnsetType) else dict(word.metadata)
    said.pop("gateway", None)
    about = key_told(sender_of(owner))
    metadata = {**said, **({"gateway": about} if about else {})}
    return msgspec.structs.replace(word, metadata=metadata or UNSET)


def _written(word: Feedback) -> bytes:
    try:
        return msgspec.json.encode(word)
    except (OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise Rejected(Reason.SCHEMA, f"The feedback cannot be written: {error}.") from None
