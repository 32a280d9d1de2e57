"""In which order are tasks done? Both models side by side, every suite at the same pace.

    pair 1   candidate task a    current task a
    pair 2   current task k      candidate task k
    pair 3   candidate task b    current task b       …

A slow or failing backend, a full machine or the deadline then spoils both models and all suites
alike. Who goes first alternates. The order follows from the suites, so a run that was cut short
goes on where it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from upswing.contracts.validation import SIDES, SampleScore, Side


@dataclass(frozen=True, slots=True)
class Pairing:
    """Tasks of one suite that both models do with one seed; mostly a single task."""

    suite: str
    task_ids: tuple[str, ...]
    seed: int
    order: tuple[Side, Side]


def plan_pairings(
    suites: Mapping[str, Sequence[str]],
    seeds: Mapping[str, Sequence[int]],
    chunks: Mapping[str, int],
    *,
    by_task: bool = False,
) -> list[Pairing]:
    """Every task of every suite with each of the suite's seeds.

    `by_task`: a task is done with all its seeds before the next one is begun, for a plan that may be
    cut short.

    >>> plan = plan_pairings({"a": ["1", "2"], "b": ["x"]}, seeds={"a": [7], "b": [7]}, chunks={})
    >>> [(pairing.suite, *pairing.task_ids, pairing.order[0]) for pairing in plan]
    [('a', '1', 'candidate'), ('b', 'x', 'current'), ('a', '2', 'candidate')]
    """
    scheduled: list[tuple[float, str, int, tuple[str, ...]]] = []
    for name, task_ids in suites.items():
        size = chunks.get(name, 1)
        batches = [tuple(task_ids[start : start + size]) for start in range(0, len(task_ids), size)]
        units = [(seed, batch) for seed in seeds[name] for batch in batches]
        if by_task:
            units = [(seed, batch) for batch in batches for seed in seeds[name]]
        scheduled += [
            ((index + 0.5) / len(units), name, seed, batch)
            for index, (seed, batch) in enumerate(units)
        ]
    scheduled.sort(key=lambda unit: unit[0])
    return [
        Pairing(name, batch, seed, SIDES if index % 2 == 0 else SIDES[::-1])
        for index, (_, name, seed, batch) in enumerate(scheduled)
    ]


SampleKey = tuple[str, str, int, Side]
"""Suite, task, seed and side: one sample score."""


def missing_tasks(pairing: Pairing, side: Side, known: Collection[SampleKey]) -> list[str]:
    """The tasks of a pairing that this model has no sample score for yet."""
    return [
        task_id
        for task_id in pairing.task_ids
        if (pairing.suite, task_id, pairing.seed, side) not in known
    ]


def sample_key(sample_score: SampleScore) -> SampleKey:
    """What makes a sample score this sample score and no other."""
    return (sample_score.suite, sample_score.task_id, sample_score.seed, sample_score.side)
