"""Which episodes of production are tasks to measure with? Those whose right answer is known.

Which those are, `upswing.dataset.truth` says.

The task is the situation before the last turn, whose action has to be a response. Only tasks are
taken that are held out and that no model was trained on (a job may hold out less, or have had
nothing else to learn from), each once, and of several trajectories the newest counts. What lies in
a window or scenario of its own is none: training holds such out by window; nor is what cannot be asked
again as it was: pictures are kept as hashes, and an agent may rewrite what was said before. The check sees what is
right, the model never does. Bodies are the stored ones, so they are redacted; what a check says
of an answer is not kept, because it would quote a user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from upswing.contracts.trajectory import Trajectory
from upswing.dataset.conversation import is_whole
from upswing.dataset.task import is_continuous
from upswing.dataset.truth import check_of
from upswing.validate.pin import situation, tools_at_hand
from upswing.validate.task import Task

log = logging.getLogger(__name__)
MOST = 200
"""Tasks, the newest."""


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
    messages = situation(trajectory, len(trajectory.turns) - 1)
    if _was_rewritten(trajectory.metadata) or not is_whole(messages):
        return None
    return Task(
        task_id=f"production-{sha256(task_id.encode()).hexdigest()[:16]}",
        messages=tuple(messages),
        check=check,
        tools=tuple(tools_at_hand(trajectory.turns, trajectory.metadata)),
    )


def _was_rewritten(metadata: Mapping[str, Any]) -> bool:
    """Was the model asked something else than what the turns tell? The gateway, which heard it, says so."""
    gateway = metadata.get("gateway")
    return isinstance(gateway, Mapping) and bool(gateway.get("rewritten"))
