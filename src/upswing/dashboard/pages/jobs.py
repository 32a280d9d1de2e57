"""What is there to learn from, what is being trained, and what could not be read?"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nicegui import ui

from upswing.dashboard.answers import ApiDeadLetter, ApiDeadLetters, ApiJob, ApiJobs, ApiValidations
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import ago, count, lasted, percent, short_id, spoken
from upswing.dashboard.pages.parts import VALIDATION_COLUMNS, validation_row
from upswing.dashboard.widgets.actions import action_button, carry_out, confirm
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Tag,
    badge,
    badge_cell,
    box,
    button,
    empty_state,
    said,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import drawn_panel, table_panel

_STATUS = "/api/admin/training/status"
_DATA = (
    ("totalTrajectories", "trajectories"),
    ("scenarioGroups", "groups"),
    ("usableGroups", "usable groups"),
    ("flatGroups", "all equally good"),
    ("statedOutcomes", "with an outcome"),
    ("newSuccesses", "new successes"),
)
_JOB_COLUMNS = (
    ("job", "Job"),
    ("state", "State", "slim"),
    ("progress", "Progress"),
    ("lasted", "Lasted", "slim"),
    ("when", "Made", "slim"),
)
_DEAD_COLUMNS = (
    ("what", "Reason"),
    ("stage", "Stage", "slim"),
    ("tries", "Deliveries", "num"),
    ("when", "When", "slim"),
    ("act", "", "slim"),
)


_DEAD_SHOWN, _MOST_DEAD = 20, 1000


def jobs_page(page: PageContext) -> None:
    with page.begin():
        lead = "What the next training would learn from, and what became of the last ones."
        with page_head("Data and jobs", lead):
            _train_button(page)
        _data_panel(page)
        _job_panel(page)
        _validation_panel(page)
        _dead_panel(page)


def _train_button(page: PageContext) -> None:
    async def train(_: str) -> str:
        path, body = "/api/admin/training/trigger", {"force": False}
        answer = await page.loop.act("POST", path, dict[str, Any], body)
        return str(answer.get("reason") or "Asked.")

    def ask() -> None:
        confirm(
            "Train now?",
            "A job starts if there is enough to learn from and no model is being rolled out; if not, the loop says what is missing.",
            train,
            verb="Train",
            reason=False,
        )

    action_button(page, "Train now", ask, icon="play_arrow")


def _data_panel(page: PageContext) -> None:
    async def readiness() -> dict[str, Any]:
        tree = await page.loop.get(_STATUS, dict[str, Any])
        return dict(tree.get("readiness") or {})

    drawn_panel(
        page,
        "Ready to train?",
        readiness,
        draw_readiness,
        topics=("counts", "job", "decision"),
        seconds=5.0,
        least_height=110,
    )


def draw_readiness(found: dict[str, Any]) -> None:
    ready, stats = bool(found.get("ready")), found.get("stats") or {}
    with box("row top unbroken"):
        badge("ready" if ready else "not yet", "good" if ready else "")
        Tag("span", str(found.get("reason") or ""), "wrap-anywhere")
    with box("stats"):
        for name, label in _DATA:
            with box("stat"):
                Tag("div", count(stats.get(name)), "value")
                Tag("div", label, "label")
    if notes := " ".join(map(str, found.get("notes") or ())):
        Tag("p", notes, "note wrap-anywhere")


def _job_panel(page: PageContext) -> None:
    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/jobs", ApiJobs, {"limit": 50})
        return [job_row(each, page) for each in found.jobs]

    table_panel(
        page,
        "Training jobs",
        _JOB_COLUMNS,
        rows,
        lambda: empty_state(
            "model_training",
            "Nothing was trained yet",
            "The loop trains by itself when there is enough; sooner with",
            "upswing train",
        ),
        topics=("job",),
        seconds=1.5,
    )


def job_row(job: ApiJob, page: PageContext) -> dict[str, object]:
    return {
        "id": job.training_job_id,
        "job": {
            "text": f"{job.algorithm} on {job.base_model}",
            "href": f"/jobs/{quote(job.training_job_id, safe='')}",
            "sub": f"{spoken(job.trigger_reason)}, {one_line(job.requester, 40)}",
        },
        "state": badge_cell(job.status),
        "progress": _progress(job),
        "lasted": lasted(job.started, job.ended),
        "when": ago(job.created, page.now),
    }


def _progress(job: ApiJob) -> object:
    error = job.latest.get("error")
    if isinstance(error, dict):
        message = one_line(str(error.get("message") or ""), 160)
        return {"text": str(error.get("code") or ""), "tone": "bad", "sub": message}
    if job.status == "running":
        return {"text": percent(job.percent), "bar": job.percent}
    return ""


def _validation_panel(page: PageContext) -> None:
    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/validations", ApiValidations, {"limit": 20})
        return [validation_row(each, page) for each in found.validations]

    table_panel(
        page,
        "Validations",
        VALIDATION_COLUMNS,
        rows,
        lambda: Tag("p", "No model was validated yet.", "soft"),
        topics=("validation", "decision"),
        least_height=0,
    )


def _dead_panel(page: PageContext) -> None:
    shown: dict[str, ApiDeadLetter] = {}
    limit = _DEAD_SHOWN

    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/dead", ApiDeadLetters, {"limit": limit})
        shown.clear()
        shown.update((each.letter.dead_id, each) for each in found.dead)
        more.set_visibility(found.next is not None and limit < _MOST_DEAD)
        return [dead_row(each, page) for each in found.dead]

    async def show_more() -> None:
        nonlocal limit
        limit = min(limit * 4, _MOST_DEAD)
        await panel.refresh()

    async def act(what: str, dead_id: str) -> None:
        if what == "show" and dead_id in shown:
            show_letter(shown[dead_id])
        elif what == "replay":
            await try_again(dead_id)

    async def try_again(dead_id: str) -> None:
        async def replay() -> str:
            path = "/v1/dead/{dead_id}/replay"
            await page.loop.act("POST", path, dict[str, Any], dead_id=dead_id)
            return "It was taken this time."

        if await carry_out(replay()):
            await panel.refresh()

    panel = table_panel(
        page,
        "Dead letters",
        _DEAD_COLUMNS,
        rows,
        lambda: Tag("p", "None: every message could be read.", "soft"),
        topics=("counts",),
        seconds=5.0,
        least_height=0,
        on_act=act,
    )
    with panel:
        more = button("Show more", show_more)
        more.set_visibility(False)


def show_letter(each: ApiDeadLetter) -> None:
    """What came, as far as it is kept: redacted, and nothing that acts."""
    letter = each.letter
    title = f"Dead letter {short_id(letter.dead_id)}"
    with ui.dialog() as dialog, box("sheet", role="dialog", aria_label=title):
        Tag("h2", title)
        Tag("p", letter.detail, "soft wrap-anywhere")
        said(letter.payload or "Nothing of it is kept.", "code")
        with box("actions"):
            button("Close", dialog.close)
    dialog.on("hide", lambda _: dialog.delete(), [])
    dialog.open()


def dead_row(each: ApiDeadLetter, page: PageContext) -> dict[str, object]:
    letter = each.letter
    again = {"act": "replay", "id": letter.dead_id, "text": "Try again", "off": not page.may_act}
    acts = [{"act": "show", "id": letter.dead_id, "text": "Show"}]
    return {
        "id": letter.dead_id,
        "what": {"text": spoken(letter.reason), "sub": one_line(letter.detail, 300)},
        "stage": each.stage,
        "tries": count(letter.deliveries),
        "when": ago(letter.timestamp, page.now),
        "act": {"acts": [*acts, again] if each.replayed is None else acts},
    }
