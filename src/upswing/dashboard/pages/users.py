"""Who is recorded, and who is not any more?"""

from __future__ import annotations

from upswing.dashboard.answers import ApiErasure, ApiOptOut, ApiOptOuts
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import ago, plural, spelled_list
from upswing.dashboard.widgets.actions import READ_ONLY, action_button, carry_out, confirm, notify
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Field, Tag, box, empty_state
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, table_panel

_COLUMNS = (("user", "User"), ("since", "Since", "slim"), ("act", "", "slim"))


def users_page(page: PageContext) -> None:
    with page.begin():
        page_head("Users", "Stop recording somebody, or erase everything of them.")
        form = box("card stack")

        async def rows() -> list[dict[str, object]]:
            found = await page.loop.get("/v1/optouts", ApiOptOuts, {"limit": 100})
            return [_row(each, page) for each in found.optouts]

        async def record_again(_: str, user: str) -> None:
            if await carry_out(_opt_in(page, user)):
                await panel.refresh()

        panel = table_panel(
            page,
            "Not recorded",
            _COLUMNS,
            rows,
            lambda: empty_state(
                "people_outline",
                "Everybody is recorded",
                "Whoever does not want that is entered above.",
            ),
            topics=("audit", "counts"),
            on_act=record_again,
        )
        with form:
            _form(page, panel)


def _row(each: ApiOptOut, page: PageContext) -> dict[str, object]:
    again = {"act": "in", "id": each.user, "text": "Record again", "off": not page.may_act}
    return {
        "id": each.user,
        "user": one_line(each.user, 80),
        "since": ago(each.since, page.now),
        "act": {"acts": [again]},
    }


def _form(page: PageContext, panel: Panel) -> None:
    Tag("h2", "A user’s rights")
    about = "The id under which agents know them; an e-mail address is looked up by its pseudonym."
    Tag("p", about, "soft")
    if not page.may_act:
        Tag("p", READ_ONLY, "note")
    user = Field("User", placeholder="such as user-17", most=200)
    with box("row"):
        action_button(page, "Stop recording", lambda: _opt_out(page, user.text, panel))
        action_button(page, "Erase everything", lambda: _erase(page, user.text, panel), "danger")


async def _opt_in(page: PageContext, user: str) -> str:
    await page.loop.act("DELETE", "/v1/optouts/{user}", ApiOptOut, user=user)
    return f"{one_line(user, 60)} is recorded again."


def _opt_out(page: PageContext, user: str, panel: Panel) -> None:
    if not user:
        notify("Say which user.", good=False)
        return

    async def act(_: str) -> str:
        done = await page.loop.act("PUT", "/v1/optouts/{user}", ApiOptOut, user=user)
        return f"{one_line(done.user, 60)} is not recorded any more."

    confirm(
        "Stop recording?",
        f"Nothing of {one_line(user, 60)} is stored from now on. What is stored stays until it is erased.",
        act,
        verb="Stop recording",
        reason=False,
        after=panel.refresh,
    )


def _erase(page: PageContext, user: str, panel: Panel) -> None:
    if not user:
        notify("Say which user.", good=False)
        return

    async def act(_: str) -> str:
        gone = await page.loop.act("DELETE", "/v1/users/{user}/data", ApiErasure, user=user)
        return erasure_words(gone)

    confirm(
        "Erase everything?",
        "Trajectories, rewards, feedback, dead letters and archived copies of this user are deleted. This cannot be undone.",
        act,
        verb="Erase",
        danger=True,
        reason=False,
        must_type=user,
        after=panel.refresh,
    )


def erasure_words(gone: ApiErasure) -> str:
    """What is gone, and who has learned from it already."""
    letters = plural(gone.dead_letters, "dead letter")
    words = f"Erased: {plural(gone.trajectories, 'trajectory', 'trajectories')}, {gone.feedback} feedback, {letters}."
    if gone.models_that_saw:
        words += f" Models that learned from it: {spelled_list(gone.models_that_saw)}."
    return words
