"""Why did a model fail? What its failures have in common, and what to do about it."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import Struct

from upswing.contracts.analysis import FailureAnalysis, FailureFinding
from upswing.dashboard.answers import ApiModelDetail
from upswing.dashboard.core.wording import percent, plural, score
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, box, link
from upswing.dashboard.widgets.panel import drawn_panel

FAILED = frozenset({"rolled_back", "failed", "undecided"})
"""States of models that are worth asking about: an analysis reads much."""


class ApiAnalyses(Struct, frozen=True):
    analyses: list[FailureAnalysis] = []
    fresh: FailureAnalysis | None = None


def failure_panel(page: PageContext, model_id: str) -> None:
    async def newest() -> FailureAnalysis | None:
        path = "/v1/models/{model_id}"
        found = await page.loop.get(path, ApiModelDetail, model_id=model_id)
        if found.model.state not in FAILED:
            return None
        path = "/v1/analysis/{model_id}"
        known = await page.loop.get(path, ApiAnalyses, model_id=model_id)
        return next(iter(known.analyses), known.fresh)

    drawn_panel(page, "Why it failed", newest, draw_analysis, topics=("decision",), seconds=60.0)


def draw_analysis(found: FailureAnalysis | None) -> None:
    if found is None:
        Tag("p", "It has not failed.", "soft")
        return
    Tag("p", found.summary, "wrap-anywhere")
    for finding in found.findings[:5]:
        _draw_finding(finding)
    for remedy in found.remedies:
        with box("row top unbroken"):
            Tag("span", "→", "accent")
            Tag("span", f"{remedy.text} {remedy.because}", "wrap-anywhere")


def _draw_finding(finding: FailureFinding) -> None:
    there, elsewhere = (100 * each.share for each in (finding.there, finding.elsewhere))
    with box("term"):
        Tag("span", f"{finding.feature}: {finding.value}", "strong wrap-anywhere")
        Tag("span", f"{score(finding.lift, 1)} ×", "soft")
        odds = f"fails {percent(there)} there, {percent(elsewhere)} elsewhere, p = {finding.adjusted:.2g}"
        Tag("span", f"{finding.sentence} ({odds})", "why")
    if finding.examples:
        with box("row"):
            Tag("span", plural(len(finding.examples), "example"), "small quiet")
            for example in finding.examples[:3]:
                link(example[:8], f"/trajectories/{quote(example, safe='')}", "small")
