"""One model in one llama.cpp process: how is it started, asked, started anew, and ended?

It is a process and not a thread, because what llama.cpp cannot bear it answers with an abort, and
because only a process that ends gives all its memory back. One that dies, or is silent for too long,
fails the requests it had; the next one finds it started anew.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected, Transient
from upswing.infra.heartbeat import FROZEN_SECONDS, HeartbeatMonitor
from upswing.infra.process import kill_group, launch_child, wait_for_exit
from upswing.infra.tasks import run_in_background
from upswing.serve.engines.llama_child import LlamaServerSpec, LlamaStartup
from upswing.serve.engines.llama_http import (
    Event,
    LlamaConnection,
    LlamaConnectionLost,
    LlamaSilent,
    ResponseTimeout,
    connect_to_server,
    stream_events,
)

log = logging.getLogger(__name__)
_STDERR_CHARACTERS = 4000
"""Characters of its last words that are kept."""


class LlamaProcess:
    """A llama.cpp server that is there whenever it is asked, until it is stopped."""

    def __init__(
        self,
        spec: LlamaServerSpec,
        *,
        silence_timeout: timedelta,
        start_timeout: timedelta,
        adapter_file: Path | None = None,
        frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:
        self._spec = spec
        self._adapter_file = adapter_file
        """A file that is of no use without it."""
        self._silence_seconds, self._start_seconds = (
            silence_timeout.total_seconds(),
            start_timeout.total_seconds(),
        )
        self._frozen_seconds = frozen_seconds
        self._slots = asyncio.Semaphore(spec.slots)
        self._start_lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._stderr_task: asyncio.Task[None] | None = None
        self._stderr_tail = ""
        self._idle = asyncio.Event()
        self._idle.set()
        self.address = ""
        self.stopped = False
        self._killed = False
        self._users = 0

    @property
    def pid(self) -> int | None:
        """Of the process, while it lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def key(self) -> str:
        return self._spec.key

    async def start(self) -> None:
        """Be there: `Rejected` when llama.cpp refuses what it is to serve, `Transient` otherwise."""
        async with self._start_lock:
            if self.stopped:
                raise Transient("The model is being unloaded.")
            if self.pid is None or self._killed:
                await self._terminate()
                self._killed = False
                process = self._process = await self._launch()
                self._stderr_task = run_in_background(
                    self._read_stderr(process), name="words of llama.cpp"
                )
                self.address = await self._read_address(process)

    async def _launch(self) -> asyncio.subprocess.Process:
        pulse = HeartbeatMonitor(self._frozen_seconds)
        try:
            process = await launch_child(
                sys.executable,
                "-m",
                "upswing.serve.engines.llama_child",
                pulse=pulse,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise Transient(f"llama.cpp cannot be started: {error}.") from None
        run_in_background(wait_for_exit(process, pulse, "llama.cpp"), name="end of llama.cpp")
        return process

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Inside, `drain` waits."""
        self._users += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._idle.set()

    async def stream_completion(
        self, body: Event, *, silence_seconds: float | None = None
    ) -> AsyncGenerator[Event]:
        """What llama.cpp tells about a completion; closing it withdraws the question.

        One that dies before it has said a word is asked once more when it lives again; one that says nothing for
        `silence_seconds` is ended.
        """
        patience = self._silence_seconds if silence_seconds is None else silence_seconds
        async with self._slots:
            begun = False
            for retry in (True, False):
                try:
                    async with aclosing(self._stream_once(body, patience)) as stream:
                        async for event in stream:
                            begun = True
                            yield event
                except LlamaConnectionLost:
                    if begun or not retry:
                        raise
                else:
                    return

    async def _stream_once(self, body: Event, silence_seconds: float) -> AsyncGenerator[Event]:
        connection, process = await self._connect()
        try:
            async with aclosing(
                stream_events(connection, self._spec.key, body, silence_seconds)
            ) as stream:
                async for event in stream:
                    yield event
        except LlamaConnectionLost:
            self._kill(process)  # it dies, and may still take questions while it does
            raise
        except ResponseTimeout:
            log.warning("llama.cpp is silent and is ended", extra={"action": "llama_hangs"})
            self._kill(process)
            raise LlamaSilent("llama.cpp was silent for too long and is started anew.") from None

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        await self._idle.wait()

    async def stop(self) -> None:
        """End the process, whatever it does."""
        self.stopped = True
        async with self._start_lock:
            await self._terminate()
        if self._adapter_file is not None:
            self._adapter_file.unlink(missing_ok=True)

    async def _connect(self) -> tuple[LlamaConnection, asyncio.subprocess.Process | None]:
        """A connection, and the process at its other end."""
        try:
            await self.start()
        except Rejected as error:  # not the fault of whoever asks
            raise Transient(str(error)) from None
        process = self._process
        try:
            return await connect_to_server(self.address), process
        except OSError as error:
            self._kill(process)
            raise LlamaConnectionLost(f"llama.cpp's server does not answer: {error}.") from None

    async def _read_address(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdin is not None  # noqa: S101 - we asked for a pipe
        assert process.stdout is not None  # noqa: S101 - the same
        try:
            process.stdin.write(msgspec.json.encode(self._spec) + b"\n")
            async with asyncio.timeout(self._start_seconds):
                line = await process.stdout.readline()
            startup = from_json(line, LlamaStartup) if line else LlamaStartup()
        except BaseException as error:  # whatever it is: what was started is ended
            await self._terminate()
            if isinstance(error, (TimeoutError, OSError, msgspec.MsgspecError)):
                raise Transient("llama.cpp did not start in time.") from error
            raise
        if startup.address:
            return startup.address
        await self._terminate()
        if startup.refusal:
            raise Rejected(
                Reason.SCHEMA, f"llama.cpp refuses to serve it: {self._last_error(startup.refusal)}"
            )
        raise Transient(f"llama.cpp died while it started: {self._last_error('it said nothing')}")

    def _last_error(self, default: str) -> str:
        """The last line of what it printed."""
        lines = [line.strip() for line in self._stderr_tail.splitlines() if line.strip()]
        return lines[-1] if lines else default

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None  # noqa: S101 - we asked for a pipe
        self._stderr_tail = ""
        while data := await process.stderr.read(1 << 16):
            self._stderr_tail = (self._stderr_tail + data.decode(errors="replace"))[
                -_STDERR_CHARACTERS:
            ]

    def _kill(self, process: asyncio.subprocess.Process | None) -> None:
        """End this process, if another one has not taken its place already."""
        if process is None or process is not self._process:
            return
        self._killed = True
        kill_group(process)

    async def _terminate(self) -> None:
        """Kill: there is nothing in it that would want to be saved."""
        self._kill(self._process)
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            await self._process.wait()
            self._process = None
        if self._stderr_task is not None:
            await self._stderr_task
            self._stderr_task = None
