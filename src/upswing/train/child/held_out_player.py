"""Can the tasks that a job holds out be played? Then fresh attempts tell which checkpoint is best.

A task can be played where a world of ours or of `[validate.worlds]` has it among its training tasks:
the agents recorded it, the job holds it out, and validation's own tasks stay unseen. Attempts are
sampled as the agents sample, with the same chances at every evaluation.

| no fresh attempts, the logged estimate decides  | because                                        |
|-------------------------------------------------|------------------------------------------------|
| fewer than `MIN_TASKS` such tasks                  | chance would choose                            |
| they take more than `MAX_SECONDS`                   | a job would play longer than it trains         |
| the world is at an address, or raises           | a job must not wait for it, nor fail by it     |
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from torch import nn

from upswing.errors import Misuse
from upswing.train.child.evaluation import PlayHeldOut
from upswing.train.learn.example import Example
from upswing.worlds.known import make_world, world_of_task
from upswing.worlds.measure import measure_policy
from upswing.worlds.own import is_address
from upswing.worlds.sampler import SamplingPolicy
from upswing.worlds.world import World

log = logging.getLogger(__name__)

MIN_TASKS, MAX_TASKS, ATTEMPTS = 8, 32, 4
MAX_SECONDS = 15.0
_MAX_REPLY_TOKENS = 64
"""Tokens of a reply."""
_SEED = re.compile(r"-(\d+)-")

_World = World[Any, Any]


def held_out_player(
    held_out: Sequence[Example],
    tokenizer: object,
    worlds: Mapping[str, str],
    *,
    seed: int,
    clock: Callable[[], float] = time.monotonic,
) -> PlayHeldOut | None:
    """What plays the held-out tasks; None where too few of them can be played."""
    found = _find_playable_tasks({example.task for example in held_out}, worlds)
    if sum(len(tasks) for _, tasks in found) < MIN_TASKS:
        return None
    return _HeldOutPlayer(found, tokenizer, held_out, seed, clock)


class _HeldOutPlayer:
    """Plays until it turns out that it should not."""

    def __init__(
        self,
        tasks_by_world: Sequence[tuple[_World, list[Any]]],
        tokenizer: object,
        held_out: Sequence[Example],
        seed: int,
        clock: Callable[[], float],
    ) -> None:
        self._tasks_by_world, self._tokenizer, self._seed, self._clock = (
            tasks_by_world,
            tokenizer,
            seed,
            clock,
        )
        self._temperature = median(example.temperature for example in held_out)
        self._max_reply_tokens = min(
            _MAX_REPLY_TOKENS, max(_longest_reply(example) for example in held_out)
        )
        self._gave_up = self._temperature <= 0

    def __call__(self, model: nn.Module) -> tuple[float, int] | None:
        if self._gave_up:
            return None
        policy = SamplingPolicy(
            "job",
            model,
            self._tokenizer,
            max_new_tokens=self._max_reply_tokens,
            temperature=self._temperature,
        )
        scores: dict[str, float] = {}
        began = self._clock()
        try:
            for world, tasks in self._tasks_by_world:
                scores |= measure_policy(
                    world, policy, tasks=tasks, samples=ATTEMPTS, seed=self._seed
                )
        except Exception:  # a user's world may raise anything, and a job must not fail by it
            log.exception("a world cannot be played", extra={"action": "unplayable"})
            self._gave_up = True
            return None
        self._gave_up = self._clock() - began > MAX_SECONDS or len(scores) < MIN_TASKS
        if self._gave_up:
            return None
        return fmean(scores.values()), len(scores) * ATTEMPTS


def _find_playable_tasks(
    held_out: set[str], worlds: Mapping[str, str]
) -> list[tuple[_World, list[Any]]]:
    """The worlds that have some of these tasks, with those they have; `MAX_TASKS` in all."""
    found: list[tuple[_World, list[Any]]] = []
    left = MAX_TASKS
    for name, seed in [*_built_in_worlds(held_out), *((where, 0) for where in worlds.values())]:
        if is_address(name) or not left:
            continue
        try:
            world = make_world(name, seed)
        except Misuse as error:
            log.warning("%s", error, extra={"action": "unplayable"})
            continue
        tasks = [task for task in world.training if task.task_id in held_out][:left]
        if tasks:
            found.append((world, tasks))
            left -= len(tasks)
    return found


def _built_in_worlds(held_out: set[str]) -> list[tuple[str, int]]:
    """The worlds of ours, with their seeds, that tasks with such ids come from."""
    found = set()
    for task in held_out:
        name = world_of_task(task)
        if name is not None and (seed := _SEED.match(task, len(name))):
            found.add((name, int(seed[1])))
    return sorted(found)


def _longest_reply(example: Example) -> int:
    """Tokens of its longest reply."""
    counts: dict[int, int] = {}
    for turn, trained in zip(example.turns, example.trained, strict=True):
        counts[turn] = counts.get(turn, 0) + trained
    return max(counts.values(), default=1)
