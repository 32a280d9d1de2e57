"""What of a gateway's dead letters does the loop keep? All of them, beside its own.

A gateway has no store. What it could not record it announces on the bus; here it becomes a row that
`upswing dead` shows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from upswing.contracts import DeadLetter, decode
from upswing.errors import Reason, Rejected
from upswing.infra.nats.consumer import MessageHandler
from upswing.infra.sql.store import SqlStore
from upswing.records import StreamMessage

log = logging.getLogger(__name__)
STAGE = "gateway"


def gateway_dead_letter_handler(
    store: SqlStore, count_rejected: Callable[[str, Reason], None]
) -> MessageHandler:
    """From the bus into the store; `count_rejected` gets the door and the reason of each."""

    async def process(message: StreamMessage) -> bool:
        try:
            letter = decode(DeadLetter, message.payload)
            await store.add_dead_letter(letter, stage=STAGE, announced=True)
        except Rejected as error:  # whoever may publish here is one of ours, but perhaps older
            _log_unreadable(error)
        else:
            count_rejected(STAGE, _known_reason(letter.reason))
        return False

    async def reject_poison(_: StreamMessage, error: Rejected) -> None:
        _log_unreadable(error)

    return MessageHandler(STAGE, process, reject_poison, in_order=True)


def _log_unreadable(error: Rejected) -> None:
    log.warning("a dead letter cannot be read: %s", error, extra={"action": "bad_letter"})


def _known_reason(reason: str) -> Reason:
    return Reason(reason) if reason in set(Reason) else Reason.POISON
