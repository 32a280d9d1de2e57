"""How does a loop keep a gateway running, on the same port, whatever becomes of it?

    we listen ──▶ the socket goes to the child ──▶ it says that it answers ──▶ it dies ──▶ the next one

The port is ours and stays ours: while a child is started anew, clients wait in the socket's queue
instead of finding the port closed, or taken by somebody else. What a child logs goes to our log.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from upswing.contracts.backend_keys import PREFIX
from upswing.errors import Misuse, Transient
from upswing.infra.child_env import child_environment
from upswing.infra.child_log import log_child_line, read_lines
from upswing.infra.heartbeat import FROZEN_SECONDS
from upswing.infra.process import ChildSupervisor
from upswing.infra.sockets import bind_port
from upswing.infra.tasks import run_in_background

log = logging.getLogger(__name__)
_DRAIN_SECONDS = 5.0
_KILL_SECONDS = 10.0
"""Beyond the drain; then the child is killed."""
_BACKLOG = 2048
_CREDENTIALS = (
    "TENSORZERO_ADMIN_TOKEN",
    "UPSWING_GATEWAY_KEYS",
    "UPSWING_BACKEND_KEYS",
    "OPENAI_API_KEY",
    "WANDB_API_KEY",
)
"""Credentials of the environment that a gateway asks for, or is asked with."""


@dataclass(frozen=True, slots=True)
class GatewayChildEnv:
    """What the child hears through its environment, where other users do not see it."""

    nats_url: str = field(repr=False)
    loop_url: str
    loop_key: str = field(repr=False)
    """A gateway's, not the operator's."""
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Other variables; those of our own environment that hold no credentials are passed on anyway."""

    def environment(self) -> dict[str, str]:
        own = {
            "NATS_URL": self.nats_url,
            "AGENTGYM_RL_URL": self.loop_url,
            "AGENTGYM_RL_API_KEY": self.loop_key,
        }
        servers = [name for name in os.environ if name.startswith(PREFIX)]
        return {**child_environment({*_CREDENTIALS, *servers}), **own, **self.extra}


class GatewaySupervisor:
    """A gateway in a child process, started anew when it dies."""

    def __init__(
        self,
        folder: Path,
        child_env: GatewayChildEnv,
        host: str = "127.0.0.1",
        port: int = 3000,
        *,
        frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:
        """`folder`: the data directory, with the tokens, the rules and the spool; `port` 0: any."""
        self._folder, self._child_env, self._host, self._port = folder, child_env, host, port
        self._listener: socket.socket | None = None
        self._log_task: asyncio.Task[None] | None = None
        self._last_line = ""
        self._child = ChildSupervisor(
            "the gateway",
            self._launch,
            restart_action="gateway_restart",
            frozen_seconds=frozen_seconds,
        )

    @property
    def pid(self) -> int | None:
        return self._child.pid

    @property
    def restarts(self) -> int:
        return self._child.restarts

    async def start(self) -> str:
        """The URL, without `/v1`, once it answers; `Misuse` with its own sentence when it cannot."""
        self._listener = _listen(self._host, self._port)
        try:
            await self._launch()
        except BaseException:
            await self.stop()
            raise
        self._child.watch()
        host, port = self._listener.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self) -> None:
        """Let it drain for a moment, and end it."""
        if self._listener:
            self._listener.close()
        await self._child.stop(_DRAIN_SECONDS + _KILL_SECONDS)
        if self._log_task:
            await self._log_task

    async def _launch(self) -> None:
        assert self._listener is not None  # noqa: S101 - it is open from the start to the stop
        listener = self._listener
        process = await self._child.launch(
            sys.executable,
            "-m",
            "upswing.gateway.main",
            "--data",
            str(self._folder),
            "--host",
            self._host,
            "--fd",
            str(listener.fileno()),
            "--drain",
            str(_DRAIN_SECONDS),
            *(("--again",) if self.restarts else ()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._child_env.environment(),
            fds=(listener.fileno(),),
        )
        assert process.stdout is not None  # noqa: S101 - we asked for pipes
        assert process.stderr is not None  # noqa: S101
        self._log_task = run_in_background(
            self._forward_log(process.stderr), name="log of the gateway"
        )
        if await self._child.wait_ready(process, process.stdout.readline()):
            return
        code = await process.wait()
        await self._log_task
        sentence = self._last_line.removeprefix("upswing: ")
        if code == 1 and self._last_line != sentence:
            raise Misuse(sentence)
        raise Transient(f"The gateway ended with {code} before it answered: {sentence}")

    async def _forward_log(self, stream: asyncio.StreamReader) -> None:
        """Say in our log what the child says in its own, at the same level."""
        async for line in read_lines(stream):
            self._last_line = line
            if not log_child_line(line):
                log.warning("gateway: %s", line, extra={"action": "gateway_says"})


def _listen(host: str, port: int) -> socket.socket:
    """A socket that children take over."""
    listener = bind_port(host, port, "--gateway-port")
    listener.listen(_BACKLOG)
    return listener
