"""Whose keys open the loop?"""

from __future__ import annotations

from typing import Any

from nicegui import ui
from nicegui.element import Element

from upswing.dashboard.answers import ApiKeyRow, ApiKeys, ApiMadeKey
from upswing.dashboard.core.text import one_line
from upswing.dashboard.core.wording import ago
from upswing.dashboard.widgets.actions import carry_out, confirm, notify
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import (
    Field,
    Tag,
    badge_cell,
    box,
    button,
    empty_state,
)
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, table_panel

_SCOPES = (
    ("reader", "reader: sees"),
    ("operator", "operator: acts"),
    ("agent", "agent: records and asks models"),
    ("assistant", "assistant: sees, and asks for what a person confirms"),
    ("gateway", "gateway"),
)
_COLUMNS = (
    ("name", "Key"),
    ("scope", "Scope", "slim"),
    ("state", "State", "slim"),
    ("made", "Made", "slim"),
    ("act", "", "slim"),
)


def keys_page(page: PageContext) -> None:
    with page.begin():
        page_head(
            "Keys", "Who may record, read and act. A key is shown once; the loop keeps its hash."
        )
        form = box("card stack")

        async def rows() -> list[dict[str, object]]:
            found = await page.loop.get("/v1/keys", ApiKeys)
            return [key_row(each, page) for each in found.keys]

        panel = table_panel(
            page,
            "",
            _COLUMNS,
            rows,
            lambda: empty_state("vpn_key", "No key", "Make one above."),
            topics=("audit",),
            on_act=lambda _, key_id: _revoke(page, key_id, panel),
        )
        form.set_visibility(page.may_act)
        with form:
            _new_key_form(page, panel)


def key_row(each: ApiKeyRow, page: PageContext) -> dict[str, object]:
    own = each.key_id == page.session.holder.key_id
    revoke = {"act": "revoke", "id": each.key_id, "text": "Revoke", "tone": "danger"}
    return {
        "id": each.key_id,
        "name": {
            "text": one_line(each.name, 80),
            "sub": each.key_id + (" · the one you use" if own else ""),
        },
        "scope": badge_cell(each.scope),
        "state": badge_cell("revoked") if each.revoked else "works",
        "made": ago(each.created, page.now),
        "act": {"acts": [revoke | {"off": not page.may_act}]}
        if not each.revoked and not own
        else "",
    }


def _revoke(page: PageContext, key_id: str, panel: Panel) -> None:
    async def act(_: str) -> str:
        await page.loop.act("DELETE", "/v1/keys/{key_id}", dict[str, Any], key_id=key_id)
        return "Revoked: it works no more."

    confirm(
        f"Revoke {key_id}?",
        "Whoever uses it is refused from now on. This cannot be undone.",
        act,
        verb="Revoke",
        danger=True,
        reason=False,
        after=panel.refresh,
    )


def _new_key_form(page: PageContext, panel: Panel) -> None:
    Tag("h2", "Make a key")
    with box("filters"):
        name = Field("Name", placeholder="who uses it", most=100)
        scope = Field("Scope", "select", "reader", options=_SCOPES)

        async def make() -> None:
            made: list[ApiMadeKey] = []

            async def work() -> str:
                body = {"name": name.text, "scope": scope.text}
                made.append(await page.loop.act("POST", "/v1/keys", ApiMadeKey, body))
                return "The key works now."

            if await carry_out(work()):
                name.set_value("")
                _show_once(shown, made[0])
                await panel.refresh()

        button("Make key", make, "primary")
    shown = box()


def _show_once(place: Element, made: ApiMadeKey) -> None:
    def copy() -> None:
        ui.clipboard.write(made.key)
        notify("Copied.")

    place.clear()
    with place:
        Tag("p", "Copy it now: it is not shown again.", "note")
        with box("secret"):
            Tag("code", made.key, "grow")
            button("Copy", copy)
            button("Hide", place.clear, "plain")
