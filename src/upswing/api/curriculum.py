"""Which task should an agent try next? `GET /v1/curriculum`, from what the current model solves."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.api.router import Problem, Request, Response, Route, answer
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.infra.sql.task_stats import TaskStatsReader
from upswing.train.learn.curriculum import TaskAttempts, choose_tasks, sampling_weight
from upswing.worlds.known import locate_world, make_world
from upswing.worlds.own import is_address

SCOPES = frozenset({"agent", "reader", "operator"})
_MAX_TASKS = 1000
_CACHED_WORLDS = 16
"""Worlds whose tasks are known without making them anew."""
_MAX_WAITING = 8
"""Worlds that wait to be made."""
_QUERY: dict[str, dict[str, Any]] = {
    "world": {"type": "string", "minLength": 1, "maxLength": 200},
    "seed": {"type": "integer", "minimum": 0},
    "n": {"type": "integer", "minimum": 1, "maximum": _MAX_TASKS},
}


class NextTask(msgspec.Struct, frozen=True):
    """A task, and what the current model did with it."""

    task_id: str
    attempts: int
    successes: int
    weight: float
    """The chance that the next four attempts differ: what is drawn by."""


class NextTasks(msgspec.Struct, frozen=True):
    world: str
    model: str | None
    """Whose attempts were counted; None: nobody has acted yet."""
    tasks: list[NextTask]


class TrainingTaskCache:
    """The tasks of worlds, which are made one at a time: whoever asks for ever new seeds keeps nobody else waiting.

    A world that was made lately is answered at once, also while another is being made.
    """

    def __init__(self, make: Callable[[str, int], tuple[str, ...]]) -> None:
        self._make = make
        self._made: OrderedDict[tuple[str, int], tuple[str, ...]] = OrderedDict()
        self._making = asyncio.Lock()
        self._waiting = 0

    async def task_ids(self, location: str, seed: int) -> tuple[str, ...]:
        """`Transient` when too many worlds wait to be made."""
        if (cached := self._cached(location, seed)) is not None:
            return cached
        if self._waiting >= _MAX_WAITING:
            raise Transient(
                "Many worlds are being made just now: ask again, or with a seed that was asked for."
            )
        self._waiting += 1
        try:
            async with self._making:
                if (cached := self._cached(location, seed)) is not None:
                    return cached
                made = await asyncio.to_thread(self._make, location, seed)
                self._made[location, seed] = made
                while len(self._made) > _CACHED_WORLDS:
                    self._made.popitem(last=False)
                return made
        finally:
            self._waiting -= 1

    def _cached(self, location: str, seed: int) -> tuple[str, ...] | None:
        if (cached := self._made.get((location, seed))) is not None:
            self._made.move_to_end((location, seed))
        return cached


class CurriculumRoutes:
    """The handler."""

    def __init__(
        self,
        reader: TaskStatsReader,
        registered: Mapping[str, str],
        training_tasks: Callable[[str, int], tuple[str, ...]] | None = None,
    ) -> None:
        """`registered` are the worlds of the config, by name; `training_tasks` makes a world and names its tasks."""
        self._reader, self._registered = reader, registered
        self._worlds = TrainingTaskCache(training_tasks or _training_task_ids)
        self._requests = count()
        """So that who asks twice gets other tasks."""

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/v1/curriculum",
                "Which tasks of a world to try next.",
                self.next,
                SCOPES,
                query=_QUERY,
                answers={200: ("They.", NextTasks), 422: ("A number is wrong.", Problem)},
            ),
        ]

    async def next(self, request: Request) -> Response:
        query = request.query
        world, n = query.get("world", ""), _integer_query(query, "n", 8, 1, _MAX_TASKS)
        if not world:
            raise Rejected(Reason.SCHEMA, "Name the world: /v1/curriculum?world=desk&n=8.")
        current = await self._reader.current_stats()
        stats = {task: TaskAttempts(*counts) for task, counts in current.tasks.items()}
        seed = _integer_query(query, "seed", 0, 0, 2**31)
        tasks = await self._candidate_task_ids(world, self._locate(world), seed, stats)
        drawn = choose_tasks(stats, tasks, n, f"{len(stats)}/{next(self._requests)}")
        chosen = [_next_task(task, stats.get(task, TaskAttempts())) for task in drawn]
        return answer(200, NextTasks(world, current.model, chosen))

    async def _candidate_task_ids(
        self, world: str, location: str | None, seed: int, stats: Mapping[str, TaskAttempts]
    ) -> Sequence[str]:
        """The world's tasks to learn from; of one that is not here, those that were tried."""
        if location is not None and not is_address(location):
            return await self._worlds.task_ids(location, seed)
        name = world if location is None else urlsplit(location).netloc
        return sorted(task for task in stats if task.startswith(f"{name}-"))

    def _locate(self, world: str) -> str | None:
        """Where the world is; None where nobody here knows it: a request brings no code."""
        try:
            return locate_world(world, self._registered)
        except Misuse:
            return None


def _training_task_ids(location: str, seed: int) -> tuple[str, ...]:
    return tuple(task.task_id for task in make_world(location, seed).training)


def _next_task(task: str, tries: TaskAttempts) -> NextTask:
    return NextTask(task, tries.attempts, tries.successes, round(sampling_weight(tries), 4))


def _integer_query(
    query: Mapping[str, str], name: str, default: int, minimum: int, maximum: int
) -> int:
    text = query.get(name, str(default))
    if not text.isdecimal() or len(text) > 10 or not minimum <= int(text) <= maximum:
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number from {minimum} to {maximum}.")
    return int(text)
