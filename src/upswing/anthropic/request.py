"""A request to Anthropic's Messages API as a chat completion's: what becomes of each field and block?

| Messages                                      | chat completion                                              |
|-----------------------------------------------|--------------------------------------------------------------|
| `system`, a text or blocks                    | the first message, of the system                             |
| `text`, `image`, `document`                   | a text, or parts where there is more than text               |
| `tool_use`                                    | a call of the assistant's message                            |
| `tool_result`                                 | a message of the tool                                        |
| `thinking`, `redacted_thinking`               | nothing: models do not read their former thoughts            |
| `tools` with an `input_schema`                | `tools`                                                      |
| `tool_choice` `any`, `tool`, `auto`, `none`   | `required`, the function, `auto`, `none`                     |
| `disable_parallel_tool_use`                   | `parallel_tool_calls: false`                                 |
| `stop_sequences`                              | `stop`                                                       |
| `output_config.format`, `output_format`       | `response_format`                                            |
| `thinking`                                    | shows the model's thoughts, where it has any                 |
| `thread`                                      | refused: nothing is stored here; clients go on without       |
| `container`, `mcp_servers`, `compaction`,     | only a server that speaks Messages can take them             |
| `context_management`, other tools and blocks, |                                                              |
| files that are stored elsewhere               |                                                              |
| `cache_control`, `service_tier` and the like  | nothing: they are about Anthropic's own servers              |
| any other field                               | itself                                                       |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Raw, Struct

from upswing.anthropic.blocks import add_user_blocks, assistant_blocks, text_blocks
from upswing.anthropic.errors import ThreadUnsupported
from upswing.openai.translation import (
    ABSENT,
    ChatMessages,
    ChatTranslation,
    Fields,
    check_size,
    encode_fields,
    given,
    is_list,
    is_text,
    other_fields,
    read_body,
    read_part,
    refuse,
)

_NATIVE = ("container", "mcp_servers", "context_management", "compaction")
_KNOWN = frozenset(
    {"messages", "system", "tools", "tool_choice", "stop_sequences", "thinking", "thread"}
    | {"output_config", "output_format", "cache_control", "inference_geo", "service_tier", "speed"}
    | {"diagnostics", "fallbacks", "fallback_credit_token", "user_profile_id", "workspace_id"}
    | {*_NATIVE}
)
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class _Body(Struct):
    messages: Raw
    max_tokens: Raw = ABSENT
    system: Raw = ABSENT
    tools: Raw = ABSENT
    tool_choice: Raw = ABSENT
    stop_sequences: Raw = ABSENT
    thinking: Raw = ABSENT
    thread: Raw = ABSENT
    output_config: Raw = ABSENT
    output_format: Raw = ABSENT
    container: Raw = ABSENT
    mcp_servers: Raw = ABSENT
    context_management: Raw = ABSENT
    compaction: Raw = ABSENT


class _Message(Struct):
    role: str
    content: Raw


class _Tool(Struct):
    name: Raw = ABSENT
    type: str = "custom"
    description: Raw = ABSENT
    input_schema: Raw = ABSENT
    strict: Raw = ABSENT


class _Choice(Struct):
    type: str
    name: str = ""
    disable_parallel_tool_use: bool | None = None


class _Thinking(Struct):
    type: str = "disabled"


class _Format(Struct):
    type: str
    schema: Raw = ABSENT


class _OutputConfig(Struct):
    format: _Format | None = None


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """What decides how an answer is written."""

    thinking: bool = False
    """Thoughts are shown."""
    stop_sequences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageTranslation(ChatTranslation):
    settings: MessageSettings = MessageSettings()


def translate_message_request(body: bytes) -> MessageTranslation:
    """The chat completion that a Messages request asks for, or `Rejected` with what is wrong.

    >>> translate_message_request(b'{"model":"m","max_tokens":5,"system":"Be kind.","messages":[{"role":"user","content":"Hi"}]}').body
    b'{"model":"m","max_tokens":5,"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"}]}'
    """
    asked = read_body(body, _Body)
    check_size(body, (("messages", asked.messages), ("system", asked.system)))
    if given(asked.thread):
        raise ThreadUnsupported
    if not given(asked.max_tokens):
        raise refuse("`max_tokens` is missing: say how many tokens an answer may have.")
    messages = _messages(asked)
    stop = _stop_sequences(asked)
    fields: Fields = {
        **other_fields(body, _KNOWN),
        "messages": messages.made,
        **_tool_fields(asked, messages),
        **_format_fields(asked),
        **({"stop": list(stop)} if stop else {}),
    }
    for name in _NATIVE:
        raw = getattr(asked, name)
        if given(raw) and bytes(raw) not in {b"[]", b"{}"}:
            messages.needs_native(f"`{name}`")
    return MessageTranslation(
        encode_fields(fields), messages.native_only, MessageSettings(_shows_thoughts(asked), stop)
    )


def _messages(asked: _Body) -> ChatMessages:
    messages = ChatMessages()
    if given(asked.system):
        if not is_text(asked.system) and not is_list(asked.system):
            raise refuse("`system` is a text or a list of blocks of type `text`.")
        system = (
            asked.system if is_text(asked.system) else text_blocks(asked.system, "system", "\n\n")
        )
        messages.add("system", system)
    turns: list[_Message] = read_part(asked.messages, list[_Message], "messages")
    for turn in turns:
        if turn.role == "user":
            add_user_blocks(messages, turn.content)
        elif turn.role == "assistant":
            assistant_blocks(messages, turn.content)
        elif turn.role == "system" and is_text(turn.content):
            messages.add("system", turn.content)
        else:
            raise refuse("The `role` of a message is `user` or `assistant`.")
    return messages


def _tool_fields(asked: _Body, messages: ChatMessages) -> Fields:
    fields: Fields = {}
    if given(asked.tools):
        tools: list[_Tool] = read_part(asked.tools, list[_Tool], "tools")
        for tool in tools:
            if tool.type != "custom":
                messages.needs_native(f"a tool of type `{tool.type[:60]}`")
        made = [_chat_tool(tool) for tool in tools if tool.type == "custom"]
        fields |= {"tools": made} if made else {}
    if given(asked.tool_choice):
        choice: _Choice = read_part(asked.tool_choice, _Choice, "tool_choice")
        fields["tool_choice"] = _chat_choice(choice)
        if choice.disable_parallel_tool_use:
            fields["parallel_tool_calls"] = False
    return fields


def _chat_tool(tool: _Tool) -> Fields:
    if not is_text(tool.name):
        raise refuse("A tool has a `name`.")
    function: Fields = {"name": tool.name}
    for ours, theirs in (
        ("description", tool.description),
        ("parameters", tool.input_schema),
        ("strict", tool.strict),
    ):
        if given(theirs):
            function[ours] = theirs
    return {"type": "function", "function": function}


def _chat_choice(choice: _Choice) -> Any:
    if choice.type == "tool":
        return {"type": "function", "function": {"name": choice.name}}
    if choice.type not in _CHOICES:
        raise refuse("`tool_choice` has a `type`: `auto`, `any`, `tool` or `none`.")
    return _CHOICES[choice.type]


def _format_fields(asked: _Body) -> Fields:
    wanted: _Format | None = None
    if given(asked.output_config):
        wanted = read_part(asked.output_config, _OutputConfig, "output_config").format
    if wanted is None and given(asked.output_format):
        wanted = read_part(asked.output_format, _Format, "output_format")
    if wanted is None:
        return {}
    if wanted.type != "json_schema" or not given(wanted.schema):
        raise refuse("An output format has the `type` `json_schema`, and a `schema`.")
    schema = {"name": "answer", "schema": wanted.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _stop_sequences(asked: _Body) -> tuple[str, ...]:
    if not given(asked.stop_sequences):
        return ()
    return tuple(read_part(asked.stop_sequences, list[str], "stop_sequences"))


def _shows_thoughts(asked: _Body) -> bool:
    if not given(asked.thinking):
        return False
    thinking: _Thinking = read_part(asked.thinking, _Thinking, "thinking")
    return thinking.type != "disabled"
