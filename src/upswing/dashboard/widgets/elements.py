"""What is a page built of? Plain elements of HTML with our classes; all text is text, never markup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement
from nicegui.elements.mixins.value_element import ValueElement
from nicegui.events import GenericEventArguments

from upswing.dashboard.core.text import SHOWN, pieces_of
from upswing.dashboard.core.wording import spoken, tone_of

Handler = Callable[[], Any]
Cell = str | Mapping[str, Any] | None
Column = tuple[str, str] | tuple[str, str, str]
"""Its key, its title, and `num` or `slim`."""
_MORE = 40_000
"""Characters more of a long text, each time that somebody asks."""


class Tag(TextElement):
    """An element of HTML with a text; `attributes` become its own."""

    def __init__(
        self, tag: str, text: object = "", classes: str = "", **attributes: str | int | bool
    ) -> None:
        super().__init__(tag=tag, text=str(text))
        if classes:
            self.classes(classes)
        for name, value in attributes.items():
            self._props[name.rstrip("_").replace("_", "-")] = value


def box(classes: str = "", tag: str = "div", **attributes: str | int | bool) -> Element:
    """An element that holds others."""
    made = ui.element(tag)
    if classes:
        made.classes(classes)
    for name, value in attributes.items():
        made._props[name.rstrip("_").replace("_", "-")] = value  # noqa: SLF001 - its own door parses text
    return made


def button(
    text: str, on_click: Handler, classes: str = "", *, icon: str = "", **attributes: str | bool
) -> Tag:
    """A button; with `icon` alone it needs an `aria_label`."""
    made = Tag("button", "" if icon else text, f"button {classes}", type="button", **attributes)
    if icon:
        with made:
            ui.icon(icon)
            if text:
                Tag("span", text)
    made.on("click", lambda _: on_click(), [])
    return made


def link(text: str, href: str, classes: str = "") -> Tag:
    return Tag("a", text, classes, href=href)


def badge(word: str, tone: str | None = None) -> Tag:
    return Tag("span", spoken(word), f"badge {tone_of(word) if tone is None else tone}")


def set_badge(made: Tag, word: str) -> None:
    """Another state in the same badge."""
    made.set_text(spoken(word))
    made.classes(replace=f"badge {tone_of(word)}")


def badge_cell(word: str, text: str | None = None) -> Cell:
    """A badge in a table."""
    return (
        {"badge": spoken(word) if text is None else text, "tone": tone_of(word)} if word else None
    )


def empty_state(icon: str, title: str, what_next: str, command: str = "") -> Element:
    """Nothing here yet: why, and what to do next."""
    with box("empty") as made:
        ui.icon(icon)
        Tag("strong", title)
        with box():
            Tag("span", what_next)
            if command:
                Tag("span", " ")
                Tag("code", command)
    return made


def fact_list(facts: Iterable[tuple[str, object]]) -> Element:
    """Names and values below each other; a value may be a function that draws it."""
    with box("facts", "dl") as made:
        for name, value in facts:
            Tag("dt", name)
            if callable(value):
                with box(tag="dd"):
                    value()
            else:
                Tag("dd", value)
    return made


def stat(label: str, value: str = "–") -> tuple[Tag, Tag]:
    """A number with its name below; both can be changed."""
    with box("stat"):
        shown = Tag("div", value, "value")
        named = Tag("div", label, "label")
    return shown, named


class Rows(Element, component="rows.js"):
    """A table; the first column names the row and may be a link over the whole of it."""

    def __init__(
        self,
        label: str,
        columns: Sequence[Column],
        on_act: Callable[[str, str], Any] | None = None,
    ) -> None:
        """`on_act` is told which button of which row."""
        super().__init__()
        self._props["label"] = label
        self._props["columns"] = [
            {"key": each[0], "label": each[1], "kind": each[2] if len(each) > 2 else ""}
            for each in columns
        ]
        self._props["rows"] = []
        if on_act is not None:

            def handle(event: GenericEventArguments) -> Any:
                return on_act(str(event.args["act"]), str(event.args["id"]))

            self.on("act", handle)

    def show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Each row has an `id`, and a `Cell` for each column. Nothing is sent when they are the same."""
        if self._props["rows"] != list(rows):
            self._props["rows"] = list(rows)


class Said(Element, component="said.js"):
    """A text that anybody may have written."""

    def __init__(self, text: str, classes: str = "", *, limit: int = SHOWN) -> None:
        super().__init__()
        self._text_shown, self._limit = text, limit
        if classes:
            self.classes(classes)
        self._draw()

    @property
    def is_cut(self) -> bool:
        return len(self._text_shown) > self._limit

    def show_more(self) -> None:
        self._limit += _MORE
        self._draw()

    def _draw(self) -> None:
        self._props["pieces"] = pieces_of(self._text_shown, self._limit)


def said(text: str, classes: str = "") -> Said:
    """The text, and a button for more of it where it is long."""
    with box("stack tight"):
        made = Said(text, classes)
        if made.is_cut:

            def more() -> None:
                made.show_more()
                asks.set_visibility(made.is_cut)

            asks = button("Show more", more, "plain")
    return made


class Field(ValueElement[str], component="field.js"):
    """A labelled field: `text`, `number`, `search`, `datetime-local`, `select` or `area`."""

    LOOPBACK = False

    def __init__(
        self,
        label: str,
        kind: str = "text",
        value: str = "",
        *,
        options: Sequence[tuple[str, str]] = (),
        placeholder: str = "",
        wide: bool = False,
        most: int = 500,
        on_enter: Handler | None = None,
    ) -> None:
        super().__init__(value=value)
        self._props["label"], self._props["kind"] = label, kind
        self._props["options"], self._props["placeholder"] = (
            [list(each) for each in options],
            placeholder,
        )
        self._props["wide"], self._props["most"] = wide, most
        if on_enter is not None:
            self.on("enter", lambda _: on_enter(), [])

    @property
    def text(self) -> str:
        return str(self.value or "").strip()

    def choose_from(self, options: Sequence[tuple[str, str]]) -> None:
        self._props["options"] = [list(each) for each in options]


def segmented(
    label: str, choices: Sequence[tuple[str, str]], chosen: str, on_choose: Callable[[str], Any]
) -> Element:
    """One of a few, side by side."""
    buttons: dict[str, Tag] = {}

    def choose(value: str) -> Any:
        for name, made in buttons.items():
            made._props["aria-pressed"] = "true" if name == value else "false"  # noqa: SLF001
            made.update()
        return on_choose(value)

    with box("segmented", role="group", aria_label=label) as group:
        for value, text in choices:
            pressed = "true" if value == chosen else "false"
            buttons[value] = Tag("button", text, type="button", aria_pressed=pressed)
            buttons[value].on("click", lambda _, value=value: choose(value), [])
    return group
