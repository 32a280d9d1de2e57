"""How do AgentGym's environment servers speak? What goes over the wire, and how it is read.

Its servers are of two families, which differ in the names:

| what           | TextCraft, BabyAI, SciWorld, ALFWorld, maze    | SQLGym, WebShop, SearchQA, the tools   |
|----------------|------------------------------------------------|----------------------------------------|
| `/create`      | `{"id": 0, …}`                                 | `0`                                    |
| `/reset` takes | `id`, `data_idx` (or `game`)                   | `env_idx`, `item_id`, `session_id`, `id` |
| …and answers   | `{"observation", …}`                           | `"text"`, or `["text", null]`          |
| `/step` takes  | `id`, `action`                                 | `env_idx`, `action`                    |
| …and answers   | `{"observation", "reward", "done", …}`         | `{"state" or "observation", …}`        |
| went wrong     | 200 with `{"error"}`                           | 500                                    |

Our server speaks as the first family does, which AgentGym's guide shows to whoever adds a world.
Our client takes both: the answer to `/create` tells which it is, and servers ignore what they do
not know, so a reset names the task in every way at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.contracts.typed import from_tree
from upswing.errors import Transient
from upswing.worlds.world import Observation, Outcome, Task

MOST_BYTES = 64 * 1024
"""Of a request: an action is a message, not a file."""


class Create(msgspec.Struct, frozen=True):
    data_idx: int = 0
    """The task to begin with."""


class Step(msgspec.Struct, frozen=True):
    id: int
    action: str


class Reset(msgspec.Struct, frozen=True):
    id: int
    data_idx: int = 0
    """The number of the task: those to learn from come first, then the held-out ones, then those
    of the test."""


class Close(msgspec.Struct, frozen=True):
    id: int


class Info(msgspec.Struct, frozen=True):
    """What our own client wants to know besides; others may ignore it."""

    task: Task
    seen: Observation
    """Without the instructions, which `observation` begins with after a reset."""
    outcome: Outcome | None = None


class Answer(msgspec.Struct, frozen=True):
    """How a session stands."""

    id: int
    observation: str
    reward: float
    """0 until the end, then how much of the task is done, from 0 to 1."""
    score: float
    """The same: some clients read this one."""
    done: bool
    info: Info


class Closed(msgspec.Struct, frozen=True):
    closed: bool = True


class About(msgspec.Struct, frozen=True):
    """Which world it is, and how many tasks it has; AgentGym's servers do not tell."""

    world: str
    max_turns: int
    training: int
    held_out: int
    test: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A session of a server: its id, and what that server calls it."""

    key: str
    id: int

    def body(self, **more: Any) -> dict[str, Any]:
        return {**more, self.key: self.id}


@dataclass(frozen=True, slots=True)
class Heard:
    """What an answer says."""

    observation: Observation
    outcome: Outcome | None = None
    task: Task | None = None
    """Where the server tells it, as ours does."""


def address(told: Any) -> Address:
    """The session that `/create` made.

    >>> address({"id": 3, "observation": "hello"}), address(5)
    (Address(key='id', id=3), Address(key='env_idx', id=5))
    """
    if _is_number(told):
        return Address("env_idx", told)
    if isinstance(told, dict):
        for key in ("id", "env_idx"):
            if _is_number(told.get(key)):
                return Address(key, told[key])
    raise Transient(f"The world made no session: {_complaint(told)}")


def reset_body(session: Address, number: int) -> dict[str, Any]:
    """Begins a task, by whatever name the server knows its number."""
    names = ("data_idx", "game", "item_id", "session_id", "idx", "id")
    return session.body(**dict.fromkeys(names, number), world_type="Text")


def heard(told: Any, best: float = 1.0) -> Heard:
    """What an answer to `/reset` or `/step` says; `best` is the reward of a task that is done.

    >>> heard({"state": "Rows: 3", "reward": 1.0, "done": True, "info": None}).outcome.success
    True
    >>> heard(["Write a query.", None])
    Heard(observation=Observation(text='Write a query.', kind='user_message'), outcome=None, task=None)
    """
    if isinstance(told, list) and told:
        told = told[0]
    if isinstance(told, str):
        return Heard(Observation(told))
    if not isinstance(told, dict) or "error" in told:
        raise Transient(f"The world failed: {_complaint(told)}")
    text = told.get("observation", told.get("state"))
    if not isinstance(text, str):
        raise Transient(f"The world shows nothing: {_complaint(told)}")
    info = _info(told.get("info"))
    if info is None:
        return Heard(Observation(text), _outcome(told, best))
    return Heard(info.seen, info.outcome, info.task)


def _info(told: Any) -> Info | None:
    """What our own server says besides; others put something else there, or nothing."""
    try:
        return from_tree(told, Info)
    except msgspec.ValidationError:
        return None


def _outcome(told: dict[str, Any], best: float) -> Outcome | None:
    if not told.get("done", told.get("terminated")):
        return None
    reward = told.get("score", told.get("reward"))
    if not isinstance(reward, int | float) or not math.isfinite(reward):
        raise Transient(f"The world ended without a reward: {_complaint(told)}")
    share = min(max(reward / best, 0.0), 1.0)
    return Outcome(share >= 1.0, share, f"The world says that it is over, with a reward of {reward:g}.")  # fmt: skip


def _is_number(told: Any) -> bool:
    return isinstance(told, int) and not isinstance(told, bool)


def _complaint(told: Any) -> str:
    """Its own words, as far as they are short."""
    said = told.get("detail", told.get("error", told)) if isinstance(told, dict) else told
    return str(said)[:200]
