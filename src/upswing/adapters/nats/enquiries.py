"""Who answers a question on the bus? Request and reply on a plain subject, without a stream."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from upswing.adapters.nats.bus import Bus
from upswing.errors import Transient

log = logging.getLogger(__name__)
_QUEUE = "answers"
"""Of several processes that could answer, one does."""


async def answer_enquiries(
    bus: Bus, subject: str, answer: Callable[[bytes], Awaitable[bytes]]
) -> None:
    """Answer every request on `subject` from now on, also after the server was away."""

    async def reply(message: Msg) -> None:
        if not message.reply:
            return  # nobody waits for an answer
        try:
            await message.respond(await answer(message.data))
        except (NatsError, OSError, Transient) as error:
            log.info("no answer on %s: %r", subject, error, extra={"action": "answer"})
        except Exception:
            log.exception("no answer on %s", subject, extra={"action": "alert"})

    try:
        await bus.client.subscribe(subject, queue=_QUEUE, cb=reply)
    except (NatsError, OSError) as error:
        raise Transient(f"The bus cannot be listened to just now: {error!r}.") from error
