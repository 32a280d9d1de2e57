"""How do training requests on the bus become jobs? A handler for the stream consumer of their topic.

| delivery                          | what happens                                             |
|-----------------------------------|----------------------------------------------------------|
| a request                         | a job                                                    |
| our own announcement, or a repeat | known by its id: nothing                                 |
| can never be accepted             | dead letter, and the raw form is erased                  |
| holds something private           | stored clean and announced anew, and the raw form erased |

Back-off, crashes and unexpected errors: `infra.nats.consumer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from msgspec import UNSET

from upswing.contracts import DeadLetter
from upswing.errors import Rejected
from upswing.infra.nats.consumer import MessageHandler
from upswing.infra.sql.store import SqlStore
from upswing.records import RejectedMessage, StreamMessage
from upswing.train.jobs.submission import JobSubmission

log = logging.getLogger(__name__)
STAGE = "train"


class TrainingRequests:
    """Submits the training requests of the bus."""

    def __init__(
        self,
        store: SqlStore,
        submission: JobSubmission,
        *,
        redact_rejected: Callable[[bytes, Rejected], RejectedMessage],
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._submission = submission
        self._redact_rejected = redact_rejected
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change

    def handler(self) -> MessageHandler:
        return MessageHandler(STAGE, self.submit, self.reject_poison, in_order=True)

    async def submit(self, message: StreamMessage) -> bool:
        """True when the raw form must not stay on the bus."""
        try:
            return (await self._submission.submit_message(message.payload)).redacted
        except Rejected as error:
            await self._dead_letter(message, self._redact_rejected(message.payload, error))
            return True

    async def reject_poison(self, message: StreamMessage, error: Rejected) -> None:
        digest = sha256(message.payload).hexdigest()
        await self._dead_letter(message, RejectedMessage(error.reason, error.detail, digest))

    async def _dead_letter(self, message: StreamMessage, rejected: RejectedMessage) -> None:
        letter = DeadLetter(
            dead_id=self._new_id(),
            timestamp=self._clock(),
            subject=message.subject,
            reason=rejected.reason.value,
            detail=rejected.detail,
            deliveries=max(1, message.deliveries),
            payload=UNSET if rejected.payload is None else rejected.payload,
            sha256=rejected.sha256,
        )
        await self._store.add_dead_letter(letter, stage=STAGE, user_id=rejected.user_id)
        self._on_change()
        log.info(
            "rejected: %s", rejected.detail, extra={"action": "refuse", "reason": letter.reason}
        )
