"""Whose request joins the batch? A seat each, and no model is kept waiting by another's crowd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def joining(waiting: Sequence[str], running: Mapping[str, int], seats: int) -> list[int]:
    """The places in the queue of those who join now, in the order in which they join.

    `waiting` are the models asked for, the longest waiting first. Each free seat goes to the model
    that has the fewest; among those, to whoever waits longest.

    >>> joining(["a", "a", "a", "b"], {"a": 1}, seats=3)
    [3, 0]
    """
    taken = Counter(running)
    left = list(enumerate(waiting))
    joined: list[int] = []
    while left and sum(taken.values()) < seats:
        at = min(range(len(left)), key=lambda place: (taken[left[place][1]], place))
        place, model = left.pop(at)
        taken[model] += 1
        joined.append(place)
    return joined


def seats_for(wished: int, memory: int, each: int) -> int:
    """As many as there is memory for, if each needs so much at most; one can always sit.

    >>> seats_for(16, 1000, 100), seats_for(16, 10, 100), seats_for(4, 1000, 100)
    (10, 1, 4)
    """
    return max(1, min(wished, memory // max(1, each)))


def portion(unread: int, budget: int) -> int:
    """How much of a prompt is read in this round: a long one does not hold up those who speak.

    >>> portion(700, 512), portion(100, 512), portion(700, 0)
    (512, 100, 0)
    """
    return max(0, min(unread, budget))
