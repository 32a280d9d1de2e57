"""Who looks at a message, and where? In children of ours, so that one that kills its reader takes no loop along."""

from __future__ import annotations

import os

import msgspec

from upswing.adapters.children import Children
from upswing.collect.look import Kind, Refused, Verdict, look
from upswing.collect.service import Intake, Outcome
from upswing.collect.worker import VERDICTS, limits_of, question, redactor_of
from upswing.config import Settings
from upswing.contracts.topics import GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY
from upswing.errors import Misuse
from upswing.ports import BUS, Carried
from upswing.redact import Redactor


def make_redactor(settings: Settings) -> Redactor:
    """The built-in rules and the user's own."""
    try:
        return redactor_of(settings)
    except ValueError as error:
        raise Misuse(f"A redaction rule of the config cannot be used: {error}") from None


def workers_for(cores: int) -> int:
    """How many children look at messages: one per core, four at most.

    >>> [workers_for(cores) for cores in (1, 2, 64)]
    [1, 2, 4]
    """
    return max(1, min(4, cores))


class Looking:
    """Decodes, validates and redacts what comes in."""

    def __init__(self, settings: Settings, redactor: Redactor, *, here: bool) -> None:
        """`here`: in this process, because the redactor is somebody's own and cannot move."""
        self._redactor, self._limits = redactor, limits_of(settings)
        greeting = question("s", msgspec.msgpack.encode(settings))
        count = workers_for(os.cpu_count() or 1)
        self._children = None if here else Children(count, "upswing.collect.worker", greeting)

    async def start(self) -> None:
        if self._children:
            await self._children.start()

    async def stop(self) -> None:
        if self._children:
            await self._children.stop()

    async def __call__(self, kind: Kind, raw: bytes) -> Verdict:
        if self._children is None or len(raw) > self._limits.max_bytes:
            # A message that is too long need not be sent over to be told so.
            return look(kind, raw, self._redactor, self._limits)
        verdict: Verdict = VERDICTS.decode(await self._children.ask(question(kind, raw)))
        return verdict


class Takers:
    """What the bus carries, on its way into the intake."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def trajectory(self, carried: Carried) -> Outcome:
        return await self._intake.trajectory(
            carried.payload,
            door=door_of(carried.subject),
            subject=carried.subject,
            stream_seq=carried.seq,
            deliveries=carried.deliveries,
        )

    async def feedback(self, carried: Carried) -> Outcome:
        return await self._intake.feedback(
            carried.payload,
            door=door_of(carried.subject),
            principal="gateway" if door_of(carried.subject) == "gateway" else BUS,
            subject=carried.subject,
            stream_seq=carried.seq,
            deliveries=carried.deliveries,
        )

    async def bury(self, carried: Carried, refused: Refused) -> Outcome:
        return await self._intake.bury(
            refused, door=door_of(carried.subject), subject=carried.subject,
            deliveries=carried.deliveries, stream_seq=carried.seq,
        )  # fmt: skip


def door_of(subject: str) -> str:
    """By which door a message came. Only gateways may publish on theirs; what a message says of itself counts nothing.

    >>> door_of("agent.rl.gateway.trajectory.v1"), door_of("agent.rl.trajectory.v1")
    ('gateway', 'nats')
    """
    return "gateway" if subject in {GATEWAY_TRAJECTORY, GATEWAY_FEEDBACK} else "nats"
