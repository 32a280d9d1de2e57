"""Which trajectories are in which step?

All steps are drawn from the seed before the first one, so that a job that goes on from a checkpoint
takes the very steps it would have taken.

A *cluster* is what must stay together: a group of trajectories that are compared, a pair, or a
single trajectory. Iteration `i` takes its share of the clusters, round and round; each epoch of it
shuffles them and fills steps of `batch_size` trajectories, never splitting a cluster.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from upswing.train.core.recipe import Recipe

Cluster = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One optimizer step."""

    iteration: int
    epoch: int
    """Counted over all iterations."""
    clusters: tuple[Cluster, ...]

    @property
    def members(self) -> tuple[int, ...]:
        return tuple(member for cluster in self.clusters for member in cluster)


def plan_steps(clusters: Sequence[Cluster], recipe: Recipe) -> list[TrainingStep]:
    """All steps of a job, in order.

    >>> [step.members for step in plan_steps([(0, 1), (2, 3)], Recipe(batch_size=2, epochs=1))]
    [(0, 1), (2, 3)]
    """
    chance = random.Random(recipe.seed)  # noqa: S311 - an order, not a secret
    order = list(clusters)
    chance.shuffle(order)
    share = min(recipe.windows_per_iteration or len(order), len(order))
    steps: list[TrainingStep] = []
    at = 0
    for iteration in range(recipe.iterations):
        chosen = [order[(at + offset) % len(order)] for offset in range(share)]
        at += share
        for epoch in range(recipe.epochs):
            chance.shuffle(chosen)
            total = iteration * recipe.epochs + epoch
            steps += [
                TrainingStep(iteration, total, batch)
                for batch in _batches_of_clusters(chosen, recipe.batch_size)
            ]
    return steps


def _batches_of_clusters(clusters: Sequence[Cluster], size: int) -> Iterator[tuple[Cluster, ...]]:
    batch: list[Cluster] = []
    count = 0
    for cluster in clusters:
        batch.append(cluster)
        count += len(cluster)
        if count >= size:
            yield tuple(batch)
            batch, count = [], 0
    if batch:
        yield tuple(batch)


def learning_rate(recipe: Recipe, step: int, total: int) -> float:
    """The rate of step `step`, from 0.

    >>> recipe = Recipe(learning_rate=1.0, schedule="cosine", warmup=0.5)
    >>> [round(learning_rate(recipe, step, 4), 3) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """
    warm = round(recipe.warmup * total)
    if step < warm:
        return recipe.learning_rate * (step + 1) / warm
    if recipe.schedule == "constant":
        return recipe.learning_rate
    return recipe.learning_rate * _cosine_decay((step - warm) / max(1, total - warm))


def _cosine_decay(share: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * share))
