"""How did a validation go, suite by suite?"""

from __future__ import annotations

from typing import Any

from nicegui import ui

from upswing.dashboard.answers import ApiValidation
from upswing.dashboard.core.intervals import Bounds, interval_chart
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import count, interval, lasted, moment, score, short_id, signed
from upswing.dashboard.pages.parts import model_link, tree_details
from upswing.dashboard.widgets.charts import Chart
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Rows,
    Tag,
    badge,
    badge_cell,
    box,
    button,
    fact_list,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import drawn_panel

_COLUMNS = (
    ("suite", "Suite"),
    ("verdict", "Verdict", "slim"),
    ("candidate", "Candidate", "num"),
    ("current", "Current", "num"),
    ("difference", "Difference", "num"),
    ("interval", "95 % interval", "num"),
    ("tasks", "Tasks", "num"),
)


def validation_page(page: PageContext, validation_id: str) -> None:

    async def validation() -> ApiValidation:
        path = "/v1/validations/{validation_id}"
        return await page.loop.get(path, ApiValidation, validation_id=validation_id)

    with page.begin(validation):
        with page_head(f"Validation {one_line(short_id(validation_id), 40)}"):
            button("Back", ui.navigate.back, icon="arrow_back")
        drawn_panel(
            page,
            "",
            validation,
            draw_validation,
            topics=("validation", "decision"),
            least_height=300,
        )


def draw_validation(found: ApiValidation) -> None:
    with box("row top unbroken"):
        badge(found.word or found.state)
        Tag("span", found.sentence or _progress_words(found), "wrap-anywhere")
    _draw_facts(found)
    suites = [each for each in (found.report or {}).get("suites", ()) if isinstance(each, dict)]
    if suites:
        Chart("Candidate minus current in each suite", "low").show(
            interval_chart([_bounds(each) for each in suites])
        )
        Rows("Suites", _COLUMNS).show([_suite_row(each) for each in suites])
    tree_details("The whole report", found.report)


def _draw_facts(found: ApiValidation) -> None:
    fact_list(
        (
            ("Candidate", lambda: model_link(found.model_id)),
            ("Against", lambda: model_link(found.against)),
            ("Began", moment(found.started)),
            ("Lasted", lasted(found.started, found.ended)),
        )
    )


def _progress_words(found: ApiValidation) -> str:
    parts = [
        f"{each.get('suite')}: {count(each.get('done'))} of {count(each.get('total'))}"
        for each in found.progress
    ]
    return ", ".join(parts) or "It waits for its turn."


def _bounds(suite: dict[str, Any]) -> Bounds:
    made = suite.get("difference") or {}
    name = one_line(str(suite.get("name")), 18)
    return Bounds(name, made.get("estimate"), made.get("lower"), made.get("upper"))


def _suite_row(suite: dict[str, Any]) -> dict[str, object]:
    bounds, name = _bounds(suite), str(suite.get("name"))
    return {
        "id": name,
        "suite": {"text": name, "sub": one_line(str(suite.get("sentence") or ""), 200)},
        "verdict": badge_cell(str(suite.get("word") or "")),
        "candidate": score(suite.get("candidate")),
        "current": score(suite.get("current")),
        "difference": signed(bounds.middle),
        "interval": interval(bounds.lower, bounds.upper),
        "tasks": f"{count(suite.get('done'))} of {count(suite.get('planned'))}",
    }
