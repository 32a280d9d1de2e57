"""How is a report put together? Read what happened, work out the figures, and write them down as a document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from upswing.contracts.typed import from_json
from upswing.infra.sql.database import Database
from upswing.monitor.core.costs import ModelUsage, PriceList, TrainedJob
from upswing.monitor.core.document import Document, to_html, to_markdown
from upswing.monitor.core.job_figures import job_figures
from upswing.monitor.core.model_figures import ModelSums
from upswing.monitor.core.period_figures import PeriodFacts, ServingModel, period_figures
from upswing.monitor.core.report_document import daily_document, job_document, weekly_document
from upswing.monitor.core.report_figures import JobFigures, PeriodFigures
from upswing.monitor.core.report_periods import DuePeriod
from upswing.monitor.figure_reader import FigureReader
from upswing.monitor.report_facts import ReportFacts
from upswing.monitor.report_repository import ReportRow
from upswing.monitor.usage import CostReader

_REFERENCE = 2000
"""The base's newest trajectories, with which the model that answers is compared."""
RequestCounts = Callable[[], Awaitable[Mapping[str, tuple[int, int]]]]
"""Model → requests at gateways, and how many failed."""


async def no_requests() -> Mapping[str, tuple[int, int]]:
    """Of a loop without gateways."""
    return {}


@dataclass(frozen=True, slots=True)
class BuiltReport:
    """Figures, and the document that shows them."""

    figures: PeriodFigures | JobFigures
    document: Document

    def row(
        self, report_id: str, kind: str, span: tuple[datetime, datetime], made: datetime
    ) -> ReportRow:
        """As it is kept."""
        return ReportRow(
            0,
            report_id,
            kind,
            self.figures.job_id if isinstance(self.figures, JobFigures) else None,
            self.document.title,
            *span,
            made,
            msgspec.json.encode(self.figures),
            to_markdown(self.document).encode(),
        )


class ReportBuilder:
    """Builds reports from the store; never writes."""

    def __init__(
        self,
        database: Database,
        prices: PriceList,
        base: str | None,
        *,
        requests: RequestCounts = no_requests,
    ) -> None:
        """`base` answers while no model is deployed."""
        self._figures, self._facts = FigureReader(database), ReportFacts(database, prices)
        self._costs, self._base, self._requests = CostReader(database, prices), base, requests

    async def period(self, period: DuePeriod) -> BuiltReport:
        """The report of a day or a week."""
        figures = period_figures(await self._read(period))
        make = weekly_document if period.kind == "weekly" else daily_document
        return BuiltReport(figures, make(figures))

    async def job(self, job_id: str) -> BuiltReport | None:
        """The report of a training job that ended; None: there is no such job, or it has not."""
        facts = await self._facts.job(job_id)
        if facts is None or facts.job.ended is None:
            return None
        figures = job_figures(facts)
        return BuiltReport(figures, job_document(figures))

    async def _read(self, period: DuePeriod) -> PeriodFacts:
        start, end = period.start, period.end
        serving = await self._serving(period)
        named = {name for name in (self._base, serving and serving.model_id) if name}
        sums = await self._figures.period(start, end, named)
        jobs = await self._facts.jobs(start, end)
        deployments, promoted_later = await self._facts.deployments(start, end)
        used = [_usage(name, each) for name, each in sums.by_model().items()]
        trained = [TrainedJob(job.model_id, job.seconds, job.cost_usd) for job in jobs]
        return PeriodFacts(
            period,
            sums,
            serving,
            await self._reference(serving),
            jobs,
            deployments,
            promoted_later,
            await self._facts.validations(start, end),
            await self._facts.issues(start, end),
            await self._facts.refused(start, end),
            await self._requests(),
            await self._costs.period(start, end, used, trained),
            await self._costs.table(),
        )

    async def _serving(self, period: DuePeriod) -> ServingModel | None:
        """Who answers, and what that is compared with."""
        row = await self._facts.serving()
        name = row.model_id if row else self._base
        if not name:
            return None
        if row is not None and row.baseline_reward is not None:
            return ServingModel(name, row.deployed, row.baseline_reward)
        before = period.start - (period.end - period.start)
        earlier = (await self._figures.period(before, period.start, {name})).by_model().get(name)
        mean = earlier.reward.mean if earlier else None
        return ServingModel(name, row.deployed if row else None, earlier_reward=mean)

    async def _reference(self, serving: ServingModel | None) -> tuple[str, ModelSums] | None:
        """The base's work, where another model answers."""
        if serving is None or not self._base or serving.model_id == self._base:
            return None
        found = await self._figures.newest(self._base, _REFERENCE)
        return (self._base, found) if found.trajectories else None


def html_of_report(row: ReportRow) -> str:
    """The page of a kept report, from its figures."""
    if row.kind == "job":
        return to_html(job_document(from_json(row.figures, JobFigures)))
    figures = from_json(row.figures, PeriodFigures)
    return to_html(weekly_document(figures) if row.kind == "weekly" else daily_document(figures))


def _usage(name: str, sums: ModelSums) -> ModelUsage:
    tokens = sums.tokens
    return ModelUsage(name, sums.trajectories, sums.trajectories - tokens.count, tokens.total)
