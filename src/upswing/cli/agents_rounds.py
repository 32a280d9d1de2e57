"""How do test agents spend their time? Round after round, until it is over or somebody stops them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from upswing.cli.agents_summary import SpawnSummary, round_line
from upswing.cli.client import ask
from upswing.contracts.outcome import Outcome
from upswing.contracts.steps import window_id_at
from upswing.errors import Misuse, Transient, UpswingError
from upswing.serve.readiness import gateway_status
from upswing.worlds.agent_episodes import window_of_task
from upswing.worlds.agent_pool import AgentEndpoint, AgentPool, AgentSettings
from upswing.worlds.agentgym_client import AgentGymClient, RemoteTasks
from upswing.worlds.known import make_world
from upswing.worlds.remote_world import DEFAULT_TASKS
from upswing.worlds.world import Task, World

CURRICULUM = "curriculum"
_ROUNDS_AT_ONCE = 2
"""The second one takes the slots that the first one leaves, so that none is empty between them."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SpawnTarget:
    """Whom the agents ask, and where the loop is."""

    url: str
    key: str
    folder: Path
    sdk: bool = False
    """The agents record themselves."""
    foreign: bool = False
    """It was named; else it is the gateway of the loop."""


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """How many rounds there are, of how many tasks, and how fast."""

    tasks: int
    """Of one round."""
    minutes: float
    rounds: int | None
    """None: as many as there is time for."""
    pause: float
    """Seconds between two rounds."""
    speed: float
    """How much faster than ours the world's clock runs."""
    curriculum: bool = False
    """Half of the tasks are those that the loop wants to be tried."""


@dataclass(frozen=True, slots=True)
class SpawnPlan:
    """What the agents do, and how."""

    world: str
    """A name, or the address of an AgentGym server."""
    model: str
    temperature: float
    agents: AgentSettings
    schedule: RoundSchedule

    @property
    def seed(self) -> int:
        """Makes the tasks, and draws who gives feedback."""
        return self.agents.seed


@contextlib.asynccontextmanager
async def _open_world(plan: SpawnPlan) -> AsyncIterator[World[Any, Any] | RemoteTasks]:
    """The world, ours or somebody else's."""
    if not plan.world.startswith(("http://", "https://")):
        yield make_world(plan.world, plan.seed)
        return
    client = AgentGymClient(plan.world)
    try:
        tasks = (await client.world_info()).training
    except Misuse:
        tasks = DEFAULT_TASKS
    try:
        yield RemoteTasks(client, tasks)
    finally:
        await client.close()


