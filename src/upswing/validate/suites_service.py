"""Where are the tasks? In the files of this package, in a user's files, in pins and in worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import msgspec

from upswing.contracts.validation import Kind
from upswing.errors import Misuse
from upswing.validate.moves import Done, Event, Move, Playable
from upswing.validate.place_service import UNTOLD, Place, suite_of_place
from upswing.validate.suite import (
    BENCHMARKS,
    REGRESSION,
    SAFETY,
    Suite,
    chosen,
    read_tasks,
    suite_of,
)
from upswing.validate.task import Task
from upswing.validate.usual import FEWEST, PRODUCTION, is_own
from upswing.validate.world import World, suite_of_world

REPLY = 64
"""Tokens of a reply in a world, where nobody knows how many the agents allow."""
_WORDS = {True: "It is right.", False: "It is not right."}


class KeepsPins(Protocol):
    """Where pinned tasks are kept. The same task twice is kept once."""

    async def add(self, task: Task) -> bool:
        """Whether it is new; durable when it returns."""
        ...

    async def pinned(self) -> Sequence[Task]: ...


def tasks_of(name: str) -> tuple[Task, ...]:
    """The tasks of one of our own suites."""
    file = resources.files("upswing.validate").joinpath("suites", f"{name}.jsonl")
    return read_tasks(file.read_bytes(), f"{name}.jsonl")


async def suites(
    names: Iterable[str],
    *,
    pins: KeepsPins | None = None,
    worlds: Mapping[str, World[Any, Any]] | None = None,
    files: Mapping[str, Path] | None = None,
    places: Mapping[str, Place] | None = None,
    production: Sequence[Task] = (),
    versions: Mapping[str, str] | None = None,
    most: int | None = None,
    max_tokens: int | None = None,
    reply: int = REPLY,
    inspect_limit: int | None = None,
) -> tuple[Suite, ...]:
    """The suites by their names.

    | name                                    | tasks                                        |
    |-----------------------------------------|----------------------------------------------|
    | `code_generation` and the others        | our own                                      |
    | `safety`                                | the four safety suites                       |
    | `regression`                            | what was pinned; left out while it is empty  |
    | `world:NAME`                            | a world's held-out tasks, also of `places`   |
    | `production`                            | what was harvested; left out while empty     |
    | `inspect:TASK`                          | an Inspect AI task                           |
    | a name of `files`                       | a user's own file, one task a line           |

    `most` tasks are of the user's own, shared among their suites; `versions` tell a world's code from
    an earlier one; `max_tokens` is what the longest answer may take, `reply` one in a world.
    """
    worlds, files, places = worlds or {}, files or {}, places or {}
    wanted = chosen(names, there((*worlds, *places), files))
    share = _share(most, sum(is_own(name, files) for name in wanted))
    made: list[Suite] = []
    for name in wanted:
        world = name.removeprefix("world:")
        if name == REGRESSION:
            tasks = await pins.pinned() if pins else ()
            made += [suite_of(name, "regression", tasks)] if tasks else []
        elif name == PRODUCTION:
            made += (
                [_unquoted(suite_of(name, "benchmark", production[:share], own=True))]
                if production
                else []
            )
        elif name.startswith("world:") and world in places:
            most_of = share or UNTOLD
            made.append(await suite_of_place(world, places[world], most=most_of, max_tokens=reply))
        elif name.startswith("world:"):
            version = (versions or {}).get(world, "")
            made.append(
                suite_of_world(
                    worlds[world], name=world, tasks=share, max_tokens=reply, version=version
                )
            )
        elif name.startswith("inspect:"):
            from upswing.validate.inspect_service import suite_of_inspect  # noqa: PLC0415 - heavy

            made.append(await suite_of_inspect(name.removeprefix("inspect:"), limit=inspect_limit))
        elif name in files:
            tasks = read_tasks(_bytes(files[name]), str(files[name]))
            made.append(suite_of(name, "benchmark", tasks[:share], own=True))
        else:
            kind: Kind = "safety" if name in SAFETY else "benchmark"
            tasks = [_short(name, task, max_tokens) for task in tasks_of(name)]
            made.append(suite_of(name, kind, tasks))
    return tuple(made)


def _share(most: int | None, suites: int) -> int | None:
    return None if most is None else max(FEWEST, most // max(1, suites))


def _short(name: str, task: Task, most: int | None) -> Task:
    """Only code needs as long an answer as is allowed."""
    if most is None or name == "code_generation":
        return task
    allowed = 3 * most // 8 if name in BENCHMARKS else most // 4
    return msgspec.structs.replace(task, max_tokens=max(1, min(task.max_tokens, allowed)))


def _unquoted(suite: Suite) -> Suite:
    """What is said of an answer to a user's task would quote the user, so it is not said."""

    def plain(task: Playable, events: Sequence[Event]) -> Move:
        move = task.following(events)
        return Done(move.score, _WORDS[move.score >= 1]) if isinstance(move, Done) else move

    tasks = (replace(task, following=partial(plain, task)) for task in suite.tasks)
    return replace(suite, tasks=tuple(tasks))


def there(worlds: Iterable[str], files: Iterable[str]) -> tuple[str, ...]:
    """The names of the suites that can be had."""
    own = (PRODUCTION, *(f"world:{name}" for name in worlds), *files)
    return (*BENCHMARKS, *SAFETY, REGRESSION, *own)


def check_files(files: Mapping[str, Path]) -> None:
    """`Misuse` when one of a user's files is no file of tasks: better at the start than after a training."""
    for name, path in files.items():
        try:
            found = read_tasks(_bytes(path), str(path))
        except Misuse as error:
            raise Misuse(f"`{name}` in [validate.files]: {error}") from None
        if not found:
            raise Misuse(f"`{name}` in [validate.files]: the file {path} has no task in it.")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misuse(f"The task file {path} cannot be read: {error.strerror}.") from None
