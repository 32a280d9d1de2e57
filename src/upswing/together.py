"""How do several loops run as one, and really end when it ends?

A group of asyncio cancels its tasks once. Python 3.11's `wait_for`, which clients of ours use, loses a
cancellation that meets its result: such a task goes on, and whoever waits for it waits for ever. So a
task that is to end is told so until it has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

log = logging.getLogger(__name__)
_AGAIN_SECONDS = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a part that broke begins again, doubled each time it breaks soon."""


async def patiently(
    name: str, work: Callable[[], Awaitable[None]], *, failed: Callable[[str], None],
    again: bool = True, fatal: tuple[type[Exception], ...] = (), pause: float = _FIRST_PAUSE,
) -> None:  # fmt: skip
    """Run a part for ever: an error nobody foresaw is logged and counted, and it begins again.

    Without `again`, and when the error is `fatal`, it is raised: to go on would be wrong.
    """
    now, wait = asyncio.get_running_loop().time, pause
    while True:
        began = now()
        try:
            return await work()
        except fatal:
            raise
        except Exception:
            failed(name)
            if not again:
                raise
            wait = pause if now() - began > _LONGEST_PAUSE else min(_LONGEST_PAUSE, 2 * wait)
            told = "%s broke, and begins again in %g s"
            log.exception(told, name, wait, extra={"action": "alert", "part": name})
        await asyncio.sleep(wait)


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Run all until one breaks, whose error is raised, or until this is cancelled. Then all have ended."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        await end(tasks)


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these until all are over. A cancellation of whoever waits here counts when they are."""
    left = {task for task in tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    while left:
        for task in left:
            task.cancel()
        try:
            _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
