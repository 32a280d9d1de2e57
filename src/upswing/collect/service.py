"""How does what agents send become rows? Read, decide, store, answer, in that order.

`Intake` takes one message from any door; `collect.collector_service` feeds it from the bus.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

from msgspec import UNSET

from upswing.collect.bury import cut
from upswing.collect.look import Kind, Passed, PassedFeedback, Refused, Verdict, digest
from upswing.collect.metrics import CollectMetrics
from upswing.contracts import DeadLetter
from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.errors import Reason, Rejected
from upswing.ports import AdmittedFeedback, CollectStore, Taken
from upswing.senders import GATEWAY, NOBODY, OPERATOR, Sender

log = logging.getLogger(__name__)
STAGE = "collect"
CROWD = 24
"""Messages in hand at once that make a crowd."""
_UNKNOWN = Sender()
_ANSWERED = frozenset({"http", "steps"})
"""Doors whose sender hears why something is refused, and can send it again."""


class OptOuts(Protocol):
    def opted_out(self, user_id: str | None) -> bool: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message, and whether its raw form must be erased."""

    taken: Taken | None
    rejected: Rejected | None = None
    id: str | None = None
    erase: bool = False
    note: str = ""
    """What its sender should know although it was taken."""

    @property
    def word(self) -> str:
        return (
            self.taken.value
            if self.taken
            else (self.rejected.reason.value if self.rejected else "")
        )


