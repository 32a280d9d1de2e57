"""How does the loop do, at a glance?"""

from __future__ import annotations

from collections.abc import Sequence

from upswing.dashboard.answers import (
    ApiAlert,
    ApiAlerts,
    ApiDecision,
    ApiJob,
    ApiLineage,
    ApiOverview,
    ApiRewardSeries,
    ApiRolloutDetail,
    ApiRollouts,
    ApiTrafficSeries,
)
from upswing.dashboard.core.charts import (
    MARKS,
    model_colours,
    reward_chart,
    traffic_chart,
)
from upswing.dashboard.core.intervals import evidence_chart
from upswing.dashboard.core.stations import STATIONS, stations_of, trigger_words
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import (
    count,
    interval,
    moment,
    percent,
    plural,
    signed,
    span,
)
from upswing.dashboard.pages.parts import decision_feed, rollout_steps
from upswing.dashboard.widgets.charts import Chart, Legend, progress_bar
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Tag,
    badge,
    box,
    empty_state,
    link,
    segmented,
    set_badge,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, drawn_panel

_OVERVIEW = "/v1/overview"
_RANGES = (("1h", "1 h"), ("24h", "24 h"), ("7d", "7 d"), ("30d", "30 d"))


class OverviewPage:
    """What the page holds, so that answers change it in place."""

    def __init__(self, page: PageContext) -> None:
        self.page, self.since = page, "24h"
        self.panels: list[Panel] = []

    def draw(self) -> None:
        with page_head(
            "Overview", "What agents do comes in, is scored, trains a model, and goes out again."
        ):
            segmented("Time shown", _RANGES, self.since, self.choose_range)
        self._loop_panel()
        with box("grid main-side"):
            with box("stack wide"):
                self._reward_panel()
                self._traffic_panel()
            with box("stack wide"):
                self._rollout_panel()
                self._job_panel()
                self._alert_panel()
        self._decision_panel()

    async def choose_range(self, since: str) -> None:
        self.since = since
        for panel in self.panels:
            await panel.refresh()

    async def overview(self) -> ApiOverview:
        seen = await self.page.loop.get(_OVERVIEW, ApiOverview)
        self.page.now = seen.at or self.page.now
        return seen

    # --- the loop as a drawing -------------------------------------------------------------------

    def _loop_panel(self) -> None:
        panel = Panel(self.page, topics=("counts", "decision", "rollout", "job"))
        shown = {}
        with panel, box("loop"):
            box("track")
            with box("pulse", aria_hidden="true") as pulse:
                for _ in range(3):
                    box(tag="i")
            for number, place in enumerate(STATIONS, 1):
                with box(f"station s{number}", "a", href=place.href) as station:
                    Tag("span", place.title, "name")
                    value, sentence = Tag("span", "–", "value"), Tag("span", "", "say")
                shown[place.name] = (number, station, value, sentence)

        async def load() -> None:
            seen = await self.overview()
            counts = {**seen.counts, **self.page.feed.counts}
            pulse.classes(
                "on" if seen.collected.last_hour else "",
                remove="" if seen.collected.last_hour else "on",
            )
            for name, now in stations_of(seen, counts).items():
                number, station, value, sentence = shown[name]
                value.set_text(now.value)
                sentence.set_text(one_line(now.sentence, 90))
                station.classes(replace=f"station s{number} {now.tone}")

        panel.loads(load)

    # --- curves ----------------------------------------------------------------------------------

    def _reward_panel(self) -> None:
        panel = Panel(
            self.page,
            "Reward by model",
            topics=("reward", "decision"),
            seconds=5.0,
            least_height=292,
        )
        with panel:
            chart, legend = Chart("Reward of each model over time"), Legend()
            nothing = empty_state(
                "show_chart",
                "No rewards in this time",
                "An agent joins with three settings:",
                "upswing info",
            )
            nothing.set_visibility(False)

        async def load() -> None:
            found = await self.page.loop.get(
                "/v1/rewards/series", ApiRewardSeries, {"since": self.since}
            )
            colours = model_colours((line.model for line in found.series), await self._bases())
            nothing.set_visibility(not found.series)
            chart.set_visibility(bool(found.series))
            chart.show(reward_chart(found, colours))
            used = {mark.kind for mark in found.marks}
            legend.show(colours, [sign for kind, sign in MARKS.items() if kind in used])

        panel.loads(load)
        self.panels.append(panel)

    def _traffic_panel(self) -> None:
        panel = Panel(self.page, "Traffic", topics=("rollout", "decision"), seconds=5.0)
        with panel:
            chart, legend = Chart("Share of each model over time", "low"), Legend()

        async def load() -> None:
            found = await self.page.loop.get(
                "/v1/traffic/series", ApiTrafficSeries, {"since": self.since}
            )
            names = [name for step in found.planned for name in step.shares]
            colours = model_colours(names, await self._bases())
            chart.show(traffic_chart(found, colours))
            legend.show(colours)

        panel.loads(load)
        self.panels.append(panel)

    async def _bases(self) -> set[str]:
        """Whose colour is grey: those that everything is compared with at first."""
        if not await self.page.loop.offers("GET", "/v1/lineage"):
            return set()
        found = await self.page.loop.get("/v1/lineage", ApiLineage)
        bases = {node.model_id for node in found.nodes if node.parent is None}
        traffic = (await self.overview()).traffic
        return bases if found.nodes or traffic is None else {traffic.baseline}

    # --- what goes on ----------------------------------------------------------------------------

    def _rollout_panel(self) -> None:
        panel = Panel(self.page, "Current rollout", topics=("rollout", "decision"))
        with panel:
            place = box("stack")
            chart = Chart("The interval in which the difference lies, over time", "tiny")
            waits = Tag("p", "", "small soft wrap-anywhere")
        shown: list[ApiRolloutDetail | None] = []

        async def load() -> None:
            found = await self._current_rollout()
            if shown != [found]:
                shown[:] = [found]
                place.clear()
                with place:
                    draw_rollout(found)
            known = found is not None and bool(found.evidence)
            chart.set_visibility(known)
            chart.show(evidence_chart(found.evidence if found else []))
            waits.set_text(waiting_words(found))

        panel.loads(load)

    async def _current_rollout(self) -> ApiRolloutDetail | None:
        """The one under way, else the last."""
        active, loop = (await self.overview()).rollouts, self.page.loop
        if not await loop.offers("GET", "/v1/rollouts"):
            return None
        known = active or (await loop.get("/v1/rollouts", ApiRollouts, {"limit": 1})).rollouts
        if not known:
            return None
        path, newest = "/v1/rollouts/{rollout_id}", known[0].rollout_id
        return await loop.get(path, ApiRolloutDetail, rollout_id=newest)

    def _job_panel(self) -> None:
        panel = Panel(self.page, "Training", topics=("job", "decision"))
        with panel:
            with box("spread"):
                name, state = Tag("span", "–", "strong wrap-anywhere"), badge("")
            _, filled = progress_bar(0, "Progress of the job")
            words = Tag("p", "", "small soft")

        async def load() -> None:
            seen = await self.overview()
            job = seen.job
            name.set_text(f"{job.algorithm} on {job.base_model}" if job else "No job runs")
            state.set_visibility(job is not None)
            if job is not None:
                set_badge(state, job.status)
            filled.style(f"width:{job.percent if job else 0:.1f}%")
            words.set_text(job_words(job, seen.queued_jobs) if job else trigger_words(seen)[1])

        panel.loads(load)

    def _alert_panel(self) -> None:
        async def alerts() -> list[ApiAlert]:
            return (await self.page.loop.get("/v1/alerts", ApiAlerts, {"limit": 5})).alerts

        drawn_panel(self.page, "Open alerts", alerts, draw_alerts, topics=("alert",), seconds=3.0)

    def _decision_panel(self) -> None:
        async def decisions() -> list[ApiDecision]:
            return (await self.overview()).decisions[:8]

        drawn_panel(
            self.page,
            "Latest decisions",
            decisions,
            lambda found: draw_decisions(found, self.page),
            topics=("decision",),
        )


