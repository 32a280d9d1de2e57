"""Which requests are under way in which chats, and when is one over?

Agent Zero tells of moments, in threads of its own; its objects are read by name and never changed, except for what a chat
keeps for the plugin in `context.data` (Agent Zero stores that with the chat).

| moment                                         | what it means here                                             |
|------------------------------------------------|----------------------------------------------------------------|
| a monologue starts                             | a trajectory begins; a subordinate's knows its superior's turn |
| … while one of the same agent is open          | it goes on: the user spoke in between, or nudged               |
| a monologue ends with an answer                | it is sent                                                     |
| the user writes again                          | that is sent as a follow-up: it may correct the answer, or thank |
| … without one, and something was raised        | it is sent as failed; a model's server's fault is `infra_error` |
| a chat is reset, killed, deleted or replaced   | what is open in it is sent as abandoned, innermost first       |
| the process ends                               | what is open is sent as interrupted: nobody's fault            |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from upswing.integrations.agent_zero.chat_memory import ChatMemory
from upswing.integrations.agent_zero.connection import PluginConnection
from upswing.integrations.agent_zero.model_calls import ModelCalls, is_ours, with_headers
from upswing.integrations.agent_zero.monologue import MonologueRecording, SuperiorTurn
from upswing.integrations.agent_zero.transcript import (
    RESPONSE,
    UNKNOWN_TOOL,
    Tree,
    attachments_of,
    first_observation,
    message_text,
    prompt_messages,
)
from upswing.integrations.operations.operation import bounded
from upswing.sdk.recorder import Recorder

SUPERIOR = "_superior"
"""Where Agent Zero keeps a subordinate's superior."""
RECORD_OFF = {"x-record": "off"}
LONGEST_TEXT = 1_000_000
"""Characters of one answer or result: more would hold the agent up, and cost the whole trajectory, which holds 8 MB."""
FOLLOW_UP_CHARS = 4_000
"""Of a message that may be about the answer before it: no more of it is read."""


def _bounded(value: Any) -> str:
    """A text of Agent Zero's, or its beginning where it is very long."""
    return bounded(str(value or ""), LONGEST_TEXT)


@dataclass(slots=True)
class _OpenMonologue:
    agent: Any
    """Kept, so that nobody else gets its id."""
    recording: MonologueRecording
    user_message: Any
    """Which message it answers, by identity."""
    call_id: str = ""
    about: Tree = field(default_factory=dict)

    @property
    def chat_id(self) -> str:
        return str(self.agent.context.id)


