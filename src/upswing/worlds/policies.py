"""How well does somebody play who has learned nothing, a little, or everything?

A player sees the task's instructions and what the world shows now, and replies. All of these find
the words to choose from in what they read, so they play any world that says `answer … or …`.

| player                      | triage | triage-check | desk |
|-----------------------------|--------|--------------|------|
| always the first answer     | 0.25   | 0.25         | 0.26 |
| at random                   | 0.24   | 0.28         | 0.29 |
| scripted                    | 0.25   | 0.25         | 0.36 |
| optimal                     | 1.00   | 1.00         | 1.00 |

The mean score on the held-out tasks of seed 0; faults do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from statistics import fmean
from typing import Any, TypeVar

from upswing.worlds.desk import AGAIN
from upswing.worlds.desk_cases import LOOK_UP
from upswing.worlds.desk_code import PATCHES
from upswing.worlds.triage import LOOK_UP as CHECK
from upswing.worlds.triage import RULE
from upswing.worlds.world import UNFINISHED, Task, World, WorldOutcome

Player = Callable[[Task, str, Random], str]
"""(task, what is seen, chance) → the reply. Of the task, only the instructions are for its eyes."""
T = TypeVar("T", bound=Task)

_OFFER = re.compile(r"\banswer ([a-z ]+)")
_LOOKS = frozenset({LOOK_UP, CHECK})
_KNOWN = RULE | PATCHES


def offered_words(task: Task, seen: str) -> tuple[str, ...]:
    """The words to choose from: those that are offered now, else those of the instructions.

    >>> offered_words(Task("a", "answer check or refund or explain"), "hello")
    ('check', 'refund', 'explain')
    """
    found = _OFFER.search(seen) or _OFFER.search(task.instructions)
    if not found:
        raise ValueError(f"{task.task_id} offers no words to choose from")
    return tuple(word for word in found[1].split() if word != "or")


def first_policy(task: Task, seen: str, chance: Random) -> str:  # noqa: ARG001 - leaves nothing to it
    """Always the same: the first word that is an answer."""
    return _answer_words(task, seen)[0]


def random_policy(task: Task, seen: str, chance: Random) -> str:
    """Any of the words."""
    return chance.choice(offered_words(task, seen))


def scripted_policy(task: Task, seen: str, chance: Random) -> str:
    """Looks up what it can, asks again when that failed, and gives the first answer, then another.

    What a careful person would do who does not know the rule.
    """
    if seen == AGAIN:
        return _answer_words(task, seen)[1]
    lookup = _lookup_word(task, seen)
    return lookup if lookup and not seen.startswith("it is") else first_policy(task, seen, chance)


def optimal_policy(task: Task, seen: str, chance: Random) -> str:  # noqa: ARG001 - leaves nothing to it
    """Knows the rules, and looks up what the ticket does not say."""
    known = [_KNOWN[word] for word in seen.split() if word in _KNOWN]
    if not (reply := known[0] if known else _lookup_word(task, seen)):
        raise ValueError(f"{task.task_id} is of a world whose rule is not known here")
    return reply


POLICIES: dict[str, Player] = {
    "always the first answer": first_policy,
    "at random": random_policy,
    "scripted": scripted_policy,
    "optimal": optimal_policy,
}


def play_task(world: World[T, Any], task: T, player: Player, chance: Random) -> WorldOutcome:
    """One episode."""
    state = world.reset(task)
    for _ in range(world.max_turns):
        state = world.step(state, player(task, world.observe(state).text, chance))
        if (ended := world.outcome(state)) is not None:
            return ended
    return UNFINISHED


def held_out_score(world: World[T, Any], player: Player, seed: int = 0) -> float:
    """The mean score on the held-out tasks; an episode that was a fault says nothing.

    >>> from upswing.worlds.triage import Triage
    >>> held_out_score(Triage(), optimal_policy)
    1.0
    """
    chance = Random(f"{world.name}/{seed}")  # noqa: S311 - a game, not a secret
    played = [play_task(world, task, player, chance) for task in world.held_out]
    return fmean(outcome.score for outcome in played if not outcome.fault)


def _lookup_word(task: Task, seen: str) -> str | None:
    """The word that looks something up, where there is one."""
    return next((word for word in offered_words(task, seen) if word in _LOOKS), None)


def _answer_words(task: Task, seen: str) -> tuple[str, ...]:
    return tuple(word for word in offered_words(task, seen) if word not in _LOOKS)
