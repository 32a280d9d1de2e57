"""Who does a validation, when several processes share a store? Whoever holds its row.

| the row is                                      | then                                             |
|-------------------------------------------------|--------------------------------------------------|
| nobody's, or its holder was silent for a lease  | it is ours, and stays so by a word every ten seconds |
| another living process's                        | nobody interferes; who waits gets their report   |

A holder that loses its row, because it was silent for too long, writes nothing more to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta

from upswing.contracts.validation import ValidationReport
from upswing.errors import Transient
from upswing.infra.tasks import run_in_background
from upswing.validate.repository import Validations

log = logging.getLogger(__name__)
LEASE = timedelta(seconds=45)
"""Real time: whoever has not been heard of for as long does it no more."""
_RENEW_SECONDS = 10.0
POLL_SECONDS = 2.0
"""Between two looks at a row that another process holds."""


class LeaseLost(Transient):
    """It is another process's, which is not done with it."""


class RunLease:
    """The rows that are this process's."""

    def __init__(
        self,
        rows: Validations,
        holder: str,
        wall: Callable[[], datetime],
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._rows, self.holder, self._wall = rows, holder, wall
        self._poll_seconds = poll_seconds

    async def acquire(self, run_id: str) -> bool:
        """Is it ours from now on?"""
        now = self._wall()
        return await self._rows.claim(run_id, self.holder, now, now + LEASE)

    async def release_orphans(self) -> None:
        """After a restart: what another process of a store that only one may have did is nobody's."""
        await self._rows.release_orphans(self.holder)

    async def wait_or_acquire(self, run_id: str) -> ValidationReport | None:
        """None: it is ours. Else the report of the process that does it, when there is one."""
        while not await self.acquire(run_id):
            row = await self._rows.get(run_id)
            if row is None or row.state == "failed":
                why = row.sentence if row else None
                raise Transient(why or f"The validation {run_id} is gone.")
            if row.report is not None:
                return row.report
            await asyncio.sleep(self._poll_seconds)
        return None

    @contextlib.asynccontextmanager
    async def hold(self, run_id: str) -> AsyncIterator[None]:
        """Keep it while this lasts; then anybody may have it that is not done."""
        beating = run_in_background(self._renew(run_id), name=f"hold {run_id}")
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            with contextlib.suppress(Transient):  # then its lease runs out
                await self._rows.release(run_id, self.holder)

    async def _renew(self, run_id: str) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                if not await self.acquire(run_id):
                    log.warning("%s is another process's now", run_id, extra={"action": "lost"})
                    return
            except Transient as error:
                log.warning("%s: %s", run_id, error, extra={"action": "hold_validation"})
