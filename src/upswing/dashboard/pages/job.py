"""How does one training go?"""

from __future__ import annotations

from typing import Any

from nicegui import ui

from upswing.dashboard.answers import ApiCurves, ApiDecisions, ApiJobDetail
from upswing.dashboard.core.charts import curve_chart
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import count, lasted, moment, short_id, spoken
from upswing.dashboard.pages.parts import decision_feed, model_link, tree_details
from upswing.dashboard.widgets.actions import action_button, confirm
from upswing.dashboard.widgets.charts import Chart
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge, box, button, fact_list
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, drawn_panel

CURVES = (
    ("reward_mean", "Reward"),
    ("loss", "Loss"),
    ("kl", "KL divergence"),
    ("entropy", "Entropy"),
)


class CurveCharts:
    """The curves of a job, each where there are numbers for it."""

    def __init__(self) -> None:
        self._charts = {}
        with box("grid two"):
            for name, title in CURVES:
                with box() as part:
                    Tag("h3", title)
                    self._charts[name] = (part, Chart(f"{title} over the steps of the job", "tiny"))

    def show(self, found: ApiCurves) -> None:
        for name, (part, chart) in self._charts.items():
            part.set_visibility(any(value is not None for value in found.series.get(name, ())))
            chart.show(curve_chart(found, name))


def job_page(page: PageContext, job_id: str) -> None:

    async def detail() -> ApiJobDetail:
        return await page.loop.get("/v1/jobs/{job_id}", ApiJobDetail, job_id=job_id)

    async def decisions() -> ApiDecisions:
        return await page.loop.get("/v1/decisions", ApiDecisions, {"about": job_id, "limit": 20})

    with page.begin(detail):
        with page_head(f"Job {short_id(job_id)}", one_line(job_id, 80)):
            button("All jobs", lambda: ui.navigate.to("/jobs"), icon="arrow_back")
        with box("grid main-side"):
            curve_panel(page, job_id)
            drawn_panel(
                page,
                "About",
                detail,
                lambda found: draw_job(found, page),
                topics=("job",),
                seconds=1.5,
                least_height=200,
            )
        drawn_panel(
            page,
            "Decisions about it",
            decisions,
            lambda found: decision_feed(found.decisions, page.now),
            topics=("decision",),
            seconds=3.0,
        )


def curve_panel(page: PageContext, job_id: str) -> None:
    panel = Panel(page, "Curves", topics=("job",), seconds=3.0, least_height=300)
    with panel:
        charts = CurveCharts()

    async def load() -> None:
        path = "/v1/jobs/{job_id}/curves"
        charts.show(await page.loop.get(path, ApiCurves, job_id=job_id))

    panel.loads(load)


def draw_job(found: ApiJobDetail, page: PageContext) -> None:
    job, error = found.job, found.job.latest.get("error")
    with box("spread"):
        badge(job.status)
        if job.status in {"queued", "running"} and not job.cancelling:
            _cancel_button(page, job.training_job_id)
    fact_list(
        (
            ("Algorithm", job.algorithm),
            ("Starts from", lambda: model_link(job.base_model)),
            ("Made", lambda: model_link(found.model_id or "")),
            ("Why", spoken(job.trigger_reason)),
            ("Asked for by", one_line(job.requester, 60)),
            ("Trajectories", count(found.trajectories)),
            ("Attempt", count(job.attempt)),
            ("Began", moment(job.started)),
            ("Lasted", lasted(job.started, job.ended)),
        )
    )
    if isinstance(error, dict):
        why = f"{error.get('code')}: {one_line(str(error.get('message')), 400)}"
        Tag("p", why, "bad wrap-anywhere")
    tree_details("Recipe", found.recipe)
    tree_details("Request", found.request)
    tree_details("Failures", found.failures)


def _cancel_button(page: PageContext, job_id: str) -> None:
    async def cancel(_: str) -> str:
        await page.loop.act("POST", "/training/{job_id}/cancel", dict[str, Any], job_id=job_id)
        return "The job ends."

    def ask() -> None:
        confirm(
            "Cancel this job?",
            "It ends at once and makes no model.",
            cancel,
            verb="Cancel job",
            danger=True,
            reason=False,
        )

    action_button(page, "Cancel job", ask, "danger")
