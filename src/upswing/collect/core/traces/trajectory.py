"""How does a conversation of a trace read as trajectory.v1?

Each call of a model is a turn. What was new to it is the observation, what it said the action, and what the tools
returned, as the next call or the tools' own spans tell it, the result. The text is what an instrumentation wrote down,
and its tokens are not known: so the trajectory is marked `off_policy`, and `metadata.otel` says where it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from upswing.collect.core.traces.chat_messages import Message, as_json, as_text, tool_message
from upswing.collect.core.traces.conversations import ModelCall, TracedConversation
from upswing.collect.core.traces.traced import SpanKind, TracedSpan
from upswing.dataset.model_answer import AnswerToolCall, ModelAnswer
from upswing.dataset.transcript import action_of, instructions_of, observation_of, result_of

Tree = dict[str, Any]
_MOST_ERRORS = 20
_UNKNOWN_MODEL = "unknown"
_UNNAMED_AGENT = "traced-agent"
_FINISH = {
    "tool_call": "tool_calls",
    "tool-calls": "tool_calls",
    "content-filter": "content_filter",
}
"""How emitters spell OpenAI's words."""


def trace_trajectory(conversation: TracedConversation, key_id: str, ended_by: str) -> Tree:
    """The trajectory in JSON's types; the same conversation with the same key has the same id."""
    calls, first = conversation.calls, conversation.calls[0]
    own = f"otel {key_id} {conversation.trace_id} {first.span.span_id}"
    trajectory_id = str(uuid5(NAMESPACE_URL, own))
    opening = _with_system(first)
    agent, superior = _agents(conversation.lineage)
    turns = [_turn(conversation, place) for place in range(len(calls))]
    ended = max(call.span.ended_ns for call in calls)
    return {
        "trajectory_id": trajectory_id,
        "session_id": _nearest(conversation, "conversation") or conversation.trace_id,
        "agent_id": agent or first.span.service or _UNNAMED_AGENT,
        **({"subordinate_profile": agent} if superior else {}),
        "start_timestamp": timestamp(first.span.started_ns),
        "end_timestamp": timestamp(ended),
        "turns": turns,
        "task_context": {
            # Whoever names no task gets a hash of the redacted request at admission.
            "task_id": _nearest(conversation, "task") or trajectory_id,
            "instructions": instructions_of(opening),
        },
        "metadata": _metadata(conversation, ended_by),
    }


def _with_system(call: ModelCall) -> list[Message]:
    before = [{"role": "system", "content": call.system}] if call.system else []
    return [*before, *call.messages]


def _agents(lineage: Sequence[TracedSpan]) -> tuple[str, bool]:
    """The agent, and whether it works for another one."""
    agents = [span for span in lineage if span.kind is SpanKind.AGENT]
    name = next((span.agent for span in lineage if span.agent), "")
    return name, any(span.agent and span.agent != name for span in agents)


def _nearest(conversation: TracedConversation, name: str) -> str:
    """What the call or the nearest span above it says."""
    return next((said for span in conversation.lineage if (said := getattr(span, name))), "")


def _turn(conversation: TracedConversation, place: int) -> Tree:
    call = conversation.calls[place]
    following = conversation.calls[place + 1] if place + 1 < len(conversation.calls) else None
    new = call.messages[call.new_from :] if place else _with_system(call)
    observation = observation_of(new, first=place == 0)
    if place == 0 and (names := _tool_names(conversation.offered)):
        observation["context"] = {"available_tools": names}
    answer = model_answer(call)
    if call.answer is None:
        action, result = _unanswered(call.span)
    else:
        action = action_of(answer)
        result = _result(conversation, answer, following)
    thoughts = {"thought_process": [answer.reasoning]} if answer.reasoning else {}
    return {
        "turn_id": place + 1,
        "timestamp": timestamp(call.span.started_ns),
        "observation": observation,
        **thoughts,
        "action": action,
        "result": {**result, "execution_time_ms": _elapsed_ms(conversation, call, following)},
    }


def model_answer(call: ModelCall) -> ModelAnswer:
    """What the model said, as every recorder has it."""
    said = call.answer or {}
    calls = [
        AnswerToolCall(each["id"], each["function"]["name"], each["function"]["arguments"])
        for each in said.get("tool_calls") or ()
    ]
    content = said.get("content")
    return ModelAnswer(
        answer_id=call.span.answer_id,
        content=content if isinstance(content, str) else as_text(content or ""),
        reasoning=said.get("reasoning", ""),
        tool_calls=calls,
        finish_reason=_FINISH.get(call.span.finish, call.span.finish),
        prompt_tokens=call.span.input_tokens,
        completion_tokens=call.span.output_tokens,
    )


