"""How does a part of a page get its content, and what does it say when it cannot be had?

| loading it                      | the panel                                                    |
|---------------------------------|--------------------------------------------------------------|
| works                           | shows it                                                     |
| is not offered by this loop     | says so, quietly, and does not ask again                     |
| fails for now                   | keeps what it showed, and says so                            |
| is refused                      | shows the loop's sentence                                    |
| has not worked yet              | shows nothing of what it was drawn with: nobody knows yet    |

A panel is loaded when its page opens, and again when one of its topics has changed, but not more often than every
`seconds`. Its place is there from the start: nothing on a page moves when an answer comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar

from nicegui.element import Element

from upswing.dashboard.client import NotOffered
from upswing.dashboard.widgets.context import PageContext
from upswing.dashboard.widgets.elements import Column, Rows, Tag, box
from upswing.errors import Denied, Forbidden, Transient, UpswingError
from upswing.infra.tasks import cancel_all, start_task

Load = Callable[[], Awaitable[None]]
T = TypeVar("T")
_TIMES_OLD_SECONDS = 30.0
"""After which `5 min ago` is said anew, though nothing else changed."""


class Panel:
    """A card whose content comes from the loop."""

    def __init__(
        self,
        page: PageContext,
        title: str = "",
        *,
        topics: tuple[str, ...] = (),
        seconds: float = 2.0,
        classes: str = "card",
        least_height: int = 0,
    ) -> None:
        """`least_height` in pixels, for what is drawn only when the answer is there."""
        self._page, self._topics, self._seconds = page, ("lost", *topics), seconds
        self._load: Load | None = None
        self._seen, self._loaded_at = -1, 0.0
        self._over = False
        self._task: asyncio.Task[None] | None = None
        self._loading = asyncio.Lock()
        with box(classes, "section") as self.card:
            if title:
                with box("card-head") as self.head:
                    self.title = Tag("h2", title)
            self.body = box("stack")
            if least_height:
                self.body.style(f"min-height:{least_height}px")
            self.problem = Tag("p", "", "note")
            self.problem.set_visibility(False)
        page.panels.append(self)

    def __enter__(self) -> Element:
        return self.body.__enter__()

    def __exit__(self, *details: object) -> None:
        self.body.__exit__(*details)

    def loads(self, load: Load) -> None:
        """What fills it; called when the page is there. Until then it claims nothing."""
        self._load = load
        self.body.classes("unloaded")

    async def look(self) -> None:
        """Load it if something changed."""
        version = self._page.feed.version(self._topics)
        due = monotonic() - self._loaded_at >= self._seconds
        if self._load is None or self._over or self._loading.locked():
            return
        if version != self._seen and (due or self._seen < 0):
            self._seen = version
            await self.refresh()

    async def refresh(self) -> None:
        """Load it now."""
        if self._load is None:
            return
        async with self._loading:
            self._loaded_at = monotonic()
            task = self._task = start_task(self._load_and_say(self._load))
            try:
                await task
            except asyncio.CancelledError:
                if not task.cancelled():  # it is we who are cancelled
                    await cancel_all([task])
                    raise

    def leave(self) -> None:
        """Its page is gone."""
        self._over = True
        if self._task is not None:
            self._task.cancel()

    async def _load_and_say(self, load: Load) -> None:
        try:
            await load()
        except NotOffered:
            self._over = True
            self._say("Not available in this loop.")
            self.body.set_visibility(False)
        except Forbidden as error:
            self._say(str(error))
        except Denied:
            self._page.session.ended = True
        except Transient as error:
            self._say(f"Not up to date. {error}")
        except UpswingError as error:
            self._say(str(error))
        else:
            self.body.classes(remove="unloaded")
            self._say("")

    def _say(self, sentence: str) -> None:
        self.problem.set_text(sentence)
        self.problem.set_visibility(bool(sentence))


def drawn_panel(
    page: PageContext,
    title: str,
    fetch: Callable[[], Awaitable[T]],
    draw: Callable[[T], object],
    *,
    topics: tuple[str, ...] = (),
    seconds: float = 2.0,
    least_height: int = 0,
    classes: str = "card",
) -> Panel:
    """A panel that is drawn anew when its answer is another one, or when its times would be old."""
    panel = Panel(
        page, title, topics=topics, seconds=seconds, least_height=least_height, classes=classes
    )
    with panel:
        place = box("stack")
    last: list[tuple[T, float]] = []

    async def load() -> None:
        found = await fetch()
        if last and last[0][0] == found and monotonic() - last[0][1] < _TIMES_OLD_SECONDS:
            return
        last[:] = [(found, monotonic())]
        place.clear()
        with place:
            draw(found)

    panel.loads(load)
    return panel


def table_panel(
    page: PageContext,
    title: str,
    columns: Sequence[Column],
    fetch: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
    nothing: Callable[[], Element],
    *,
    topics: tuple[str, ...] = (),
    seconds: float = 3.0,
    least_height: int = 120,
    on_act: Callable[[str, str], Any] | None = None,
) -> Panel:
    """A panel with a table, or with what to do where there is no row yet."""
    panel = Panel(page, title, topics=topics, seconds=seconds, least_height=least_height)
    with panel:
        rows = Rows(title or "Rows", columns, on_act)
        empty = nothing()
        empty.set_visibility(False)

    async def load() -> None:
        found = await fetch()
        rows.show(found)
        rows.set_visibility(bool(found))
        empty.set_visibility(not found)

    panel.loads(load)
    return panel
