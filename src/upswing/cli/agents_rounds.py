"""How do test agents spend their time? Round after round, until it is over or somebody stops them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from upswing.cli.agents_told import Told, line_of
from upswing.cli.client import ask
from upswing.contracts.steps import window_of
from upswing.errors import Misuse, UpswingError
from upswing.worlds.agentgym_service import Remote
from upswing.worlds.crowd_service import Crowd
from upswing.worlds.errands import Tells, window_for
from upswing.worlds.known import world_of
from upswing.worlds.visit import Visit
from upswing.worlds.world import Task, World

CURRICULUM = "curriculum"
_ROUNDS_AT_ONCE = 2
"""The second one takes the seats that the first one leaves, so that no seat is empty between them."""
_UNTOLD = 100
"""Tasks that a foreign AgentGym server surely has; it does not say how many."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Target:
    """Whom the agents ask, and where the loop is."""

    url: str
    key: str
    folder: Path
    sdk: bool = False
    """The agents record themselves."""
    foreign: bool = False
    """It was named; else it is the gateway of the loop."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done, and how fast."""

    world: str
    seed: int
    agents: int
    tasks: int
    minutes: float
    rounds: int | None
    pause: float
    speed: float
    temperature: float
    model: str
    max_tokens: int
    at_once: int
    feedback: float
    curriculum: bool = False
    """Half of the tasks are those that the loop wants to be tried."""


class Gym:
    """A world behind AgentGym's HTTP form, with numbers for tasks."""

    def __init__(self, remote: Remote, tasks: int) -> None:
        self._remote = remote
        self.training = [Task(f"{remote.name}-{number}", "") for number in range(tasks)]
        self._numbers = {task.task_id: number for number, task in enumerate(self.training)}

    async def enter(self, task: Task) -> Visit:
        return await self._remote.begin(self._numbers[task.task_id])


@contextlib.asynccontextmanager
async def _entered(work: Work) -> AsyncIterator[World[Any, Any] | Gym]:
    """The world, ours or somebody else's."""
    if not work.world.startswith(("http://", "https://")):
        yield world_of(work.world, work.seed)
        return
    remote = Remote(work.world)
    try:
        tasks = (await remote.about()).training
    except Misuse:
        tasks = _UNTOLD
    try:
        yield Gym(remote, tasks)
    finally:
        await remote.close()


@contextlib.contextmanager
def _stopped(minutes: float, crowd: Crowd, over: asyncio.Event) -> Iterator[None]:
    """Time, a signal or Ctrl-C lets what is under way end; a second Ctrl-C breaks it off."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        crowd.stop()
        over.set()
        loop.remove_signal_handler(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    timer = loop.call_later(minutes * 60, stop)
    try:
        yield
    finally:
        timer.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def spawn(work: Work, target: Target, say: Say) -> Told:
    """Let them work, and tell what came of it."""
    from upswing.cli.agents_sdk import recording

    async with contextlib.AsyncExitStack() as open_:
        world = await open_.enter_async_context(_entered(work))
        keeper = open_.enter_context(recording(target.folder)) if target.sdk else None
        crowd = await open_.enter_async_context(
            Crowd(
                target.url, target.key, world, agents=work.agents, at_once=work.at_once,
                max_tokens=work.max_tokens, seed=work.seed, feedback=work.feedback, keeper=keeper,
                model=work.model,
            )
        )  # fmt: skip
        told, over = Told(crowd.counts), asyncio.Event()
        open_.enter_context(_stopped(work.minutes, crowd, over))
        if not target.foreign:
            await _until_served(target.url, over, say)
        began = time.monotonic()
        await _rounds(work, crowd, world.training, over, target, told, say)
        told.seconds = time.monotonic() - began
    return told


async def _until_served(url: str, over: asyncio.Event, say: Say) -> None:
    """A loop that has just started makes its base first: wait for it, as long as there is time."""
    waited = False
    while not over.is_set() and not await asyncio.to_thread(_serves, url):
        if not waited:
            say("The gateway has no model yet: the agents wait for it.")
            waited = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 0.5)


def _serves(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:  # noqa: S310 - the loop's own gateway
            return bool(json.load(answer)["status"] == "ok")
    except (OSError, ValueError):
        return False


async def _rounds(
    work: Work, crowd: Crowd, training: Sequence[Task], over: asyncio.Event, target: Target,
    told: Told, say: Say,
) -> None:  # fmt: skip
    clock, tasks = _clock(work.speed), cycle(training)
    chosen = _Chosen(training, work, target.folder) if work.curriculum else None
    teller = _Teller(crowd.world, target.folder)
    gate = asyncio.Semaphore(1 if work.pause else _ROUNDS_AT_ONCE)

    async def play(window: str, some: list[Task]) -> None:
        try:
            wanted = await asyncio.to_thread(chosen.next, len(some)) if chosen else []
            some = some[len(wanted) :]
            async with asyncio.TaskGroup() as both:
                others = both.create_task(
                    crowd.play(some, window=window, temperature=work.temperature)
                )
                practised = both.create_task(
                    crowd.play(
                        wanted, window=window, temperature=work.temperature, purpose=CURRICULUM
                    )
                )
            played, some = [*others.result(), *practised.result()], [*some, *wanted]
        finally:
            gate.release()
        if played:
            told.played += played
            told.rounds += 1
            windows = [window_for(task, window) for task in some]
            told.outcomes += await asyncio.to_thread(teller.tell, windows)
            say(line_of(windows[-1], played))

    async with asyncio.TaskGroup() as group:
        for number in count(1):
            await gate.acquire()
            if over.is_set() or (work.rounds and number > work.rounds):
                return
            group.create_task(play(window_of(clock()), list(islice(tasks, work.tasks))))
            if work.pause:
                await gate.acquire()
                gate.release()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), work.pause)


class _Chosen:
    """Asks the loop which tasks should be tried; half of a round's, so that the others stay evidence."""

    def __init__(self, training: Sequence[Task], work: Work, folder: Path) -> None:
        self._by_id = {task.task_id: task for task in training}
        self._path = f"/v1/curriculum?world={quote(work.world)}&seed={work.seed}"
        self._folder = folder

    def next(self, size: int) -> list[Task]:
        """None where the loop does not answer."""
        if size < 2:
            return []
        try:
            told = ask(self._folder, "GET", f"{self._path}&n={size // 2}")
        except UpswingError:
            return []
        named = (self._by_id.get(each["task_id"]) for each in told["tasks"])
        return [task for task in named if task is not None]


class _Teller:
    """Tells the loop what really happened in windows that are over, where the world knows it."""

    def __init__(self, world: object, folder: Path) -> None:
        self._world, self._folder = world, folder
        self._known: set[str] = set()
        self._due: set[str] = set()
        self._lock = threading.Lock()
        """Rounds may end together."""

    def tell(self, windows: Iterable[str]) -> int:
        """How many windows the loop took; those that it did not take are told next time."""
        if not isinstance(self._world, Tells):
            return 0
        with self._lock:
            self._due |= set(windows) - self._known
            before = len(self._known)
            with contextlib.suppress(UpswingError):
                for window in sorted(self._due):
                    for outcome in self._world.outcomes(window):
                        ask(self._folder, "POST", "/v1/outcomes", msgspec.to_builtins(outcome))
                    self._known.add(window)
            self._due -= self._known
            return len(self._known) - before


def _clock(speed: float) -> Callable[[], datetime]:
    """The world's clock: it starts now, and is faster."""
    began, start = time.monotonic(), datetime.now(UTC)  # noqa: TID251 - the command line's own clock
    return lambda: start + timedelta(seconds=speed * (time.monotonic() - began))
