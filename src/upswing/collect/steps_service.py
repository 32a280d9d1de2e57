"""The step-wise door: start, steps, end, for agents that cannot keep a trajectory in memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Protocol
from uuid import UUID

from upswing.aside import Burial
from upswing.collect.look import refusal
from upswing.collect.service import STAGE, Intake, OptOuts, Outcome
from upswing.collect.stepwise import (
    LOOK_BACK,
    assemble,
    begin,
    check_same_end,
    clean_step,
    numbered,
    parse,
    step_number,
    unread_end,
)
from upswing.contracts import canonical
from upswing.errors import Conflict, Misuse, Rejected, Transient
from upswing.ports import OpenStep, OpenTrajectory, StoredTrajectory, Taken
from upswing.redact import Names, Redactor
from upswing.senders import BEGUN_BY, Sender

_REMEMBERED = 4096
"""Open trajectories of which we remember more than the store has; others are read from the steps."""
_RAW_LIMIT = 64 * 1024
"""Bytes of the last steps, as they were sent, that are remembered for one trajectory."""
_OPTED_OUT = canonical({"opted_out": True})
_DOOR = "steps"
_MANY = "_many"
"""In the head of an open trajectory: the key that opened it speaks for many users."""
_OURS = frozenset({BEGUN_BY, _MANY})


@dataclass(slots=True)
class _Memory:
    """What is known of an open trajectory beyond its stored steps; it never touches a disk.

    The last steps as they were sent: when a secret is cut in two and its first part is long
    enough to be taken for a whole one, only the raw text still shows that it goes on.
    """

    names: Names
    raw: deque[tuple[int, dict[str, Any], int]] = field(
        default_factory=lambda: deque(maxlen=LOOK_BACK)
    )

    def add(self, number: int, step: dict[str, Any], size: int) -> None:
        self.raw.append((number, step, size))
        while sum(each[2] for each in self.raw) > _RAW_LIMIT:
            self.raw.popleft()

    def earlier(self, stored: Sequence[OpenStep]) -> list[dict[str, Any]]:
        """The stored steps, each as it was sent where we still know that."""
        sent = {number: step for number, step, _ in self.raw}
        return [sent.get(step.step) or parse(step.body) for step in stored]


class Notebook(Protocol):
    """Where open trajectories are kept."""

    async def begin(
        self, trajectory_id: str, head: bytes, user_id: str | None, now: datetime
    ) -> Taken: ...

    async def find(
        self, trajectory_id: str, *, last: int | None = None
    ) -> OpenTrajectory | None: ...

    async def add(
        self, trajectory_id: str, step: OpenStep, rewritten: tuple[OpenStep, ...], now: datetime
    ) -> Taken: ...

    async def drop(self, trajectory_id: str, head: bytes) -> None: ...

    async def close(self, trajectory_id: str) -> None: ...

    async def stale(self, before: datetime, limit: int = 100) -> list[str]: ...


class FindsTrajectories(Protocol):
    async def trajectory(self, trajectory_id: str) -> StoredTrajectory | None: ...


class StepwiseDoor:
    """Takes a trajectory in pieces; every answer means that the piece is durable and clean."""

    def __init__(
        self,
        intake: Intake,
        notebook: Notebook,
        store: FindsTrajectories,
        optouts: OptOuts,
        redactor: Redactor,
        *,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        burial: Burial | None = None,
    ) -> None:
        self._burial = burial or Burial()
        self._intake = intake
        self._notebook = notebook
        self._store = store
        self._optouts = optouts
        self._redactor = redactor
        self._clock = clock
        self._new_id = new_id
        self._memories: OrderedDict[str, _Memory] = OrderedDict()

    async def start(self, raw: bytes, sender: Sender | None = None) -> Outcome:
        """Open a trajectory; from then on it is this key's."""
        sender = sender or Sender()
        try:
            told = parse(raw)
            start = begin(told, self._redactor, new_id=str(self._new_id()), now=self._clock())
            out = self._optouts.opted_out(start.user_id)
            await self._check_free(start.trajectory_id, sender)
            mine = {BEGUN_BY: sender.key_id, _MANY: sender.many} if sender.key_id else {}
            head = _OPTED_OUT if out else canonical({**start.head, **mine})
            taken = await self._notebook.begin(
                start.trajectory_id, head, start.user_id, self._clock()
            )
            if taken is Taken.CONFLICT:
                raise Conflict(f"Trajectory {start.trajectory_id} is open with another start.")
        except Rejected as error:
            return await self._refuse(raw, error, "start")
        if out:
            return self._intake.dropped(_DOOR, start.trajectory_id)
        return Outcome(taken, id=start.trajectory_id)

    async def step(self, trajectory_id: str, raw: bytes, key: str | None = None) -> Outcome:
        """Add a step; None as `key` is whoever may speak for all."""
        known = await self._open(trajectory_id, key)
        if self._optouts.opted_out(known.user_id) and known.head != _OPTED_OUT:
            await self._notebook.drop(trajectory_id, _OPTED_OUT)
            return self._intake.dropped(_DOOR, trajectory_id)
        if known.head == _OPTED_OUT:
            return Outcome(Taken.OPTED_OUT, id=trajectory_id)
        try:
            taken = await self._add(trajectory_id, known, raw)
        except Rejected as error:
            return await self._refuse(raw, error, f"{trajectory_id}/steps")
        return Outcome(taken, id=trajectory_id)

    async def end(self, trajectory_id: str, raw: bytes, key: str | None = None) -> Outcome:
        """Close it: the steps become a trajectory and take the way of every other."""
        if stored := await self._store.trajectory(trajectory_id):
            if key is not None and stored.admitted.key_id not in {"", key}:
                raise _not_open(trajectory_id)
            if await self._notebook.find(trajectory_id) is not None:
                await self._open(trajectory_id, key)  # another key's stays open
                await self._notebook.close(trajectory_id)
            try:
                check_same_end(parse(raw or b"{}"), stored.admitted.body)
            except Rejected as error:
                return await self._refuse(raw, error, f"{trajectory_id}/end")
            return Outcome(Taken.KNOWN, id=trajectory_id)
        known = await self._open(trajectory_id, key)
        if known.head == _OPTED_OUT:
            await self._notebook.close(trajectory_id)
            return Outcome(Taken.OPTED_OUT, id=trajectory_id)
        try:
            end = parse(raw or b"{}")
            steps = [parse(step.body) for step in known.steps]
            head = parse(known.head)
            told = {name: value for name, value in head.items() if name not in _OURS}
            whole = assemble(told, steps, end, self._clock())
        except Rejected as error:
            return await self._refuse(raw, error, f"{trajectory_id}/end")
        outcome = await self._intake.trajectory(
            whole, door=_DOOR, subject="/v1/trajectories/end", sender=_sender_of(head)
        )
        if outcome.taken:
            await self._notebook.close(trajectory_id)
            self._memories.pop(trajectory_id, None)
        return replace(outcome, note=outcome.note or unread_end(end))

    async def end_stale(self, older_than: timedelta) -> int:
        """End what nobody has added to for long; its steps are worth keeping."""
        stale = await self._notebook.stale(self._clock() - older_than)
        await self._burial.each(STAGE, "open_trajectories", stale, self._end_one)
        return len(stale)

    async def _end_one(self, trajectory_id: str) -> None:
        """One that cannot be ended is buried with its steps and closed: it is not met again."""
        error: Exception | None
        try:
            error = (await self.end(trajectory_id, b'{"final_status": "timeout"}')).rejected
        except (Transient, OSError):
            raise
        except Exception as broken:  # noqa: BLE001 - it is told with its traceback
            error = broken
        if error is not None:
            told = await self._told_so_far(trajectory_id)
            self._burial.aside.note(STAGE, "open_trajectories", trajectory_id, told, error)
            await self._burial.bury()
            await self._notebook.close(trajectory_id)

    async def _told_so_far(self, trajectory_id: str) -> bytes:
        """Head and steps as they are kept, for whoever wants to know what was lost."""
        try:
            known = await self._open(trajectory_id)
        except (TypeError, Misuse):
            return trajectory_id.encode()
        return b"\n".join([known.head, *(step.body for step in known.steps)])

    async def _add(self, trajectory_id: str, known: OpenTrajectory, raw: bytes) -> Taken:
        memory = self._memory_of(trajectory_id, known)
        recent = known.steps[-LOOK_BACK:]
        step = numbered(
            parse(raw),
            now=self._clock(),
            next_number=known.steps[-1].step + 1 if known.steps else 1,
        )
        place = step_number(step)
        clean = clean_step(step, memory.earlier(recent), self._redactor, memory.names)
        rewritten = [
            OpenStep(old.step, body, old.raw_hash)
            for old, tree in zip(recent, clean.earlier, strict=True)
            if (body := canonical(tree)) != old.body
        ]
        taken = await self._notebook.add(
            trajectory_id,
            OpenStep(place, canonical(clean.step), sha256(raw).digest()),
            tuple(rewritten),
            self._clock(),
        )
        if taken is Taken.CONFLICT:
            raise Conflict(
                f"Step {place} of trajectory {trajectory_id} is known with other content."
            )
        if taken is Taken.STORED:
            memory.add(place, step, len(raw))
        return taken

    def _memory_of(self, trajectory_id: str, known: OpenTrajectory) -> _Memory:
        """After a restart the placeholders go on after the highest one that was given."""
        memory = self._memories.get(trajectory_id)
        if memory is None:
            told = [_text(known.head), *(_text(step.body) for step in known.steps)]
            memory = self._memories[trajectory_id] = _Memory(Names.seen_in(told))
            if len(self._memories) > _REMEMBERED:
                self._memories.popitem(last=False)
        self._memories.move_to_end(trajectory_id)
        return memory

    async def _open(self, trajectory_id: str, key: str | None = None) -> OpenTrajectory:
        """What is open by this name; another key's is as if it were not there."""
        known = await self._notebook.find(trajectory_id)
        if known is None or (key is not None and parse(known.head).get(BEGUN_BY, key) != key):
            raise _not_open(trajectory_id)
        return known

    async def _check_free(self, trajectory_id: str, sender: Sender) -> None:
        """`Conflict` when another key has told a trajectory of this name already."""
        stored = await self._store.trajectory(trajectory_id)
        if stored and not sender.operator and stored.admitted.key_id not in {"", sender.key_id}:
            raise Conflict(f"Trajectory {trajectory_id} is known; take another id.")

    async def _refuse(self, raw: bytes, error: Rejected, where: str) -> Outcome:
        return await self._intake.bury(
            refusal(raw, error, self._redactor), door=_DOOR, subject=f"/v1/trajectories/{where}"
        )


def _not_open(trajectory_id: str) -> Misuse:
    return Misuse(f"No trajectory {trajectory_id} is open: POST /v1/trajectories/start opens one.")


def _sender_of(head: Mapping[str, Any]) -> Sender:
    """Who opened it, whoever ends it."""
    return Sender(str(head.get(BEGUN_BY) or ""), many=head.get(_MANY, True) is True)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
