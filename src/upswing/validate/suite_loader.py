"""Where are the tasks? In the files of this package, in a user's files, in pins and in worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from upswing.contracts.validation import SuiteKind
from upswing.errors import Misuse
from upswing.validate.core.default_suites import MIN_PRODUCTION_TASKS, PRODUCTION, is_own_suite
from upswing.validate.core.moves import Move, MoveResult, PlayableTask, TaskResult
from upswing.validate.core.suite import (
    BENCHMARKS,
    REGRESSION,
    SAFETY,
    TaskSuite,
    expand_suite_names,
    make_suite,
    read_tasks,
)
from upswing.validate.core.task import ValidationTask
from upswing.validate.core.world_tasks import make_world_suite
from upswing.validate.remote_world import DEFAULT_TASKS, make_remote_world_suite
from upswing.validate.sample_score_store import PinStore
from upswing.worlds.agentgym_client import AgentGymClient
from upswing.worlds.world import World

DEFAULT_REPLY_TOKENS = 64
"""Tokens of a reply in a world, where nobody knows how many the agents allow."""
_VERDICT_SENTENCES = {True: "It is right.", False: "It is not right."}


def builtin_tasks(name: str) -> tuple[ValidationTask, ...]:
    """The tasks of one of our own suites."""
    file = resources.files("upswing.validate").joinpath("suites", f"{name}.jsonl")
    return read_tasks(file.read_bytes(), f"{name}.jsonl")


async def load_suites(
    names: Iterable[str],
    *,
    pins: PinStore | None = None,
    worlds: Mapping[str, World[Any, Any]] | None = None,
    files: Mapping[str, Path] | None = None,
    remote_worlds: Mapping[str, AgentGymClient] | None = None,
    production: Sequence[ValidationTask] = (),
    versions: Mapping[str, str] | None = None,
    max_own_tasks: int | None = None,
    max_tokens: int | None = None,
    reply_tokens: int = DEFAULT_REPLY_TOKENS,
    inspect_limit: int | None = None,
) -> tuple[TaskSuite, ...]:
    """The suites by their names.

    | name                                    | tasks                                        |
    |-----------------------------------------|----------------------------------------------|
    | `code_generation` and the others        | our own                                      |
    | `safety`                                | the four safety suites                       |
    | `regression`                            | what was pinned; left out while it is empty  |
    | `world:NAME`                            | a world's held-out tasks, also of `remote_worlds`   |
    | `production`                            | what was harvested; left out while empty     |
    | `inspect:TASK`                          | an Inspect AI task                           |
    | a name of `files`                       | a user's own file, one task a line           |

    `max_own_tasks` tasks are of the user's own, shared among their suites; `versions` tell a world's code from
    an earlier one; `max_tokens` is what the longest answer may take, `reply_tokens` one in a world.
    """
    worlds, files, remote_worlds = worlds or {}, files or {}, remote_worlds or {}
    names_wanted = expand_suite_names(names, available_suites((*worlds, *remote_worlds), files))
    tasks_per_suite = _tasks_per_suite(
        max_own_tasks, sum(is_own_suite(name, files) for name in names_wanted)
    )
    made: list[TaskSuite] = []
    for name in names_wanted:
        world = name.removeprefix("world:")
        if name == REGRESSION:
            tasks = await pins.pinned() if pins else ()
            made += [make_suite(name, "regression", tasks)] if tasks else []
        elif name == PRODUCTION:
            made += (
                [
                    _without_quotes(
                        make_suite(name, "benchmark", production[:tasks_per_suite], own=True)
                    )
                ]
                if production
                else []
            )
        elif name.startswith("world:") and world in remote_worlds:
            max_remote_tasks = tasks_per_suite or DEFAULT_TASKS
            made.append(
                await make_remote_world_suite(
                    world, remote_worlds[world], max_tasks=max_remote_tasks, max_tokens=reply_tokens
                )
            )
        elif name.startswith("world:"):
            version = (versions or {}).get(world, "")
            made.append(
                make_world_suite(
                    worlds[world],
                    name=world,
                    max_tasks=tasks_per_suite,
                    max_tokens=reply_tokens,
                    version=version,
                )
            )
        elif name.startswith("inspect:"):
            from upswing.validate.inspect_ai import make_inspect_suite  # noqa: PLC0415 - heavy

            made.append(
                await make_inspect_suite(name.removeprefix("inspect:"), limit=inspect_limit)
            )
        elif name in files:
            tasks = read_tasks(_read_file(files[name]), str(files[name]))
            made.append(make_suite(name, "benchmark", tasks[:tasks_per_suite], own=True))
        else:
            kind: SuiteKind = "safety" if name in SAFETY else "benchmark"
            tasks = [_shorten_answer(name, task, max_tokens) for task in builtin_tasks(name)]
            made.append(make_suite(name, kind, tasks))
    return tuple(made)


def _tasks_per_suite(max_own_tasks: int | None, suite_count: int) -> int | None:
    return (
        None
        if max_own_tasks is None
        else max(MIN_PRODUCTION_TASKS, max_own_tasks // max(1, suite_count))
    )


def _shorten_answer(name: str, task: ValidationTask, max_tokens: int | None) -> ValidationTask:
    """Only code needs as long an answer as is allowed."""
    if max_tokens is None or name == "code_generation":
        return task
    allowed = 3 * max_tokens // 8 if name in BENCHMARKS else max_tokens // 4
    return msgspec.structs.replace(task, max_tokens=max(1, min(task.max_tokens, allowed)))


def _without_quotes(suite: TaskSuite) -> TaskSuite:
    """What is said of an answer to a user's task would quote the user, so it is not said."""

    def plain(task: PlayableTask, events: Sequence[MoveResult]) -> Move:
        move = task.next_move(events)
        return (
            TaskResult(move.score, _VERDICT_SENTENCES[move.score >= 1])
            if isinstance(move, TaskResult)
            else move
        )

    tasks = (replace(task, next_move=partial(plain, task)) for task in suite.tasks)
    return replace(suite, tasks=tuple(tasks))


def available_suites(worlds: Iterable[str], files: Iterable[str]) -> tuple[str, ...]:
    """The names of the suites that can be had."""
    own = (PRODUCTION, *(f"world:{name}" for name in worlds), *files)
    return (*BENCHMARKS, *SAFETY, REGRESSION, *own)


def check_files(files: Mapping[str, Path]) -> None:
    """`Misuse` when one of a user's files is no file of tasks: better at the start than after a training."""
    for name, path in files.items():
        try:
            found = read_tasks(_read_file(path), str(path))
        except Misuse as error:
            raise Misuse(f"`{name}` in [validate.files]: {error}") from None
        if not found:
            raise Misuse(f"`{name}` in [validate.files]: the file {path} has no task in it.")


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misuse(f"The task file {path} cannot be read: {error.strerror}.") from None
