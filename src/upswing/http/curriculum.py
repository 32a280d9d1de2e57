"""Which task should an agent try next? `GET /v1/curriculum`, from what the current model solves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from upswing.errors import Misuse, Reason, Rejected
from upswing.http.app import Problem, Request, Response, Route, answer
from upswing.worlds.curriculum import Tries, next_tasks, weight_of
from upswing.worlds.known import place_of, world_of
from upswing.worlds.own import is_address

SCOPES = frozenset({"agent", "reader", "operator"})
_MOST = 1000
_QUERY: dict[str, dict[str, Any]] = {
    "world": {"type": "string", "minLength": 1, "maxLength": 200},
    "seed": {"type": "integer", "minimum": 0},
    "n": {"type": "integer", "minimum": 1, "maximum": _MOST},
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


class Stats(Protocol):
    @property
    def model(self) -> str | None: ...
    @property
    def tasks(self) -> Mapping[str, tuple[int, int]]: ...


class StatsReader(Protocol):
    async def current(self) -> Stats: ...


class CurriculumRoutes:
    """The handler."""

    def __init__(self, reader: StatsReader, registered: Mapping[str, str]) -> None:
        """`registered` are the worlds of the config, by name."""
        self._reader, self._registered = reader, registered
        self._asked = count()
        """So that who asks twice gets other tasks."""

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/v1/curriculum", "Which tasks of a world to try next.", self.next, SCOPES,
                query=_QUERY,
                answers={200: ("They.", NextTasks), 422: ("A number is wrong.", Problem)},
            ),
        ]  # fmt: skip

    async def next(self, request: Request) -> Response:
        query = request.query
        world, n = query.get("world", ""), _number(query, "n", 8, 1, _MOST)
        if not world:
            raise Rejected(Reason.SCHEMA, "Name the world: /v1/curriculum?world=desk&n=8.")
        known = await self._reader.current()
        stats = {task: Tries(*counts) for task, counts in known.tasks.items()}
        seed = _number(query, "seed", 0, 0, 2**31)
        tasks = await asyncio.to_thread(_tasks, world, self._place(world), seed, stats)
        drawn = next_tasks(stats, tasks, n, f"{len(stats)}/{next(self._asked)}")
        told = [_told(task, stats.get(task, Tries())) for task in drawn]
        return answer(200, NextTasks(world, known.model, told))

    def _place(self, world: str) -> str | None:
        """Where the world is; None where nobody here knows it: a request brings no code."""
        try:
            return place_of(world, self._registered)
        except Misuse:
            return None


def _tasks(world: str, place: str | None, seed: int, stats: Mapping[str, Tries]) -> Sequence[str]:
    """The world's tasks to learn from; of one that is not here, those that were tried."""
    if place is not None and not is_address(place):
        return _training(place, seed)
    name = world if place is None else urlsplit(place).netloc
    return sorted(task for task in stats if task.startswith(f"{name}-"))


@lru_cache(maxsize=16)
def _training(place: str, seed: int) -> tuple[str, ...]:
    return tuple(task.task_id for task in world_of(place, seed).training)


def _told(task: str, tries: Tries) -> NextTask:
    return NextTask(task, tries.attempts, tries.successes, round(weight_of(tries), 4))


def _number(query: Mapping[str, str], name: str, usual: int, least: int, most: int) -> int:
    text = query.get(name, str(usual))
    if not text.isdecimal() or len(text) > 10 or not least <= int(text) <= most:
        raise Rejected(Reason.SCHEMA, f"`{name}` is a number from {least} to {most}.")
    return int(text)
