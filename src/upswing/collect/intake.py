"""How does what agents send become rows? Read, decide, store, answer, in that order.

`Intake` takes one message from any door; `collect.consumer` feeds it from the bus.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import NAMESPACE_URL, UUID, uuid5

import msgspec
from msgspec import UNSET

from upswing.collect.core.dead_letter import cut
from upswing.collect.core.evaluate import MessageKind, Passed, PassedFeedback, Verdict, digest
from upswing.collect.metrics import UNAVAILABLE, CollectMetrics
from upswing.contracts import DeadLetter
from upswing.contracts.ids import is_gateway_id
from upswing.contracts.topics import FEEDBACK, TRAJECTORY
from upswing.contracts.typed import json_decoder
from upswing.errors import Reason, Rejected, Transient
from upswing.infra.sql.store import SqlStore
from upswing.infra.sql.users import Users
from upswing.principals import GATEWAY, NOBODY, OPERATOR, Sender
from upswing.records import Admitted, AdmittedFeedback, RejectedMessage, Taken

log = logging.getLogger(__name__)
STAGE = "collect"
CROWD = 24
"""Messages in hand at once that make a crowd."""
_CLOCK_SLACK = timedelta(minutes=5)
_UNKNOWN = Sender()
_ANSWERED = frozenset({"http", "steps"})
"""Doors whose sender hears why something is refused, and can send it again."""


class _Typed(msgspec.Struct):
    type: str


_FEEDBACK_TYPE = json_decoder(_Typed)


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What became of a message, and whether its raw form must be erased."""

    taken: Taken | None
    rejected: Rejected | None = None
    id: str | None = None
    erase: bool = False
    note: str = ""
    """What its sender should know although it was taken."""

    @property
    def status(self) -> str:
        return (
            self.taken.value
            if self.taken
            else (self.rejected.reason.value if self.rejected else "")
        )