class ChatRecorder:
    """All chats of a process. Every method is safe from any thread and takes microseconds."""

    def __init__(
        self,
        recorder: Recorder,
        connection: PluginConnection,
        calls: ModelCalls,
        *,
        seconds: Callable[[], float],
        new_id: Callable[[], str],
        version: str = "",
    ) -> None:
        """`version` is Agent Zero's, as far as it is known."""
        self._recorder, self._connection, self._calls = recorder, connection, calls
        self._seconds, self._new_id, self._version = seconds, new_id, version
        self._lock = RLock()
        self._open: dict[int, _OpenMonologue] = {}
        self._nudged: set[str] = set()

    # --- a request -----------------------------------------------------------------------------

    def monologue_started(self, agent: Any) -> None:
        with self._lock:
            self._abandon_orphans()
            message = agent.last_user_message
            if (known := self._open.get(id(agent))) is not None:
                self._go_on(known, message)
                return
            self._end_each(self._open_in(agent.context.id, agent.number), outcome="abandoned")
            known = self._open[id(agent)] = self._begin(agent, message)
            if agent.number == 0:
                self._follow_up(agent.context, known.user_message)

    def _begin(self, agent: Any, message: Any) -> _OpenMonologue:
        content = getattr(message, "content", None)
        request = message_text(content)
        superior = self._superior_of(agent)
        profile = str(getattr(agent.config, "profile", "") or "")
        memory = ChatMemory.of(agent.context)
        name = self._connection.agent_id
        recording = self._recorder.trajectory(
            agent_id=name if agent.number == 0 else f"{name}-{agent.agent_name}".lower(),
            task=request,
            session_id=str(agent.context.id),
            episode_id=memory.episode_id,
            user_id=self._connection.user_id,
            profile=profile if agent.number else None,
        )
        place = None
        if superior is not None:
            place = SuperiorTurn(superior.trajectory_id, superior.turn_id)
            superior.subordinate_began(recording.id, profile)
        observation = first_observation([], request, attachments_of(content))
        made = MonologueRecording(recording, observation, seconds=self._seconds, superior=place)
        about: Tree = {"agent": str(agent.agent_name), "profile": profile, "version": self._version}
        about = {key: value for key, value in about.items() if value}
        return _OpenMonologue(agent, made, message, about={"agent_zero": about})

    def _follow_up(self, context: Any, message: Any) -> None:
        """What the user writes after an answer may correct it, or thank for it: the loop reads that."""
        trajectory_id = ChatMemory.of(context).take_answered()
        text = message_text(getattr(message, "content", None))[:FOLLOW_UP_CHARS]
        if trajectory_id is None or not text.strip() or not self._connection.follow_ups:
            return
        self._recorder.feedback(
            trajectory_id,
            "comment",
            comment=text,
            user_id=self._connection.user_id,
            source="agent-zero",
            metadata={"follow_up": True},
        )

    def _superior_of(self, agent: Any) -> MonologueRecording | None:
        data = getattr(agent, "data", None)
        above = data.get(SUPERIOR) if isinstance(data, Mapping) else None
        known = self._open.get(id(above)) if above is not None else None
        return known.recording if known and known.recording.in_tool else None

    def _go_on(self, known: _OpenMonologue, message: Any) -> None:
        self._nudged.discard(known.chat_id)
        if message is not known.user_message:
            self._note_intervention(known, message)

    def _note_intervention(self, known: _OpenMonologue, message: Any) -> None:
        known.user_message = message
        known.recording.intervened(message_text(getattr(message, "content", None)))

    def monologue_ended(self, agent: Any) -> None:
        with self._lock:
            known = self._open.get(id(agent))
            if known is None:
                return
            known.recording.end_iteration()
            answered = known.recording.answer is not None
            if not answered and agent.last_user_message is not known.user_message:
                self._note_intervention(known, agent.last_user_message)
                return  # Agent Zero starts over with what the user said in between
            self._end_each([known], outcome="" if answered else "failed")
            if answered and agent.number == 0:
                ChatMemory.of(agent.context).answered(known.recording.trajectory_id)

    # --- its turns -----------------------------------------------------------------------------

    def model_asked(self, agent: Any, call_data: Mapping[str, Any]) -> None:
        """An agent asks its chat model; so may a tool that it uses, and then it is no turn."""
        model = call_data.get("model")
        with self._lock:
            known = self._open.get(id(agent))
            own = known is not None and not known.recording.in_tool
            if known is not None and own:
                self._show_prompt(known)
                known.recording.begin_turn()
                self._calls.forget(known.call_id)  # it failed, and is asked again
                known.call_id = self._new_id()
                self._note_model(known, model)
            self._send_headers(agent, model, known.call_id if known and own else "")

    def _show_prompt(self, known: _OpenMonologue) -> None:
        """What the model reads at first; later turns add to it."""
        if not known.recording.untouched or not self._connection.system_prompt:
            return
        loop_data = getattr(known.agent, "loop_data", None)
        system = getattr(loop_data, "system", None) or []
        history = getattr(loop_data, "history_output", None) or []
        content = getattr(known.user_message, "content", None)
        request = message_text(content)
        messages = prompt_messages(system, history, request)
        known.recording.show(first_observation(messages, request, attachments_of(content)))

    def _note_model(self, known: _OpenMonologue, model: Any) -> None:
        values = getattr(model, "kwargs", None) or {}
        name = str(getattr(model, "model_name", "") or getattr(model, "name", "") or "unknown")
        known.about.setdefault("model", name)
        temperature = values.get("temperature")
        if isinstance(temperature, int | float) and 0 <= temperature <= 2:
            known.about.setdefault("temperature", float(temperature))

    def _send_headers(self, agent: Any, model: Any, call_id: str) -> None:
        values = getattr(model, "kwargs", None)
        if not isinstance(values, Mapping):
            return
        address = values.get("api_base") or getattr(model, "api_base", None)
        if not is_ours(address, self._connection.gateway_url):
            return
        headers = dict(RECORD_OFF)
        if call_id:
            headers["x-episode-id"] = ChatMemory.of(agent.context).episode_id
            headers["x-agent-id"] = self._connection.agent_id
        with_headers(model, headers, call_id)

    def model_answered(self, agent: Any, response: Any, reasoning: Any) -> None:
        with self._lock:
            known = self._open.get(id(agent))
            if known is None or known.recording.in_tool:
                return
            by = self._calls.take(known.call_id)
            known.recording.answered(
                _bounded(response), _bounded(reasoning), by.model, by.inference
            )

    def utility_asked(self, agent: Any, call_data: Mapping[str, Any]) -> None:
        """Naming a chat, compressing a history: nobody's work."""
        self._send_headers(agent, call_data.get("model"), "")

    def tool_started(self, agent: Any, tool_name: Any, tool_args: Any) -> None:
        with self._lock:
            if (known := self._open.get(id(agent))) is None:
                return
            tool = getattr(getattr(agent, "loop_data", None), "current_tool", None)
            method = getattr(tool, "method", None)
            name = f"{tool_name}:{method}" if method else str(tool_name)
            known.recording.tool_started(name, tool_args, _bounded(getattr(tool, "message", "")))

    def tool_ended(self, agent: Any, tool_name: Any, response: Any) -> None:
        with self._lock:
            if (known := self._open.get(id(agent))) is None:
                return
            loop_data = getattr(agent, "loop_data", None)
            tool = getattr(loop_data, "current_tool", None)
            known.recording.tool_ended(
                _bounded(getattr(response, "message", "")),
                known=type(tool).__name__ != UNKNOWN_TOOL,
            )
            if str(tool_name) == RESPONSE:
                temporary = getattr(loop_data, "params_temporary", None) or {}
                shown = getattr(temporary.get("log_item_response"), "id", None)
                ChatMemory.of(agent.context).answer_shown(shown, known.recording.trajectory_id)

    def iteration_ended(self, agent: Any) -> None:
        with self._lock:
            if (known := self._open.get(id(agent))) is None:
                return
            if agent.last_user_message is not known.user_message:
                self._note_intervention(known, agent.last_user_message)
            else:
                known.recording.end_iteration()

    def exception_raised(self, agent: Any, error: BaseException) -> None:
        with self._lock:
            known = self._open.get(id(agent))
            if known is not None and type(error).__name__ != "InterventionException":
                known.recording.failed(f"{type(error).__name__}: {error}")

    # --- its end by others ---------------------------------------------------------------------

    def chat_nudged(self, context: Any) -> None:
        """The user has a stuck agent begin again; Agent Zero ends its process for that."""
        with self._lock:
            for known in self._open_in(context.id):
                self._nudged.add(known.chat_id)
                known.recording.nudges += 1

    def chat_killed(self, context: Any) -> None:
        with self._lock:
            if str(context.id) not in self._nudged:
                self._end_each(self._open_in(context.id), outcome="abandoned")

    def chat_reset(self, context: Any) -> None:
        """Whatever is said afterwards is another episode."""
        with self._lock:
            self._nudged.discard(str(context.id))
            self._end_each(self._open_in(context.id), outcome="abandoned", reset=True)
            ChatMemory.of(context).next_episode()

    def chat_removed(self, chat_id: Any) -> None:
        with self._lock:
            self._nudged.discard(str(chat_id))
            self._end_each(self._open_in(chat_id), outcome="abandoned")

    def agent_made(self, agent: Any) -> None:
        """A new first agent in a chat where another one works: that is how a reset looks from inside."""
        with self._lock:
            others = [
                known
                for known in self._open_in(agent.context.id)
                if agent.number == 0 and known.agent is not agent
            ]
            self._end_each(others, outcome="abandoned", reset=True)

    def close(self) -> None:
        """The process ends."""
        with self._lock:
            for known in self._innermost_first(self._open.values()):
                self._open.pop(id(known.agent), None)
                known.recording.end({**known.about, "infra_error": True})

    # --- helpers -------------------------------------------------------------------------------

    def _open_in(self, chat_id: Any, number: int = 0) -> list[_OpenMonologue]:
        """What is open in a chat, of this agent's number and beyond."""
        return [
            known
            for known in self._open.values()
            if known.chat_id == str(chat_id) and known.agent.number >= number
        ]

    def _abandon_orphans(self) -> None:
        """Chats that are gone, where nobody told of it."""
        gone = []
        for known in self._open.values():
            find = getattr(type(known.agent.context), "get", None)
            if callable(find) and find(known.agent.context.id) is not known.agent.context:
                gone.append(known)
        self._end_each(gone, outcome="abandoned")

    def _end_each(
        self, found: Iterable[_OpenMonologue], *, outcome: str, reset: bool = False
    ) -> None:
        for known in self._innermost_first(found):
            self._open.pop(id(known.agent), None)
            self._calls.forget(known.call_id)
            known.recording.end(known.about, outcome=outcome, reset=reset)

    @staticmethod
    def _innermost_first(found: Iterable[_OpenMonologue]) -> list[_OpenMonologue]:
        return sorted(found, key=lambda known: known.agent.number, reverse=True)
