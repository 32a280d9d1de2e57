"""How does a loop keep a gateway running, on the same port, whatever becomes of it?

    we listen ──▶ the socket goes to the child ──▶ it says that it answers ──▶ it dies ──▶ the next one

The port is ours and stays ours: while a child is started anew, clients wait in the socket's queue
instead of finding the port closed, or taken by somebody else. What a child logs goes to our log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from upswing.adapters.environment import child_environment
from upswing.adapters.listening import bound
from upswing.adapters.processes import ended, launched, relaunched, until_ready
from upswing.backend_keys import PREFIX
from upswing.errors import Misuse, Transient
from upswing.pulse import FROZEN_SECONDS, Pulse
from upswing.together import aside, kept

log = logging.getLogger(__name__)
_DRAIN_SECONDS = 5.0
_END_SECONDS = 10.0
"""Beyond the drain; then the child is killed."""
_BACKLOG = 2048
_LONGEST_LINE = 64 * 1024
_NEEDED = (
    "TENSORZERO_ADMIN_TOKEN", "UPSWING_GATEWAY_KEYS", "UPSWING_BACKEND_KEYS", "OPENAI_API_KEY",
    "WANDB_API_KEY",
)  # fmt: skip
"""Credentials of the environment that a gateway asks for, or is asked with."""
_LEVELS = logging.getLevelNamesMapping()
_LINE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) +(\S+) (.*)", re.DOTALL)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """What the child hears through its environment, where other users do not see it."""

    nats_url: str = field(repr=False)
    loop_url: str
    loop_key: str = field(repr=False)
    """A gateway's, not the operator's."""
    more: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Other variables; those of our own environment that hold no credentials are passed on anyway."""

    def environment(self) -> dict[str, str]:
        own = {
            "NATS_URL": self.nats_url,
            "AGENTGYM_RL_URL": self.loop_url,
            "AGENTGYM_RL_API_KEY": self.loop_key,
        }
        servers = [name for name in os.environ if name.startswith(PREFIX)]
        return {**child_environment({*_NEEDED, *servers}), **own, **self.more}


class GatewayChild:
    """A gateway in a child process, started anew when it dies."""

    def __init__(
        self, folder: Path, told: Told, host: str = "127.0.0.1", port: int = 3000,
        *, frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:  # fmt: skip
        """`folder`: the data directory, with the tokens, the rules and the spool; `port` 0: any."""
        self._folder, self._told, self._host, self._port = folder, told, host, port
        self._listener: socket.socket | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._frozen = frozen_seconds
        self._pulse = Pulse(frozen_seconds)
        self._watch: asyncio.Task[None] | None = None
        self._words: asyncio.Task[None] | None = None
        self._last_words = ""
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> str:
        """The URL, without `/v1`, once it answers; `Misuse` with its own sentence when it cannot."""
        self._listener = _listening(self._host, self._port)
        try:
            await self._launch(self._listener)
        except BaseException:
            await self.stop()
            raise
        self._watch = kept(partial(self._keep_alive, self._listener), name="gateway")
        host, port = self._listener.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def stop(self) -> None:
        """Let it drain for a moment, and end it."""
        if self._watch:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if self._listener:
            self._listener.close()
        process = self._process
        if process and process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_DRAIN_SECONDS + _END_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._words:
            await self._words

    async def _launch(self, listener: socket.socket) -> None:
        self._pulse = Pulse(self._frozen)
        self._process = process = await launched(
            sys.executable, "-m", "upswing.gateway_server", "--data", str(self._folder),
            "--host", self._host, "--fd", str(listener.fileno()), "--drain", str(_DRAIN_SECONDS),
            *(("--again",) if self.restarts else ()),
            pulse=self._pulse, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=self._told.environment(), fds=(listener.fileno(),),
        )  # fmt: skip
        assert process.stdout is not None  # noqa: S101 - we asked for pipes
        assert process.stderr is not None  # noqa: S101
        self._words = aside(self._forward(process.stderr), name="words of the gateway")
        if await until_ready(process, self._pulse, "the gateway", process.stdout.readline()):
            return
        code = await process.wait()
        await self._words
        sentence = self._last_words.removeprefix("upswing: ")
        if code == 1 and self._last_words != sentence:
            raise Misuse(sentence)
        raise Transient(f"The gateway ended with {code} before it answered: {sentence}")

    async def _keep_alive(self, listener: socket.socket) -> None:
        while self._process:
            code = await ended(self._process, self._pulse, "the gateway")
            self.restarts += 1
            log.warning("the gateway died with %s; starting it again", code, extra={"action": "gateway_restart"})  # fmt: skip
            await relaunched(partial(self._launch, listener), "the gateway")

    async def _forward(self, stream: asyncio.StreamReader) -> None:
        """Say in our log what the child says in its own, at the same level."""
        async for line in _lines(stream):
            self._last_words = line
            if found := _LINE.fullmatch(line):
                logging.getLogger(found[2]).log(_LEVELS[found[1]], "%s", found[3])
            else:
                log.warning("gateway: %s", line, extra={"action": "gateway_says"})


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Line by line, however long; a pipe that nobody empties would stop the child."""
    rest = b""
    while chunk := await stream.read(_LONGEST_LINE):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line[:_LONGEST_LINE].decode(errors="replace").rstrip()
        rest = rest[:_LONGEST_LINE]
    if rest:
        yield rest.decode(errors="replace").rstrip()


def _listening(host: str, port: int) -> socket.socket:
    """A socket that children take over."""
    listener = bound(host, port, "--gateway-port")
    listener.listen(_BACKLOG)
    return listener