class Intake:
    """Takes one message at a time from any door; the answer means durable."""

    def __init__(
        self,
        store: SqlStore,
        optouts: Users,
        evaluate: Callable[[MessageKind, bytes], Awaitable[Verdict]],
        metrics: CollectMetrics,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._optouts = optouts
        self._evaluate = evaluate
        self._metrics = metrics
        self._clock = clock
        self._new_id = new_id
        self._stored = stored
        self._in_progress = 0

    @property
    def crowded(self) -> bool:
        """Many wait for their acknowledgement; what can wait should."""
        return self._in_progress > CROWD

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
        gateway_ids: bool = False,
    ) -> IntakeResult:
        """Take a trajectory: stored once, or dropped, or a dead letter with its reason.

        `gateway_ids`: its id may be one that only gateways give, as it may of a gateway's own and an operator's.
        """
        self._in_progress += 1
        gateway_ids = gateway_ids or door == GATEWAY or sender.operator
        try:
            return await self._trajectory(
                raw, door, subject, stream_seq, deliveries, sender, gateway_ids=gateway_ids
            )
        except Transient:
            self._metrics.taken(door, UNAVAILABLE)
            raise
        finally:
            self._in_progress -= 1

    async def _trajectory(
        self,
        raw: bytes,
        door: str,
        subject: str,
        stream_seq: int | None,
        deliveries: int,
        sender: Sender,
        *,
        gateway_ids: bool,
    ) -> IntakeResult:
        verdict = await self._evaluate(MessageKind.TRAJECTORY, raw)
        if not isinstance(verdict, Passed):
            return await self.dead_letter(
                _require_rejected(verdict),
                door=door,
                subject=subject,
                deliveries=deliveries,
                stream_seq=stream_seq,
                sender=NOBODY if door == GATEWAY else sender,
            )
        row, redacted = verdict.admitted, verdict.findings > 0
        if door != GATEWAY:  # only a gateway's word on whose key it was is believed
            row = replace(row, key_id=sender.key_id, many=sender.many)
        whose = Sender(row.key_id, many=row.many)
        self._metrics.redacted(verdict.findings)
        if self._optouts.opted_out(row.user_id):
            return self.drop_opted_out(door, row.trajectory_id)
        if verdict.unread and door in _ANSWERED:
            unread = RejectedMessage(
                Reason.SCHEMA, verdict.unread, digest(raw), cut(row.body.decode()), row.user_id
            )
            return await self.dead_letter(
                unread, door=door, subject=subject, deliveries=deliveries, sender=whose
            )
        refusal: tuple[Reason, str] | None
        if is_gateway_id(row.trajectory_id) and not gateway_ids:
            taken = Taken.KNOWN if await self._is_stored(row) else Taken.NOT_YOURS
            refusal = (Reason.NOT_YOURS, GATEWAYS_ID) if taken is Taken.NOT_YOURS else None
        else:
            taken = await self._store.take(
                row,
                door=door,
                now=self._clock(),
                stream_seq=None if redacted else stream_seq,
                announce=stream_seq is None or redacted,
                overrides=sender.operator,
            )
            refusal = _REJECTED_TRAJECTORY.get(taken)
        if refusal is not None:
            reason, sentence = refusal
            detail = sentence.format(row.trajectory_id)
            rejected = RejectedMessage(
                reason, detail, digest(raw), cut(row.body.decode()), row.user_id
            )
            return await self.dead_letter(
                rejected,
                door=door,
                subject=subject,
                deliveries=deliveries,
                stream_seq=stream_seq,
                sender=whose,
            )
        self._metrics.taken(door, taken)
        if taken is Taken.STORED:
            self._metrics.stored(row.agent_type, row.domain, row.turns)
            self._stored()
        erase = redacted or taken is Taken.ERASED
        note = _unread_note(verdict.unread) or _clock_note(row.ended, self._clock())
        return IntakeResult(taken, id=row.trajectory_id, erase=erase, note=note)

    async def _is_stored(self, row: Admitted) -> bool:
        """Is it stored already, with the same content?"""
        stored = await self._store.trajectory(row.trajectory_id)
        return stored is not None and stored.admitted.content_hash == row.content_hash

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
    ) -> IntakeResult:
        """Take a user's word; what a gateway says of its sender is believed.

        `dry`: say what would become of it, and keep nothing.
        """
        verdict = await self._evaluate(MessageKind.FEEDBACK, raw)
        if dry and isinstance(verdict, RejectedMessage):
            return IntakeResult(None, rejected=Rejected(verdict.reason, verdict.detail))
        if not isinstance(verdict, PassedFeedback):
            return await self.dead_letter(
                _require_rejected(verdict),
                door=door,
                subject=subject,
                deliveries=deliveries,
                stream_seq=stream_seq,
                sender=NOBODY if door == GATEWAY else Sender(principal, many),
            )
        feedback = verdict.admitted
        if door != GATEWAY or not feedback.principal:
            feedback = replace(feedback, principal=principal, trusted=trusted, many=many)
        elif feedback.principal == OPERATOR and feedback.user_id:
            feedback = replace(feedback, trusted=True)
        if dry:
            return await self._dry_run(feedback)
        redacted = verdict.findings > 0
        self._metrics.redacted(verdict.findings)
        if self._optouts.opted_out(feedback.user_id):
            return self.drop_opted_out(door, feedback.feedback_id)
        taken = await self._store.take_feedback(
            feedback,
            now=self._clock(),
            announce=stream_seq is None or redacted,
            stream_seq=None if redacted else stream_seq,
        )
        if taken in _REJECTED_FEEDBACK:
            reason, sentence = _REJECTED_FEEDBACK[taken]
            rejected = RejectedMessage(
                reason, sentence, digest(raw), cut(feedback.body.decode()), feedback.user_id
            )
            return await self.dead_letter(
                rejected,
                door=door,
                subject=subject,
                deliveries=deliveries,
                stream_seq=stream_seq,
                sender=Sender(feedback.principal, feedback.many),
            )
        self._metrics.taken(door, f"feedback_{taken}")
        if taken is Taken.STORED:
            self._metrics.feedback_stored(_FEEDBACK_TYPE.decode(feedback.body).type)
            self._stored()
        return IntakeResult(taken, id=feedback.feedback_id, erase=redacted or taken is Taken.ERASED)

    async def _dry_run(self, feedback: AdmittedFeedback) -> IntakeResult:
        """What would become of it."""
        if self._optouts.opted_out(feedback.user_id):
            return IntakeResult(Taken.OPTED_OUT, id=feedback.feedback_id)
        if not await self._store.may_feedback_count(feedback):
            return IntakeResult(None, rejected=Rejected(*_REJECTED_FEEDBACK[Taken.NOT_YOURS]))
        return IntakeResult(Taken.DRY, id=feedback.feedback_id)

    def drop_opted_out(self, door: str, key: str) -> IntakeResult:
        """Its user does not want to be recorded."""
        self._metrics.taken(door, Taken.OPTED_OUT)
        return IntakeResult(Taken.OPTED_OUT, id=key, erase=True)

    async def dead_letter(
        self,
        rejected: RejectedMessage,
        *,
        door: str,
        subject: str,
        deliveries: int = 1,
        stream_seq: int | None = None,
        sender: Sender = NOBODY,
    ) -> IntakeResult:
        """Keep a dead letter of a message that can never be taken; one for each of the bus."""
        letter = DeadLetter(
            dead_id=self._letter_id(subject, stream_seq, rejected),
            timestamp=self._clock(),
            subject=subject,
            reason=rejected.reason.value,
            detail=rejected.detail,
            deliveries=max(1, deliveries),
            payload=UNSET if rejected.payload is None else rejected.payload,
            sha256=rejected.sha256,
        )
        await self._store.add_dead_letter(
            letter, stage=STAGE, user_id=rejected.user_id, sender=sender
        )
        self._metrics.refused(door, rejected.reason)
        self._stored()
        log.info(
            "refused: %s",
            rejected.detail,
            extra={"action": "refuse", "reason": rejected.reason.value},
        )
        return IntakeResult(None, rejected=Rejected(rejected.reason, rejected.detail), erase=True)

    def _letter_id(self, subject: str, stream_seq: int | None, rejected: RejectedMessage) -> UUID:
        """A message that comes again because its taker died before the ack has its letter already."""
        if stream_seq is None:
            return self._new_id()
        return uuid5(NAMESPACE_URL, f"{subject} {stream_seq} {rejected.sha256}")


