"""Many agents at the same tasks: how did each of them fare?

Every agent does every task of a round, so those at one task form a group. Where several models answer,
as in a canary, more agents do a task until one of the models has a group of its own at it: attempts of
different models are not compared. Some users say what they thought, some of them only after other
episodes have ended.

| what happens                                        | what follows                             |
|-----------------------------------------------------|------------------------------------------|
| a request fails (gateway away, 429, 5xx)            | the client tries again, four times       |
| … and still fails, or the world is away             | the episode is a fault, and counted      |
| the world's own tools fail                          | the episode is a fault, not trained on   |
| the end or a user's word is not taken               | counted                                  |
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, Self, runtime_checkable
from uuid import UUID, uuid4

from upswing.worlds.agents_service import ANY_MODEL, GatewayKeeper, Keeper, client_of, do
from upswing.worlds.errands import (
    Done,
    Errand,
    Played,
    Windowed,
    Word,
    means,
    missing_of,
    name_of,
    played_of,
    window_for,
    word_on,
)
from upswing.worlds.visit import LocalVisit, Play, Visit
from upswing.worlds.world import Task, World

__all__ = ["Counts", "Crowd", "Elsewhere", "Played", "means"]
_GROUP, _WINDOW_GROUP = 4, 5
"""Attempts of one model that make a group, at a task and in a window of a continuous world."""
_MOST_MODELS = 3
"""So many side by side, at most, are waited for."""
_LATER = 12
"""Episodes that end before a late word comes."""


@dataclass(slots=True)
class Counts:
    """What became of a crowd's work."""

    episodes: int = 0
    faults: int = 0
    """The world's own, and those of the way."""
    troubles: Counter[str] = field(default_factory=Counter)
    """Why episodes were broken off: statuses, and kinds of errors."""
    unrecorded: int = 0
    """Answered, and not kept."""
    feedback: int = 0
    late: int = 0
    """Of the feedback."""
    unsaid: int = 0
    """Feedback that was not taken."""


@runtime_checkable
class Elsewhere(Protocol):
    """A world that does not run in this process."""

    async def enter(self, task: Task) -> Visit:
        """Begin a task; `Transient` when the world is away."""
        ...


class Crowd:
    """Agents that live behind a gateway; an async context manager."""

    def __init__(
        self,
        base_url: str,
        key: str,
        world: World[Any, Any] | Elsewhere,
        *,
        agents: int = 8,
        at_once: int = 8,
        max_tokens: int = 8,
        seed: int = 0,
        prefix: str = "agent",
        feedback: float = 0.25,
        told: Callable[[Played], None] = lambda _: None,
        new_id: Callable[[], UUID] = uuid4,
        keeper: Keeper | None = None,
        model: str = ANY_MODEL,
    ) -> None:
        """Agents of `base_url`, which records them unless there is another keeper.

        `feedback` is the share of episodes of which a user says something.
        """
        self.world, self.agents, self.told, self.counts = world, agents, told, Counts()
        self._client = client_of(base_url, key)
        self._keeper = keeper or GatewayKeeper(self._client, new_id)
        self._seats = asyncio.Semaphore(at_once)
        self._max_tokens, self._seed, self._prefix = max_tokens, seed, prefix
        self._feedback, self._new_id, self._model = feedback, new_id, model
        self._later: deque[tuple[int, str, Word]] = deque()
        """When it is due, by the count of episodes; the trajectory; the word."""
        self._stopped = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        """Whoever still has something to say says it, unless the crowd was broken off."""
        try:
            if kind is None:
                await self._say_later(everything=True)
        finally:
            await self._client.close()

    def stop(self) -> None:
        """Begin nothing more; what is under way ends."""
        self._stopped = True

    async def play(
        self,
        tasks: Iterable[Task],
        *,
        window: str,
        temperature: float = 1.0,
        evaluation: bool = False,
        purpose: str | None = None,
    ) -> list[Played]:
        """Every agent at every task, task by task; one agent alone when it is an evaluation.

        A task that lies in a window of its own is done in that one.
        """
        agents = 1 if evaluation else self.agents

        def errand(task: Task, member: int) -> Errand:
            return Errand(
                str(self._new_id()), name_of(self._prefix, task, member), task,
                window_for(task, window), temperature, evaluation, purpose,
            )  # fmt: skip

        async with asyncio.TaskGroup() as group:
            under_way = [
                group.create_task(self._play_task(partial(errand, task), task, agents))
                for task in tasks
            ]
        return [played for task in under_way for played in task.result()]

    async def _play_task(
        self, errand: Callable[[int], Errand], task: Task, agents: int
    ) -> list[Played]:
        """All agents at one task, and more of them while no model has a group of its own."""
        wanted = min(agents, _WINDOW_GROUP if isinstance(task, Windowed) else _GROUP)
        played: list[Played] = []
        begun, missing = 0, agents
        while missing > 0:
            async with asyncio.TaskGroup() as group:
                more = [
                    group.create_task(self._play(errand(begun + n + 1))) for n in range(missing)
                ]
            begun += missing
            played += [each for done in more if (each := done.result()) is not None]
            missing = min(missing_of(played, wanted), _MOST_MODELS * wanted - begun)
        return played

    async def _play(self, errand: Errand) -> Played | None:
        async with self._seats:
            if self._stopped:
                return None
            done = await do(
                self._client, self._enter, errand,
                model=self._model, max_tokens=self._max_tokens, note=self._keeper.note,
            )  # fmt: skip
            self._count(done)
            await self._end(done)
            played = played_of(done)
            self.told(played)
            await self._say_later()
            return played

    async def _enter(self, task: Task) -> Visit:
        world = self.world
        if isinstance(world, Elsewhere):
            return await world.enter(task)
        state = world.reset(task)
        return LocalVisit(world, Play(task, state, 0, world.outcome(state)))

    def _count(self, done: Done) -> None:
        self.counts.episodes += 1
        self.counts.faults += done.outcome.fault
        if done.trouble:
            self.counts.troubles[done.trouble] += 1

    async def _end(self, done: Done) -> None:
        trajectory_id = await self._keeper.keep(done)
        if trajectory_id is None:
            self.counts.unrecorded += bool(done.turns)
            return
        word = word_on(done, self._feedback, self._seed)
        if word is not None and word.late:
            self._later.append((self.counts.episodes + _LATER, trajectory_id, word))
        elif word is not None:
            await self._say(trajectory_id, word)

    async def _say_later(self, *, everything: bool = False) -> None:
        while self._later and (everything or self._later[0][0] <= self.counts.episodes):
            _, trajectory_id, word = self._later.popleft()
            await self._say(trajectory_id, word)

    async def _say(self, trajectory_id: str, word: Word) -> None:
        if await self._keeper.say(trajectory_id, pleased=word.pleased):
            self.counts.feedback += 1
            self.counts.late += word.late
        else:
            self.counts.unsaid += 1
