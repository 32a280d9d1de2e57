"""Which tasks are not trained on but measured?

Whole tasks are held out, never single trajectories: a model that trained on one attempt at a task
has seen the task. Tasks that meet in a group stay on one side together, because a group is
compared whole.

| tasks apart | share | held out                                                          |
|-------------|-------|-------------------------------------------------------------------|
| any         | 0     | nothing: nobody asked for it                                      |
| one         | any   | nothing: nothing would be left to train on                        |
| several     | else  | those whose lot falls below the share, and never all that teach   |
|             |       | something                                                         |

A lot is a hash of the task and of nothing else: a task that is held out once is held out in every
cycle, by training and by validation alike, however many others come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class HoldoutSplit:
    """The tasks that are held out, and why these."""

    held_out: frozenset[str]
    sentence: str


def deterministic_draw(purpose: str, seed: int, name: str) -> float:
    """A number in [0, 1) that chance gave to this name, the same for the same seed.

    >>> deterministic_draw("split", 1, "task-1") == deterministic_draw("split", 1, "task-1") != deterministic_draw("split", 2, "task-1")
    True
    """
    digest = sha256(f"{purpose}\0{seed}\0{name}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def is_held_out(task: str, share: float) -> bool:
    """Whether this task is measured and never trained on, in every cycle.

    >>> [task for task in map(str, range(30)) if is_held_out(task, 0.1)]
    ['8', '11']
    """
    return deterministic_draw("split", 0, task) < share


def split_held_out(
    units: Iterable[Collection[str]], share: float, useful_tasks: Collection[str] | None = None
) -> HoldoutSplit:
    """Divide the tasks; each unit names the tasks that have to stay together.

    `useful_tasks` are the tasks that something can be learned from (None: all): some of them are left.

    >>> split_held_out([["a"], ["b"]], 0.0).sentence, split_held_out([["a"]], 0.5).sentence
    ('Nothing is held out, as asked.', 'Nothing is held out: nothing would be left to train on.')
    >>> split_held_out([[str(n)] for n in range(30)], 0.1).sentence
    '2 of 30 tasks are held out.'
    """
    together = _linked_tasks(units)
    count = len(together)
    tasks = sum(map(len, together))
    if not share > 0:
        return HoldoutSplit(frozenset(), "Nothing is held out, as asked.")
    if count < 2 or share >= 1:
        return HoldoutSplit(
            frozenset(), f"Nothing is held out: {_nothing_left_reason(count, tasks)}"
        )
    below = [names for names in together if is_held_out(names[0], share)]
    some = (
        frozenset(task for names in together for task in names)
        if useful_tasks is None
        else frozenset(useful_tasks)
    )
    useful = [names for names in together if not some.isdisjoint(names)]
    if useful and all(names in below for names in useful):
        below.remove(max(useful, key=lambda names: deterministic_draw("split", 0, names[0])))
    held = frozenset(name for names in below for name in names)
    if not held:
        return HoldoutSplit(
            held, f"Nothing is held out: chance holds out none of these {tasks} tasks."
        )
    return HoldoutSplit(
        held, f"{len(held)} of {tasks} tasks {'is' if len(held) == 1 else 'are'} held out."
    )


def _nothing_left_reason(count: int, tasks: int) -> str:
    if count == 1 and tasks > 1:
        return f"all {tasks} tasks meet in groups, so nothing would be left to train on."
    return "nothing would be left to train on."


def _linked_tasks(units: Iterable[Collection[str]]) -> list[list[str]]:
    """Tasks that share a unit, directly or through others; each list sorted."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for tasks in units:
        first, *others = sorted(set(tasks))
        parent.setdefault(first, first)
        for other in others:
            parent.setdefault(other, other)
            parent[root(other)] = root(first)
    found: dict[str, list[str]] = {}
    for name in sorted(parent):
        found.setdefault(root(name), []).append(name)
    return list(found.values())
