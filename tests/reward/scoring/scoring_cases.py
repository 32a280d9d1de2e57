"""A trajectory that says only what a test is about."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from upswing.contracts import Feedback, Trajectory, from_builtins

ID = "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"
AT = datetime(2025, 12, 8, 13, tzinfo=UTC)


def turn(number=1, *, says="go on", seen="tool_result", does="tool_call", ok=True, **more) -> Any:
    """`more` goes into the action, but for output and error, which go into the result."""
    result = {key: more.pop(key) for key in ("output", "error") if key in more}
    return {
        "turn_id": number,
        "timestamp": AT.isoformat(),
        "observation": {"type": seen, "content": says},
        "action": {"type": does, **more},
        "result": {"success": ok, **result},
    }


def trajectory(*turns: Any, task: Any = None, seconds: float = 0, **metadata: Any) -> Trajectory:
    shown = list(turns) or [turn(does="response")]
    for number, one in enumerate(shown, 1):
        one["turn_id"] = number
    tree = {
        "trajectory_id": ID,
        "session_id": "s",
        "agent_id": "a",
        "start_timestamp": AT.isoformat(),
        "end_timestamp": (AT + timedelta(seconds=seconds)).isoformat(),
        "turns": shown,
        "task_context": {"task_id": "t", "instructions": "Sort the list.", **(task or {})},
        "metadata": {"model": "m", **metadata},
    }
    return from_builtins(Trajectory, tree)


def feedback(kind="thumbs_up", *, user: str | None = "u", minute=0, number=1, **more) -> Feedback:
    who = {} if user is None else {"user_id": user}
    return Feedback(
        feedback_id=f"f-{number}",
        timestamp=AT + timedelta(minutes=minute),
        trajectory_id=UUID(ID),
        type=kind,
        **who,
        **more,
    )
