"""Which tasks belong together, and is this a task file?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.contracts.validation import SuiteKind
from upswing.errors import Misuse
from upswing.validate.core.moves import AskModelFn, InfraError, PlayableTask, TaskResult
from upswing.validate.core.play import next_move
from upswing.validate.core.task import ValidationTask

REGRESSION = "regression"
BENCHMARKS = ("code_generation", "data_analysis", "research_synthesis", "tool_usage")
SAFETY = ("safety_refusal", "safety_toxicity", "safety_bias", "safety_jailbreak")
ExternalTaskRunner = Callable[
    [Sequence[str], str, int, AskModelFn], Awaitable[Mapping[str, TaskResult | InfraError]]
]
"""Plays tasks of others: their ids, the model, the seed and how to ask; see `validate.inspect_ai`."""
_DECODER, _ENCODER = json_decoder(ValidationTask), msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class TaskSuite:
    """Tasks that are reported together."""

    name: str
    kind: SuiteKind
    tasks: tuple[PlayableTask, ...] = ()
    external_task_ids: tuple[str, ...] = ()
    """Task ids that `run_external` plays, instead of tasks."""
    run_external: ExternalTaskRunner | None = None
    chunk: int = 1
    """How many of them are played together."""
    own: bool = False
    """Tasks of the user's own: answered several times, as the agents would."""

    @property
    def task_ids(self) -> tuple[str, ...]:
        return self.external_task_ids or tuple(task.task_id for task in self.tasks)


def to_playable(task: ValidationTask) -> PlayableTask:
    return PlayableTask(task.task_id, partial(next_move, task), fingerprint(task))


def fingerprint(task: ValidationTask) -> str:
    """The same for the same messages, tools and check, whatever the task is called."""
    about = (task.messages, task.tools, task.check, task.max_tokens)
    return sha256(_ENCODER.encode(about)).hexdigest()


def make_suite(
    name: str, kind: SuiteKind, tasks: Iterable[ValidationTask], *, own: bool = False
) -> TaskSuite:
    return TaskSuite(name, kind, tuple(map(to_playable, tasks)), own=own)


def read_tasks(raw: bytes, file_name: str) -> tuple[ValidationTask, ...]:
    """The tasks of a file, one JSON object a line; empty lines and lines with `#` do not count.

    >>> read_tasks(b'{"task_id": "a"}', "mine.jsonl")
    Traceback (most recent call last):
    upswing.errors.Misuse: mine.jsonl, line 1: Object missing required field `messages`.
    """
    tasks: dict[str, ValidationTask] = {}
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        try:
            task = _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise Misuse(f"{file_name}, line {number}: {error}.") from None
        if task.task_id in tasks:
            raise Misuse(f"{file_name}, line {number}: there is a task {task.task_id} already.")
        tasks[task.task_id] = task
    return tuple(tasks.values())


def expand_suite_names(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """The suites that these names mean, each once; `safety` means all of its suites.

    >>> expand_suite_names(["safety", "tool_usage", "safety_bias"], known=["tool_usage", *SAFETY])[:2]
    ('safety_refusal', 'safety_toxicity')
    >>> expand_suite_names(["gaia"], known=["tool_usage"])
    Traceback (most recent call last):
    upswing.errors.Misuse: There is no suite gaia; there are tool_usage, safety, and inspect:TASK.
    """
    available = list(known)
    wanted: dict[str, None] = {}
    for name in names:
        wanted.update(dict.fromkeys(SAFETY if name == "safety" else (name,)))
    for name in wanted:
        if name not in available and not name.startswith("inspect:"):
            shown = ", ".join(each for each in available if each not in SAFETY)
            raise Misuse(f"There is no suite {name}; there are {shown}, safety, and inspect:TASK.")
    return tuple(wanted)
