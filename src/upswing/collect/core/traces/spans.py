"""What does a span say of a conversation? Its kind, what the model read and said, and whose it is.

| a span has                                                    | it is                                         |
|---------------------------------------------------------------|-----------------------------------------------|
| `gen_ai.operation.name` `chat`, `text_completion`, `generate_content` | a call of a model                     |
| … `execute_tool` / `invoke_agent`, `create_agent`, `invoke_workflow` | a tool / an agent                      |
| `openinference.span.kind` LLM / TOOL / AGENT                   | a call / a tool / an agent                    |
| name `ai.*.doGenerate`, `ai.*.doStream` / `ai.toolCall` / `ai.*` | a call / a tool / an agent                  |
| `gen_ai.request.model`, or `gen_ai.prompt.0.role`, without these | a call                                      |
| none of them                                                  | a link between others                         |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from upswing.collect.core.traces.chat_messages import (
    Message,
    as_json,
    as_text,
    chat_message,
    chat_messages,
    encode,
    tool_call,
)
from upswing.collect.core.traces.emitters import emitter_of
from upswing.collect.core.traces.otlp import OtlpRecord
from upswing.collect.core.traces.traced import SpanKind, TracedMessage, TracedSpan

Attributes = dict[str, Any]
_OPERATIONS = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), SpanKind.CHAT),
    "execute_tool": SpanKind.TOOL,
    **dict.fromkeys(("invoke_agent", "create_agent", "invoke_workflow"), SpanKind.AGENT),
}
_OPENINFERENCE = {"LLM": SpanKind.CHAT, "TOOL": SpanKind.TOOL, "AGENT": SpanKind.AGENT}
_TRACELOOP = {"tool": SpanKind.TOOL, "agent": SpanKind.AGENT}
_INDEXED = re.compile(r"(\d{1,6})\.(.+)")
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
DETAILS = "gen_ai.client.inference.operation.details"
_NO_SERVICE = "unknown_service"
"""How SDKs call a service that nobody named."""
_LONGEST = 4096
"""Characters of a name, an id or an error that are kept."""


class MessageTable:
    """Every message once, under a hash of its bytes."""

    def __init__(self) -> None:
        self.bodies: dict[bytes, bytes] = {}

    def add(self, value: Any) -> bytes:
        """Its key."""
        body = encode(value)
        key = blake2b(body, digest_size=16).digest()
        self.bodies.setdefault(key, body)
        return key

    def add_all(self, messages: Iterable[Message]) -> list[bytes]:
        return [self.add(message) for message in messages]


def kind_of(record: OtlpRecord) -> SpanKind:
    about = record.attributes
    if (operation := about.get("gen_ai.operation.name")) in _OPERATIONS and not _is_vercel(record):
        return _OPERATIONS[operation]
    if (kind := about.get("openinference.span.kind")) is not None:
        return _OPENINFERENCE.get(str(kind).upper(), SpanKind.OTHER)
    if _is_vercel(record):
        if record.name.endswith((".doGenerate", ".doStream")):
            return SpanKind.CHAT
        return SpanKind.TOOL if record.name == "ai.toolCall" else SpanKind.AGENT
    if (kind := about.get("traceloop.span.kind")) in _TRACELOOP:
        return _TRACELOOP[kind]
    if operation is None and ("gen_ai.request.model" in about or "gen_ai.prompt.0.role" in about):
        return SpanKind.CHAT
    return SpanKind.OTHER


def _is_vercel(record: OtlpRecord) -> bool:
    return record.name.startswith("ai.") and emitter_of(record.scope) == "vercel-ai"


def read_span(record: OtlpRecord, table: MessageTable) -> TracedSpan:
    """A span as a value; the messages that it repeats are in the table once."""
    kind, about = kind_of(record), record.attributes
    common = {
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "parent_id": record.parent_id,
        "name": record.name[:_LONGEST],
        "kind": kind,
        "started_ns": record.started_ns,
        "ended_ns": max(record.started_ns, record.ended_ns),
        "service": "" if record.service.startswith(_NO_SERVICE) else record.service[:_LONGEST],
        **_identity(about),
    }
    if kind is SpanKind.OTHER:
        return TracedSpan(**common)
    common |= {
        "emitter": emitter_of(record.scope),
        "scope": record.scope[:_LONGEST],
        "error": _error(record),
        "dropped_attributes": record.dropped_attributes,
    }
    if kind is SpanKind.TOOL:
        return TracedSpan(**common, **_tool_fields(about))
    if kind is SpanKind.AGENT:
        return TracedSpan(**common)
    return TracedSpan(**common, **_call_fields(about), **_content(about, table))


def _error(record: OtlpRecord) -> str:
    if not record.failed:
        return ""
    return (record.error or as_text(record.attributes.get("error.type")) or "error")[:_LONGEST]


def _first(about: Attributes, *names: str) -> Any:
    return next((about[name] for name in names if about.get(name) not in (None, "")), None)


def _name(about: Attributes, *names: str) -> str:
    return as_text(_first(about, *names))[:_LONGEST]


def _identity(about: Attributes) -> Attributes:
    """Whose it is. `upswing.*` are for whoever wants to say more than the conventions have words for."""
    found = {
        "agent": _name(
            about,
            "gen_ai.agent.name",
            "agent.name",
            "agent_name",
            "ai.telemetry.functionId",
            "gen_ai.agent.id",
        ),
        "conversation": _name(
            about,
            "gen_ai.conversation.id",
            "session.id",
            "ai.telemetry.metadata.sessionId",
            "traceloop.association.properties.session_id",
        ),
        "user": _name(
            about,
            "upswing.user_id",
            "user.id",
            "enduser.id",
            "ai.telemetry.metadata.userId",
            "traceloop.association.properties.user_id",
        ),
        "task": _name(about, "upswing.task_id"),
        "outcome": _name(about, "upswing.outcome"),
    }
    return {name: value for name, value in found.items() if value}


def _tool_fields(about: Attributes) -> Attributes:
    return {
        "call_id": _name(about, "gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id"),
        "tool_name": _name(
            about, "gen_ai.tool.name", "ai.toolCall.name", "tool.name", "traceloop.entity.name"
        ),
        "result": as_text(
            _first(
                about,
                "gen_ai.tool.call.result",
                "ai.toolCall.result",
                "output.value",
                "traceloop.entity.output",
            )
        ),
    }


def _call_fields(about: Attributes) -> Attributes:
    given = as_json(about.get("llm.invocation_parameters"))
    given = given if isinstance(given, dict) else {}
    reasons = _first(about, "gen_ai.response.finish_reasons", "ai.response.finishReason")
    reason = reasons[0] if isinstance(reasons, list) and reasons else reasons
    return {
        "model": _name(
            about,
            "gen_ai.response.model",
            "gen_ai.request.model",
            "llm.model_name",
            "ai.response.model",
            "ai.model.id",
        ),
        "temperature": _number(
            _first(about, "gen_ai.request.temperature", "ai.settings.temperature")
            or given.get("temperature")
        ),
        "top_p": _number(_first(about, "gen_ai.request.top_p") or given.get("top_p")),
        "max_tokens": _count(_first(about, "gen_ai.request.max_tokens") or given.get("max_tokens"))
        or None,
        "input_tokens": _count(
            _first(
                about,
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens",
                "llm.token_count.prompt",
                "ai.usage.promptTokens",
            )
        ),
        "output_tokens": _count(
            _first(
                about,
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.completion_tokens",
                "llm.token_count.completion",
                "ai.usage.completionTokens",
            )
        ),
        "finish": as_text(reason)[:_LONGEST],
        "answer_id": _name(about, "gen_ai.response.id", "ai.response.id"),
    }


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _count(value: Any) -> int:
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 1 << 53 else 0


def _content(about: Attributes, table: MessageTable) -> Attributes:
    """What the model read and said, from whichever attributes have it."""
    for read in _READERS:
        said = read(about)
        if said is not None:
            return _content_fields(*said, table)
    return {}


def _content_fields(
    messages: list[Message], answers: list[Message], tools: Any, table: MessageTable
) -> Attributes:
    system, rest = split_system(messages)
    answer = next((each for each in answers if each["role"] == "assistant"), None)
    return {
        **({"system": table.add(system)} if system else {}),
        "messages": table.add_all(rest),
        **({"answer": table.add(answer)} if answer else {}),
        **({"tools": table.add(tools)} if tools else {}),
    }


def split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    """The instructions at the beginning, and the rest.

    >>> split_system([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    ('Be brief.', [{'role': 'user', 'content': 'Hi'}])
    """
    count = next((n for n, each in enumerate(messages) if each["role"] != "system"), len(messages))
    return "\n\n".join(as_text(each["content"]) for each in messages[:count]), messages[count:]


Content = tuple[list[Message], list[Message], Any]


def _read_conventions(about: Attributes) -> Content | None:
    """`gen_ai.*`, as the semantic conventions have it."""
    asked, said = about.get("gen_ai.input.messages"), about.get("gen_ai.output.messages")
    if asked is None and said is None:
        return None
    before = as_json(about.get("gen_ai.system_instructions"))
    system = chat_message({"role": "system", "parts": before}) if isinstance(before, list) else []
    tools = _tool_definitions(as_json(about.get("gen_ai.tool.definitions")))
    return [*system, *chat_messages(asked)], chat_messages(said), tools


def _tool_definitions(listed: Any) -> list[Message]:
    """As OpenAI's API wants them."""
    if not isinstance(listed, list):
        return []
    return [
        each
        if isinstance(each.get("function"), dict)
        else {"type": "function", "function": {key: each[key] for key in each if key != "type"}}
        for each in map(as_json, listed)
        if isinstance(each, dict)
    ]


def _read_openinference(about: Attributes) -> Content | None:
    asked = _indexed(about, "llm.input_messages.")
    said = _indexed(about, "llm.output_messages.")
    if not asked and not said:
        return None
    tools = [as_json(each.get("tool.json_schema")) for each in _indexed(about, "llm.tools.")]
    return _flat_messages(asked), _flat_messages(said), _tool_definitions(tools)


def _flat_messages(listed: list[Attributes]) -> list[Message]:
    return [chat for each in listed for chat in chat_message(_flat_message(each))]


def _flat_message(flat: Attributes) -> Message:
    calls = [
        tool_call(
            each.get("tool_call.id"),
            each.get("tool_call.function.name"),
            each.get("tool_call.function.arguments"),
        )
        for each in _indexed(flat, "message.tool_calls.")
    ]
    parts = [
        {"type": each.get("message_content.type", "text"), "text": each.get("message_content.text")}
        if "message_content.text" in each
        else each
        for each in _indexed(flat, "message.contents.")
    ]
    return {
        "role": as_text(flat.get("message.role")) or "user",
        "content": parts or flat.get("message.content"),
        "tool_calls": calls,
        "tool_call_id": flat.get("message.tool_call_id"),
    }


def _indexed(about: Attributes, prefix: str) -> list[Attributes]:
    """`prefix.0.a`, `prefix.1.a` as a list, in the order of the numbers.

    >>> _indexed({"m.1.role": "b", "m.0.role": "a", "n": 1}, "m.")
    [{'role': 'a'}, {'role': 'b'}]
    """
    found: dict[int, Attributes] = {}
    for name, value in about.items():
        if name.startswith(prefix) and (place := _INDEXED.fullmatch(name, len(prefix))):
            found.setdefault(int(place[1]), {})[place[2]] = value
    return [found[number] for number in sorted(found)]


def _read_vercel(about: Attributes) -> Content | None:
    asked = about.get("ai.prompt.messages")
    text, calls = about.get("ai.response.text"), as_json(about.get("ai.response.toolCalls"))
    if asked is None and text is None and not calls:
        return None
    answer: Message = {"role": "assistant", "content": as_text(text)}
    if isinstance(calls, list) and calls:
        answer["tool_calls"] = [
            tool_call(
                each.get("toolCallId"), each.get("toolName"), each.get("input", each.get("args"))
            )
            for each in calls
            if isinstance(each, dict)
        ]
    if reasoning := about.get("ai.response.reasoning"):
        answer["reasoning"] = as_text(reasoning)
    said = [answer] if text is not None or calls else []
    tools = about.get("ai.prompt.tools")
    defined = [_vercel_tool(as_json(each)) for each in tools] if isinstance(tools, list) else []
    return chat_messages(asked), said, [each for each in defined if each]


def _vercel_tool(tree: Any) -> Message:
    if not isinstance(tree, dict):
        return {}
    function = {
        "name": tree.get("name"),
        "description": tree.get("description"),
        "parameters": tree.get("inputSchema", tree.get("parameters")),
    }
    return {"type": "function", "function": {k: v for k, v in function.items() if v is not None}}


def _read_indexed_prompts(about: Attributes) -> Content | None:
    """`gen_ai.prompt.0.role`, as Traceloop wrote it until 2025."""
    asked, said = _indexed(about, "gen_ai.prompt."), _indexed(about, "gen_ai.completion.")
    if not asked and not said:
        return None
    tools = [
        {
            "name": each.get("name"),
            "description": each.get("description"),
            "parameters": as_json(each.get("parameters")),
        }
        for each in _indexed(about, "llm.request.functions.")
    ]
    return _prompt_messages(asked), _prompt_messages(said), _tool_definitions(tools)


def _prompt_messages(listed: list[Attributes]) -> list[Message]:
    made = []
    for each in listed:
        calls = [
            tool_call(call.get("id"), call.get("name"), call.get("arguments"))
            for call in _indexed(each, "tool_calls.")
        ]
        content = each.get("content")
        tree = {
            "role": as_text(each.get("role")) or "assistant",
            "content": as_json(content) if as_text(content)[:1] == "[" else content,
            "tool_calls": calls,
            "tool_call_id": each.get("tool_call_id"),
        }
        made += chat_message(tree)
    return made


_READERS: tuple[Callable[[Attributes], Content | None], ...] = (
    _read_conventions,
    _read_openinference,
    _read_vercel,
    _read_indexed_prompts,
)


def read_log(record: OtlpRecord, table: MessageTable) -> TracedMessage | None:
    """What a log record adds to its span; None: nothing of a conversation."""
    event = record.name or as_text(record.attributes.get("event.name"))
    place = (record.trace_id, record.span_id)
    if not all(place):
        return None
    if event == DETAILS:
        content = _content(record.attributes, table)
        kept = {name: content[name] for name in content if name != "tools"}
        return TracedMessage(*place, **kept)
    body = record.body if isinstance(record.body, dict) else {}
    if event == "gen_ai.choice":
        message = body.get("message")
        said = chat_message({"role": "assistant", **message}) if isinstance(message, dict) else []
        if not said or body.get("index"):
            return TracedMessage(*place)
        return TracedMessage(
            *place,
            answer=table.add(said[0]),
            finish=as_text(body.get("finish_reason"))[:_LONGEST],
        )
    if event not in _MESSAGE_EVENTS:
        return None
    if "content" not in body and "tool_calls" not in body:
        return TracedMessage(*place)
    said = chat_message({"role": _MESSAGE_EVENTS[event], **body})
    if event == "gen_ai.system.message" and said:
        return TracedMessage(*place, system=table.add(as_text(said[0]["content"])))
    return TracedMessage(*place, messages=table.add_all(said))
