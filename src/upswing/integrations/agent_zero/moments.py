"""Which moments of Agent Zero does the plugin attend, and what is done at each?

The table below makes the plugin's files (`installing`), and tells them here what to do. The number orders a file among
those of others at the same moment: tools' arguments are read before secrets are put into them (10), results after
secrets were taken out of them (10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from upswing.integrations.agent_zero.chats import ChatRecorder

Do = Callable[[ChatRecorder, Any, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """One extension point."""

    point: str
    do: Do
    order: int = 50
    sync: bool = False
    """Agent Zero 1.x calls it without awaiting it; an older one awaits every one of them."""
    older: bool = True
    """Whether an Agent Zero without plugins has it, too."""
    newer: bool = True
    """Whether an Agent Zero with plugins needs it."""


def _ask_model(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    chats.model_asked(agent, values.get("call_data") or {})


def _ask_older_model(chats: ChatRecorder, agent: Any, _: Mapping[str, Any]) -> None:
    """Where nobody tells of a model call: its settings are read for each call anew."""
    chats.model_asked(agent, {"model": agent.config.chat_model})


def _take_older_answer(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    content = (values.get("content_data") or {}).get("content")
    if values.get("ai") and getattr(agent, "loop_data", None) is not None:
        chats.model_answered(agent, content, "")


def _ask_older_utility(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    chats.utility_asked(agent, values.get("call_data") or {})


def _answer_model(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    chats.model_answered(agent, values.get("response"), values.get("reasoning"))


def _start_tool(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    chats.tool_started(agent, values.get("tool_name"), dict(values.get("tool_args") or {}))


def _end_tool(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    chats.tool_ended(agent, values.get("tool_name"), values.get("response"))


def _first_argument(values: Mapping[str, Any], name: str) -> Any:
    """Of a function of Agent Zero's: its first argument, by place or by name."""
    data = values.get("data") or {}
    arguments = data.get("args") or ()
    return arguments[0] if arguments else (data.get("kwargs") or {}).get(name)


def _raise(chats: ChatRecorder, agent: Any, values: Mapping[str, Any]) -> None:
    data = values.get("data") or {}
    error = (data.get("kwargs") or {}).get("exception")
    if error is None and len(data.get("args") or ()) > 2:
        error = data["args"][2]
    if isinstance(error, BaseException):
        chats.exception_raised(agent, error)


_CONTEXT = "_functions/agent/AgentContext"
MOMENTS = (
    Moment("agent_init", lambda chats, agent, _: chats.agent_made(agent), sync=True),
    Moment("monologue_start", lambda chats, agent, _: chats.monologue_started(agent), order=5),
    Moment("chat_model_call_before", _ask_model, older=False),
    Moment("chat_model_call_after", _answer_model, older=False),
    Moment("before_main_llm_call", _ask_older_model, newer=False),
    Moment("hist_add_before", _take_older_answer, order=90, newer=False),
    Moment("util_model_call_before", _ask_older_utility),
    Moment("tool_execute_before", _start_tool, order=5),
    Moment("tool_execute_after", _end_tool, order=90),
    Moment("message_loop_end", lambda chats, agent, _: chats.iteration_ended(agent), order=5),
    Moment("monologue_end", lambda chats, agent, _: chats.monologue_ended(agent), order=5),
    Moment("_functions/agent/Agent/handle_exception/start", _raise, older=False),
    Moment(
        f"{_CONTEXT}/nudge/start",
        lambda chats, _, values: chats.chat_nudged(_first_argument(values, "self")),
        sync=True,
        older=False,
    ),
    Moment(
        f"{_CONTEXT}/reset/start",
        lambda chats, _, values: chats.chat_reset(_first_argument(values, "self")),
        sync=True,
        older=False,
    ),
    Moment(
        f"{_CONTEXT}/kill_process/start",
        lambda chats, _, values: chats.chat_killed(_first_argument(values, "self")),
        sync=True,
        older=False,
    ),
    Moment(
        f"{_CONTEXT}/remove/start",
        lambda chats, _, values: chats.chat_removed(_first_argument(values, "id")),
        sync=True,
        older=False,
    ),
)
_BY_POINT = {moment.point: moment for moment in MOMENTS}


def dispatch(chats: ChatRecorder, point: str, agent: Any, values: Mapping[str, Any]) -> None:
    """Do what this moment asks for; one that nobody attends is none of ours."""
    if (moment := _BY_POINT.get(point)) is not None:
        moment.do(chats, agent, values)
