"""Which job is next, and who runs it?

A worker claims the most urgent job that is due, makes an attempt at it (`attempt_service`), and
looks again. Whoever dies with a job in hand is replaced: the job's lease runs out, another worker
claims it, and its attempt goes on where the last one left off.
"""

from __future__ import annotations

import asyncio
import logging

from upswing.errors import Transient
from upswing.ports import Job
from upswing.train.attempt_service import Attempt
from upswing.train.jobs import moved
from upswing.train.parts import Parts

log = logging.getLogger(__name__)
_POLL_SECONDS = 2.0


class Worker:
    """Runs jobs, one at a time."""

    def __init__(self, name: str, parts: Parts) -> None:
        self._name = name
        self._parts = parts
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """A job was queued."""
        self._woken.set()

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        while True:
            self._woken.clear()
            try:
                if await self.round():
                    continue
            except Transient as error:
                log.warning("%s", error, extra={"action": "train"})
            try:
                await asyncio.wait_for(self._woken.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue

    async def round(self) -> bool:
        """Take a job if one is due; true when one was taken."""
        parts = self._parts
        job = await parts.jobs.claim(self._name, parts.clock(), parts.limits.lease)
        if job is None:
            return False
        parts.changed()
        log.info("attempt %d at %s", job.attempt, job.job_id, extra={"action": "train_started"})
        await parts.burial.each("train", "jobs", [job], self._attempt, key=lambda each: each.job_id)
        parts.changed()
        return True

    async def _attempt(self, job: Job) -> None:
        """A job that cannot even be begun has failed: it would only come back to the next worker."""
        parts = self._parts
        try:
            await Attempt(self._name, parts, job).run()
        except Transient:
            raise
        except Exception:
            failed = moved(job.status, "failed", parts.clock())
            await parts.jobs.finish(
                job.job_id, "failed", failed, job.failures, parts.clock(), worker=self._name
            )
            raise