def _unanswered(span: TracedSpan) -> tuple[Tree, Tree]:
    error = f"No model answered: {span.error or 'the span has no answer'}."
    return (
        {"type": "response", "raw_response": ""},
        {"success": False, "output": None, "error": error},
    )


def _result(
    conversation: TracedConversation, answer: ModelAnswer, following: ModelCall | None
) -> Tree:
    later = following.messages[following.new_from :] if following else []
    spans = _tools_of(conversation, answer)
    if not any(message["role"] == "tool" for message in later):
        later = [
            *(tool_message(span.call_id or call_id, span.result) for call_id, span in spans),
            *later,
        ]
    result = result_of(answer, later)
    failed = next((span.error for _, span in spans if span.error), "")
    return {**result, "success": False, "error": failed[:500]} if failed else result


def _tools_of(
    conversation: TracedConversation, answer: ModelAnswer
) -> list[tuple[str, TracedSpan]]:
    """The spans of the tools that an answer called, by the ids of the calls; where a tool's span has none, by its name."""
    tools = conversation.tools
    found = [
        (call.call_id, tools.by_id[call.call_id])
        for call in answer.tool_calls
        if call.call_id in tools.by_id
    ]
    if found or tools.by_id:
        return found
    named = [(call.call_id, tools.by_name.get(call.name, [])) for call in answer.tool_calls]
    return [(call_id, spans[0]) for call_id, spans in named if len(spans) == 1]


def _elapsed_ms(
    conversation: TracedConversation, call: ModelCall, following: ModelCall | None
) -> float:
    """Of the tools, where the model called some: by their spans, else until the next call; else of the answer."""
    if call.answer and call.answer.get("tool_calls"):
        if spans := _tools_of(conversation, model_answer(call)):
            began = min(span.started_ns for _, span in spans)
            return round((max(span.ended_ns for _, span in spans) - began) / 1e6, 3)
        if following:
            return round(max(0, following.span.started_ns - call.span.ended_ns) / 1e6, 3)
    return round((call.span.ended_ns - call.span.started_ns) / 1e6, 3)


def _tool_names(offered: Sequence[Any]) -> list[str]:
    named = [tool.get("function") or tool for tool in offered if isinstance(tool, dict)]
    return [tool["name"] for tool in named if isinstance(tool.get("name"), str)]


def _metadata(conversation: TracedConversation, ended_by: str) -> Tree:
    calls = conversation.calls
    spans = [call.span for call in calls]
    first = spans[0]
    unanswered = calls[-1].answer is None
    user, outcome = _nearest(conversation, "user"), _nearest(conversation, "outcome")
    temperature, top_p = first.temperature, first.top_p
    return {
        **({"outcome": as_json(outcome)} if outcome else {}),
        "model": spans[-1].model or _UNKNOWN_MODEL,
        "off_policy": True,
        "episode_id": conversation.trace_id,
        **({"user_id": user} if user else {}),
        **(
            {"temperature": temperature}
            if temperature is not None and 0 <= temperature <= 2
            else {}
        ),
        **({"top_p": top_p} if top_p is not None and 0 < top_p < 1 else {}),
        **({"max_tokens": first.max_tokens} if first.max_tokens else {}),
        **({"tools": conversation.offered} if conversation.offered else {}),
        "total_tokens": sum(span.input_tokens + span.output_tokens for span in spans),
        "latency_ms": [round((span.ended_ns - span.started_ns) / 1e6, 3) for span in spans],
        "finish_reasons": [_FINISH.get(span.finish, span.finish) for span in spans],
        "answer_ids": [span.answer_id for span in spans],
        **({"infra_error": True} if unanswered else {}),
        "otel": {
            "emitter": first.emitter,
            "scope": first.scope,
            **({"service": first.service} if first.service else {}),
            "trace_id": conversation.trace_id,
            "span_ids": [span.span_id for span in spans],
            "ended_by": ended_by,
            **_trouble(conversation),
        },
    }


def _trouble(conversation: TracedConversation) -> Tree:
    dropped = sum(call.span.dropped_attributes for call in conversation.calls)
    errors = [
        {"at": timestamp(span.started_ns), "error": (span.error or "no answer")[:500]}
        for span in conversation.failures[:_MOST_ERRORS]
    ]
    return {
        **({"dropped_attributes": dropped} if dropped else {}),
        **({"errors": errors} if errors else {}),
    }


def timestamp(nanoseconds: int) -> str:
    """RFC 3339 of a span's time.

    >>> timestamp(1_000_000_000)
    '1970-01-01T00:00:01+00:00'
    """
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()
