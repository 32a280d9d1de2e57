"""What does a page know while it is built? Whose session it is, the loop as its key sees it, and what is live."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from nicegui import ui
from nicegui.element import Element

from upswing.dashboard.answers import ApiOverview
from upswing.dashboard.client import LoopClient, NoSuchThing
from upswing.dashboard.core.sessions import Session
from upswing.dashboard.live import LiveFeed
from upswing.dashboard.widgets.elements import Tag, box, empty_state
from upswing.errors import UpswingError
from upswing.infra.tasks import start_task

if TYPE_CHECKING:
    from upswing.dashboard.widgets.panel import Panel

_SETTLE_SECONDS = 5.0
"""After which a page is shown though some of its answers are not there yet."""
_TIME_SECONDS = 5.0
"""Between two questions for the loop's time."""


@dataclass(slots=True)
class PageContext:
    """One open tab."""

    session: Session
    loop: LoopClient
    feed: LiveFeed
    now: datetime | None = None
    """The loop's own time, as it last said it: a demo's runs faster than ours."""
    panels: list[Panel] = field(default_factory=list)
    """Those of the page that is shown; each is looked at once a second."""
    _now_read: float = float("-inf")
    _shell: Element | None = None
    _subject: Callable[[], Awaitable[object]] | None = None

    @property
    def may_act(self) -> bool:
        return self.session.holder.may_act

    def begin(self, subject: Callable[[], Awaitable[object]] | None = None) -> Element:
        """Where another page is drawn. It is seen at once when its first answers are there, so that nothing moves.

        `subject` reads what the page is about: where the loop knows no such thing, the page says that once, and
        nothing else.
        """
        self.leave()
        self._subject = subject
        self._shell = box("page settling")
        with self._shell:
            ui.timer(0.0, self.look, once=True)
        return self._shell

    def leave(self) -> None:
        """The page is gone: what it still loads is not for anybody."""
        for panel in self.panels:
            panel.leave()
        self.panels.clear()
        self._shell = self._subject = None

    async def look(self) -> None:
        """Load what has changed."""
        await self._read_time()
        await self._check_subject()
        shell, looks = self._shell, [start_task(panel.look()) for panel in self.panels]
        if looks:
            await asyncio.wait(looks, timeout=_SETTLE_SECONDS)
        if shell is not None and shell is self._shell:
            shell.classes(remove="settling")
        await asyncio.gather(*looks)

    async def _check_subject(self) -> None:
        """Once; whatever else goes wrong with it, the panels say."""
        subject, shell, self._subject = self._subject, self._shell, None
        if subject is None or shell is None:
            return
        try:
            await subject()
        except NoSuchThing as error:
            if shell is self._shell:
                self.leave()
                shell.clear()
                with shell:
                    Tag("h1", "Not found")
                    empty_state("search_off", "There is nothing here", str(error))
                shell.classes(remove="settling")
        except UpswingError:
            return

    async def _read_time(self) -> None:
        """Now and then: what happened is told as so long ago."""
        if monotonic() - self._now_read < _TIME_SECONDS:
            return
        self._now_read = monotonic()
        with contextlib.suppress(UpswingError):  # then it is told as a date
            self.now = (await self.loop.get("/v1/overview", ApiOverview)).at
