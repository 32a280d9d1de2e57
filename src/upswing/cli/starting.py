"""When is the loop ready? When a model has answered through its gateway; until then it says what it waits for.

    begun ─▶ store ─▶ bus ─▶ workers ─▶ gateway ─▶ model server ─▶ traffic plan ─▶ one token ─▶ ready

On a terminal that is one line, which is written again and again; elsewhere a plain line for each change.
The question for one token is marked as a probe: the gateway neither records nor counts it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from upswing.errors import UpswingError

if TYPE_CHECKING:
    from upswing.infra.instance import InstanceInfo
    from upswing.serve.readiness import ProbeAnswer

_POLL_SECONDS = 0.1
_AGAIN_SECONDS = 1.0
"""After an answer that was none."""
_CLEAR = "\r\x1b[K"


class StartProgress:
    """Says what is waited for, and since when."""

    def __init__(self, out: TextIO, *, now: Callable[[], float] = monotonic) -> None:
        self._out, self._now, self._moving = out, now, out.isatty()
        self._began, self._what = now(), ""

    @property
    def seconds(self) -> float:
        return self._now() - self._began

    def show_waiting(self, what: str) -> None:
        """Now for this; the same again is said on a terminal only, where the line moves."""
        if not what or (what == self._what and not self._moving):
            return
        self._what = what
        line = f"Waiting for {what} …"
        text = f"{_CLEAR}{self.seconds:5.0f} s  {line}" if self._moving else f"{line}\n"
        self._out.write(text)
        self._out.flush()

    def finish(self) -> None:
        """The line goes."""
        if self._moving and self._what:
            self._out.write(_CLEAR)
            self._out.flush()
        self._what = ""

    def keep_clear_of_logs(self) -> None:
        """A line of the log begins where the moving line stood."""
        for handler in logging.getLogger().handlers if self._moving else ():
            handler.addFilter(self._clear_line)

    def _clear_line(self, _: logging.LogRecord) -> bool:
        if self._what:
            self._out.write(_CLEAR)
            self._out.flush()
        return True


async def show_progress(progress: StartProgress, waiting_for: Callable[[], str]) -> None:
    """Say what a part waits for until it is cancelled."""
    while True:
        progress.show_waiting(waiting_for())
        await asyncio.sleep(_POLL_SECONDS)


async def wait_for_first_answer(
    running: InstanceInfo, waiting_for: Callable[[], str], progress: StartProgress
) -> ProbeAnswer:
    """Wait, for as long as it takes, until a model has answered through the gateway."""
    while True:
        try:
            probed = await asyncio.to_thread(_probe_once, running)
        except UpswingError as error:
            progress.show_waiting(f"an answer through the gateway. {error}")
            await asyncio.sleep(_AGAIN_SECONDS)
            continue
        if probed is not None:
            return probed
        progress.show_waiting(waiting_for() or "the gateway to hear who answers")
        await asyncio.sleep(_POLL_SECONDS)


def _probe_once(running: InstanceInfo) -> ProbeAnswer | None:
    """One token; None while the gateway knows of nobody who could answer."""
    from upswing.serve.readiness import gateway_status, probe_one_token

    url = running.gateway_url or ""
    if gateway_status(url) != "ok":
        return None
    return probe_one_token(f"{url}/v1", running.gateway_key, is_gateway=True)
