"""Which job is next, and who runs it?

A worker claims the most urgent job that is due, makes an attempt at it (`train.jobs.attempt`), and
then takes the next. A worker that dies with a job is replaced: the job's lease runs out, another worker
claims it, and its attempt goes on where the last one left off.
"""

from __future__ import annotations

import asyncio
import logging

from upswing.errors import Transient
from upswing.records import Job
from upswing.train.core.job_states import with_state
from upswing.train.jobs.attempt import TrainingAttempt
from upswing.train.jobs.dependencies import JobDependencies

log = logging.getLogger(__name__)
_POLL_SECONDS = 2.0


class TrainingWorker:
    """Runs jobs, one at a time."""

    def __init__(self, name: str, dependencies: JobDependencies) -> None:
        self._name = name
        self._dependencies = dependencies
        self._wake_event = asyncio.Event()

    def wake(self) -> None:
        """A job was queued."""
        self._wake_event.set()

    async def run(self) -> None:
        """Run for ever; wait while the store is unavailable."""
        while True:
            self._wake_event.clear()
            try:
                if await self.run_next_job():
                    continue
            except Transient as error:
                log.warning("%s", error, extra={"action": "train"})
            try:
                await asyncio.wait_for(self._wake_event.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue

    async def run_next_job(self) -> bool:
        """Claim and run a job if one is due; true when there was one."""
        dependencies = self._dependencies
        job = await dependencies.jobs.claim(
            self._name, dependencies.clock(), dependencies.limits.lease
        )
        if job is None:
            return False
        dependencies.on_change()
        log.info("attempt %d at %s", job.attempt, job.job_id, extra={"action": "train_started"})
        await dependencies.dead_letters.process_each(
            "train", "jobs", [job], self._run_attempt, key=lambda each: each.job_id
        )
        dependencies.on_change()
        return True

    async def _run_attempt(self, job: Job) -> None:
        """A job that cannot even start has failed: otherwise it would return to the next worker."""
        dependencies = self._dependencies
        try:
            await TrainingAttempt(self._name, dependencies, job).run()
        except Transient:
            raise
        except Exception:
            failed = with_state(job.status, "failed", dependencies.clock())
            await dependencies.jobs.finish(
                job.job_id, "failed", failed, job.failures, dependencies.clock(), worker=self._name
            )
            raise
