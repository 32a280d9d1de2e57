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
from upswing.dataset.conversation import conversation_before, recorded_calls
from upswing.errors import Misuse
from upswing.validate.core.task import Call, Pinned, ValidationTask

_ENCODER = msgspec.json.Encoder(order="deterministic")


def pinned_task(
    trajectory: Trajectory,
    expectation: Pinned | None = None,
    *,
    turn_id: int | None = None,
    max_tokens: int = 700,
) -> ValidationTask:
    """The task; its id follows from the trajectory, the turn and the expectation.

    Without an expectation the answer must only be another one than the bad one: a response must
    differ, a tool must not be called with the same arguments again. `turn_id` is the turn that went
    wrong; by default the last.
    """
    turns = trajectory.turns
    index = len(turns) - 1 if turn_id is None else _turn_index(turns, turn_id)
    expected = expectation or _anything_else(turns[index])
    if expected == Pinned():
        raise Misuse("A pin needs something that must or must not happen.")
    identity = f"{trajectory.trajectory_id}/{turns[index].turn_id}".encode() + _ENCODER.encode(
        expected
    )
    return ValidationTask(
        task_id=f"pin-{trajectory.trajectory_id}-{sha256(identity).hexdigest()[:8]}",
        messages=tuple(messages_before(trajectory, index)),
        check=expected,
        tools=tuple(available_tools(turns[: index + 1], trajectory.metadata)),
        max_tokens=max_tokens,
    )


def _turn_index(turns: Sequence[Turn], turn_id: int) -> int:
    for index, turn in enumerate(turns):
        if turn.turn_id == turn_id:
            return index
    raise Misuse(
        f"The trajectory has no turn {turn_id}; it has {turns[0].turn_id} to {turns[-1].turn_id}."
    )


def _anything_else(turn: Turn) -> Pinned:
    """Anything but what was done."""
    action = turn.action
    if action.type == "tool_call" and action.tool_name:
        return Pinned(calls_not=(Call(name=action.tool_name, arguments=action.tool_args or {}),))
    bad = action.raw_response or (turn.result.output if isinstance(turn.result.output, str) else "")
    if not bad:
        raise Misuse(f"Turn {turn.turn_id} has no answer to differ from: say what must happen.")
    return Pinned(differs_from=(bad,))


def messages_before(trajectory: Trajectory, turn_index: int) -> list[Json]:
    """What was seen and done before the action of this turn, as messages."""
    instructions = str(trajectory.task_context.get("instructions") or "")
    messages = conversation_before(instructions, msgspec.to_builtins(trajectory.turns), turn_index)
    if messages[-1]["role"] == "system":  # some servers want somebody to have asked
        messages[-1] = {"role": "user", "content": messages[-1]["content"]}
    return messages


def available_tools(
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
            names.update(
                dict.fromkeys(c.name for c in recorded_calls(msgspec.to_builtins(turn.action)))
            )
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in names
    ]
