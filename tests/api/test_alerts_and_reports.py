"""Alerts, reports and costs over HTTP: pages, filters, who may do what, and what a hostile text becomes."""

import asyncio
import json
import logging
from datetime import UTC, datetime

import pytest
from tests.conftest import running_loop
from tests.monitor.report_cases import END, START, fill_week
from tests.support import Client, cli, until

from upswing.monitor.core.report_periods import day_until, week_until
from upswing.monitor.report_builder import html_of_report

pytestmark = pytest.mark.live
HOSTILE = "<script>alert(1)</script> | ![x](http://evil) \u202e \x1b[31m"


@pytest.fixture
async def served(data):
    async with (
        running_loop(data, alert_seconds=0.05) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        yield loop, client


async def fire(client, count, message="part broke"):
    log = logging.getLogger("upswing.test")
    for number in range(count):
        part = {"action": "alert", "reason": "part_broke", "part": f"part {number}"}
        log.error(message, extra=part)
    await until(lambda: _count(client, count))


async def _count(client, count):
    _, found = await client("GET", "/v1/alerts?name=PartFailing&limit=200")
    return len(found["alerts"]) == count


async def scoped(client, scope):
    _, made = await client("POST", "/v1/keys", {"name": scope, "scope": scope})
    return made["key"]


async def test_a_reader_reads_pages_and_an_operator_acknowledges(served):
    _, client = served
    await fire(client, 5)
    reader = await scoped(client, "reader")
    seen, cursor = [], ""
    while cursor is not None:
        status, page = await client(
            "GET", f"/v1/alerts?name=PartFailing&limit=2{cursor}", key=reader
        )
        assert status == 200
        seen += [each["labels"]["part"] for each in page["alerts"]]
        cursor = f"&cursor={page['next']}" if page["next"] else None
    assert seen == [f"part {number}" for number in (4, 3, 2, 1, 0)]
    alert_id = page["alerts"][0]["alert_id"]
    path = f"/v1/alerts/{alert_id}/acknowledge"
    assert (await client("POST", path, b"{}", key=reader))[0] == 403
    status, seen = await client("POST", path, {"note": "on it, bob@example.org"})
    assert (status, seen["state"]) == (200, "acknowledged")
    assert seen["note"] == "on it, <email-1>"
    assert seen["acknowledged_by"] == "key operator"
    assert (await client("POST", path, b"{}"))[1]["note"] == seen["note"]  # once
    _, audit = await client("GET", "/v1/audit?what=acknowledge")
    (entry,) = audit["entries"]
    assert (entry["about"], entry["after"]) == (alert_id, {"state": "acknowledged"})
    _, open_ones = await client("GET", "/v1/alerts?state=firing&limit=200")
    assert alert_id not in {each["alert_id"] for each in open_ones["alerts"]}


REFUSED = [
    ("/v1/alerts?modell=x", 422, "There is no filter `modell` here"),
    ("/v1/alerts?state=gone", 422, "`state` is one of open, firing"),
    ("/v1/alerts?severity=loud", 422, "`severity` is one of info, warning, urgent"),
    ("/v1/alerts?limit=0", 422, "`limit` is a number from 1 to 200"),
    ("/v1/alerts?cursor=zzz", 422, "`cursor` is `next` of the page before"),
    ("/v1/alerts/nobody", 404, "There is no alert with this id"),
    ("/v1/reports?kind=monthly", 422, "`kind` is one of daily, weekly, job"),
    ("/v1/reports/nobody", 404, "There is no report with this name"),
    ("/v1/reports/nobody/html", 404, "There is no report with this name"),
    ("/v1/report-previews/monthly", 404, "A preview is `daily` or `weekly`."),
    ("/v1/costs?since=soon", 422, "`since` is a time such as"),
    ("/v1/costs?since=1h&until=2h", 422, "`until` lies before `since`."),
]


async def test_what_cannot_be_meant_is_said(served):
    _, client = served
    for path, status, said in REFUSED:
        found, answer = await client("GET", path)
        assert (found, said in answer["detail"]) == (status, True), (path, answer)


async def test_reports_and_costs_are_there_in_every_form_and_hostile_text_stays_text(served):
    loop, client = served
    await fill_week(loop.store)
    await fire(client, 1, HOSTILE)
    status, preview = await client("GET", "/v1/report-previews/daily")
    assert status == 200
    assert "Trajectories collected" in preview["text"]
    period = week_until(END)
    built = await loop.monitor.builder.period(period)
    row = built.row(period.report_id, "weekly", (START, END), datetime(2026, 1, 12, 8, tzinfo=UTC))
    assert await loop.monitor.reports.add(row)
    _, listed = await client("GET", "/v1/reports?kind=weekly")
    assert [each["report_id"] for each in listed["reports"]] == ["weekly-2026-W02"]
    _, one = await client("GET", "/v1/reports/weekly-2026-W02")
    assert one["figures"]["trajectories"] == 23
    _, page = await client("GET", "/v1/reports/weekly-2026-W02/html")
    _, text = await client("GET", "/v1/reports/weekly-2026-W02/markdown")
    assert page.startswith("<!doctype html>")
    assert text == one["text"]
    await loop.monitor.usage.record()
    _, costs = await client("GET", "/v1/costs")
    by_model = {each["model_id"]: each for each in costs["models"]}
    assert by_model["v1"]["training_usd"] == 3.0
    assert costs["as_of"] is not None
    shown = await asyncio.to_thread(cli, "report", "weekly", data=loop.folder)
    assert shown.stdout.decode() == text
    told = await asyncio.to_thread(cli, "costs", "--json", data=loop.folder)
    assert json.loads(told.stdout)["models"][0]["model_id"] == "v1"
    path = loop.folder / "week.html"
    await asyncio.to_thread(cli, "report", "weekly", "--html", str(path), data=loop.folder)
    assert path.read_text() == page
    assert "<script>" not in page


async def test_a_page_of_alerts_with_hostile_text_is_only_text(served):
    loop, client = served
    await fire(client, 1, HOSTILE)
    now = loop.now()
    built = await loop.monitor.builder.period(day_until(now))
    row = built.row("daily-x", "daily", (now, now), now)
    page, text = html_of_report(row), row.text.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "![x](" not in text
    assert "\x1b" not in page + text
    assert "\u202e" not in page + text
