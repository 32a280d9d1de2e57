"""Which report is to be made now? One for each day, week and training job that has ended, once.

    due and not kept ─▶ built from the store ─▶ kept with its message and deliveries ─▶ written as files

The row is the report; `reports/NAME.md` and `.html` in the data directory are copies for people, made again when lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from upswing.errors import Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.instance import write_private
from upswing.monitor.core.job_figures import is_settled
from upswing.monitor.core.report_figures import JobFigures
from upswing.monitor.core.report_periods import DuePeriod, ReportSchedule, due_periods
from upswing.monitor.report_builder import BuiltReport, ReportBuilder, html_of_report
from upswing.monitor.report_repository import ReportRepository, ReportRow

log = logging.getLogger(__name__)
STAGE = "monitor"
_SECONDS = 30.0
_OLD_JOB = timedelta(days=30)
"""A job that ended before that gets no report any more: the one that it had may be forgotten."""


@dataclass(frozen=True, slots=True)
class ReportPolicy:
    """What is reported by itself."""

    schedule: ReportSchedule = field(default_factory=ReportSchedule)
    jobs: bool = True
    job_waits: timedelta = timedelta(hours=6)
    """How long a job's report waits for the validation and the rollout of its model."""


class Reporter:
    """Makes reports when they are due."""

    def __init__(
        self,
        builder: ReportBuilder,
        repository: ReportRepository,
        folder: Path,
        policy: ReportPolicy,
        *,
        clock: Callable[[], datetime],
        on_report: Callable[[ReportRow], None] = lambda _: None,
        dead_letters: DeadLetterWriter | None = None,
        seconds: float = _SECONDS,
    ) -> None:
        """`folder` gets the files; `on_report` hears of every report after it is durable."""
        self._builder, self._repository, self._folder = builder, repository, folder
        self._policy, self._clock, self._on_report = policy, clock, on_report
        self._dead_letters, self._seconds = dead_letters or DeadLetterWriter(), seconds

    async def run(self) -> None:
        """For ever; a store that is away is waited for."""
        while True:
            try:
                await self.make_due()
            except Transient as error:
                log.warning("%s", error, extra={"action": "reports"})
            await asyncio.sleep(self._seconds)

    async def make_due(self) -> list[str]:
        """Make what is due and not made yet; the names."""
        now = self._clock()
        since = await self._repository.began(now)
        due = due_periods(self._policy.schedule, since, now)
        made = [name for period in due if (name := await self._make_period(period))]
        if self._policy.jobs:
            jobs = await self._repository.unreported_jobs(max(since, now - _OLD_JOB))
            found = await self._dead_letters.process_each(STAGE, "jobs", jobs, self._make_job)
            made += filter(None, found)
        return made

    async def _make_period(self, period: DuePeriod) -> str | None:
        if await self._repository.exists(period.report_id):
            return None
        built = await self._builder.period(period)
        row = built.row(period.report_id, period.kind, (period.start, period.end), self._clock())
        return await self._keep(row)

    async def _make_job(self, job_id: str) -> str | None:
        built = await self._builder.job(job_id)
        if built is None or not isinstance(built.figures, JobFigures):
            return None
        figures, now = built.figures, self._clock()
        waited = now - figures.ended >= self._policy.job_waits
        if figures.state == "completed" and not is_settled(figures) and not waited:
            return None
        return await self._keep(job_row(built, figures, now))

    async def _keep(self, row: ReportRow) -> str | None:
        if not await self._repository.add(row):
            return None
        await asyncio.to_thread(self._write_files, row)
        log.info("report %s is made", row.report_id, extra={"action": "report"})
        self._on_report(row)
        return row.report_id

    def _write_files(self, row: ReportRow) -> None:
        """Copies for people; a full disk takes none, and the row is there all the same."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_private(self._folder / f"{row.report_id}.md", row.text.decode())
            write_private(self._folder / f"{row.report_id}.html", html_of_report(row))
        except OSError as error:
            log.warning(
                "report %s has no files: %s",
                row.report_id,
                error,
                extra={"action": "no_report_file"},
            )


def job_row(built: BuiltReport, figures: JobFigures, now: datetime) -> ReportRow:
    """A job's report, whose period is the job's own."""
    span = figures.started or figures.ended, figures.ended
    return built.row(f"job-{figures.job_id}", "job", span, now)
