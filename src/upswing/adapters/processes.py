"""How is a child started, watched, started anew, and ended with its parent, however that ended?

It is `launched`, and waited for `until_ready`, however slow the machine is, as long as it lives. When it
has `ended`, by itself or because it was frozen and killed, it is
`relaunched` until it is there again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from upswing.adapters.adopting import ChildProcess
from upswing.adapters.environment import child_environment
from upswing.errors import Transient, UpswingError
from upswing.pulse import BEAT_SECONDS, ENVIRONMENT, Pulse, work_of
from upswing.together import begin, end

log = logging.getLogger(__name__)
T = TypeVar("T")
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_SET_DEATH_SIGNAL = 1
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two tries to start a child, doubled each time."""

_SLOW_SECONDS = 30.0
"""Between two lines about a child that is still not ready."""
_SLOW = "%s is not ready after %.0f s; it lives and is waited for: the machine is busy, or it has much to load"


async def launched(
    *words: str, pulse: Pulse, env: Mapping[str, str] | None = None, fds: tuple[int, ...] = (),
    outlives: bool = False, **options: Any,
) -> asyncio.subprocess.Process:  # fmt: skip
    """A child that leads its group, ends with us unless it `outlives` us, and whose beats `pulse` hears.

    It knows no credentials, unless `env` says otherwise.
    """
    ears, mouth = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *words, env={**(child_environment() if env is None else env), ENVIRONMENT: str(mouth)},
            pass_fds=(*fds, mouth), preexec_fn=None if outlives else die_with_parent,
            start_new_session=True,  # Ctrl-C in a terminal is for us; we stop it in order
            **options,
        )  # fmt: skip
    except BaseException:
        os.close(ears)
        raise
    finally:
        os.close(mouth)
    pulse.listen(ears)
    return process


async def until_ready(
    process: asyncio.subprocess.Process, pulse: Pulse, name: str, ready: Coroutine[Any, Any, T],
    *, slow_seconds: float = _SLOW_SECONDS,
) -> T:  # fmt: skip
    """What `ready` comes to. One that is frozen meanwhile is ended; one that is slow is waited for, with a line.

    `Transient` when it was frozen; whatever happens but its being ready, the child is gone afterwards.
    """
    waited, began = begin(ready, name=f"start of {name}"), asyncio.get_running_loop().time()
    told, now = began, asyncio.get_running_loop().time
    try:
        while not (await asyncio.wait({waited}, timeout=BEAT_SECONDS))[0]:
            if process.returncode is None and pulse.frozen(now(), lambda: work_of(process.pid)):
                log.error("%s is frozen and is ended", name, extra={"action": "frozen"})
                raise Transient(f"{name} stood still while it started, and was ended.")  # noqa: TRY301 - one way out
            if now() - told >= slow_seconds:
                told = now()
                log.warning(_SLOW, name, told - began, extra={"action": "slow_start"})
        return waited.result()
    except BaseException:
        kill_group(process)
        await process.wait()
        raise
    finally:
        await end([waited])


async def ended(process: ChildProcess, pulse: Pulse, name: str) -> int:
    """Its exit code; one that is frozen is ended, with its group."""
    now = asyncio.get_running_loop().time
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                return await process.wait()
        if process.returncode is None and pulse.frozen(now(), lambda: work_of(process.pid)):
            log.error("%s is frozen and is ended", name, extra={"action": "frozen"})
            kill_group(process)


async def relaunched(
    launch: Callable[[], Awaitable[None]],
    name: str,
    *,
    first: float = _FIRST_PAUSE,
    longest: float = _LONGEST_PAUSE,
) -> None:
    """Start a child until it is there: whatever the system lacks just now, it may have later."""
    pause = first
    while True:
        try:
            return await launch()
        except (UpswingError, OSError, ValueError) as error:
            told = "%s does not start, and is tried again in %g s: %s"
            log.error(told, name, pause, error, extra={"action": "restart_failed"})  # noqa: TRY400 - a clear sentence
        await asyncio.sleep(pause)
        pause = min(longest, 2 * pause)


def die_with_parent() -> None:
    """In the child, before it becomes another program: the kernel ends it with its parent.

    Elsewhere than on Linux nothing is done: children end with an orderly stop, and those that read
    their standard input end when it does.
    """
    if _LIBC is not None:
        _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


def kill_group(process: ChildProcess) -> None:
    """End a child that leads its group, and what is left of the group.

    A number is given to another process once its own has been waited for and nobody of its group is left. So
    a process of that number beside a child that has ended is a stranger; orphans of the group are not.
    """
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is not None and _exists(process.pid):
            return
        os.killpg(process.pid, signal.SIGKILL)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
