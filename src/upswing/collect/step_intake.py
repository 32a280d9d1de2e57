"""How does a trajectory arrive step by step? Start, steps, end, for agents that cannot keep it in memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TypeVar
from uuid import UUID

import msgspec

from upswing.collect.core.step_evaluation import (
    MANY,
    RAW_LIMIT,
    AddStepRequest,
    CleanedStep,
    EndedSteps,
    EndRequest,
    OpenedStart,
    RefuseRequest,
    StartRequest,
    StepwiseRequest,
    StepwiseVerdict,
)
from upswing.collect.core.stepwise import LOOK_BACK, check_same_end, parse
from upswing.collect.intake import GATEWAYS_ID, STAGE, Intake, IntakeResult
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.contracts import canonical
from upswing.contracts.ids import is_gateway_id
from upswing.contracts.steps import uuid_for_external_id
from upswing.contracts.typed import json_decoder
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.sql.store import SqlStore
from upswing.infra.sql.users import Users
from upswing.principals import BEGUN_BY, Sender
from upswing.records import OpenStep, OpenTrajectory, RejectedMessage, Taken

_REMEMBERED = 4096
"""Open trajectories of which we remember more than the store has; others are read from the steps."""
_REMEMBERED_BYTES = 64 * 1024 * 1024
"""What is remembered of all of them together."""
_OPTED_OUT = canonical({"opted_out": True})
_INGRESS = "steps"
V = TypeVar("V", OpenedStart, CleanedStep, EndedSteps, RejectedMessage)


class _Opener(msgspec.Struct, frozen=True):
    """Who opened a trajectory, as its head says; the rest of the head is passed over."""

    key_id: str | None = msgspec.field(default=None, name=BEGUN_BY)
    many: bool = msgspec.field(default=True, name=MANY)


_OPENERS = json_decoder(_Opener)


@dataclass(slots=True)
class _Memory:
    """What is known of an open trajectory beyond its stored steps; it never touches a disk.

    The last steps as they were sent: when a secret is cut in two and its first part is long
    enough to be taken for a whole one, only the raw text still shows that it goes on.
    """

    names: bytes
    raw: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=LOOK_BACK))

    @property
    def size(self) -> int:
        return len(self.names) + sum(len(sent) for _, sent in self.raw)

    def add(self, number: int, sent: bytes) -> None:
        """`sent` is empty where the step is too long to be remembered."""
        if not sent:
            self.raw.clear()
            return
        self.raw.append((number, sent))
        while sum(len(each) for _, each in self.raw) > RAW_LIMIT:
            self.raw.popleft()

    def earlier(self, stored: Sequence[OpenStep]) -> list[bytes]:
        """The stored steps, each as it was sent where we still know that."""
        sent = dict(self.raw)
        return [sent.get(step.step) or step.body for step in stored]


class StepwiseIntake:
    """Takes a trajectory in steps; every reply means that the step is durable and clean."""

    def __init__(
        self,
        intake: Intake,
        open_store: OpenTrajectories,
        store: SqlStore,
        optouts: Users,
        evaluate: Callable[[StepwiseRequest], Awaitable[StepwiseVerdict]],
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        dead_letters: DeadLetterWriter | None = None,
    ) -> None:
        self._dead_letters = dead_letters or DeadLetterWriter()
        self._intake = intake
        self._open_store = open_store
        self._store = store
        self._optouts = optouts
        self._evaluate = evaluate
        self._clock = clock
        self._new_id = new_id
        self._memories: OrderedDict[str, _Memory] = OrderedDict()
        self._remembered = 0

    async def start(self, raw: bytes, sender: Sender | None = None) -> IntakeResult:
        """Open a trajectory; from then on it is this key's."""
        sender = sender or Sender()
        request = StartRequest(
            raw,
            str(self._new_id()),
            self._clock(),
            sender.key_id,
            many=sender.many,
            scoped=not sender.operator,
        )
        start = await self._verdict(OpenedStart, request)
        if isinstance(start, OpenedStart) and await self._began_unscoped(start, sender):
            request = msgspec.structs.replace(request, scoped=False)
            start = await self._verdict(OpenedStart, request)
        if isinstance(start, RejectedMessage):
            return await self._dead_letter(start, "start", sender)
        out = self._optouts.opted_out(start.user_id)
        try:
            await self._check_free(start.trajectory_id, sender)
            taken = await self._open_store.begin(
                start.trajectory_id,
                _OPTED_OUT if out else start.head,
                start.user_id,
                self._clock(),
            )
            if taken is Taken.CONFLICT:
                raise Conflict(f"Trajectory {start.trajectory_id} is open with another start.")
        except Rejected as error:
            return await self._reject(raw, error, "start", sender)
        if out:
            return self._intake.drop_opted_out(_INGRESS, start.trajectory_id)
        return IntakeResult(taken, id=start.trajectory_id)

    async def resolve_id(self, name: str, key: str | None) -> str:
        """The id of what this key calls so; None as `key` is whoever may speak for all."""
        shared = uuid_for_external_id(name)
        own = shared if key is None else uuid_for_external_id(name, key)
        if own == shared or await self._open_store.find(own, last=0):
            return own
        return own if await self._store.trajectory(own) else shared

    async def _began_unscoped(self, start: OpenedStart, sender: Sender) -> bool:
        """A loop of an earlier version has begun it for this key, with the id of its name alone."""
        if start.shared_id == start.trajectory_id:
            return False
        if stored := await self._store.trajectory(start.shared_id):
            return stored.admitted.key_id == sender.key_id
        known = await self._open_store.find(start.shared_id, last=0)
        return known is not None and _opener(known.head).key_id == sender.key_id

    async def step(self, trajectory_id: str, raw: bytes, key: str | None = None) -> IntakeResult:
        """Add a step; None as `key` is whoever may speak for all."""
        known = await self._require_open(trajectory_id, key)
        if self._optouts.opted_out(known.user_id) and known.head != _OPTED_OUT:
            await self._open_store.drop(trajectory_id, _OPTED_OUT)
            return self._intake.drop_opted_out(_INGRESS, trajectory_id)
        if known.head == _OPTED_OUT:
            return IntakeResult(Taken.OPTED_OUT, id=trajectory_id)
        try:
            added = await self._add(trajectory_id, known, raw)
        except Rejected as error:
            return await self._reject(raw, error, f"{trajectory_id}/steps", _sender_of(known.head))
        if isinstance(added, RejectedMessage):
            return await self._dead_letter(added, f"{trajectory_id}/steps", _sender_of(known.head))
        return IntakeResult(added, id=trajectory_id)

    async def end(self, trajectory_id: str, raw: bytes, key: str | None = None) -> IntakeResult:
        """Close it: the steps become a trajectory and take the way of every other."""
        if stored := await self._store.trajectory(trajectory_id):
            if key is not None and stored.admitted.key_id not in {"", key}:
                raise _not_open(trajectory_id)
            if await self._open_store.find(trajectory_id) is not None:
                await self._require_open(trajectory_id, key)  # another key's stays open
                await self._open_store.close(trajectory_id)
            try:
                check_same_end(parse(raw or b"{}"), stored.admitted.body)
            except Rejected as error:
                return await self._reject(
                    raw, error, f"{trajectory_id}/end", Sender(key or "", many=False)
                )
            return IntakeResult(Taken.KNOWN, id=trajectory_id)
        known = await self._require_open(trajectory_id, key)
        if known.head == _OPTED_OUT:
            await self._open_store.close(trajectory_id)
            return IntakeResult(Taken.OPTED_OUT, id=trajectory_id)
        steps = [step.body for step in known.steps]
        ended = await self._verdict(EndedSteps, EndRequest(raw, self._clock(), known.head, steps))
        if isinstance(ended, RejectedMessage):
            return await self._dead_letter(ended, f"{trajectory_id}/end", _sender_of(known.head))
        outcome = await self._intake.trajectory(
            ended.whole,
            door=_INGRESS,
            subject="/v1/trajectories/end",
            sender=_sender_of(known.head),
        )
        if outcome.taken:
            await self._open_store.close(trajectory_id)
            self._forget(trajectory_id)
        return replace(outcome, note=outcome.note or ended.note)

    async def end_stale(self, older_than: timedelta) -> int:
        """End what nobody has added to for long; its steps are worth keeping."""
        stale = await self._open_store.stale(self._clock() - older_than)
        await self._dead_letters.process_each(
            STAGE, "open_trajectories", stale, self._end_or_quarantine
        )
        return len(stale)

    async def _end_or_quarantine(self, trajectory_id: str) -> None:
        """One that cannot be ended is buried with its steps and closed: it is not met again."""
        error: Exception | None
        try:
            error = (await self.end(trajectory_id, b'{"final_status": "timeout"}')).rejected
        except (Transient, OSError):
            raise
        except Exception as broken:  # noqa: BLE001 - it is told with its traceback
            error = broken
        if error is not None:
            content = await self._stored_so_far(trajectory_id)
            self._dead_letters.bad_rows.add(
                STAGE, "open_trajectories", trajectory_id, content, error
            )
            await self._dead_letters.flush()
            await self._open_store.close(trajectory_id)

    async def _stored_so_far(self, trajectory_id: str) -> bytes:
        """Head and steps as they are kept, for whoever wants to know what was lost."""
        try:
            known = await self._require_open(trajectory_id)
        except (TypeError, Misuse):
            return trajectory_id.encode()
        return b"\n".join([known.head, *(step.body for step in known.steps)])

    async def _add(
        self, trajectory_id: str, known: OpenTrajectory, raw: bytes
    ) -> Taken | RejectedMessage:
        memory = self._memories.get(trajectory_id)
        recent = known.steps[-LOOK_BACK:]
        request = AddStepRequest(
            raw,
            self._clock(),
            next_number=known.steps[-1].step + 1 if known.steps else 1,
            earlier=memory.earlier(recent) if memory else [step.body for step in recent],
            names=memory.names if memory else None,
            # after a restart the placeholders go on after the highest one that was given
            seen=[] if memory else [known.head, *(step.body for step in known.steps)],
        )
        clean = await self._verdict(CleanedStep, request)
        if isinstance(clean, RejectedMessage):
            return clean
        rewritten = [
            OpenStep(old.step, body, old.raw_hash)
            for old, body in zip(recent, clean.earlier, strict=True)
            if body != old.body
        ]
        taken = await self._open_store.add(
            trajectory_id,
            OpenStep(clean.number, clean.body, sha256(raw).digest()),
            tuple(rewritten),
            self._clock(),
        )
        if taken is Taken.CONFLICT:
            raise Conflict(
                f"Step {clean.number} of trajectory {trajectory_id} is known with other content."
            )
        if taken is Taken.STORED:
            self._remember(trajectory_id, clean)
        return taken

    def _remember(self, trajectory_id: str, clean: CleanedStep) -> None:
        memory = self._memories.get(trajectory_id) or _Memory(clean.names)
        self._forget(trajectory_id)
        memory.names = clean.names
        memory.add(clean.number, clean.sent)
        self._memories[trajectory_id] = memory
        self._remembered += memory.size
        while len(self._memories) > _REMEMBERED or self._remembered > _REMEMBERED_BYTES:
            self._forget(next(iter(self._memories)))

    def _forget(self, trajectory_id: str) -> None:
        if memory := self._memories.pop(trajectory_id, None):
            self._remembered -= memory.size

    async def _require_open(self, trajectory_id: str, key: str | None = None) -> OpenTrajectory:
        """What is open by this name; another key's is as if it were not there."""
        known = await self._open_store.find(trajectory_id)
        if known is None or (key is not None and _opener(known.head).key_id not in {None, key}):
            raise _not_open(trajectory_id)
        return known

    async def _check_free(self, trajectory_id: str, sender: Sender) -> None:
        """`Conflict` when another key has told a trajectory of this name already; a gateway's id is nobody else's."""
        if is_gateway_id(trajectory_id):
            raise Rejected(Reason.NOT_YOURS, GATEWAYS_ID.format(trajectory_id))
        stored = await self._store.trajectory(trajectory_id)
        if stored and not sender.operator and stored.admitted.key_id not in {"", sender.key_id}:
            raise Conflict(f"Trajectory {trajectory_id} is known; take another id.")

    async def _verdict(self, kind: type[V], request: StepwiseRequest) -> V | RejectedMessage:
        verdict = await self._evaluate(request)
        if not isinstance(verdict, kind | RejectedMessage):
            raise TypeError(f"a {type(verdict).__name__} came back for another kind of request")
        return verdict

    async def _reject(
        self, raw: bytes, error: Rejected, where: str, sender: Sender
    ) -> IntakeResult:
        request = RefuseRequest(raw, error.reason, error.detail)
        return await self._dead_letter(await self._verdict(RejectedMessage, request), where, sender)

    async def _dead_letter(
        self, refused: RejectedMessage, where: str, sender: Sender
    ) -> IntakeResult:
        return await self._intake.dead_letter(
            refused, door=_INGRESS, subject=f"/v1/trajectories/{where}", sender=sender
        )


def _not_open(trajectory_id: str) -> Misuse:
    return Misuse(f"No trajectory {trajectory_id} is open: POST /v1/trajectories/start opens one.")


def _opener(head: bytes) -> _Opener:
    return _OPENERS.decode(head)


def _sender_of(head: bytes) -> Sender:
    """Who opened it, whoever ends it."""
    opener = _opener(head)
    return Sender(opener.key_id or "", many=opener.many)
