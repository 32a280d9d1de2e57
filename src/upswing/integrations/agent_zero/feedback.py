"""What did the user say of an answer on the page? Thumbs, stars, a comment, and each of them may change.

| asked                                             | answered                                                    |
|---------------------------------------------------|-------------------------------------------------------------|
| `{"context": C}`                                  | 200: the messages of the chat that can be rated, and what   |
|                                                   | was said of them                                            |
| … with `message` and one of `thumbs` (`up`,        | 200: what now stands                                        |
| `down`), `stars` (1 to 5), `comment` (text)       |                                                             |
| a chat or a message that nobody recorded          | 404                                                         |
| anything else                                     | 400                                                         |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from upswing.integrations.agent_zero.chat_memory import ChatMemory
from upswing.integrations.agent_zero.transcript import Tree
from upswing.sdk.recorder import Recorder

LONGEST_COMMENT = 10_000
"""Characters of a comment."""
_ONE_OF = "Say one of `thumbs` (`up` or `down`), `stars` (1 to 5) and `comment` (a text)."


def answer_feedback(
    asked: Mapping[str, Any], context: Any, recorder: Recorder, user_id: str | None = None
) -> tuple[int, Tree]:
    """Status and body; `context` is the chat that `asked` names, or None."""
    if context is None:
        return 404, {
            "error": "There is no such chat: it was deleted, or belongs to another server."
        }
    memory, message = ChatMemory.of(context), asked.get("message")
    if message is None:
        return 200, {"messages": memory.given()}
    trajectory_id = memory.trajectory_of(message)
    if trajectory_id is None:
        return 404, {"error": "Nobody recorded this answer, so it cannot be rated."}
    try:
        kind, fields, noted = _feedback_of(asked)
    except ValueError as error:
        return 400, {"error": str(error)}
    recorder.feedback(trajectory_id, kind, user_id=user_id, source="agent-zero", **fields)
    return 200, {"message": message, "given": memory.note_feedback(str(message), **noted)}


def _feedback_of(asked: Mapping[str, Any]) -> tuple[str, Tree, Tree]:
    """The kind of feedback, its fields, and what the page shows of it."""
    said = [name for name in ("thumbs", "stars", "comment") if asked.get(name) is not None]
    if len(said) != 1:
        raise ValueError(_ONE_OF)
    value = asked[said[0]]
    match said[0], value:
        case "thumbs", "up" | "down":
            # The last word of thumbs and stars is the one that counts, so the page shows only that.
            return f"thumbs_{value}", {}, {"thumbs": value, "stars": None}
        case "stars", int() if not isinstance(value, bool) and 1 <= value <= 5:
            return "rating", {"rating": value}, {"stars": value, "thumbs": None}
        case "comment", str() if value.strip():
            text = value.strip()[:LONGEST_COMMENT]
            return "comment", {"comment": text}, {"comment": text}
        case _:
            raise ValueError(_ONE_OF)
