"""How does the intake get what the bus carries? Handlers for the stream consumers of collect's topics.

`infra.nats.consumer` reads, acknowledges and counts crashes; here a message is handed to the intake, its
headers are checked, and what is stored already is recognised.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from hashlib import sha256

from upswing.collect.core.evaluate import digest
from upswing.collect.intake import STAGE, Intake, IntakeResult
from upswing.contracts.topics import GATEWAY_FEEDBACK, GATEWAY_TRAJECTORY
from upswing.errors import Rejected
from upswing.infra.nats.consumer import MessageHandler
from upswing.infra.sql.store import SqlStore
from upswing.principals import BUS, GATEWAY, Sender
from upswing.records import RejectedMessage, StreamMessage
from upswing.redact import Redactor

_OWN_HEADER = re.compile(r"Nats-Msg-Id: [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""As the recorder of an agent sends it with every message."""
_MAX_HEADER_CHARS = 1000
"""Longer headers are not read but erased with their message."""


class BusIntake:
    """Hands messages of the bus to the intake."""

    def __init__(self, intake: Intake, store: SqlStore, redactor: Redactor) -> None:
        self._intake, self._store, self._redactor = intake, store, redactor

    def trajectory_handler(self) -> MessageHandler:
        return self._handler(self.take_trajectory)

    def feedback_handler(self) -> MessageHandler:
        return self._handler(self.take_feedback)

    def _handler(self, take: Callable[[StreamMessage], Awaitable[IntakeResult]]) -> MessageHandler:
        async def process(message: StreamMessage) -> bool:
            return (await take(message)).erase

        return MessageHandler(STAGE, process, self.reject_poison, self.find_stored)

    async def take_trajectory(self, message: StreamMessage) -> IntakeResult:
        result = await self._intake.trajectory(
            message.payload,
            door=door_of(message.subject),
            subject=message.subject,
            stream_seq=message.seq,
            deliveries=message.deliveries,
            sender=Sender(BUS, many=False),
        )
        return self._check_headers(message, result)

    async def take_feedback(self, message: StreamMessage) -> IntakeResult:
        by_gateway = door_of(message.subject) == GATEWAY
        result = await self._intake.feedback(
            message.payload,
            door=door_of(message.subject),
            principal=GATEWAY if by_gateway else BUS,
            many=by_gateway,
            subject=message.subject,
            stream_seq=message.seq,
            deliveries=message.deliveries,
        )
        return self._check_headers(message, result)

    def _check_headers(self, message: StreamMessage, result: IntakeResult) -> IntakeResult:
        """Nobody reads a message's headers, but the stream keeps them: they may hold nothing private either."""
        headers = "\n".join(f"{name}: {value}" for name, value in message.headers.items())
        if not headers or result.erase or _OWN_HEADER.fullmatch(headers):
            return result
        private = len(headers) > _MAX_HEADER_CHARS or self._redactor.text(headers).changed
        return replace(result, erase=private)

    async def find_stored(self, messages: Sequence[StreamMessage]) -> Collection[int]:
        """Messages whose content is stored byte for byte; those that the store did not know of are noted."""
        stream = messages[0].stream
        contents = {each.seq: sha256(each.payload).digest() for each in messages}
        echoes = await self._store.already_stored(stream, contents)
        if unknown := {seq: contents[seq] for seq, noted in echoes.items() if not noted}:
            await self._store.note_carried(stream, unknown)
        return echoes.keys()

    async def reject_poison(self, message: StreamMessage, error: Rejected) -> None:
        await self._intake.dead_letter(
            RejectedMessage(error.reason, error.detail, digest(message.payload)),
            door=door_of(message.subject),
            subject=message.subject,
            deliveries=message.deliveries,
            stream_seq=message.seq,
        )


def door_of(subject: str) -> str:
    """By which door a message came. Only gateways may publish on theirs; what a message says of itself counts nothing.

    >>> door_of("agent.rl.gateway.trajectory.v1"), door_of("agent.rl.trajectory.v1")
    ('gateway', 'nats')
    """
    return GATEWAY if subject in {GATEWAY_TRAJECTORY, GATEWAY_FEEDBACK} else "nats"
