"""How does work run beside other work, who is notified when it fails, and does it really end?

Every task is started here, by one of these:

| started by          | when it fails                                                                       |
|---------------------|-------------------------------------------------------------------------------------|
| `start_task`        | whoever started it awaits it, and gets the error there                              |
| `run_in_background` | the error is logged; nobody awaits it                                               |
| `run_critical`      | the error is logged and its owner notified, who ends the process; so is an early end |
| `restart_on_error`  | the error is logged, and the work is started again after a pause                    |
| `run_with_backoff`  | the error is logged and counted, and the work is started again after a growing pause |
| `run_all`           | the others are cancelled, and its error is raised                                   |
| `run_with_helpers`  | the work that it helps is cancelled, and its error is raised                        |

A task group of asyncio cancels its tasks once. Python 3.11's `wait_for`, which clients of ours use, loses a
cancellation that meets its result: such a task goes on, and whoever awaits it waits for ever. So `cancel_all`
cancels a task until it has ended.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from upswing.errors import Transient
from upswing.infra.backoff import Backoff

log = logging.getLogger(__name__)
T = TypeVar("T")
Work = Coroutine[Any, Any, T]
_AGAIN_SECONDS = 0.5
_PAUSE_SECONDS = 1.0
RESTARTS = Backoff(1.0, 60.0)
"""Seconds before a part that broke starts again; one that ran for longer than the longest pause is at its first failure."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
_background: set[asyncio.Task[Any]] = set()
"""The event loop itself holds its tasks weakly."""


def start_task(work: Work[T], *, name: str | None = None) -> asyncio.Task[T]:
    """A task whose owner awaits the result, and with it the error."""
    return asyncio.get_running_loop().create_task(work, name=name)


def run_in_background(work: Work[T], *, name: str) -> asyncio.Task[T]:
    """A task that nobody awaits: an error is logged."""
    task = start_task(work, name=name)
    _background.add(task)
    task.add_done_callback(_background.discard)
    task.add_done_callback(_log_failure)
    return task


def run_critical(work: Work[None], *, name: str, on_end: Callable[[], None]) -> asyncio.Task[None]:
    """A task that its process cannot do without: `on_end` is called when it ends, unless it was cancelled."""

    def on_task_end(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            if task.exception() is None:
                log.error("%s has ended, and should not", name, extra={"action": "ended"})
            on_end()

    task = run_in_background(work, name=name)
    task.add_done_callback(on_task_end)
    return task


def restart_on_error(
    work: Callable[[], Awaitable[None]], *, name: str, pause: float = _PAUSE_SECONDS
) -> asyncio.Task[None]:
    """A task that goes on whatever happens: it is started again until it returns."""

    async def run_until_return() -> None:
        while True:
            try:
                await work()
            except Transient as error:
                log.warning("%s: %s", name, error, extra={"action": "again"})
            except Exception:
                log.exception("%s broke and is started again", name, extra={"action": "broke"})
            else:
                return
            await asyncio.sleep(pause)

    return run_in_background(run_until_return(), name=name)


async def run_with_backoff(
    name: str,
    work: Callable[[], Awaitable[None]],
    *,
    on_failure: Callable[[str], None],
    restart: bool = True,
    fatal: tuple[type[Exception], ...] = (),
    backoff: Backoff = RESTARTS,
) -> None:
    """Run a part for ever: an unexpected error is logged and counted, and the part starts again.

    Without `restart`, and when the error is `fatal`, it is raised: to go on would be wrong.
    """
    now, failures = asyncio.get_running_loop().time, 0
    while True:
        began = now()
        try:
            return await work()
        except fatal:
            raise
        except Exception as error:
            on_failure(name)
            if not restart:
                raise
            failures = 1 if now() - began > backoff.longest else failures + 1
            pause = backoff.seconds(failures)
            _log_restart(name, pause, error)
        await asyncio.sleep(pause)


def _log_restart(name: str, pause: float, error: Exception) -> None:
    """A disk without room is no fault of the code: a sentence says all, and a traceback nothing more."""
    full = isinstance(error, OSError) and error.errno in _FULL
    message = "%s broke, and starts again in %g s" + (
        ": the disk is full, make room there" if full else ""
    )
    trace = None if full else error
    log.error(
        message,
        name,
        pause,
        exc_info=trace,
        extra={"action": "alert", "reason": "part_broke", "part": name},
    )


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s broke", task.get_name(), exc_info=error, extra={"action": "broke"})


async def run_all(*works: Work[None]) -> None:
    """Run all until one fails, whose error is raised, or until this is cancelled. Then all have ended."""
    tasks = [start_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        await cancel_all(tasks)


async def run_with_helpers(work: Work[T], **helpers: Work[None]) -> T:
    """The result of `work`, while its helpers run. One that fails, or ends, fails the work as well."""
    doing = start_task(work)
    beside = {start_task(helper, name=name) for name, helper in helpers.items()}
    try:
        done, _ = await asyncio.wait({doing, *beside}, return_when=asyncio.FIRST_COMPLETED)
        if doing not in done:
            helper = done.pop()
            await helper
            raise RuntimeError(f"The {helper.get_name()} has ended before its work did.")
        return doing.result()
    finally:
        await cancel_all((doing, *beside))


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these until all have ended. A cancellation of the caller takes effect when they have.

    Nobody awaits one that fails while it is cancelled: a line of the log says why.
    """
    running = {task for task in tasks if not task.done()}
    left = running
    cancelled: asyncio.CancelledError | None = None
    while left:
        for task in left:
            task.cancel()
        try:
            _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in running:
        if not task.cancelled() and (broken := task.exception()) is not None:
            log.info("%s broke as it ended: %r", task.get_name(), broken, extra={"action": "ended"})
    if cancelled is not None:
        raise cancelled
