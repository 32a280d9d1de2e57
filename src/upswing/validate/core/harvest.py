"""Which episodes of production are tasks to measure with? Those whose right answer is known.

Which those are, `upswing.dataset.ground_truth` says.

The task is the situation before the last turn, whose action has to be a response. Only tasks are
taken that are held out and that no model was trained on (a job may hold out less, or have had
nothing else to learn from), each question once whatever it is called, and of several trajectories the newest counts. What lies in
a window or scenario of its own is none: training holds such out by window; nor is what cannot be asked
again as it was: pictures are kept as hashes, and an agent may rewrite what was said before. The check sees what is
right, the model never does. Bodies are the stored ones, so they are redacted; what a check says
of an answer is not kept, because it would quote a user.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from upswing.contracts import canonical
from upswing.contracts.trajectory import Trajectory
from upswing.contracts.validation import RecordedTask
from upswing.dataset.conversation import is_replayable
from upswing.dataset.ground_truth import ground_truth_check
from upswing.dataset.task import is_continuous
from upswing.principals import cap_of, key_weights
from upswing.validate.core.pin import available_tools, messages_before
from upswing.validate.core.task import ValidationTask

log = logging.getLogger(__name__)
MAX_TASKS = 200
"""Tasks, the newest."""


def harvest_tasks(
    trajectories: Iterable[tuple[str, Trajectory]],
    is_held_out: Callable[[str], bool],
    max_tasks: int = MAX_TASKS,
) -> tuple[ValidationTask, ...]:
    """The tasks in these trajectories, which come newest first, each with the name of its task."""
    found: dict[str, ValidationTask] = {}
    asked: set[bytes] = set()
    for task_id, trajectory in trajectories:
        if len(found) >= max_tasks or not task_id or task_id in found or not is_held_out(task_id):
            continue
        try:
            task = harvested_task(trajectory, task_id)
        except Exception:
            message = "%s is no task to measure with"
            log.exception(
                message,
                trajectory.trajectory_id,
                extra={"action": "alert", "reason": "unmeasurable_task"},
            )
            continue
        if task is None:
            continue
        question = canonical(list(task.messages))
        if question not in asked:
            asked.add(question)
            found[task_id] = task
    return tuple(found.values())


def fair_order(newest: Sequence[RecordedTask], most: int = MAX_TASKS) -> list[RecordedTask]:
    """In which order, and how many of each key: a key that may not speak for many chooses no suite alone.

    What gateways recorded, and what trusted keys sent, comes first; the rest fills up.
    """
    counts = Counter(each.key_id for each in newest)
    share = {key: max(1, int(weight)) for key, weight in key_weights(counts).items()}
    fewer = {key: max(1, int(most * cap_of(len(counts), key=True))) for key in counts if key}
    taken: Counter[str] = Counter()
    first: list[RecordedTask] = []
    later: list[RecordedTask] = []
    for each in sorted(newest, key=lambda one: not (one.gateway or not one.key_id)):
        key = each.key_id
        limit = share[key] if not key or len(counts) < 2 else min(share[key], fewer[key])
        if taken[key] < limit:
            taken[key] += 1
            (first if each.gateway or not key else later).append(each)
    return [*first, *later]


def harvested_task(trajectory: Trajectory, task_id: str) -> ValidationTask | None:
    """The task that a trajectory is about; None when nobody can check it."""
    tree = {"task_context": trajectory.task_context, "metadata": trajectory.metadata}
    if trajectory.turns[-1].action.type != "response" or is_continuous(tree):
        return None
    check = ground_truth_check(trajectory.metadata)
    if check is None:
        return None
    messages = messages_before(trajectory, len(trajectory.turns) - 1)
    if _was_rewritten(trajectory.metadata) or not is_replayable(messages):
        return None
    return ValidationTask(
        task_id=f"production-{sha256(task_id.encode()).hexdigest()[:16]}",
        messages=tuple(messages),
        check=check,
        tools=tuple(available_tools(trajectory.turns, trajectory.metadata)),
    )


def _was_rewritten(metadata: Mapping[str, Any]) -> bool:
    """Was the model asked something else than what the turns tell? The gateway, which heard it, says so."""
    gateway = metadata.get("gateway")
    return isinstance(gateway, Mapping) and bool(gateway.get("rewritten"))
