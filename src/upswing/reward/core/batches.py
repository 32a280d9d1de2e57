"""A group is too large for one look: who is compared with whom, and how do the scores meet?

A judge compares eight at a time. A larger group is judged in batches that overlap in at least two
members. A judge is strict today and mild tomorrow, so every batch has a scale of its own; the
members that several batches share tell by how much. The offsets are the ones that make the shared
members agree best (least squares), and a judge that is consistent up to such an offset gives the
merged scores its own order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SIZE = 8
OVERLAP = 2


@dataclass(frozen=True, slots=True)
class MergedScores:
    """One score per member, in [0, 1], on one scale."""

    scores: dict[str, float]
    offsets: tuple[float, ...]
    """What each batch was above the common scale."""


@dataclass(frozen=True, slots=True)
class Unmergeable:
    """The batches cannot be put on one scale."""

    sentence: str


def plan_batches(
    members: Sequence[str], size: int = SIZE, overlap: int = OVERLAP
) -> list[tuple[str, ...]]:
    """Batches of `size` in this order, each sharing at least `overlap` with the one before.

    >>> [len(batch) for batch in plan_batches([str(n) for n in range(11)])]
    [8, 8]
    >>> plan_batches(["a", "b", "c"])
    [('a', 'b', 'c')]
    """
    if not 0 < overlap < size:
        raise ValueError("the overlap is at least one and smaller than a batch")
    spare = len(members) - size
    if spare <= 0:
        return [tuple(members)] if members else []
    steps = -(-spare // (size - overlap))
    starts = [index * spare // steps for index in range(steps + 1)]
    return [tuple(members[start : start + size]) for start in starts]


def merge_batches(batches: Sequence[Mapping[str, float]]) -> MergedScores | Unmergeable:
    """The scores of all batches on one scale.

    >>> merged = merge_batches([{"a": 0.25, "b": 0.5}, {"b": 0.75, "c": 1.0}])
    >>> merged.scores, merged.offsets
    ({'a': 0.375, 'b': 0.625, 'c': 0.875}, (-0.125, 0.125))
    """
    if not batches or not all(batches):
        return Unmergeable("A batch has no scores.")
    offsets = _least_squares_offsets(batches)
    if offsets is None:
        return Unmergeable(
            "Two batches share no scored member, so their scales cannot be compared."
        )
    collected: dict[str, list[float]] = {}
    for batch, offset in zip(batches, offsets, strict=True):
        for name, score in batch.items():
            collected.setdefault(name, []).append(score - offset)
    means = {name: sum(scores) / len(scores) for name, scores in collected.items()}
    return MergedScores(_fit_to_unit_range(means), tuple(offsets))


def _least_squares_offsets(batches: Sequence[Mapping[str, float]]) -> list[float] | None:
    """The offsets with mean 0 that minimise the disagreement; None if nothing ties two batches.

    For a member scored m times, each of its batches pulls towards the mean of the m; the sums of
    these pulls are the normal equations. Their null space is a common shift, which the last
    line (all offsets sum to 0) takes away.
    """
    count = len(batches)
    rows = [[0.0] * (count + 1) for _ in range(count)]
    batches_with: dict[str, list[int]] = {}
    for index, batch in enumerate(batches):
        for name in batch:
            batches_with.setdefault(name, []).append(index)
    for name, indices in batches_with.items():
        mean = sum(batches[index][name] for index in indices) / len(indices)
        for one in indices:
            rows[one][one] += 1.0
            rows[one][count] += batches[one][name] - mean
            for other in indices:
                rows[one][other] -= 1.0 / len(indices)
    for row in rows:  # adding the same line to all of them keeps the system square
        row[:count] = [value + 1.0 for value in row[:count]]
    return _solve_linear(rows)


def _solve_linear(rows: list[list[float]]) -> list[float] | None:
    """Gauss elimination with pivoting; None for a singular system."""
    count = len(rows)
    for column in range(count):
        pivot = max(range(column, count), key=lambda index: abs(rows[index][column]))
        if abs(rows[pivot][column]) < 1e-9:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for index in range(column + 1, count):
            factor = rows[index][column] / rows[column][column]
            rows[index] = [a - factor * b for a, b in zip(rows[index], rows[column], strict=True)]
    found = [0.0] * count
    for index in reversed(range(count)):
        known = sum(rows[index][later] * found[later] for later in range(index + 1, count))
        found[index] = (rows[index][count] - known) / rows[index][index]
    return found


def _fit_to_unit_range(scores: dict[str, float]) -> dict[str, float]:
    """Into [0, 1] without losing an order: shifted when that is enough, else squeezed."""
    low, high = min(scores.values()), max(scores.values())
    width = max(1.0, high - low)
    base = low if high - low > 1.0 else min(low, 0.0) + max(high - 1.0, 0.0)
    return {name: min(1.0, max(0.0, (each - base) / width)) for name, each in scores.items()}