def draw_alerts(alerts: Sequence[ApiAlert]) -> None:
    if not alerts:
        Tag("p", "Nothing is wrong.", "soft")
    for alert in alerts:
        with box("row top unbroken"):
            badge(alert.severity)
            link(one_line(alert.summary, 160), "/alerts", "wrap-anywhere")


def draw_decisions(decisions: Sequence[ApiDecision], page: PageContext) -> None:
    if decisions:
        decision_feed(decisions, page.now)
        link("All decisions", "/decisions", "small")
    else:
        empty_state(
            "gavel",
            "Nothing was decided yet",
            "The first decision comes when there is something to train on.",
        )


def draw_rollout(found: ApiRolloutDetail | None) -> None:
    """Its step, its evidence, what it waits for."""
    if found is None or not found.rollout.model_id:
        Tag(
            "p",
            "No model was rolled out yet. The first one is when training has made it and validation passed it.",
            "soft",
        )
        return
    rollout, figures = found.rollout, found.figures or {}
    with box("spread"):
        link(rollout.model_id, f"/rollouts/{rollout.rollout_id}", "strong wrap-anywhere")
        badge(rollout.state)
    rollout_steps(rollout)
    difference = figures.get("difference")
    if difference is not None:
        with box("row"):
            Tag("span", signed(difference), "strong")
            bounds = interval(figures.get("lower"), figures.get("upper"))
            Tag("span", f"{bounds}, {plural(figures.get('rewards') or 0, 'reward')}", "small quiet")


def waiting_words(found: ApiRolloutDetail | None) -> str:
    if found is None or not found.rollout.model_id:
        return ""
    return found.waits_for or found.rollout.sentence


def job_words(job: ApiJob, queued: int) -> str:
    """How far a job is, in a line."""
    progress, parts = job.progress, []
    if progress.get("total_steps"):
        parts.append(
            f"step {count(progress.get('current_step'))} of {count(progress['total_steps'])}"
        )
    if job.status == "running":
        parts.append(percent(job.percent))
    if isinstance(eta := progress.get("eta_seconds"), int | float) and eta:
        parts.append(f"about {span(eta)} left")
    if queued:
        parts.append(f"{queued} more in the queue")
    return ", ".join(parts) or f"made {moment(job.created)}"


def overview_page(page: PageContext) -> None:
    with page.begin():
        OverviewPage(page).draw()
