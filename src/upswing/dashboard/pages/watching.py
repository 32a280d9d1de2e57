"""What is wrong, and what do the reports say?"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nicegui import ui

from upswing.dashboard.answers import ApiAlert, ApiAlerts, ApiReport, ApiReports
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import ago, count, moment
from upswing.dashboard.pages.parts import draw_markdown
from upswing.dashboard.widgets.actions import confirm
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Tag,
    badge_cell,
    button,
    empty_state,
    segmented,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, drawn_panel, table_panel

_STATES = (("open", "Open"), ("resolved", "Resolved"), ("all", "All"))
_KINDS = (("", "All"), ("daily", "Daily"), ("weekly", "Weekly"), ("job", "Jobs"))
_ALERT_COLUMNS = (
    ("what", "Alert"),
    ("severity", "Severity", "slim"),
    ("state", "State", "slim"),
    ("times", "Times", "num"),
    ("when", "Since", "slim"),
    ("act", "", "slim"),
)


def alerts_page(page: PageContext) -> None:
    shown = {"state": "open"}

    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/alerts", ApiAlerts, {**shown, "limit": 100})
        return [alert_row(each, page) for each in found.alerts]

    async def choose(state: str) -> None:
        shown["state"] = state
        await panel.refresh()

    with page.begin():
        with page_head("Alerts", "What needs somebody; each once for its cause."):
            segmented("Which alerts", _STATES, "open", choose)
        panel = table_panel(
            page,
            "",
            _ALERT_COLUMNS,
            rows,
            lambda: empty_state(
                "notifications_none",
                "Nothing is wrong",
                "What goes wrong is shown here, and can be sent on by a webhook.",
            ),
            topics=("alert",),
            seconds=1.5,
            on_act=lambda _, alert_id: _acknowledge(page, alert_id, panel),
        )


def alert_row(each: ApiAlert, page: PageContext) -> dict[str, object]:
    by = (
        f"Acknowledged by {each.acknowledged_by}. {each.note or ''}" if each.acknowledged_by else ""
    )
    remedy = f"What to do: {each.remedy}" if each.remedy else ""
    act = {
        "act": "acknowledge",
        "id": each.alert_id,
        "text": "Acknowledge",
        "off": not page.may_act,
    }
    return {
        "id": each.alert_id,
        "what": {
            "text": one_line(each.summary, 300),
            "sub": one_line(" · ".join(filter(None, (each.name, by, remedy))), 700),
        },
        "severity": badge_cell(each.severity),
        "state": badge_cell(each.state),
        "times": count(each.times),
        "when": ago(each.began, page.now),
        "act": {"acts": [act]} if each.state == "firing" else "",
    }


def _acknowledge(page: PageContext, alert_id: str, panel: Panel) -> None:
    async def act(note: str) -> str:
        path, body = "/v1/alerts/{alert_id}/acknowledge", {"note": note} if note else {}
        await page.loop.act("POST", path, dict[str, Any], body, alert_id=alert_id)
        return "Acknowledged."

    confirm(
        "Acknowledge this alert?",
        "It stays open until its cause is gone; nobody is told of it again.",
        act,
        verb="Acknowledge",
        after=panel.refresh,
    )


def reports_page(page: PageContext) -> None:
    shown = {"kind": ""}

    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/reports", ApiReports, {**shown, "limit": 100})
        return [_report_row(each, page) for each in found.reports]

    async def choose(kind: str) -> None:
        shown["kind"] = kind
        await panel.refresh()

    with page.begin():
        with page_head("Reports", "A summary every day and every week, and one for each job."):
            segmented("Which reports", _KINDS, "", choose)
            button("Today so far", lambda: ui.navigate.to("/reports/preview-daily"))
        panel = table_panel(
            page,
            "",
            (("what", "Report"), ("kind", "Kind", "slim"), ("when", "Made", "slim")),
            rows,
            lambda: empty_state(
                "summarize",
                "No report yet",
                "The first is made at 08:00 UTC; sooner with",
                "upswing report daily",
            ),
            topics=("report",),
        )


def _report_row(each: ApiReport, page: PageContext) -> dict[str, object]:
    href = f"/reports/{quote(each.report_id, safe='')}"
    return {
        "id": each.report_id,
        "what": {"text": one_line(each.title or each.report_id, 120), "href": href},
        "kind": badge_cell(each.kind),
        "when": ago(each.made, page.now),
    }


def report_page(page: PageContext, report_id: str) -> None:
    preview = report_id.removeprefix("preview-") if report_id.startswith("preview-") else ""

    async def report() -> ApiReport:
        if preview:
            return await page.loop.get("/v1/report-previews/{kind}", ApiReport, kind=preview)
        return await page.loop.get("/v1/reports/{report_id}", ApiReport, report_id=report_id)

    def draw(found: ApiReport) -> None:
        Tag(
            "p",
            f"Made {moment(found.made)}." if found.made else "Of the time so far; it is not kept.",
            "note",
        )
        draw_markdown(found.text)

    with page.begin(report):
        with page_head("Report"):
            button("All reports", lambda: ui.navigate.to("/reports"), icon="arrow_back")
        drawn_panel(page, "", report, draw, seconds=3600, least_height=300)