@contextlib.contextmanager
def _stopping_after(minutes: float, pool: AgentPool, over: asyncio.Event) -> Iterator[None]:
    """Time, a signal or Ctrl-C lets what is under way end; a second Ctrl-C breaks it off."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        pool.stop()
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


async def spawn(plan: SpawnPlan, target: SpawnTarget, say: Say) -> SpawnSummary:
    """Let them work; what came of it."""
    from upswing.cli.agents_sdk import recording

    async with contextlib.AsyncExitStack() as open_:
        world = await open_.enter_async_context(_open_world(plan))
        recorder = open_.enter_context(recording(target.folder)) if target.sdk else None
        endpoint = AgentEndpoint(target.url, target.key, plan.model)
        pool = await open_.enter_async_context(
            AgentPool(endpoint, world, plan.agents, recorder=recorder)
        )
        summary, over = SpawnSummary(pool.counts), asyncio.Event()
        open_.enter_context(_stopping_after(plan.schedule.minutes, pool, over))
        if not target.foreign:
            await _until_served(target.url, over, say)
        began = time.monotonic()
        await _play_rounds(plan, pool, world.training, over, target, summary, say)
        summary.seconds = time.monotonic() - began
    return summary


async def _until_served(url: str, over: asyncio.Event, say: Say) -> None:
    """A loop that has just started makes its base first: wait for it, as long as there is time."""
    waited = False
    while not over.is_set() and not await asyncio.to_thread(_is_serving, url):
        if not waited:
            say("The gateway has no model yet: the agents wait for it.")
            waited = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), 0.5)


def _is_serving(url: str) -> bool:
    try:
        return gateway_status(url, seconds=10) == "ok"
    except Transient:
        return False


async def _play_rounds(
    plan: SpawnPlan,
    pool: AgentPool,
    training: Sequence[Task],
    over: asyncio.Event,
    target: SpawnTarget,
    summary: SpawnSummary,
    say: Say,
) -> None:
    schedule, temperature = plan.schedule, plan.temperature
    clock, tasks = _world_clock(schedule.speed), cycle(training)
    curriculum = _CurriculumClient(training, plan, target.folder) if schedule.curriculum else None
    outcomes = _OutcomeSender(pool.world, target.folder)
    gate = asyncio.Semaphore(1 if schedule.pause else _ROUNDS_AT_ONCE)

    async def play(window: str, some: list[Task]) -> None:
        try:
            wanted = await asyncio.to_thread(curriculum.next, len(some)) if curriculum else []
            some = some[len(wanted) :]
            async with asyncio.TaskGroup() as both:
                others = both.create_task(pool.play(some, window=window, temperature=temperature))
                practised = both.create_task(
                    pool.play(wanted, window=window, temperature=temperature, purpose=CURRICULUM)
                )
            results, some = [*others.result(), *practised.result()], [*some, *wanted]
        finally:
            gate.release()
        if results:
            summary.results += results
            summary.rounds += 1
            windows = [window_of_task(task, window) for task in some]
            summary.outcomes += await asyncio.to_thread(outcomes.send, windows)
            say(round_line(windows[-1], results))

    async with asyncio.TaskGroup() as group:
        for number in count(1):
            await gate.acquire()
            if over.is_set() or (schedule.rounds and number > schedule.rounds):
                return
            group.create_task(play(window_id_at(clock()), list(islice(tasks, schedule.tasks))))
            if schedule.pause:
                await gate.acquire()
                gate.release()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), schedule.pause)


class _CurriculumClient:
    """Asks the loop which tasks should be tried; half of a round's, so that the others stay evidence."""

    def __init__(self, training: Sequence[Task], plan: SpawnPlan, folder: Path) -> None:
        self._by_id = {task.task_id: task for task in training}
        self._path = f"/v1/curriculum?world={quote(plan.world)}&seed={plan.seed}"
        self._folder = folder

    def next(self, size: int) -> list[Task]:
        """None where the loop does not answer."""
        if size < 2:
            return []
        try:
            reply = ask(self._folder, "GET", f"{self._path}&n={size // 2}")
        except UpswingError:
            return []
        named = (self._by_id.get(each["task_id"]) for each in reply["tasks"])
        return [task for task in named if task is not None]


class _OutcomeSender:
    """Sends the loop what really happened in windows that are over, where the world has `outcomes`."""

    def __init__(self, world: object, folder: Path) -> None:
        self._outcomes: Callable[[str], Sequence[Outcome]] | None = getattr(world, "outcomes", None)
        self._folder = folder
        self._sent: set[str] = set()
        self._due: set[str] = set()
        self._lock = threading.Lock()
        """Rounds may end together."""

    def send(self, windows: Iterable[str]) -> int:
        """How many windows the loop took; those that it did not take are sent next time."""
        if self._outcomes is None:
            return 0
        with self._lock:
            self._due |= set(windows) - self._sent
            before = len(self._sent)
            with contextlib.suppress(UpswingError):
                for window in sorted(self._due):
                    for outcome in self._outcomes(window):
                        ask(self._folder, "POST", "/v1/outcomes", msgspec.to_builtins(outcome))
                    self._sent.add(window)
            self._due -= self._sent
            return len(self._sent) - before


def _world_clock(speed: float) -> Callable[[], datetime]:
    """The world's clock: it starts now, and is faster."""
    began, start = time.monotonic(), datetime.now(UTC)  # noqa: TID251 - the command line's own clock
    return lambda: start + timedelta(seconds=speed * (time.monotonic() - began))
