"""How does work run beside other work, who hears when it breaks, and does it really end?

Every task of ours is begun here, by one of these:

| begun by    | when it breaks                                                               |
|-------------|------------------------------------------------------------------------------|
| `begin`     | whoever began it awaits it, and hears the error there                        |
| `aside`     | it is logged; nobody waits for it                                            |
| `vital`     | it is logged and its owner is told, who ends the process; so is an early end |
| `kept`      | it is logged, and begun anew after a pause                                   |
| `patiently` | it is logged and counted, and begun anew after a pause that grows             |
| `together`  | the others end, and its error is raised                                      |
| `helped`    | the work that it helps ends, and its error is raised                         |

A group of asyncio cancels its tasks once. Python 3.11's `wait_for`, which clients of ours use, loses a
cancellation that meets its result: such a task goes on, and whoever waits for it waits for ever. So a
task that is to end is told so until it has.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from upswing.errors import Transient

log = logging.getLogger(__name__)
T = TypeVar("T")
Work = Coroutine[Any, Any, T]
_AGAIN_SECONDS = 0.5
_PAUSE_SECONDS = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a part that broke begins again, doubled each time it breaks soon."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
_asides: set[asyncio.Task[Any]] = set()
"""The event loop itself holds its tasks weakly."""


def begin(work: Work[T], *, name: str | None = None) -> asyncio.Task[T]:
    """For whoever awaits the result, and with it the error."""
    return asyncio.get_running_loop().create_task(work, name=name)


def aside(work: Work[T], *, name: str) -> asyncio.Task[T]:
    """For what nobody waits for: an error is logged."""
    task = begin(work, name=name)
    _asides.add(task)
    task.add_done_callback(_asides.discard)
    task.add_done_callback(_told)
    return task


def vital(work: Work[None], *, name: str, broke: Callable[[], None]) -> asyncio.Task[None]:
    """For what its process cannot do without: `broke` hears that it is over, unless it was cancelled."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            if task.exception() is None:
                log.error("%s has ended, and should not", name, extra={"action": "ended"})
            broke()

    task = aside(work, name=name)
    task.add_done_callback(ended)
    return task


def kept(
    work: Callable[[], Awaitable[None]], *, name: str, pause: float = _PAUSE_SECONDS
) -> asyncio.Task[None]:
    """For what has to go on whatever happens: it is begun anew until it comes to its own end."""

    async def again() -> None:
        while True:
            try:
                await work()
            except Transient as error:
                log.warning("%s: %s", name, error, extra={"action": "again"})
            except Exception:
                log.exception("%s broke and is begun anew", name, extra={"action": "broke"})
            else:
                return
            await asyncio.sleep(pause)

    return aside(again(), name=name)


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
        except Exception as error:
            failed(name)
            if not again:
                raise
            wait = pause if now() - began > _LONGEST_PAUSE else min(_LONGEST_PAUSE, 2 * wait)
            _tell_broke(name, wait, error)
        await asyncio.sleep(wait)


def _tell_broke(name: str, wait: float, error: Exception) -> None:
    """A disk without room is no fault of the code: a sentence says all, and a traceback nothing more."""
    full = isinstance(error, OSError) and error.errno in _FULL
    told = "%s broke, and begins again in %g s" + (
        ": the disk is full, make room there" if full else ""
    )
    trace = None if full else error
    log.error(told, name, wait, exc_info=trace, extra={"action": "alert", "part": name})


def _told(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s broke", task.get_name(), exc_info=error, extra={"action": "broke"})


async def together(*works: Work[None]) -> None:
    """Run all until one breaks, whose error is raised, or until this is cancelled. Then all have ended."""
    tasks = [begin(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        await end(tasks)


async def helped(work: Work[T], **helpers: Work[None]) -> T:
    """What `work` comes to, while its helpers run. One that breaks, or ends, breaks the work as well."""
    doing = begin(work)
    beside = {begin(helper, name=name) for name, helper in helpers.items()}
    try:
        done, _ = await asyncio.wait({doing, *beside}, return_when=asyncio.FIRST_COMPLETED)
        if doing not in done:
            helper = done.pop()
            await helper
            raise RuntimeError(f"The {helper.get_name()} has ended before its work did.")
        return doing.result()
    finally:
        await end((doing, *beside))


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
