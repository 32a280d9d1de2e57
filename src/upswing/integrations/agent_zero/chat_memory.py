"""What does a chat keep for the plugin? Its episode, whose answer each message is, and what was said of it.

It stands in `context.data`, which Agent Zero stores with a chat: feedback finds its trajectory after a restart, too.
"""

from __future__ import annotations

from typing import Any

NAME = "upswing"
MOST = 500
"""Messages whose trajectory is remembered: beyond that the oldest cannot be rated any more."""


class ChatMemory:
    """One chat's."""

    def __init__(self, chat_id: str, values: dict[str, Any]) -> None:
        self._chat_id, self._values = chat_id, values

    @classmethod
    def of(cls, context: Any) -> ChatMemory:
        """The chat's own; a chat that keeps nothing, or something else under this name, begins anew."""
        data = getattr(context, "data", None)
        if not isinstance(data, dict):
            return cls(str(context.id), {})
        if not isinstance(data.get(NAME), dict):
            data[NAME] = {}
        return cls(str(context.id), data[NAME])

    @property
    def episode_id(self) -> str:
        """One for each chat, and a new one after each reset."""
        number = self._values.get("episode")
        return f"a0-{self._chat_id}-{number if isinstance(number, int) else 1}"

    def next_episode(self) -> None:
        """What is written from now on is about nothing that was before."""
        self._values.pop("last", None)
        number = self._values.get("episode")
        self._values["episode"] = (number if isinstance(number, int) else 1) + 1

    def answer_shown(self, message_id: Any, trajectory_id: str) -> None:
        """A message of the page is the answer of this trajectory."""
        if isinstance(message_id, str) and message_id:
            answers = self._table("answers")
            answers[message_id] = trajectory_id
            while len(answers) > MOST:
                dropped = next(iter(answers))
                del answers[dropped]
                self._table("given").pop(dropped, None)

    def answered(self, trajectory_id: str) -> None:
        """The chat's last request is answered: what the user writes next may say something of it."""
        self._values["last"] = trajectory_id

    def take_answered(self) -> str | None:
        """The trajectory that the next message may be about, once."""
        found = self._values.pop("last", None)
        return found if isinstance(found, str) else None

    def trajectory_of(self, message_id: Any) -> str | None:
        found = self._table("answers").get(message_id) if isinstance(message_id, str) else None
        return found if isinstance(found, str) else None

    def given(self) -> dict[str, dict[str, Any]]:
        """What was said of each message that can be rated."""
        said = self._table("given")
        return {
            message: dict(said[message]) if isinstance(said.get(message), dict) else {}
            for message in list(self._table("answers"))
        }

    def note_feedback(self, message_id: str, **said: Any) -> dict[str, Any]:
        """What now stands: a later word replaces the earlier one of its kind."""
        before = self._table("given").get(message_id)
        kept: dict[str, Any] = {**(before if isinstance(before, dict) else {}), **said}
        self._table("given")[message_id] = kept
        return kept

    def _table(self, name: str) -> dict[str, Any]:
        found = self._values.get(name)
        if not isinstance(found, dict):
            found = self._values[name] = {}
        return found
