"""Who looks at a message, and where? In children of ours, so that one that kills its reader takes no loop along."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import msgspec

from upswing.adapters.children import Children
from upswing.collect.look import Kind, Refused, Verdict, look
from upswing.collect.service import Intake, Outcome
from upswing.collect.worker import VERDICTS, limits_of, question, redactor_of
from upswing.config import Settings
from upswing.contracts.topics import GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY
from upswing.errors import Misuse
from upswing.ports import Carried
from upswing.redact import Redactor
from upswing.senders import BUS, GATEWAY, Sender

_OWN_HEADER = re.compile(r"Nats-Msg-Id: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""As the recorder of an agent sends it with every message."""
_HEADERS = 1000
"""Characters; longer ones are not read but erased with their message."""


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

    def __init__(self, intake: Intake, redactor: Redactor) -> None:
        self._intake, self._redactor = intake, redactor

    async def trajectory(self, carried: Carried) -> Outcome:
        outcome = await self._intake.trajectory(
            carried.payload,
            door=door_of(carried.subject),
            subject=carried.subject,
            stream_seq=carried.seq,
            deliveries=carried.deliveries,
            sender=Sender(BUS, many=False),
        )
        return self._with_headers(carried, outcome)

    async def feedback(self, carried: Carried) -> Outcome:
        by_gateway = door_of(carried.subject) == GATEWAY
        outcome = await self._intake.feedback(
            carried.payload,
            door=door_of(carried.subject),
            principal=GATEWAY if by_gateway else BUS,
            many=by_gateway,
            subject=carried.subject,
            stream_seq=carried.seq,
            deliveries=carried.deliveries,
        )
        return self._with_headers(carried, outcome)

    def _with_headers(self, carried: Carried, outcome: Outcome) -> Outcome:
        """Nobody reads a message's headers, but the stream keeps them: they may hold nothing private either."""
        told = "\n".join(f"{name}: {value}" for name, value in carried.headers.items())
        if not told or outcome.erase or _OWN_HEADER.fullmatch(told):
            return outcome
        private = len(told) > _HEADERS or self._redactor.text(told).changed
        return replace(outcome, erase=private)

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
    return GATEWAY if subject in {GATEWAY_TRAJECTORY, GATEWAY_FEEDBACK} else "nats"
