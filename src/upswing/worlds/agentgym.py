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
not know, so a reset names the task under every known key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from upswing.contracts.typed import from_tree
from upswing.errors import Transient
from upswing.worlds.world import Task, WorldObservation, WorldOutcome

MAX_REQUEST_BYTES = 64 * 1024
"""Of a request: an action is a message, not a file."""


class CreateSession(msgspec.Struct, frozen=True):
    data_idx: int = 0
    """The task to begin with."""


class StepSession(msgspec.Struct, frozen=True):
    id: int
    action: str


class ResetSession(msgspec.Struct, frozen=True):
    id: int
    data_idx: int = 0
    """The number of the task: those to learn from come first, then the held-out ones, then those
    of the test."""


class CloseSession(msgspec.Struct, frozen=True):
    id: int


class SessionInfo(msgspec.Struct, frozen=True):
    """What our own client wants to know besides; others may ignore it."""

    task: Task
    seen: WorldObservation
    """Without the instructions, which `observation` begins with after a reset."""
    outcome: WorldOutcome | None = None


class SessionReply(msgspec.Struct, frozen=True):
    """How a session stands."""

    id: int
    observation: str
    reward: float
    """0 until the end, then how much of the task is done, from 0 to 1."""
    score: float
    """The same: some clients read this one."""
    done: bool
    info: SessionInfo


class SessionClosed(msgspec.Struct, frozen=True):
    closed: bool = True


class WorldInfo(msgspec.Struct, frozen=True):
    """Which world it is, and how many tasks it has; AgentGym's servers do not say."""

    world: str
    max_turns: int
    training: int
    held_out: int
    test: int = 0


@dataclass(frozen=True, slots=True)
class SessionAddress:
    """A session of a server: its id, and what that server calls it."""

    key: str
    id: int

    def body(self, **more: Any) -> dict[str, Any]:
        return {**more, self.key: self.id}


@dataclass(frozen=True, slots=True)
class ServerReply:
    """What an answer says."""

    observation: WorldObservation
    outcome: WorldOutcome | None = None
    task: Task | None = None
    """Where the server sends it, as ours does."""


def session_address(reply: Any) -> SessionAddress:
    """The session that `/create` made.

    >>> session_address({"id": 3, "observation": "hello"}), session_address(5)
    (SessionAddress(key='id', id=3), SessionAddress(key='env_idx', id=5))
    """
    if _is_number(reply):
        return SessionAddress("env_idx", reply)
    if isinstance(reply, dict):
        for key in ("id", "env_idx"):
            if _is_number(reply.get(key)):
                return SessionAddress(key, reply[key])
    raise Transient(f"The world made no session: {_error_text(reply)}")


def reset_body(session: SessionAddress, number: int) -> dict[str, Any]:
    """Begins a task, by whatever name the server knows its number."""
    names = ("data_idx", "game", "item_id", "session_id", "idx", "id")
    return session.body(**dict.fromkeys(names, number), world_type="Text")


def parse_reply(reply: Any, best_reward: float = 1.0) -> ServerReply:
    """What an answer to `/reset` or `/step` says; `best_reward` is the reward of a task that is done.

    >>> parse_reply({"state": "Rows: 3", "reward": 1.0, "done": True, "info": None}).outcome.success
    True
    >>> parse_reply(["Write a query.", None])
    ServerReply(observation=WorldObservation(text='Write a query.', kind='user_message'), outcome=None, task=None)
    """
    if isinstance(reply, list) and reply:
        reply = reply[0]
    if isinstance(reply, str):
        return ServerReply(WorldObservation(reply))
    if not isinstance(reply, dict) or "error" in reply:
        raise Transient(f"The world failed: {_error_text(reply)}")
    text = reply.get("observation", reply.get("state"))
    if not isinstance(text, str):
        raise Transient(f"The world shows nothing: {_error_text(reply)}")
    info = _session_info_of_reply(reply.get("info"))
    if info is None:
        return ServerReply(WorldObservation(text), _outcome_of_reply(reply, best_reward))
    return ServerReply(info.seen, info.outcome, info.task)


def _session_info_of_reply(reply: Any) -> SessionInfo | None:
    """What our own server says besides; others put something else there, or nothing."""
    try:
        return from_tree(reply, SessionInfo)
    except msgspec.ValidationError:
        return None


def _outcome_of_reply(reply: dict[str, Any], best_reward: float) -> WorldOutcome | None:
    if not reply.get("done", reply.get("terminated")):
        return None
    reward = reply.get("score", reply.get("reward"))
    if not isinstance(reward, int | float) or not math.isfinite(reward):
        raise Transient(f"The world ended without a reward: {_error_text(reply)}")
    share = min(max(reward / best_reward, 0.0), 1.0)
    return WorldOutcome(
        share >= 1.0, share, f"The world says that it is over, with a reward of {reward:g}."
    )


def _is_number(reply: Any) -> bool:
    return isinstance(reply, int) and not isinstance(reply, bool)


def _error_text(reply: Any) -> str:
    """What the server says went wrong, cut short."""
    error = reply.get("detail", reply.get("error", reply)) if isinstance(reply, dict) else reply
    return str(error)[:200]
