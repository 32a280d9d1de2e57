"""How do trainings go? Jobs by pages, one with what it was asked for and how it failed, and its curves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from upswing.api.paging import ListQuery, integer_of
from upswing.api.raw_json import raw_json
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.api.training_types import JOB_ID, JobInfo, job_info
from upswing.errors import Misuse
from upswing.infra.sql.models import Models
from upswing.records import Job
from upswing.train.core.job_states import TRANSITIONS
from upswing.train.core.report import StepReport
from upswing.train.jobs.curves import JobCurveReader
from upswing.train.jobs.repository import JobRepository
from upswing.train.learn.evaluation import PolicyEvaluation

_JOBS = ListQuery("jobs", {"status": {"enum": list(TRANSITIONS)}})
_POINTS = {"type": "integer", "minimum": 10, "maximum": 2000}
_CURVES = ListQuery("curves", {"points": _POINTS}, moments=False, paged=False)
_CURVE_NAMES = tuple(name for name in StepReport.__struct_fields__ if name != "type")


class JobPage(Struct, frozen=True):
    jobs: list[JobInfo]
    next: str | None


class JobDetail(Struct, frozen=True):
    """A job, and what became of it."""

    job: JobInfo
    request: dict[str, Any]
    """training.request.v1."""
    recipe: msgspec.Raw
    """What became of the request, and of its failures."""
    failures: msgspec.Raw
    """The attempts that did not end well, the oldest first."""
    snapshot: str | None
    """The hash of its data."""
    trajectories: int
    """In its data."""
    model_id: str | None
    """What it made."""


class CurveAnswer(Struct, frozen=True):
    """The curves of a job, column by column."""

    job_id: str
    steps: int
    """How many there were."""
    series: dict[str, list[float | None]]
    """`step`, `loss`, `reward_mean`, …: one value for each step that is shown."""
    evaluations: list[PolicyEvaluation]
    thinned: bool
    """Not every step is shown."""


class JobRoutes:
    """The handlers."""

    def __init__(
        self,
        jobs: JobRepository,
        models: Models,
        curves: JobCurveReader,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._jobs, self._models, self._curves, self._clock = jobs, models, curves, clock

    def routes(self) -> list[Route]:
        gone = {404: ("There is no such job.", Problem)}
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        one = {"job_id": JOB_ID}
        return [
            Route(
                "GET",
                "/v1/jobs",
                "Training jobs, the newest first.",
                self.list,
                READER,
                query=_JOBS.schema,
                answers={200: ("A page of them.", JobPage), **wrong},
            ),
            Route(
                "GET",
                "/v1/jobs/{job_id}",
                "A job with its request, its recipe and its failures.",
                self.one,
                READER,
                params=one,
                answers={200: ("It.", JobDetail), **gone},
            ),
            Route(
                "GET",
                "/v1/jobs/{job_id}/curves",
                "Loss, reward and the rest, step by step.",
                self.curves,
                READER,
                params=one,
                query=_CURVES.schema,
                answers={200: ("They.", CurveAnswer), **gone, **wrong},
            ),
        ]

    async def list(self, request: Request) -> Response:
        page = _JOBS.read(request, self._clock)
        state = page.filters.get("status")
        found, position = await self._jobs.page(page.wanted(state=state))
        return answer(200, JobPage([job_info(each) for each in found], page.cursor(position)))

    async def one(self, request: Request) -> Response:
        job = await self._job(request)
        model = await self._models.by_job(job.job_id)
        detail = JobDetail(
            job_info(job),
            msgspec.to_builtins(job.request),
            raw_json(job.recipe),
            raw_json(job.failures),
            job.snapshot,
            await self._jobs.count_trained_on(job.job_id),
            model.model_id if model else None,
        )
        return answer(200, detail)

    async def curves(self, request: Request) -> Response:
        points = integer_of(_CURVES.read(request).filters, "points", 500, 10, 2000)
        job = await self._job(request)
        model = await self._models.by_job(job.job_id)
        found = await self._curves.read(job.job_id, model.card if model else None, points)
        series = {name: [getattr(each, name) for each in found.shown] for name in _CURVE_NAMES}
        return answer(
            200, CurveAnswer(job.job_id, found.steps, series, found.evaluations, found.thinned)
        )

    async def _job(self, request: Request) -> Job:
        job = await self._jobs.get(request.params["job_id"])
        if job is None:
            raise Misuse("There is no such job; `upswing jobs` lists them.")
        return job
