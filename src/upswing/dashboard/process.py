"""How does a loop keep its page running, on the same port, and never wait for it?

    we listen ──▶ the socket goes to the child ──▶ it says that it answers ──▶ it dies ──▶ the next one

A loop without its page is a whole loop: one that does not start is logged and tried again, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from pathlib import Path

from upswing.errors import Transient, UpswingError
from upswing.infra.child_env import child_environment
from upswing.infra.child_log import log_child_line, read_lines
from upswing.infra.process import ChildSupervisor
from upswing.infra.sockets import bind_port
from upswing.infra.tasks import cancel_all, run_in_background

log = logging.getLogger(__name__)
_BACKLOG = 512
_STOP_SECONDS = 10.0


class DashboardSupervisor:
    """The page in a child process, started anew when it dies."""

    def __init__(self, folder: Path, loop_url: str, host: str, port: int) -> None:
        """`port` 0: any free one."""
        self._folder, self._loop_url, self._host, self._port = folder, loop_url, host, port
        self._listener: socket.socket | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._child = ChildSupervisor("the page", self._launch, restart_action="dashboard_restart")

    @property
    def pid(self) -> int | None:
        return self._child.pid

    def start(self) -> str:
        """The URL at once; the page answers there when its process has loaded."""
        self._listener = _listen(self._host, self._port)
        self._tasks.append(run_in_background(self._start_and_watch(), name="start of the page"))
        host, port = self._listener.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self) -> None:
        await cancel_all(self._tasks)
        if self._listener:
            self._listener.close()
        await self._child.stop(_STOP_SECONDS)

    async def _start_and_watch(self) -> None:
        try:
            await self._launch()
        except (UpswingError, OSError, ValueError) as error:
            log.warning("the page does not start: %s", error, extra={"action": "restart_failed"})
            await self._child.relaunch()
        self._child.watch()

    async def _launch(self) -> None:
        assert self._listener is not None  # noqa: S101 - it is open from the start to the stop
        listener = self._listener
        process = await self._child.launch(
            sys.executable,
            "-m",
            "upswing.dashboard.main",
            "--host",
            self._host,
            "--loop-url",
            self._loop_url,
            "--data",
            str(self._folder),
            "--fd",
            str(listener.fileno()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=child_environment(),
            fds=(listener.fileno(),),
        )
        assert process.stdout is not None  # noqa: S101 - we asked for a pipe
        if await self._child.wait_ready(process, process.stdout.readline()):
            self._tasks.append(
                run_in_background(self._forward_log(process.stdout), name="log of the page")
            )
            return
        raise Transient(f"The page ended with {await process.wait()} before it answered.")

    async def _forward_log(self, stream: asyncio.StreamReader) -> None:
        """Say in our log what the child says in its own."""
        async for line in read_lines(stream):
            if not log_child_line(line):
                log.info("page: %s", line, extra={"action": "dashboard_says"})


def _listen(host: str, port: int) -> socket.socket:
    """A socket that children take over."""
    listener = bind_port(host, port, "--dashboard-port")
    listener.listen(_BACKLOG)
    return listener
