"""Which tasks does a candidate do worse, and what are these tasks like? For whoever compares them with the others.

A task counts as failed for the model that does it worse than the other one, so the two sides mirror each other: what only
the candidate's failed tasks have in common is not their difficulty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from upswing.contracts.analysis import FailureAnalysis
from upswing.contracts.validation import SampleScore
from upswing.errors import UpswingError
from upswing.records import EpisodeFacts
from upswing.validate.core.compare import paired_scores
from upswing.validate.core.moves import AskModel, PlayableTask
from upswing.validate.core.suite import TaskSuite

AnalyseTasks = Callable[[str, str, str, Sequence[EpisodeFacts]], FailureAnalysis]
"""Candidate, current model, validation and facts → what the failures have in common."""
_KINDS = (
    ("it refuses", "refusal"),
    ("it helps", "helped_harm"),
    ("the answer has no code", "no_code"),
    ("the code", "broken_code"),
    ("it calls", "tool_error"),
    ("it does not call", "tool_error"),
    ("it gives the secret away", "gave_away"),
    ("there is no clear answer", "no_answer"),
    ("it says", "wrong_statement"),
)
"""How a checker's sentence begins → what went wrong; any other: `wrong_answer`."""


def task_facts(
    suites: Sequence[TaskSuite], sample_scores: Mapping[str, Sequence[SampleScore]]
) -> Iterator[EpisodeFacts]:
    """Two facts for each task that both have done: one for either side."""
    for suite in suites:
        found = sample_scores.get(suite.name, ())
        tasks = {task.task_id: task for task in suite.tasks}
        for task_id, (candidate, current) in paired_scores(found).items():
            labels, numbers = _labels_and_numbers(suite, tasks.get(task_id))
            for is_candidate, failed in ((True, candidate < current), (False, current < candidate)):
                kind = _failure_kind(found, task_id, is_candidate) if failed else ""
                ref = f"{suite.name}/{task_id}"
                yield EpisodeFacts(ref, is_candidate, failed, kind, labels, numbers)


def _labels_and_numbers(
    suite: TaskSuite, task: PlayableTask | None
) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    labels: dict[str, tuple[str, ...]] = {"suite": (suite.name,), "kind": (suite.kind,)}
    numbers: dict[str, float] = {}
    with suppress(UpswingError):  # a world that is away says nothing of its tasks
        first = task.next_move(()) if task is not None else None
        if isinstance(first, AskModel):
            numbers["prompt length"] = float(len(msgspec.json.encode(first.messages)))
            names = (_tool_name(tool) for tool in first.tools)
            labels["tool offered"] = tuple(sorted({name for name in names if name}))
    return labels, numbers


def _tool_name(tool: object) -> str:
    function = tool.get("function", tool) if isinstance(tool, dict) else {}
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _failure_kind(sample_scores: Sequence[SampleScore], task_id: str, is_candidate: bool) -> str:
    side = "candidate" if is_candidate else "current"
    own = [each for each in sample_scores if each.task_id == task_id and each.side == side]
    scored = [each for each in own if each.score is not None]
    sentence = min(scored, key=lambda each: each.score or 0.0).sentence.lower() if scored else ""
    return next((kind for begin, kind in _KINDS if sentence.startswith(begin)), "wrong_answer")
