"""What do several pages show? Decisions in words, the steps of a rollout, trees of facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import markdown2
from nicegui import ui
from nicegui.element import Element

from upswing.dashboard.answers import ApiDecision, ApiRollout, ApiValidation
from upswing.dashboard.core.text import as_text, one_line, page_markdown
from upswing.dashboard.core.wording import ago, moment, percent, signed
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge, badge_cell, box, link, said

_MARKDOWN = ["tables", "fenced-code-blocks", "cuddled-lists", "code-friendly"]
"""`code-friendly`: an underscore in a name is an underscore."""


def decision_feed(decisions: Sequence[ApiDecision], now: datetime | None) -> Element:
    """The newest first, each as the sentence that the loop journalled."""
    with box("feed", "ul") as made:
        for each in decisions:
            with box(tag="li"):
                Tag("time", ago(each.decided, now), title=moment(each.decided))
                with box():
                    badge(each.stage, "")
                link(
                    each.sentence,
                    f"/decisions/{quote(each.decision_id, safe='')}",
                    "wrap-anywhere soft",
                )
    return made


def rollout_steps(rollout: ApiRollout) -> None:
    """The ramp: what is done, where it stands."""
    if not rollout.steps:
        return
    with box("steps", aria_label=f"Step {rollout.step or 0} of {len(rollout.steps)}", role="img"):
        for number, share in enumerate(rollout.steps, 1):
            done = rollout.state in {"promoted", "succeeded"} or (rollout.step or 0) > number
            state = "done" if done else "now" if rollout.step == number else ""
            with box(state):
                box(tag="i")
                Tag("span", percent(share))


def tree_details(title: str, tree: Mapping[str, Any] | Sequence[Any] | None) -> None:
    """Everything that is known, folded."""
    if not tree:
        return
    with box("more", "details"):
        Tag("summary", title)
        said(as_text(tree), "code")


def draw_markdown(text: str) -> None:
    """Markdown of the loop's own making, with names in it that others chose: markup in it is shown as text."""
    html = markdown2.markdown(page_markdown(text), safe_mode="escape", extras=_MARKDOWN)
    ui.html(html, sanitize=True).classes("markdown")


VALIDATION_COLUMNS = (
    ("what", "Validation"),
    ("verdict", "Verdict", "slim"),
    ("gain", "Improvement", "num"),
    ("when", "When", "slim"),
)


def validation_row(each: ApiValidation, page: PageContext) -> dict[str, object]:
    return {
        "id": each.validation_id,
        "what": {
            "text": f"{each.model_id} against {each.against}",
            "href": f"/validations/{quote(each.validation_id, safe='')}",
            "sub": one_line(each.sentence or "", 240),
        },
        "verdict": badge_cell(each.word or each.state),
        "gain": signed(each.improvement),
        "when": ago(each.ended or each.started, page.now),
    }


ROLLOUT_COLUMNS = (
    ("model", "Rollout"),
    ("state", "State", "slim"),
    ("share", "Traffic", "num"),
    ("when", "Began", "slim"),
)


def rollout_row(each: ApiRollout, page: PageContext) -> dict[str, object]:
    return {
        "id": each.rollout_id,
        "model": {
            "text": each.model_id,
            "href": f"/rollouts/{quote(each.rollout_id, safe='')}",
            "sub": one_line(each.sentence, 240),
        },
        "state": badge_cell(each.state),
        "share": percent(each.traffic_percentage),
        "when": ago(each.began or each.created, page.now),
    }


def model_path(model_id: str) -> str:
    """Where a model's page is; its name may have slashes, so it is no part of the path.

    >>> model_path("org/theirs")
    '/model?id=org%2Ftheirs'
    """
    return f"/model?{urlencode({'id': model_id})}"


def model_link(model_id: str) -> None:
    """A model's name, which leads to it; empty: there is none yet."""
    if not model_id:
        Tag("span", "nothing yet")
        return
    link(model_id, model_path(model_id), "wrap-anywhere")
