"""Who answers a question on the bus? Request and reply on a plain subject, without a stream."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from upswing.errors import Transient
from upswing.infra.nats.bus import Bus

log = logging.getLogger(__name__)
_QUEUE = "answers"
"""Of several processes that could answer, one does."""


async def answer_enquiries(
    bus: Bus, subject: str, answer: Callable[[bytes], Awaitable[bytes]]
) -> None:
    """Answer every request on `subject` from now on, also after the server was away."""

    async def reply_to_message(message: Msg) -> None:
        if not message.reply:
            return  # nobody waits for an answer
        try:
            await message.respond(await answer(message.data))
        except (NatsError, OSError, Transient) as error:
            log.info("no answer on %s: %r", subject, error, extra={"action": "answer"})
        except Exception:
            log.exception(
                "no answer on %s", subject, extra={"action": "alert", "reason": "enquiry_broke"}
            )

    try:
        await bus.client.subscribe(subject, queue=_QUEUE, cb=reply_to_message)
    except (NatsError, OSError) as error:
        raise Transient(f"The bus cannot be listened to just now: {error!r}.") from error
