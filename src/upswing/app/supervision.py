"""What happens when a part of the loop breaks, or the loop is told to stop?

A part that breaks is logged, counted and begun again; the loop ends where that is no use.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

from upswing.errors import Damaged
from upswing.infra.tasks import cancel_all, run_with_backoff, start_task

log = logging.getLogger(__name__)
T = TypeVar("T")
RunPart = Callable[[str, Callable[[], Awaitable[None]]], None]
"""Begins a part of the loop: its name, and what it does for ever."""


class PartSupervisor:
    """The tasks of a loop, and whether one of them broke for good."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.failed = asyncio.Event()
        self.on_failure: Callable[[str], None] = lambda _: None
        """Counts a round of a part that broke."""

    def run(self, name: str, work: Callable[[], Awaitable[None]], *, restart: bool = True) -> None:
        """Begin a part; it is begun again when it breaks, and `failed` is set where that is no use."""

        async def watched() -> None:
            try:
                await run_with_backoff(
                    name, work, on_failure=self.on_failure, restart=restart, fatal=(Damaged,)
                )
            except asyncio.CancelledError:
                raise
            except Exception:
                log.exception("%s broke for good", name, extra={"action": "broke"})
                self.failed.set()

        self.tasks.append(start_task(watched(), name=name))

    async def cancel(self, *, spare: str = "") -> None:
        """End all parts but the one of this name."""
        await cancel_all(task for task in self.tasks if task.get_name() != spare)

    async def wait_stopped(self, stop: asyncio.Event) -> None:
        """Until somebody asks to stop, or a part broke for good."""
        waits = [start_task(stop.wait()), start_task(self.failed.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


async def start_unless_stopped(
    start: Callable[[], Awaitable[T]], undo: Callable[[], Awaitable[None]], stop: asyncio.Event
) -> T | None:
    """What `start` returns; None: it was told to stop before that, and what it had done is undone."""

    async def begin() -> T:
        return await start()

    starting, stopping = start_task(begin(), name="start"), start_task(stop.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            return await starting
    except BaseException:
        await cancel_all([starting, stopping])
        await undo()
        raise
    finally:
        stopping.cancel()
    await cancel_all([starting])
    await undo()
    return None


def stop_signals() -> asyncio.Event:
    """Set when a person or the system asks this process to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    return stop
