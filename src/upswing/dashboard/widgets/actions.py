"""How does an operator act? The page asks first, the loop decides, and what it says is shown.

Whoever may only read sees what could be done, and why it is not for this key. Whatever is done goes to the loop with
the user's own key, so that the loop's own check and its audit hold, whatever this page shows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui import ui

from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Field, Tag, box, button
from upswing.errors import UpswingError

Act = Callable[[str], Awaitable[str]]
"""Is told the reason that was given; says what came of it."""
READ_ONLY = "This key may read. An operator’s key may act."


def notify(sentence: str, *, good: bool = True) -> None:
    ui.notify(sentence, type="positive" if good else "negative", position="bottom", timeout=6000)


async def carry_out(work: Awaitable[str]) -> bool:
    """Do it and say what came of it; False when it was refused."""
    try:
        sentence = await work
    except UpswingError as error:
        notify(str(error), good=False)
        return False
    notify(sentence)
    return True


def action_button(
    page: PageContext,
    text: str,
    on_click: Callable[[], Any],
    classes: str = "",
    *,
    icon: str = "",
    **attributes: str | bool,
) -> Tag:
    """A button for operators; for others it is there and says why it does nothing."""
    if page.may_act:
        return button(text, on_click, classes, icon=icon, **attributes)
    off = {**attributes, "title": READ_ONLY, "disabled": True}
    return button(text, lambda: None, classes, icon=icon, **off)


def confirm(
    title: str,
    question: str,
    act: Act,
    *,
    verb: str,
    danger: bool = False,
    reason: bool = True,
    must_type: str = "",
    after: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Ask before something is done; with `must_type`, that has to be typed first."""
    with ui.dialog() as dialog, box("sheet", role="dialog", aria_label=title):
        Tag("h2", title)
        Tag("p", question, "soft wrap-anywhere")
        why = (
            Field("Why (for the audit)", "text", placeholder="optional", most=1000)
            if reason
            else None
        )
        typed = Field(f"Type {must_type} to go on") if must_type else None

        async def go() -> None:
            if typed is not None and typed.text != must_type:
                notify(f"Type {must_type} exactly.", good=False)
                return
            if await carry_out(act(why.text if why else "")):
                dialog.close()
                if after is not None:
                    await after()

        with box("actions"):
            button("Cancel", dialog.close)
            tone = "danger primary" if danger else "primary"
            button(verb, go, tone)
    dialog.on("hide", lambda _: dialog.delete(), [])
    dialog.open()