GATEWAYS_ID = "Trajectory {} has an id of the form that only gateways give: take another, such as a random UUID."
_REJECTED_FEEDBACK = {
    Taken.CONFLICT: (Reason.CONFLICT, "This feedback id is known with other content."),
    Taken.NOT_YOURS: (
        Reason.NOT_YOURS,
        "This trajectory is another user's, or another key's: a key speaks for users whose trajectories it recorded.",
    ),
}
_REJECTED_TRAJECTORY = {
    Taken.CONFLICT: (Reason.CONFLICT, "Trajectory {} is known with other content."),
    Taken.NOT_YOURS: (
        Reason.NOT_YOURS,
        "Trajectory {} is open, and another key has begun it: that key alone goes on with it.",
    ),
}


def _unread_note(unread: str) -> str:
    """It was taken all the same: nobody would send it again."""
    if not unread:
        return ""
    log.warning("taken without an outcome: %s", unread, extra={"action": "outcome_unread"})
    return f"{unread} It was taken, and counts as one whose outcome nobody states."


def _clock_note(ended: datetime, now: datetime) -> str:
    """A sender whose clock is ahead, or that writes local time as UTC, hears so."""
    if ended <= now + _CLOCK_SLACK:
        return ""
    ahead = f"{(ended - now).total_seconds() / 3600:.1f} h"
    log.info("a trajectory's clock is %s ahead", ahead, extra={"action": "clock_ahead"})
    return (
        f"Its end lies {ahead} ahead of this clock (local time written as UTC?). "
        "It counts as ended when it was stored."
    )


def _require_rejected(verdict: Verdict) -> RejectedMessage:
    if isinstance(verdict, RejectedMessage):
        return verdict
    raise TypeError(f"a {type(verdict).__name__} came back for another kind of message")
