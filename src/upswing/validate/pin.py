"""How does a failure in production become a task? The same situation again, and what must come of it.

What the model read before the pinned turn are the task's messages, as `upswing.dataset.conversation` has them;
its tools are those that were offered, or those that were at hand, with open arguments.

The turn's own observation is the last message; its action is what went wrong. Metadata does not
enter, the ground truth least of all. The trajectory is the stored one, so it is redacted already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from upswing.contracts.trajectory import Trajectory, Turn
from upswing.contracts.wire import Json
from upswing.dataset.conversation import asked, calls_of
from upswing.errors import Misuse
from upswing.validate.task import Call, Pinned, Task

_ENCODER = msgspec.json.Encoder(order="deterministic")


def pin(
    trajectory: Trajectory,
    expectation: Pinned | None = None,
    *,
    turn_id: int | None = None,
    max_tokens: int = 700,
) -> Task:
    """The task; its id follows from the trajectory, the turn and the expectation.

    Without an expectation the answer must only be another one than the bad one: a response must
    differ, a tool must not be called with the same arguments again. `turn_id` is the turn that went
    wrong; by default the last.
    """
    turns = trajectory.turns
    at = len(turns) - 1 if turn_id is None else _place(turns, turn_id)
    wanted = expectation or _otherwise(turns[at])
    if wanted == Pinned():
        raise Misuse("A pin needs something that must or must not happen.")
    about = f"{trajectory.trajectory_id}/{turns[at].turn_id}".encode() + _ENCODER.encode(wanted)
    return Task(
        task_id=f"pin-{trajectory.trajectory_id}-{sha256(about).hexdigest()[:8]}",
        messages=tuple(situation(trajectory, at)),
        check=wanted,
        tools=tuple(tools_at_hand(turns[: at + 1], trajectory.metadata)),
        max_tokens=max_tokens,
    )


def _place(turns: Sequence[Turn], turn_id: int) -> int:
    for place, turn in enumerate(turns):
        if turn.turn_id == turn_id:
            return place
    raise Misuse(
        f"The trajectory has no turn {turn_id}; it has {turns[0].turn_id} to {turns[-1].turn_id}."
    )


def _otherwise(turn: Turn) -> Pinned:
    """Anything but what was done."""
    action = turn.action
    if action.type == "tool_call" and action.tool_name:
        return Pinned(calls_not=(Call(name=action.tool_name, arguments=action.tool_args or {}),))
    bad = action.raw_response or (turn.result.output if isinstance(turn.result.output, str) else "")
    if not bad:
        raise Misuse(f"Turn {turn.turn_id} has no answer to differ from: say what must happen.")
    return Pinned(differs_from=(bad,))


def situation(trajectory: Trajectory, at: int) -> list[Json]:
    """What was seen and done before the action of this turn, as messages."""
    instructions = str(trajectory.task_context.get("instructions") or "")
    messages = asked(instructions, msgspec.to_builtins(trajectory.turns), at)
    if messages[-1]["role"] == "system":  # some servers want somebody to have asked
        messages[-1] = {"role": "user", "content": messages[-1]["content"]}
    return messages


def tools_at_hand(
    turns: Sequence[Turn], metadata: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The tools that were offered, else those that these turns had or called, with open arguments."""
    offered = (metadata or {}).get("tools")
    if isinstance(offered, list) and offered and all(isinstance(each, dict) for each in offered):
        return offered
    names: dict[str, None] = {}
    for turn in turns:
        context = turn.observation.context
        names.update(dict.fromkeys((context.available_tools or ()) if context else ()))
        if turn.action.type == "tool_call":
            names.update(dict.fromkeys(c.name for c in calls_of(msgspec.to_builtins(turn.action))))
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in names
    ]
