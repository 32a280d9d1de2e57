"""How is a child process started, watched, restarted and stopped, and how does it end with its parent?

A child that has to be there is kept by a `ChildSupervisor`:

    start ─▶ launch ─▶ wait_ready ─▶ watch ─▶ it ends, is frozen or unhealthy ─▶ restart, with backoff ─▶ watch …
      └───▶ adopt ─────────────────▶ watch                                                stop ─▶ terminate, then kill

However slow the machine is, a child is waited for as long as it lives and works (see `heartbeat`). The functions serve
children that are started for one job or request: training, llama.cpp, admission workers.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from upswing.errors import Transient, UpswingError
from upswing.infra.adoption import AdoptedProcess, ChildProcess
from upswing.infra.backoff import Backoff
from upswing.infra.child_env import child_environment
from upswing.infra.heartbeat import (
    BEAT_SECONDS,
    ENVIRONMENT,
    FROZEN_SECONDS,
    HeartbeatMonitor,
    group_work,
)
from upswing.infra.tasks import cancel_all, restart_on_error, start_task

log = logging.getLogger(__name__)
T = TypeVar("T")
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_SET_DEATH_SIGNAL = 1
RESTARTS = Backoff(0.2, 5.0)
"""Seconds between two tries to start a child."""
_SLOW_SECONDS = 30.0
"""Between two lines about a child that is still not ready."""
_SLOW = "%s is not ready after %.0f s; it lives and is waited for: the machine is busy, or it has much to load"
_CHECK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """What a healthy child answers; one that fails too often in a row is killed, and so restarted."""

    is_healthy: Callable[[], Awaitable[bool]]
    max_failures: int
    """In a row: one bad answer may be a busy moment."""
    action: str
    """Of the line in the log when it is killed."""
    seconds: float = _CHECK_SECONDS
    """Between two checks."""


class ChildSupervisor:
    """Keeps one child process running: restarts it whenever it ends, until it is stopped."""

    def __init__(
        self,
        name: str,
        start: Callable[[], Awaitable[None]],
        *,
        restart_action: str,
        health: HealthCheck | None = None,
        is_alive: Callable[[], Awaitable[bool]] | None = None,
        sends_beats: bool = True,
        frozen_seconds: float = FROZEN_SECONDS,
        backoff: Backoff = RESTARTS,
    ) -> None:
        """`start` launches the child by `launch`, and returns when it is ready: see `wait_ready`.

        A child that does not send beats, or sends them to an earlier parent, beats whenever `is_alive` says so.
        """
        self.name, self._start, self._restart_action = name, start, restart_action
        self._health, self._is_alive, self._sends_beats = health, is_alive, sends_beats
        self._frozen_seconds, self._backoff = frozen_seconds, backoff
        self.pulse = HeartbeatMonitor(frozen_seconds)
        self._watch_task: asyncio.Task[None] | None = None
        self.process: ChildProcess | None = None
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    async def launch(self, *command: str, **options: Any) -> asyncio.subprocess.Process:
        """A child process as of `launch_child`, with a fresh heartbeat."""
        self.pulse = HeartbeatMonitor(self._frozen_seconds)
        self.process = process = await launch_child(*command, pulse=self.pulse, **options)
        return process

    def adopt(self, process: AdoptedProcess) -> None:
        """Watch a process that an earlier parent launched."""
        self.process, self.pulse = process, HeartbeatMonitor(self._frozen_seconds)

    async def wait_ready(
        self, process: asyncio.subprocess.Process, ready: Coroutine[Any, Any, T]
    ) -> T:
        return await wait_ready(process, self.pulse, self.name, ready)

    def watch(self) -> None:
        """Restart the child whenever it ends, from now on."""
        self._watch_task = restart_on_error(self._restart_forever, name=self.name)

    async def stop(self, seconds: float) -> None:
        """Terminate the child, which is killed if it has not ended after so many seconds."""
        if self._watch_task is not None:
            await cancel_all([self._watch_task])
        if self.process is not None:
            await stop_process(self.process, seconds)

    async def relaunch(self) -> None:
        """Start the child until it is there: what the system lacks just now, it may have later."""
        failures = 0
        while True:
            try:
                await self._start()
            except (UpswingError, OSError, ValueError) as error:
                failures += 1
                pause = self._backoff.seconds(failures)
                message = "%s does not start, and is tried again in %g s: %s"
                log.error(message, self.name, pause, error, extra={"action": "restart_failed"})  # noqa: TRY400 - a clear sentence
            else:
                log.warning("%s is running again", self.name, extra={"action": "restarted"})
                return
            await asyncio.sleep(pause)

    async def _restart_forever(self) -> None:
        while self.process is not None:
            code = await self._wait_for_exit(self.process)
            self.restarts += 1
            message, action = "%s ended with %s; starting it again", self._restart_action
            log.warning(message, self.name, code, extra={"action": action})
            await self.relaunch()

    async def _wait_for_exit(self, process: ChildProcess) -> int:
        """Its exit code; one that runs and is frozen or unhealthy is killed."""
        watchers = []
        if self._health is not None:
            watchers.append(start_task(self._check_health(process, self._health), name="health"))
        if self._is_alive and (not self._sends_beats or isinstance(process, AdoptedProcess)):
            watchers.append(start_task(self._beat_while_alive(self._is_alive), name="beats"))
        try:
            return await wait_for_exit(process, self.pulse, self.name)
        finally:
            await cancel_all(watchers)

    async def _check_health(self, process: ChildProcess, check: HealthCheck) -> None:
        failures = 0
        while failures < check.max_failures:
            await asyncio.sleep(check.seconds)
            failures = 0 if await check.is_healthy() else failures + 1
        message = "%s runs and is unhealthy; it is killed"
        log.warning(message, self.name, extra={"action": check.action})
        kill_group(process)

    async def _beat_while_alive(self, is_alive: Callable[[], Awaitable[bool]]) -> None:
        while True:
            if await is_alive():
                self.pulse.beat()
            await asyncio.sleep(BEAT_SECONDS)


async def launch_child(
    *command: str,
    pulse: HeartbeatMonitor | None = None,
    env: Mapping[str, str] | None = None,
    fds: tuple[int, ...] = (),
    outlives: bool = False,
    prepare: Callable[[], None] | None = None,
    **options: Any,
) -> asyncio.subprocess.Process:
    """A child that leads its group and ends with us, unless it `outlives` us; `pulse` gets its beats.

    It knows no credentials, unless `env` says otherwise. `prepare` runs in the child, before the command.
    """
    known = dict(child_environment() if env is None else env)
    pipe = os.pipe() if pulse is not None else None
    if pipe is not None:
        known[ENVIRONMENT] = str(pipe[1])

    def prepare_child() -> None:
        if not outlives:
            die_with_parent()
        if prepare is not None:
            prepare()

    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=known,
            pass_fds=(*fds, *(pipe[1:] if pipe else ())),
            preexec_fn=None if outlives and prepare is None else prepare_child,
            start_new_session=True,  # Ctrl-C in a terminal is for us; we stop it in order
            **options,
        )
    except BaseException:
        if pipe is not None:
            os.close(pipe[0])
        raise
    finally:
        if pipe is not None:
            os.close(pipe[1])
    if pulse is not None and pipe is not None:
        pulse.listen(pipe[0])
    return process


async def wait_ready(
    process: asyncio.subprocess.Process,
    pulse: HeartbeatMonitor,
    name: str,
    ready: Coroutine[Any, Any, T],
    *,
    slow_seconds: float = _SLOW_SECONDS,
) -> T:
    """The result of `ready`. One that is frozen meanwhile is ended; one that is slow is waited for, with a line.

    `Transient` when it was frozen; whatever happens but its being ready, the child is gone afterwards.
    """
    now = asyncio.get_running_loop().time
    waited, began = start_task(ready, name=f"start of {name}"), now()
    logged = began
    try:
        while not (await asyncio.wait({waited}, timeout=BEAT_SECONDS))[0]:
            if process.returncode is None and pulse.is_frozen(
                now(), lambda: group_work(process.pid)
            ):
                log.error("%s is frozen and is ended", name, extra={"action": "frozen"})
                told = f"{name[:1].upper()}{name[1:]} stood still while it started, and was ended."
                raise Transient(told)  # noqa: TRY301 - one way out
            if now() - logged >= slow_seconds:
                logged = now()
                log.warning(_SLOW, name, logged - began, extra={"action": "slow_start"})
        return waited.result()
    except BaseException:
        kill_group(process)
        await process.wait()
        raise
    finally:
        await cancel_all([waited])


async def wait_for_exit(process: ChildProcess, pulse: HeartbeatMonitor, name: str) -> int:
    """Its exit code; one that is frozen is killed, with its group."""
    now = asyncio.get_running_loop().time
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                return await process.wait()
        if process.returncode is None and pulse.is_frozen(now(), lambda: group_work(process.pid)):
            log.error("%s is frozen and is ended", name, extra={"action": "frozen"})
            kill_group(process)


async def stop_process(
    process: ChildProcess, seconds: float, request_stop: Callable[[], None] | None = None
) -> None:
    """Ask it to end, by SIGTERM unless there is another way, and kill it if it has not after so many seconds."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        (request_stop or process.terminate)()
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


_LOG_BYTES = 64 * 1024 * 1024
"""Of a child's own log, at a start of the child; the one before stays beside it."""


def begin_new_log(log_file: Path) -> None:
    """Put a child's log aside when it has become large; for who starts the child."""
    with contextlib.suppress(OSError):
        if log_file.stat().st_size > _LOG_BYTES:
            log_file.replace(log_file.with_suffix(f"{log_file.suffix}.1"))


def last_line(log_file: Path) -> str:
    """The last line that a child wrote to its log, for an error message."""
    try:
        text = log_file.read_text(errors="replace").strip()
    except OSError as error:
        return f"its log cannot be read ({error})"
    return text.splitlines()[-1] if text else "it said nothing"


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
        if process.returncode is not None and _process_exists(process.pid):
            return
        os.killpg(process.pid, signal.SIGKILL)


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
