"""What was a trajectory worth and why, what did people say of it, and who learned from it?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote

from upswing.dashboard.answers import ApiRevision, ApiTrajectoryView, ApiUse
from upswing.dashboard.core.rewards import ShownTerm, revision_words, reward_terms
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import ago, lasted, moment, score, short_id, spoken
from upswing.dashboard.pages.parts import model_link, tree_details
from upswing.dashboard.widgets.actions import action_button, carry_out
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Tag, badge, box, fact_list, link, said
from upswing.dashboard.widgets.panel import Panel, drawn_panel

_SPOKEN = ("reward", "counts")
"""Topics after which the reward or what people said may be another."""
_TONES = {"thumbs_up": "good", "thumbs_down": "bad"}


class TrajectoryAside:
    """The panels beside the turns."""

    def __init__(
        self,
        page: PageContext,
        trajectory_id: str,
        view: Callable[[], Awaitable[ApiTrajectoryView]],
    ) -> None:
        self.page, self.id, self.view = page, trajectory_id, view
        self.panels: list[Panel] = []

    def draw(self) -> None:
        page, view = self.page, self.view
        reward = drawn_panel(
            page,
            "Reward",
            self._revisions,
            draw_reward,
            topics=_SPOKEN,
            seconds=1.5,
            least_height=180,
        )
        with box("card stack", "section"):
            Tag("h2", "What people said")
            self._feedback_buttons()
            words = drawn_panel(
                page, "", view, self._draw_feedback, topics=_SPOKEN, seconds=1.5, classes="stack"
            )
        self.panels = [reward, words]
        drawn_panel(page, "About", view, draw_facts, seconds=3600)
        drawn_panel(page, "Trained on it", view, draw_uses, topics=("job", "model"), seconds=5.0)

    async def _revisions(self) -> list[ApiRevision]:
        return (await self.view()).rewards

    def _feedback_buttons(self) -> None:
        with box("row"):
            self._thumb("thumbs_up", "Thumbs up", "thumb_up_off_alt")
            self._thumb("thumbs_down", "Thumbs down", "thumb_down_off_alt")
            with box("stars", role="group", aria_label="Stars"):
                for stars in range(1, 6):
                    label = f"{stars} of 5 stars"
                    give = partial(self._give, "rating", label, stars)
                    action_button(self.page, "★", give, aria_label=label).classes(remove="button")

    def _thumb(self, kind: str, label: str, icon: str) -> None:
        give = partial(self._give, kind, label)
        action_button(self.page, "", give, "icon-button", icon=icon, aria_label=label)

    async def _give(self, kind: str, label: str, rating: int | None = None) -> None:
        async def work() -> str:
            holder = self.page.session.holder
            await self.page.loop.give_feedback(self.id, holder, kind, rating=rating)
            return f"{label}: taken; the reward is revised."

        if await carry_out(work()):
            for panel in self.panels:
                await panel.refresh()

    def _draw_feedback(self, found: ApiTrajectoryView) -> None:
        if not found.feedback:
            Tag("p", "Nobody has said anything of it.", "note")
        for each in found.feedback:
            with box("row top unbroken"):
                stars = f"{each.rating} of 5" if each.rating is not None else each.type
                badge(stars, _TONES.get(each.type, ""))
                with box("grow"):
                    who = one_line(each.user_id or each.principal or "somebody", 40)
                    by = f", {one_line(each.source, 30)}" if each.source else ""
                    when = ago(each.stored, self.page.now)
                    Tag("span", f"{who}{by}, {when}", "small soft")
                    if each.comment:
                        said(each.comment)


def draw_reward(revisions: list[ApiRevision]) -> None:
    """The newest one term by term, and what it was before."""
    if not revisions:
        Tag("p", "It is not scored yet.", "note")
        return
    newest = revisions[-1]
    shown = reward_terms(newest.reward)
    with box("stats"):
        for label, value in (("raw total", shown.raw_total), ("normalised", shown.total)):
            with box("stat"):
                Tag("div", score(value), "value")
                Tag("div", label, "label")
    with box():
        for term in shown.terms:
            _draw_term(term)
    Tag("p", revision_words(revisions), "note", data_revision=str(newest.revision))


def _draw_term(term: ShownTerm) -> None:
    why = f"{spoken(term.source)}: {term.reasoning}" if term.reasoning else spoken(term.source)
    with box("term"):
        Tag("span", spoken(term.name), "strong")
        Tag("span", f"{score(term.score, 2)} × {score(term.weight, 2)}", "soft")
        with box("bar"):
            box(tag="i").style(f"width:{term.percent:.0f}%")
        Tag("span", one_line(why, 400), "why")


def draw_facts(found: ApiTrajectoryView) -> None:
    row = found.summary
    with box("row"):
        badge(row.outcome)
        if row.outcome_source:
            Tag("span", row.outcome_source, "small quiet")
        if found.pinned:
            badge("pinned as test", "accent")
    fact_list(
        (
            ("Agent", one_line(row.agent_id, 80)),
            ("User", one_line(row.user_id or "–", 80)),
            ("Model", lambda: model_link(row.model)),
            ("Domain", spoken(row.domain or "–")),
            ("Came by", row.door or "–"),
            ("Stored", moment(row.stored)),
            ("Lasted", lasted(row.started, row.ended)),
            ("Window", one_line(found.window_id or "–", 40)),
        )
    )
    tree_details("Metadata", (found.trajectory or {}).get("metadata"))
    tree_details("Judgement", found.judgement)


def draw_uses(found: ApiTrajectoryView) -> None:
    if not found.used_in:
        Tag("p", "No model has learned from it.", "note")
    for use in found.used_in:
        with box("row"):
            _draw_use(use)


def _draw_use(use: ApiUse) -> None:
    if use.model_id:
        model_link(use.model_id)
    else:
        link(f"Job {short_id(use.job_id)}", f"/jobs/{quote(use.job_id, safe='')}")
    if use.model_state:
        badge(use.model_state)
    if use.revision is not None:
        Tag("span", f"with revision {use.revision} of its reward", "small quiet")
