"""Whose request joins the batch? A seat each, and no model is kept waiting by another's crowd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def select_for_batch(waiting: Sequence[str], running: Mapping[str, int], slots: int) -> list[int]:
    """The places in the queue of those who join now, in the order in which they join.

    `waiting` are the models asked for, the longest waiting first. Each free seat goes to the model
    that has the fewest; among those, to whoever waits longest.

    >>> select_for_batch(["a", "a", "a", "b"], {"a": 1}, slots=3)
    [3, 0]
    """
    used = Counter(running)
    left = list(enumerate(waiting))
    joined: list[int] = []
    while left and sum(used.values()) < slots:
        best = min(range(len(left)), key=lambda position: (used[left[position][1]], position))
        position, model = left.pop(best)
        used[model] += 1
        joined.append(position)
    return joined


def slots_for_memory(requested: int, memory_bytes: int, bytes_per_slot: int) -> int:
    """As many as there is memory for, if each needs so much at most; one can always sit.

    >>> slots_for_memory(16, 1000, 100), slots_for_memory(16, 10, 100), slots_for_memory(4, 1000, 100)
    (10, 1, 4)
    """
    return max(1, min(requested, memory_bytes // max(1, bytes_per_slot)))


def prefill_chunk(remaining: int, budget: int) -> int:
    """How much of a prompt is read in this round: a long one does not hold up those who speak.

    >>> prefill_chunk(700, 512), prefill_chunk(100, 512), prefill_chunk(700, 0)
    (512, 100, 0)
    """
    return max(0, min(remaining, budget))
