"""Which settings hold, who says so, and who did what?"""

from __future__ import annotations

from upswing.dashboard.answers import ApiAudit, ApiAuditEntry, ApiSetting, ApiSettings
from upswing.dashboard.core.text import as_text, one_line
from upswing.dashboard.core.wording import ago
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Field, Rows, Tag
from upswing.dashboard.widgets.frame import page_head
from upswing.dashboard.widgets.panel import Panel, table_panel

_TONES = {"default": "", "environment": "warn"}


def settings_page(page: PageContext) -> None:
    with page.begin():
        page_head(
            "Settings",
            "What is in force, and who says so. They are changed in upswing.toml and the environment.",
        )
        _setting_panel(page)
        _audit_panel(page)


def _setting_panel(page: PageContext) -> None:
    panel = Panel(page, "In force", seconds=3600, least_height=300)
    found: list[ApiSetting] = []

    def show() -> None:
        needle = wanted.text.lower()
        rows.show([setting_row(each) for each in found if needle in _searched(each)])

    with panel:
        wanted = Field("Find", "search", placeholder="a name, a section, a source")
        rows = Rows(
            "Settings", (("name", "Setting"), ("value", "Value"), ("source", "From", "slim"))
        )
    wanted.on_value_change(lambda _: show())

    async def load() -> None:
        found[:] = (await page.loop.get("/v1/settings", ApiSettings)).settings
        show()

    panel.loads(load)


def _searched(each: ApiSetting) -> str:
    return f"{each.section}.{each.name} {each.source} {each.variable or ''}".lower()


def setting_row(each: ApiSetting) -> dict[str, object]:
    variable = each.variable if each.source == "environment" else None
    return {
        "id": f"{each.section}.{each.name}",
        "name": {"text": f"{each.section}.{each.name}", "sub": one_line(each.doc or "", 300)},
        "value": one_line(as_text(each.value) or "–", 200),
        "source": {"badge": variable or each.source, "tone": _TONES.get(each.source, "accent")},
    }


def _audit_panel(page: PageContext) -> None:
    async def rows() -> list[dict[str, object]]:
        found = await page.loop.get("/v1/audit", ApiAudit, {"limit": 50})
        return [audit_row(each, page) for each in found.entries]

    table_panel(
        page,
        "Who did what",
        (("what", "Action"), ("who", "Who"), ("when", "When", "slim")),
        rows,
        lambda: Tag("p", "No operator has done anything yet.", "soft"),
        topics=("audit",),
        seconds=2.0,
    )


def audit_row(each: ApiAuditEntry, page: PageContext) -> dict[str, object]:
    return {
        "id": str(each.seq),
        "what": {
            "text": one_line(f"{each.what} {each.about}", 120),
            "sub": one_line(as_text(each.detail), 200) if each.detail else "",
        },
        "who": one_line(each.who, 60),
        "when": ago(each.at, page.now),
    }
