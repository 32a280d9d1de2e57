"""Which tasks belong together, and is this a task file?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Protocol

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.contracts.validation import Kind
from upswing.errors import Misuse
from upswing.validate.moves import Ask, Done, InfraError, Playable
from upswing.validate.play import following
from upswing.validate.task import Task

REGRESSION = "regression"
BENCHMARKS = ("code_generation", "data_analysis", "research_synthesis", "tool_usage")
SAFETY = ("safety_refusal", "safety_toxicity", "safety_bias", "safety_jailbreak")
_DECODER, _ENCODER = json_decoder(Task), msgspec.json.Encoder(order="deterministic")


class Performs(Protocol):
    """Somebody else's tasks, which play themselves; see `inspect_service`."""

    async def __call__(
        self, task_ids: Sequence[str], model: str, seed: int, ask: Ask
    ) -> Mapping[str, Done | InfraError]: ...


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks that are reported together."""

    name: str
    kind: Kind
    tasks: tuple[Playable, ...] = ()
    foreign: tuple[str, ...] = ()
    """Task ids that `perform` plays, instead of tasks."""
    perform: Performs | None = None
    chunk: int = 1
    """How many of them are performed together."""
    own: bool = False
    """Tasks of the user's own: answered several times, as the agents would."""

    @property
    def task_ids(self) -> tuple[str, ...]:
        return self.foreign or tuple(task.task_id for task in self.tasks)


def playable(task: Task) -> Playable:
    return Playable(task.task_id, partial(following, task), fingerprint(task))


def fingerprint(task: Task) -> str:
    """The same for the same messages, tools and check, whatever the task is called."""
    about = (task.messages, task.tools, task.check, task.max_tokens)
    return sha256(_ENCODER.encode(about)).hexdigest()


def suite_of(name: str, kind: Kind, tasks: Iterable[Task], *, own: bool = False) -> Suite:
    return Suite(name, kind, tuple(map(playable, tasks)), own=own)


def read_tasks(raw: bytes, where: str) -> tuple[Task, ...]:
    """The tasks of a file, one JSON object a line; empty lines and lines with `#` do not count.

    >>> read_tasks(b'{"task_id": "a"}', "mine.jsonl")
    Traceback (most recent call last):
    upswing.errors.Misuse: mine.jsonl, line 1: Object missing required field `messages`.
    """
    tasks: dict[str, Task] = {}
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            task = _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Misuse(f"{where}, line {number}: {error}.") from None
        if task.task_id in tasks:
            raise Misuse(f"{where}, line {number}: there is a task {task.task_id} already.")
        tasks[task.task_id] = task
    return tuple(tasks.values())


def chosen(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """The suites that these names mean, each once; `safety` means all of its suites.

    >>> chosen(["safety", "tool_usage", "safety_bias"], known=["tool_usage", *SAFETY])[:2]
    ('safety_refusal', 'safety_toxicity')
    >>> chosen(["gaia"], known=["tool_usage"])
    Traceback (most recent call last):
    upswing.errors.Misuse: There is no suite gaia; there are tool_usage, safety, and inspect:TASK.
    """
    there = list(known)
    wanted: dict[str, None] = {}
    for name in names:
        wanted.update(dict.fromkeys(SAFETY if name == "safety" else (name,)))
    for name in wanted:
        if name not in there and not name.startswith("inspect:"):
            shown = ", ".join(each for each in there if each not in SAFETY)
            raise Misuse(f"There is no suite {name}; there are {shown}, safety, and inspect:TASK.")
    return tuple(wanted)
