"""A client reports that an episode is over, or what a user thought of it: when is that acknowledged?

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
from upswing.gateway.admin import HttpReply, json_reply
from upswing.gateway.admin_client import AdminClient
from upswing.gateway.core.episode_table import OpenEpisode
from upswing.gateway.core.feedback import read_feedback
from upswing.gateway.core.keys import key_metadata, sender_of
from upswing.gateway.core.reported_outcome import (
    EpisodeClose,
    check_repeated_close,
    late_metadata,
    merge_close_metadata,
    read_close,
)
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.recorder.client import RecorderClient
from upswing.gateway.recorder.recorder import EpisodeRecorder, PendingEpisode
from upswing.principals import may_speak

_NOT_YOUR_EPISODE = (
    "This episode is another user's, or another key's: a key speaks for a user whose episode it recorded. "
    "Leave the user out, name the episode's, or use an operator's key."
)


class OutcomeIntake:
    """Takes what clients report: ends of episodes with their outcomes, and feedback."""

    def __init__(
        self,
        recorder: EpisodeRecorder,
        recorder_client: RecorderClient | None,
        limits: GatewayLimits,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        admin_client: AdminClient | None = None,
    ) -> None:
        self._admin_client = admin_client
        self._recorder, self._recorder_client, self._limits = recorder, recorder_client, limits
        self._clock, self._new_id = clock, new_id

    async def close_episode(self, owner: str, episode_id: str, body: bytes) -> HttpReply:
        """End an episode; a repeated close gets the same answer."""
        close = read_close(body)
        deadline = monotonic() + self._limits.close_seconds
        episode = self._recorder.episode_table.get(owner, episode_id)
        if episode is not None:
            await self._close_open_episode(episode, close, deadline)
        ended = self._recorder.ended_episode(owner, episode_id)
        if ended is None:
            raise Misuse(f"No episode {episode_id!r} is open here.")
        reported = self._recorder.reported_outcome(owner, episode_id)
        if isinstance(ended, PendingEpisode) or ended.durable:
            check_repeated_close(close, reported)
        outcome = await self._recorder.wait_durable(ended, max(0.0, deadline - monotonic()))
        if outcome is None:
            raise Transient("The episode has ended and waits to be recorded; ask again.")
        if outcome.reason:
            raise Rejected(
                Reason(outcome.reason), f"The episode cannot be recorded: {outcome.detail}"
            )
        return json_reply(
            200,
            {
                "episode_id": episode_id,
                "trajectory_id": outcome.trajectory_id,
                "recorded": outcome.durable,
                "state": outcome.status,
                "detail": " ".join((*filter(None, [outcome.detail]), *reported.notes)),
            },
        )

    async def _close_open_episode(
        self, episode: OpenEpisode, close: EpisodeClose, deadline: float
    ) -> None:
        while episode.in_flight and monotonic() < deadline:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0.005)
        if episode.in_flight:
            raise Conflict("A request of this episode is under way.")
        if episode.ended:  # by another close, meanwhile
            return
        if close.outcome is not None:
            episode.outcome = close.outcome
        late = late_metadata(close.metadata, trusted=sender_of(episode.principal).many)
        episode.metadata = merge_close_metadata(episode.metadata, late)
        self._recorder.end_episode(episode, "close")

    async def record_feedback(
        self, owner: str, body: bytes, user_header: bytes | None = None
    ) -> HttpReply:
        """Record feedback; where it names no user, it is that of the episode's user.

        `user_header` is whom the request's header names.
        """
        new_id = str(self._new_id())
        feedback, dry_run = read_feedback(
            body, feedback_id=new_id, now=self._clock(), user_header=user_header
        )
        feedback = _with_key_metadata(await self._check_sender(owner, feedback), owner)
        if dry_run:
            return json_reply(200, {"feedback_id": feedback.feedback_id})
        if self._recorder_client is None:
            raise Transient("Recording is off, so feedback has nowhere to go.")
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                outcome = await self._recorder_client.record_feedback(_encode_feedback(feedback))
        except TimeoutError:
            raise Transient("The recorder does not answer; try again later.") from None
        if outcome.status == "refused":
            raise Rejected(Reason(outcome.reason or Reason.SCHEMA), outcome.detail)
        if not outcome.durable:
            raise Transient("The bus is away; try again later.")
        return json_reply(200, {"feedback_id": feedback.feedback_id})

    async def _check_sender(self, owner: str, feedback: Feedback) -> Feedback:
        """The feedback with its user, or `Rejected` when this key may not speak for that user."""
        sender = sender_of(owner)
        trajectory_id = None if feedback.trajectory_id is UNSET else str(feedback.trajectory_id)
        episode = None if isinstance(feedback.episode_id, UnsetType) else feedback.episode_id
        found = self._recorder.find_owner(owner, episode, trajectory_id)
        named = None if isinstance(feedback.user_id, UnsetType) else feedback.user_id
        if found is None:
            client = self._admin_client
            if client is not None and not sender.operator and (named or not sender.many):
                signed = _with_key_metadata(feedback, owner)
                await client.check_feedback(_encode_feedback(signed))
            return feedback
        key, user = sender_of(found[0]).key_id, found[1]
        if not may_speak(
            named,
            user,
            trusted=sender.operator,
            key=sender.key_id,
            recorded_by=key,
            many=sender.many,
        ):
            raise Rejected(Reason.NOT_YOURS, _NOT_YOUR_EPISODE)
        if named is None and user:
            return msgspec.structs.replace(feedback, user_id=user)
        return feedback


def _with_key_metadata(feedback: Feedback, owner: str) -> Feedback:
    """With whose key it came, whatever the client says of that."""
    given = {} if isinstance(feedback.metadata, UnsetType) else dict(feedback.metadata)
    given.pop("gateway", None)
    key_info = key_metadata(sender_of(owner))
    metadata = {**given, **({"gateway": key_info} if key_info else {})}
    return msgspec.structs.replace(feedback, metadata=metadata or UNSET)


def _encode_feedback(feedback: Feedback) -> bytes:
    try:
        return msgspec.json.encode(feedback)
    except (OverflowError, RecursionError, UnicodeEncodeError) as error:
        raise Rejected(Reason.SCHEMA, f"The feedback cannot be written: {error}.") from None
