"""Where are the tasks? In the files of this package, in a user's files, in pins and in worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from upswing.contracts.validation import Kind
from upswing.errors import Misuse
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
from upswing.validate.world import World, suite_of_world


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
    inspect_limit: int | None = None,
) -> tuple[Suite, ...]:
    """The suites by their names.

    | name                                    | tasks                                        |
    |-----------------------------------------|----------------------------------------------|
    | `code_generation` and the others        | our own                                      |
    | `safety`                                | the four safety suites                       |
    | `regression`                            | what was pinned; left out while it is empty  |
    | `world:NAME`                            | a world's held-out tasks                     |
    | `inspect:TASK`                          | an Inspect AI task                           |
    | a name of `files`                       | a user's own file, one task a line           |
    """
    worlds, files = worlds or {}, files or {}
    made = []
    for name in chosen(names, there(worlds, files)):
        if name == REGRESSION:
            tasks = await pins.pinned() if pins else ()
            made += [suite_of(name, "regression", tasks)] if tasks else []
        elif name.startswith("world:"):
            made.append(suite_of_world(worlds[name.removeprefix("world:")]))
        elif name.startswith("inspect:"):
            from upswing.validate.inspect_service import suite_of_inspect  # noqa: PLC0415 - heavy

            made.append(await suite_of_inspect(name.removeprefix("inspect:"), limit=inspect_limit))
        elif name in files:
            made.append(
                suite_of(name, "benchmark", read_tasks(_bytes(files[name]), files[name].name))
            )
        else:
            kind: Kind = "safety" if name in SAFETY else "benchmark"
            made.append(suite_of(name, kind, tasks_of(name)))
    return tuple(made)


def there(worlds: Iterable[str], files: Iterable[str]) -> tuple[str, ...]:
    """The names of the suites that can be had."""
    return (*BENCHMARKS, *SAFETY, REGRESSION, *(f"world:{name}" for name in worlds), *files)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misuse(f"The task file {path} cannot be read: {error.strerror}.") from None