class Intake:
    """Takes one message at a time from any door; the answer means durable."""

    def __init__(
        self,
        store: CollectStore,
        optouts: OptOuts,
        look: Callable[[Kind, bytes], Awaitable[Verdict]],
        metrics: CollectMetrics,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._optouts = optouts
        self._look = look
        self._metrics = metrics
        self._clock = clock
        self._new_id = new_id
        self._stored = stored
        self._in_hand = 0

    @property
    def crowded(self) -> bool:
        """Many wait for their acknowledgement; what can wait should."""
        return self._in_hand > CROWD

    def now(self) -> datetime:
        return self._clock()

    async def trajectory(
        self,
        raw: bytes,
        *,
        door: str,
        subject: str = TRAJECTORY,
        stream_seq: int | None = None,
        deliveries: int = 1,
        sender: Sender = _UNKNOWN,
    ) -> Outcome:
        """Take a trajectory: stored once, or dropped, or buried with a reason."""
        self._in_hand += 1
        try:
            return await self._trajectory(raw, door, subject, stream_seq, deliveries, sender)
        finally:
            self._in_hand -= 1

    async def _trajectory(
        self, raw: bytes, door: str, subject: str, stream_seq: int | None, deliveries: int,
        sender: Sender,
    ) -> Outcome:  # fmt: skip
        verdict = await self._look(Kind.TRAJECTORY, raw)
        if not isinstance(verdict, Passed):
            return await self.bury(
                _refused(verdict), door=door, subject=subject, deliveries=deliveries,
                stream_seq=stream_seq, sender=NOBODY if door == GATEWAY else sender,
            )  # fmt: skip
        row, redacted = verdict.admitted, verdict.findings > 0
        if door != GATEWAY:  # only a gateway's word on whose key it was is believed
            row = replace(row, key_id=sender.key_id, many=sender.many)
        whose = Sender(row.key_id, many=row.many)
        self._metrics.redacted(verdict.findings)
        if self._optouts.opted_out(row.user_id):
            return self.dropped(door, row.trajectory_id)
        if verdict.unread and door in _ANSWERED:
            unread = Refused(
                Reason.SCHEMA, verdict.unread, digest(raw), cut(row.body.decode()), row.user_id
            )
            return await self.bury(
                unread, door=door, subject=subject, deliveries=deliveries, sender=whose
            )
        taken = await self._store.take(
            row,
            door=door,
            now=self._clock(),
            stream_seq=None if redacted else stream_seq,
            announce=stream_seq is None or redacted,
            overrides=sender.operator,
        )
        if taken in _NO_TRAJECTORY:
            reason, sentence = _NO_TRAJECTORY[taken]
            told = sentence.format(row.trajectory_id)
            refused = Refused(reason, told, digest(raw), cut(row.body.decode()), row.user_id)
            return await self.bury(
                refused, door=door, subject=subject, deliveries=deliveries, stream_seq=stream_seq,
                sender=whose,
            )  # fmt: skip
        self._metrics.taken(door, taken)
        if taken is Taken.STORED:
            self._metrics.stored(row.agent_type, row.domain, row.turns)
            self._stored()
        erase = redacted or taken is Taken.ERASED
        return Outcome(taken, id=row.trajectory_id, erase=erase, note=_noted(verdict.unread))

    async def feedback(
        self,
        raw: bytes,
        *,
        door: str,
        principal: str,
        trusted: bool = False,
        many: bool = False,
        subject: str = FEEDBACK,
        stream_seq: int | None = None,
        deliveries: int = 1,
        dry: bool = False,
    ) -> Outcome:
        """Take a user's word; what a gateway says of its sender is believed.

        `dry`: say what would become of it, and keep nothing.
        """
        verdict = await self._look(Kind.FEEDBACK, raw)
        if dry and isinstance(verdict, Refused):
            return Outcome(None, rejected=Rejected(verdict.reason, verdict.detail))
        if not isinstance(verdict, PassedFeedback):
            return await self.bury(
                _refused(verdict), door=door, subject=subject, deliveries=deliveries,
                stream_seq=stream_seq, sender=NOBODY if door == GATEWAY else Sender(principal, many),
            )  # fmt: skip
        word = verdict.admitted
        if door != GATEWAY or not word.principal:
            word = replace(word, principal=principal, trusted=trusted, many=many)
        elif word.principal == OPERATOR and word.user_id:
            word = replace(word, trusted=True)
        if dry:
            return await self._tried(word)
        redacted = verdict.findings > 0
        self._metrics.redacted(verdict.findings)
        if self._optouts.opted_out(word.user_id):
            return self.dropped(door, word.feedback_id)
        taken = await self._store.take_feedback(
            word,
            now=self._clock(),
            announce=stream_seq is None or redacted,
            stream_seq=None if redacted else stream_seq,
        )
        if taken in _NO_WORD:
            reason, sentence = _NO_WORD[taken]
            refused = Refused(reason, sentence, digest(raw), cut(word.body.decode()), word.user_id)
            return await self.bury(
                refused, door=door, subject=subject, deliveries=deliveries, stream_seq=stream_seq,
                sender=Sender(word.principal, word.many),
            )  # fmt: skip
        self._metrics.taken(door, f"feedback_{taken}")
        if taken is Taken.STORED:
            self._stored()
        return Outcome(taken, id=word.feedback_id, erase=redacted or taken is Taken.ERASED)

    async def _tried(self, word: AdmittedFeedback) -> Outcome:
        """What would become of it."""
        if self._optouts.opted_out(word.user_id):
            return Outcome(Taken.OPTED_OUT, id=word.feedback_id)
        if not await self._store.speaks(word):
            return Outcome(None, rejected=Rejected(*_NO_WORD[Taken.NOT_YOURS]))
        return Outcome(Taken.DRY, id=word.feedback_id)

    def dropped(self, door: str, key: str) -> Outcome:
        """Its user does not want to be recorded."""
        self._metrics.taken(door, Taken.OPTED_OUT)
        return Outcome(Taken.OPTED_OUT, id=key, erase=True)

    async def bury(
        self, refused: Refused, *, door: str, subject: str, deliveries: int = 1,
        stream_seq: int | None = None, sender: Sender = NOBODY,
    ) -> Outcome:  # fmt: skip
        """Keep a dead letter of a message that can never be taken; one for each of the bus."""
        letter = DeadLetter(
            dead_id=self._letter_id(subject, stream_seq, refused),
            timestamp=self._clock(),
            subject=subject,
            reason=refused.reason.value,
            detail=refused.detail,
            deliveries=max(1, deliveries),
            payload=UNSET if refused.payload is None else refused.payload,
            sha256=refused.sha256,
        )
        await self._store.bury(letter, stage=STAGE, user_id=refused.user_id, sender=sender)
        self._metrics.refused(door, refused.reason)
        self._stored()
        log.info(
            "refused: %s",
            refused.detail,
            extra={"action": "refuse", "reason": refused.reason.value},
        )
        return Outcome(None, rejected=Rejected(refused.reason, refused.detail), erase=True)

    def _letter_id(self, subject: str, stream_seq: int | None, refused: Refused) -> UUID:
        """A message that comes again because its taker died before the ack has its letter already."""
        if stream_seq is None:
            return self._new_id()
        return uuid5(NAMESPACE_URL, f"{subject} {stream_seq} {refused.sha256}")


_NO_WORD = {
    Taken.CONFLICT: (Reason.CONFLICT, "This feedback id is known with other content."),
    Taken.NOT_YOURS: (
        Reason.NOT_YOURS,
        "This trajectory is another user's, or another key's: a key speaks for users whose trajectories it recorded.",
    ),
}
_NO_TRAJECTORY = {
    Taken.CONFLICT: (Reason.CONFLICT, "Trajectory {} is known with other content."),
    Taken.NOT_YOURS: (
        Reason.NOT_YOURS,
        "Trajectory {} is open, and another key has begun it: that key alone goes on with it.",
    ),
}


def _noted(unread: str) -> str:
    """It was taken all the same: nobody would send it again."""
    if not unread:
        return ""
    log.warning("taken without an outcome: %s", unread, extra={"action": "outcome_unread"})
    return f"{unread} It was taken, and counts as one whose outcome nobody states."


def _refused(verdict: Verdict) -> Refused:
    if isinstance(verdict, Refused):
        return verdict
    raise TypeError(f"a {type(verdict).__name__} came back for another kind of message")
