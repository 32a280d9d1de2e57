"""A request to OpenAI's Responses API as a chat completion's: what becomes of each field and item?

| Responses                                     | chat completion                                              |
|-----------------------------------------------|--------------------------------------------------------------|
| `instructions`                                | the first message, of the system                             |
| `input`, a text                               | a message of the user                                        |
| a message; role `developer`                   | a message; of the system                                     |
| `function_call`                               | a call of the assistant's message before it, or of its own   |
| `function_call_output`                        | a message of the tool                                        |
| `reasoning`                                   | nothing: models do not read their former thoughts            |
| `item_reference` to an answer of an episode   | that answer; to another: refused                             |
| that is still open                            |                                                              |
| `tools` of type `function`, `tool_choice`     | the same, nested                                             |
| `text.format`, `text.verbosity`               | `response_format`, `verbosity`                               |
| `reasoning.effort`, `max_output_tokens`       | `reasoning_effort`, `max_tokens`                             |
| `top_logprobs`, `include` with logprobs       | `logprobs`, `top_logprobs`                                   |
| `previous_response_id`, `conversation`,       | refused: nothing is stored here                              |
| `prompt`, `background`                        |                                                              |
| `moderation`, `context_management`, other     | only a server that speaks Responses can take them            |
| tools and items, files that are stored        |                                                              |
| any other field                               | itself                                                       |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw, Struct

from upswing.openai.responses_content import FileReference, chat_content
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
    read_list,
    read_part,
    refuse,
)

FindAnswer = Callable[[str], str | None]
"""The text of the answer whose item has this id; None: nobody remembers it."""
_STATELESS = {
    "previous_response_id": "send the whole conversation in `input` instead",
    "conversation": "send the whole conversation in `input` instead",
    "prompt": "send its text in `instructions` and `input` instead",
    "background": "ask without it, and wait for the answer",
}
_NATIVE = ("context_management", "moderation")
_LOGPROBS = "message.output_text.logprobs"
_ECHOED = (
    *("max_output_tokens", "metadata", "parallel_tool_calls", "reasoning", "temperature", "text"),
    *("tool_choice", "tools", "top_p", "user"),
)
_KNOWN = frozenset(
    {"include", "input", "instructions", "max_output_tokens", "max_tool_calls", "reasoning"}
    | {"store", "stream_options", "text", "tool_choice", "tools", "top_logprobs", "truncation"}
    | {"access_programs", "image", "prompt_cache_options", "prompt_cache_retention"}
    | {*_NATIVE, *_STATELESS}
)


class _Body(Struct):
    input: Raw = ABSENT
    instructions: Raw = ABSENT
    tools: Raw = ABSENT
    tool_choice: Raw = ABSENT
    text: Raw = ABSENT
    reasoning: Raw = ABSENT
    include: Raw = ABSENT
    top_logprobs: Raw = ABSENT
    max_output_tokens: Raw = ABSENT
    stream: bool | None = None
    previous_response_id: Raw = ABSENT
    conversation: Raw = ABSENT
    prompt: Raw = ABSENT
    background: Raw = ABSENT
    context_management: Raw = ABSENT
    moderation: Raw = ABSENT
    metadata: Raw = ABSENT
    parallel_tool_calls: Raw = ABSENT
    temperature: Raw = ABSENT
    top_p: Raw = ABSENT
    user: Raw = ABSENT


class _Item(Struct):
    type: str = ""
    role: str = ""
    content: Raw = ABSENT
    id: Raw = ABSENT
    call_id: Raw = ABSENT
    name: Raw = ABSENT
    arguments: Raw = ABSENT
    output: Raw = ABSENT


class _Tool(Struct):
    type: str
    name: Raw = ABSENT
    description: Raw = ABSENT
    parameters: Raw = ABSENT
    strict: Raw = ABSENT


class _NamedChoice(Struct):
    type: str
    name: str = ""
    mode: str = "auto"
    tools: list[_Tool] = []


class _Format(Struct):
    type: str = "text"
    name: Raw = ABSENT
    schema: Raw = ABSENT
    strict: Raw = ABSENT
    description: Raw = ABSENT


class _Text(Struct):
    format: _Format | None = None
    verbosity: Raw = ABSENT


class _Reasoning(Struct):
    effort: Raw = ABSENT


@dataclass(frozen=True, slots=True)
class ResponseSettings:
    """What a response repeats of its request."""

    echo: tuple[tuple[str, bytes], ...] = ()
    """Field → its JSON."""
    logprobs: bool = False
    """They were asked for."""


@dataclass(frozen=True, slots=True)
class ResponseTranslation(ChatTranslation):
    settings: ResponseSettings = ResponseSettings()


def translate_response_request(
    body: bytes, find_answer: FindAnswer = lambda _: None
) -> ResponseTranslation:
    """The chat completion that a Responses request asks for, or `Rejected` with what is wrong.

    >>> translate_response_request(b'{"model":"m","input":"Hi","max_output_tokens":5}').body
    b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":5}'
    >>> translate_response_request(b'{"input":"Hi","previous_response_id":"resp_1"}')
    Traceback (most recent call last):
    upswing.errors.Rejected: `previous_response_id` needs a stored conversation, and none is stored here: send the whole conversation in `input` instead.
    """
    asked = read_body(body, _Body)
    check_size(body, (("input", asked.input), ("instructions", asked.instructions)))
    _refuse_stored(asked)
    messages = _messages(asked, find_answer)
    for name in _NATIVE:
        if given(raw := getattr(asked, name)) and bytes(raw) not in {b"[]", b"{}"}:
            messages.needs_native(f"`{name}`")
    wants_logprobs = _LOGPROBS in _included(asked)
    fields: Fields = {
        **other_fields(body, _KNOWN),
        "messages": messages.made,
        **_tool_fields(asked, messages),
        **_format_fields(asked),
        **_logprob_fields(asked, wanted=wants_logprobs),
    }
    if given(asked.max_output_tokens):
        fields["max_tokens"] = asked.max_output_tokens
    if given(asked.reasoning) and given(
        effort := read_part(asked.reasoning, _Reasoning, "reasoning").effort
    ):
        fields["reasoning_effort"] = effort
    return ResponseTranslation(
        encode_fields(fields), messages.native_only, _settings(asked, logprobs=wants_logprobs)
    )


def _refuse_stored(asked: _Body) -> None:
    for name, remedy in _STATELESS.items():
        raw = getattr(asked, name)
        if given(raw) and bytes(raw) != b"false":
            needs = "a stored response" if name == "background" else "a stored conversation"
            needs = "a stored prompt" if name == "prompt" else needs
            raise refuse(f"`{name}` needs {needs}, and none is stored here: {remedy}.")


def _messages(asked: _Body, find_answer: FindAnswer) -> ChatMessages:
    messages = ChatMessages()
    if given(asked.instructions):
        if not is_text(asked.instructions):
            raise refuse("`instructions` is a text.")
        messages.add("system", asked.instructions)
    if is_text(asked.input):
        messages.add("user", asked.input)
    elif is_list(asked.input):
        for raw in read_list(asked.input, "input"):
            _add_item(messages, raw, find_answer)
    else:
        raise refuse("`input` is a text or a list of items.")
    return messages


def _add_item(messages: ChatMessages, raw: Raw, find_answer: FindAnswer) -> None:
    item: _Item = read_part(raw, _Item, "input")
    match item.type:
        case "" | "message":
            _add_message(messages, item)
        case "function_call":
            if not is_text(item.call_id) or not is_text(item.name) or not is_text(item.arguments):
                raise refuse("A `function_call` has a `call_id`, a `name` and `arguments`: texts.")
            messages.add_call(item.call_id, item.name, item.arguments)
        case "function_call_output":
            if not is_text(item.call_id) or not given(item.output):
                raise refuse("A `function_call_output` has a `call_id` and an `output`.")
            messages.add_result(item.call_id, _content(messages, item.output))
        case "reasoning":
            pass
        case "item_reference":
            _add_reference(messages, item, find_answer)
        case other:
            messages.needs_native(f"an item of type `{other[:60]}`")
            messages.made.append({"role": "user", "content": [raw]})


def _add_message(messages: ChatMessages, item: _Item) -> None:
    if item.role not in {"user", "assistant", "system", "developer"}:
        raise refuse("An item in `input` has a `type`, or the `role` of a message.")
    role = "system" if item.role == "developer" else item.role
    messages.add(role, _content(messages, item.content))


def _content(messages: ChatMessages, raw: Raw) -> Any:
    try:
        return chat_content(raw)
    except FileReference as unknown:
        messages.needs_native(str(unknown))
        return read_list(raw, "content")


def _add_reference(messages: ChatMessages, item: _Item, find_answer: FindAnswer) -> None:
    name = read_part(item.id, str, "input") if is_text(item.id) else ""
    if name.startswith("rs_"):
        return
    if (text := find_answer(name)) is None:
        message = "An `item_reference` needs a stored response, and none is stored here"
        raise refuse(f"{message}: send the item itself (AI SDK: `store: false`).")
    messages.add("assistant", text)


def _tool_fields(asked: _Body, messages: ChatMessages) -> Fields:
    fields: Fields = {}
    tools: list[_Tool] = read_part(asked.tools, list[_Tool], "tools") if given(asked.tools) else []
    choice: Any = asked.tool_choice if given(asked.tool_choice) else None
    if choice is not None and not is_text(choice):
        named: _NamedChoice = read_part(choice, _NamedChoice, "tool_choice")
        choice = {"type": "function", "function": {"name": named.name}}
        if named.type == "allowed_tools":
            allowed = {bytes(tool.name) for tool in named.tools}
            tools = [tool for tool in tools if bytes(tool.name) in allowed]
            choice = named.mode
        elif named.type != "function":
            messages.needs_native(f"`tool_choice` of type `{named.type[:60]}`")
    for tool in tools:
        if tool.type != "function":
            messages.needs_native(f"a tool of type `{tool.type[:60]}`")
    made = [_chat_tool(tool) for tool in tools if tool.type == "function"]
    fields |= {"tools": made} if made else {}
    return fields | ({"tool_choice": choice} if choice is not None else {})


def _chat_tool(tool: _Tool) -> Fields:
    if not is_text(tool.name):
        raise refuse("A tool of type `function` has a `name`.")
    keys = ("name", "description", "parameters", "strict")
    function = {key: raw for key in keys if given(raw := getattr(tool, key))}
    return {"type": "function", "function": function}


def _format_fields(asked: _Body) -> Fields:
    if not given(asked.text):
        return {}
    text: _Text = read_part(asked.text, _Text, "text")
    fields: Fields = {"verbosity": text.verbosity} if given(text.verbosity) else {}
    if text.format is None or text.format.type == "text":
        return fields
    wanted: Fields = {"type": text.format.type}
    if text.format.type == "json_schema":
        keys = ("name", "schema", "strict", "description")
        wanted["json_schema"] = {
            key: raw for key in keys if given(raw := getattr(text.format, key))
        }
    return fields | {"response_format": wanted}


def _included(asked: _Body) -> list[Any]:
    return read_part(asked.include, list[Any], "include") if given(asked.include) else []


def _logprob_fields(asked: _Body, *, wanted: bool) -> Fields:
    if given(asked.top_logprobs) and bytes(asked.top_logprobs) != b"0":
        return {"logprobs": True, "top_logprobs": asked.top_logprobs}
    return {"logprobs": True} if wanted else {}


def _settings(asked: _Body, *, logprobs: bool) -> ResponseSettings:
    echo = tuple((name, bytes(raw)) for name in _ECHOED if given(raw := getattr(asked, name)))
    return ResponseSettings(echo, logprobs or given(asked.top_logprobs))


def encode_echo(settings: ResponseSettings) -> dict[str, Raw]:
    return {name: msgspec.Raw(raw) for name, raw in settings.echo}
