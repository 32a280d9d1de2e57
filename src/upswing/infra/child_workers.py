"""How is a question put to a child process, and what if the child dies of it?

Each child answers in the order it was asked, so a queue of waiting callers is all there is to
know. When a child dies, those who wait for it are told to try again later, and another takes its
place. The first of them is told `Died`: its question was in hand, those behind it were not looked at
yet. Whoever asked from the bus counts these deaths (see `infra.nats.consumer`). A child that is
frozen, or is asked and says nothing for too long, is ended, so nobody waits for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections import deque
from collections.abc import Sequence

from upswing.errors import Died, Transient
from upswing.infra.heartbeat import FROZEN_SECONDS, HeartbeatMonitor
from upswing.infra.process import launch_child, stop_process, wait_for_exit
from upswing.infra.tasks import run_in_background

log = logging.getLogger(__name__)
_IN_FLIGHT_BYTES = 16 * 1024 * 1024
"""What may be on its way to one child; beyond it, callers wait their turn."""
SILENCE_SECONDS = 60.0
"""Between two answers of a child that is asked. The longest message takes a few seconds."""
_STOP_SECONDS = 2.0
"""For one that is told by its closed input."""
_DIED = "The worker died while it looked at this message."


class NotStarted(Transient):
    """The system has no room for another process: nobody has looked at the message."""


class WorkerProcess:
    """One child process, restarted when it dies."""

    def __init__(
        self,
        module: str,
        greeting: bytes,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        frozen_seconds: float = FROZEN_SECONDS,
    ) -> None:
        self._module = module
        self._greeting = greeting
        self._silence, self._frozen = silence_seconds, frozen_seconds
        self._last_answer_at = 0.0
        """When it last answered, or was asked after it had answered everything."""
        self._process: asyncio.subprocess.Process | None = None
        self._waiting: deque[asyncio.Future[bytes]] = deque()
        self._reader: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._starting = asyncio.Lock()
        self._why = _DIED
        self.bytes_in_flight = 0
        self.deaths = 0
        self._stopping = False

    async def start(self) -> None:
        async with self._starting:
            self._stopping = False
            if _is_running(self._process):
                return
            if self._reader is not None:  # it has to see that the last child is gone
                await asyncio.wait({self._reader})
            try:
                pulse = HeartbeatMonitor(self._frozen)
                self._process = await launch_child(
                    sys.executable,
                    "-m",
                    self._module,
                    pulse=pulse,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
            except OSError as error:
                raise NotStarted(f"The worker cannot be started: {error}.") from None
            assert self._process.stdin is not None  # noqa: S101 - we asked for a pipe
            self._process.stdin.write(self._greeting)
            self._reader = run_in_background(
                self._read_answers(self._process), name=f"answers of {self._module}"
            )
            run_in_background(
                wait_for_exit(self._process, pulse, self._module), name=f"end of {self._module}"
            )

    async def request(self, message: bytes) -> bytes:
        """The child's answer; `Transient` when it died or was silent before it could give one."""
        while self.bytes_in_flight > _IN_FLIGHT_BYTES:
            self._room.clear()
            await self._room.wait()
        if not _is_running(self._process):
            await self.start()
        process = self._process
        if process is None or process.stdin is None:
            raise Transient("The worker is not running.")
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._last_answer_at = _monotonic_seconds()
        self._waiting.append(answer)
        self.bytes_in_flight += len(message)
        try:
            process.stdin.write(message)
            return await self._wait_for_answer(answer, process)
        finally:
            answer.cancel()  # nobody waits for it any more
            self.bytes_in_flight -= len(message)
            self._room.set()

    async def _wait_for_answer(
        self, answer: asyncio.Future[bytes], process: asyncio.subprocess.Process
    ) -> bytes:
        """Wait as long as the child answers anybody; one that answers nobody is ended."""
        while not answer.done():
            left = self._last_answer_at + self._silence - _monotonic_seconds()
            if left <= 0:
                if process is self._process:
                    log.error(
                        "%s said nothing for %g s and is ended",
                        self._module,
                        self._silence,
                        extra={"action": "worker_silent"},
                    )
                    self._why = (
                        f"The worker said nothing for {self._silence:g} s and is started anew."
                    )
                _kill_process(process)
                return await answer
            await asyncio.wait({answer}, timeout=left)
        return answer.result()

    async def stop(self) -> None:
        self._stopping = True
        process = self._process  # the reader forgets it as soon as the child is gone
        if process is not None:
            stdin = process.stdin
            await stop_process(process, _STOP_SECONDS, stdin.close if stdin else None)
        if self._reader:
            await asyncio.wait({self._reader})

    async def _read_answers(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None  # noqa: S101 - we asked for a pipe
        waiting = self._waiting
        try:
            while True:
                size = int.from_bytes(await process.stdout.readexactly(4), "big")
                answer = await process.stdout.readexactly(size)
                self._last_answer_at = _monotonic_seconds()
                _deliver_answer(waiting, answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # it has ended
        except BaseException:  # it speaks unasked, say: nobody hears it any more
            _kill_process(process)
            raise
        finally:
            self._on_death(waiting)

    def _on_death(self, waiting: deque[asyncio.Future[bytes]]) -> None:
        self._process, self._waiting = None, deque()
        why, self._why = self._why, _DIED
        if waiting:
            self.deaths += 1
        if waiting or not self._stopping:
            log.warning(
                "a worker (%s) died with %d messages in hand; the next message starts it again",
                self._module,
                len(waiting),
                extra={"action": "worker_died"},
            )
        for index, future in enumerate(waiting):
            if not future.done():
                future.set_exception(Transient(why) if index else Died(why))


def _is_running(process: asyncio.subprocess.Process | None) -> bool:
    """It can be asked. One whose pipe is closed is gone, though nobody has heard of its end yet."""
    return (
        process is not None
        and process.returncode is None
        and process.stdin is not None
        and not process.stdin.is_closing()
    )


def _deliver_answer(waiting: deque[asyncio.Future[bytes]], answer: bytes) -> None:
    if not waiting:
        raise RuntimeError("It answers what nobody has asked.")
    future = waiting.popleft()
    if not future.done():
        future.set_result(answer)


def _monotonic_seconds() -> float:
    return asyncio.get_running_loop().time()


def _kill_process(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


class WorkerPool:
    """Some children; a question goes to the one with the least to do."""

    def __init__(self, count: int, module: str, greeting: bytes) -> None:
        self._children: Sequence[WorkerProcess] = [
            WorkerProcess(module, greeting) for _ in range(count)
        ]

    async def start(self) -> None:
        await asyncio.gather(*(child.start() for child in self._children))

    async def stop(self) -> None:
        await asyncio.gather(*(child.stop() for child in self._children))

    async def request(self, message: bytes) -> bytes:
        return await min(self._children, key=lambda child: child.bytes_in_flight).request(message)
