"""Which episodes of production are tasks to measure with? Those whose right answer is known.

| in a trajectory's metadata                                        | the check                     |
|-------------------------------------------------------------------|-------------------------------|
| `check`, or `ground_truth` with a `kind`: `exact`, `number`,      | that                          |
| `facts` or `pinned`, in the shape of `upswing.validate.task`      |                               |
| the same with the kind `contains` and a `text`                    | the text is in the answer     |
| `ground_truth`, or its `answer`: a number                         | `number`                      |
| `ground_truth`, or its `answer`: a text, or a list of texts       | `exact`                       |
| anything else, or a text that was redacted                        | none: it is no task           |

The task is the situation before the last turn, whose action has to be a response. Only tasks are
taken that are held out and that no model was trained on (a job may hold out less, or have had
nothing else to learn from), each once, and of several trajectories the newest counts. What lies in
a window or scenario of its own is none: training holds such out by window. The check sees what is
right, the model never does. Bodies are the stored ones, so they are redacted; what a check says
of an answer is not kept, because it would quote a user.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from upswing.contracts.trajectory import Trajectory
from upswing.dataset.task import is_continuous
from upswing.validate.pin import situation, tools_at_hand
from upswing.validate.task import AnyCheck, Exact, Facts, Number, Pinned, Task

log = logging.getLogger(__name__)
MOST = 200
"""Tasks, the newest."""
_LONGEST = 500
"""Characters of an expected text: a longer one is no answer that anybody repeats."""
_PLACEHOLDER = re.compile(r"<[a-z][a-z0-9-]*-\d+>")
_KINDS = Exact | Number | Facts | Pinned


def harvest(
    trajectories: Iterable[tuple[str, Trajectory]],
    held_out: Callable[[str], bool],
    most: int = MOST,
) -> tuple[Task, ...]:
    """The tasks in these trajectories, which come newest first, each with the name of its task."""
    found: dict[str, Task] = {}
    for task_id, trajectory in trajectories:
        if len(found) >= most or not task_id or task_id in found or not held_out(task_id):
            continue
        try:
            task = task_of(trajectory, task_id)
        except Exception:
            told = "%s is no task to measure with"
            log.exception(told, trajectory.trajectory_id, extra={"action": "alert"})
            continue
        if task is not None:
            found[task_id] = task
    return tuple(found.values())


def task_of(trajectory: Trajectory, task_id: str) -> Task | None:
    """The task that a trajectory is about; None when nobody can check it."""
    tree = {"task_context": trajectory.task_context, "metadata": trajectory.metadata}
    if trajectory.turns[-1].action.type != "response" or is_continuous(tree):
        return None
    check = check_of(trajectory.metadata)
    if check is None:
        return None
    at = len(trajectory.turns) - 1
    return Task(
        task_id=f"production-{sha256(task_id.encode()).hexdigest()[:16]}",
        messages=tuple(situation(trajectory, at)),
        check=check,
        tools=tuple(tools_at_hand(trajectory.turns)),
    )


def check_of(metadata: Mapping[str, Any]) -> AnyCheck | None:
    """How an answer is checked, as far as the metadata tells.

    >>> check_of({"ground_truth": 9.5})
    Number(value=9.5, tolerance=0.0)
    >>> check_of({"ground_truth": {"answer": "Paris"}}), check_of({"ground_truth": {"told": "up"}})
    (Exact(any_of=('Paris',)), None)
    """
    for told in (metadata.get("check"), metadata.get("ground_truth")):
        check = _check(told)
        if check is not None and not _PLACEHOLDER.search(msgspec.json.encode(check).decode()):
            return check
    return None


def _check(told: Any) -> AnyCheck | None:
    if isinstance(told, Mapping):
        if told.get("kind") == "contains":
            told = {"kind": "pinned", "contains": [told.get("text")]}
        if "kind" in told:
            return _shaped(told)
        told = told.get("answer")
    if isinstance(told, bool):
        return None
    if isinstance(told, int | float):
        return _shaped({"kind": "number", "value": told})
    texts = told if isinstance(told, list) else [told]
    if not texts or not all(isinstance(each, str) and each.strip() for each in texts):
        return None
    return _shaped({"kind": "exact", "any_of": texts})


def _shaped(told: Mapping[str, Any]) -> AnyCheck | None:
    try:
        check: Exact | Number | Facts | Pinned = msgspec.convert(dict(told), _KINDS)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return None
    if isinstance(check, Number) and not math.isfinite(check.value + check.tolerance):
        return None
    if check == Pinned() or len(msgspec.json.encode(check)) > 4 * _LONGEST:
        return None
    return check
