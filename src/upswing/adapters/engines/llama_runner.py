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

from upswing.adapters.engines.llama_child import Task, Told
from upswing.adapters.engines.llama_http import Broken, Event, Line, Silent, connect, events
from upswing.adapters.environment import child_environment
from upswing.adapters.processes import die_with_parent, kill_group
from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected, Transient
from upswing.together import aside

log = logging.getLogger(__name__)
_TAIL = 4000
"""Characters of its last words that are kept."""


class Runner:
    """A llama.cpp server that is there whenever it is asked, until it is stopped."""

    def __init__(
        self, task: Task, *, silence: timedelta, patience: timedelta, owned: Path | None = None
    ) -> None:
        self._task = task
        self._owned = owned
        """A file that is of no use without it."""
        self._silence, self._patience = silence.total_seconds(), patience.total_seconds()
        self._seats = asyncio.Semaphore(task.slots)
        self._starting = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._listener: asyncio.Task[None] | None = None
        self._words = ""
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
        return self._task.key

    async def start(self) -> None:
        """Be there: `Rejected` when llama.cpp refuses what it is to serve, `Transient` otherwise."""
        async with self._starting:
            if self.stopped:
                raise Transient("The model is being unloaded.")
            if self.pid is None or self._killed:
                await self._end()
                self._killed = False
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "upswing.adapters.engines.llama_child",
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE, env=child_environment(),
                    preexec_fn=die_with_parent, start_new_session=True,
                )  # fmt: skip
                self._listener = aside(self._listen(self._process), name="words of llama.cpp")
                self.address = await self._greet(self._process)

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

    async def ask(self, body: Event) -> AsyncGenerator[Event]:
        """What llama.cpp tells about a completion; closing it withdraws the question.

        One that dies before it has said a word is asked once more when it lives again.
        """
        async with self._seats:
            begun = False
            for again in (True, False):
                try:
                    async with aclosing(self._ask(body)) as told:
                        async for event in told:
                            begun = True
                            yield event
                except Broken:
                    if begun or not again:
                        raise
                else:
                    return

    async def _ask(self, body: Event) -> AsyncGenerator[Event]:
        line, asked = await self._line()
        try:
            async with aclosing(events(line, self._task.key, body, self._silence)) as told:
                async for event in told:
                    yield event
        except Broken:
            self._kill(asked)  # it dies, and may still take questions while it does
            raise
        except Silent:
            log.warning("llama.cpp is silent and is ended", extra={"action": "llama_hangs"})
            self._kill(asked)
            raise Transient("llama.cpp was silent for too long and is started anew.") from None

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        await self._idle.wait()

    async def stop(self) -> None:
        """End the process, whatever it does."""
        self.stopped = True
        async with self._starting:
            await self._end()
        if self._owned is not None:
            self._owned.unlink(missing_ok=True)

    async def _line(self) -> tuple[Line, asyncio.subprocess.Process | None]:
        """A connection, and the process at its other end."""
        try:
            await self.start()
        except Rejected as error:  # not the fault of whoever asks
            raise Transient(str(error)) from None
        asked = self._process
        try:
            return await connect(self.address), asked
        except OSError as error:
            self._kill(asked)
            raise Broken(f"llama.cpp's server does not answer: {error}.") from None

    async def _greet(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdin is not None  # noqa: S101 - we asked for a pipe
        assert process.stdout is not None  # noqa: S101 - the same
        try:
            process.stdin.write(msgspec.json.encode(self._task) + b"\n")
            async with asyncio.timeout(self._patience):
                line = await process.stdout.readline()
            told = from_json(line, Told) if line else Told()
        except BaseException as error:  # whatever it is: what was started is ended
            await self._end()
            if isinstance(error, (TimeoutError, OSError, msgspec.MsgspecError)):
                raise Transient("llama.cpp did not start in time.") from error
            raise
        if told.address:
            return told.address
        await self._end()
        if told.refusal:
            raise Rejected(
                Reason.SCHEMA, f"llama.cpp refuses to serve it: {self._why(told.refusal)}"
            )
        raise Transient(f"llama.cpp died while it started: {self._why('it said nothing')}")

    def _why(self, otherwise: str) -> str:
        """The last line of what it printed."""
        lines = [line.strip() for line in self._words.splitlines() if line.strip()]
        return lines[-1] if lines else otherwise

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None  # noqa: S101 - we asked for a pipe
        self._words = ""
        while data := await process.stderr.read(1 << 16):
            self._words = (self._words + data.decode(errors="replace"))[-_TAIL:]

    def _kill(self, process: asyncio.subprocess.Process | None) -> None:
        """End this process, if another one has not taken its place already."""
        if process is None or process is not self._process:
            return
        self._killed = True
        kill_group(process)

    async def _end(self) -> None:
        """Kill: there is nothing in it that would want to be saved."""
        self._kill(self._process)
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            await self._process.wait()
            self._process = None
        if self._listener is not None:
            await self._listener
            self._listener = None
