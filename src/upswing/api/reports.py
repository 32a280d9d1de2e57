"""How did it go, and what did it cost? Reports over HTTP, as figures, Markdown and pages; and costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

import msgspec
from msgspec import Struct

from upswing.api.paging import ListQuery
from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.api.scopes import READER
from upswing.contracts.notices import ReportKind
from upswing.errors import Misuse, Reason, Rejected
from upswing.monitor.core.costs import ModelCost, PriceList
from upswing.monitor.core.document import CONTENT_SECURITY
from upswing.monitor.core.report_periods import day_until, week_until
from upswing.monitor.report_builder import ReportBuilder, html_of_report
from upswing.monitor.report_repository import ReportRepository, ReportRow
from upswing.monitor.usage import CostReader

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^/]+$"}
_KINDS: tuple[str, ...] = get_args(ReportKind)
_REPORTS = ListQuery(
    "reports",
    {"kind": {"type": "string", "enum": list(_KINDS)}, "job": {"type": "string", "maxLength": 128}},
    moments=False,
)
_COSTS = ListQuery("costs", paged=False)
HTML, MARKDOWN = "text/html; charset=utf-8", "text/markdown; charset=utf-8"
_PREVIEWS = {"daily": day_until, "weekly": week_until}
_PAGE_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_PREVIEW_SECONDS = 30.0
"""How long a preview is shown again: however many pages are open, it is built once."""
_NONE: tuple[float, ReportRow | None] = 0.0, None


class ReportItem(Struct, frozen=True, kw_only=True):
    """A report in a list."""

    report_id: str
    kind: str
    title: str
    start: datetime
    end: datetime
    made: datetime
    job_id: str | None


class ReportList(Struct, frozen=True):
    reports: list[ReportItem]
    next: str | None


class ReportView(ReportItem, frozen=True, kw_only=True):
    """A report with its figures, and as text."""

    figures: dict[str, Any]
    text: str
    """Markdown."""


class CostView(Struct, frozen=True, kw_only=True):
    """What each model version has cost, in US dollars."""

    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    """When the newest work that is counted was scored."""
    prices: dict[str, Any]
    models: list[ModelCost]
    without_model: dict[str, float]
    total_usd: float


class ReportRoutes:
    """The handlers."""

    def __init__(
        self,
        reports: ReportRepository,
        builder: ReportBuilder,
        costs: CostReader,
        prices: PriceList,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._reports, self._builder, self._costs, self._prices = reports, builder, costs, prices
        self._clock = clock
        self._previews: dict[str, tuple[float, ReportRow | None]] = {}
        self._one_at_a_time = asyncio.Lock()

    def routes(self) -> list[Route]:
        gone = {404: ("There is no such report.", Problem)}
        one: dict[str, dict[str, Any]] = {"report_id": _ID}
        wrong = {422: ("A filter is wrong, or is none.", Problem)}
        return [
            Route(
                "GET",
                "/v1/reports",
                "Reports, the newest first.",
                self.list,
                READER,
                query=_REPORTS.schema,
                answers={200: ("A page of them.", ReportList), **wrong},
            ),
            Route(
                "GET",
                "/v1/reports/{report_id}",
                "A report with its figures.",
                self.one,
                READER,
                params=one,
                answers={200: ("It.", ReportView), **gone},
            ),
            Route(
                "GET",
                "/v1/reports/{report_id}/html",
                "A report as a page of its own.",
                self.html,
                READER,
                params=one,
                answers={200: ("The page.", "text/html"), **gone},
            ),
            Route(
                "GET",
                "/v1/reports/{report_id}/markdown",
                "A report as Markdown.",
                self.markdown,
                READER,
                params=one,
                answers={200: ("The text.", "text/markdown"), **gone},
            ),
            Route(
                "GET",
                "/v1/report-previews/{kind}",
                "The report of the day or the week until now; it is not kept.",
                self.preview,
                READER,
                params={"kind": {"type": "string", "enum": list(_PREVIEWS)}},
                answers={200: ("It.", ReportView), **gone},
            ),
            Route(
                "GET",
                "/v1/costs",
                "What each model version has cost: training, judging and serving.",
                self.costs,
                READER,
                query=_COSTS.schema,
                answers={200: ("That.", CostView), **wrong},
            ),
        ]

    async def list(self, request: Request) -> Response:
        page = _REPORTS.read(request, self._clock)
        found = await self._reports.list(
            kind=page.filters.get("kind"),
            job_id=page.filters.get("job"),
            before_seq=page.before,
            limit=page.limit + 1,
        )
        rows = found[: page.limit]
        more = rows[-1].seq if len(found) > page.limit else None
        return answer(200, ReportList([report_item(each) for each in rows], page.cursor(more)))

    async def one(self, request: Request) -> Response:
        return answer(200, report_view(await self._kept(request)))

    async def html(self, request: Request) -> Response:
        row = await self._kept(request)
        return Response(200, html_of_report(row).encode(), HTML, _PAGE_HEADERS)

    async def markdown(self, request: Request) -> Response:
        return Response(200, (await self._kept(request)).text, MARKDOWN, _PAGE_HEADERS[1:])

    async def preview(self, request: Request) -> Response:
        kind = request.params["kind"]
        if kind not in _PREVIEWS:
            raise Misuse("A preview is `daily` or `weekly`.")
        async with self._one_at_a_time:
            at, (made, row) = asyncio.get_running_loop().time(), self._previews.get(kind, _NONE)
            if row is None or at - made >= _PREVIEW_SECONDS:
                row = await self._build_preview(kind)
                self._previews[kind] = at, row
        return answer(200, report_view(row))

    async def _build_preview(self, kind: str) -> ReportRow:
        now = self._clock()
        period = _PREVIEWS[kind](now)
        built = await self._builder.period(period)
        return built.row(f"preview-{kind}", kind, (period.start, period.end), now)

    async def costs(self, request: Request) -> Response:
        asked = _COSTS.read(request, self._clock)
        if asked.since and asked.until and asked.until <= asked.since:
            raise Rejected(Reason.SCHEMA, "`until` lies before `since`.")
        table = await self._costs.table(asked.since, asked.until)
        view = CostView(
            since=asked.since,
            until=asked.until,
            as_of=await self._costs.as_of(),
            prices={
                "training_hour": self._prices.training_hour,
                "million_tokens": self._prices.million_tokens,
                "models": dict(self._prices.models),
            },
            models=list(table.models),
            without_model=table.without_model,
            total_usd=table.total_usd,
        )
        return answer(200, view)

    async def _kept(self, request: Request) -> ReportRow:
        row = await self._reports.get(request.params["report_id"])
        if row is None:
            raise Misuse("There is no report with this name; `upswing report list` shows them.")
        return row


def report_item(row: ReportRow) -> ReportItem:
    """A report as a list shows it."""
    return ReportItem(
        report_id=row.report_id,
        kind=row.kind,
        title=row.title,
        start=row.start,
        end=row.end,
        made=row.made,
        job_id=row.job_id,
    )


def report_view(row: ReportRow) -> ReportView:
    """A report as it is shown."""
    return ReportView(
        **msgspec.structs.asdict(report_item(row)),
        figures=msgspec.json.decode(row.figures),
        text=row.text.decode(),
    )
