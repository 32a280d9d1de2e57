"""What does a client ask for? A chat completion as OpenAI has it, with vLLM's `return_token_ids`.

| field                                        | what becomes of it                               |
|----------------------------------------------|--------------------------------------------------|
| one we know                                  | checked                                          |
| one that changes the distribution and that   | refused, unless it changes nothing: an answer    |
| we cannot honour (penalties, logit_bias, …)  | that is not what was asked for helps nobody      |
| `n`                                          | 1 to 8                                           |
| `response_format`, `tool_choice` `required`  | a schema for the answer, where the engine can    |
| or of a function                             | hold a model to one; else refused by name        |
| any other (`user`, `metadata`, …)            | ignored                                          |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected
from upswing.serve.core.engine import GenerationRequest
from upswing.serve.core.output_schema import format_schema, output_schema
from upswing.serve.core.schema_bounds import check_schema_cost
from upswing.serve.core.tool_calls import tool_names

JsonObject = dict[str, Any]
_FIELD_PATH = re.compile(r"`\$\.?([^`]*)`")
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "top_k": (0, -1),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "functions": ([],),
    "function_call": ("auto", "none"),
    "modalities": (["text"], []),
    "audio": (),
    "web_search_options": (),
}
"""What would change the answer and is not supported → values that change nothing."""
MAX_CHOICES = 8
"""Answers to one request: each takes a slot of the engine."""


class InvalidChatRequest(Rejected):
    """A request that cannot be carried out; `param` is the field that is to blame."""

    def __init__(
        self, detail: str, param: str | None = None, reason: Reason = Reason.SCHEMA
    ) -> None:
        super().__init__(reason, detail)
        self.param = param


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None
    name: str | None = None
    tool_calls: list[JsonObject] | None = None
    tool_call_id: str | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Body(msgspec.Struct):
    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[_Message], Meta(min_length=1)]
    tools: list[JsonObject] | None = None
    tool_choice: Any = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    seed: int | None = None
    stop: (
        str
        | Annotated[list[Annotated[str, Meta(min_length=1, max_length=1024)]], Meta(max_length=16)]
        | None
    ) = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    return_token_ids: bool | None = None
    n: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    response_format: JsonObject | None = None
    top_k: Any = None
    min_p: Any = None
    repetition_penalty: Any = None
    functions: Any = None
    function_call: Any = None
    modalities: Any = None
    audio: Any = None
    web_search_options: Any = None


@dataclass(frozen=True, slots=True)
class ChatCompletionRequest:
    """What to generate, and how to answer."""

    generation: GenerationRequest
    stream: bool = False
    include_usage: bool = False
    """Whether a stream ends with what it has cost."""
    return_token_ids: bool = False
    choices: int = 1
    """How many answers are wanted."""
    constrained_by: str = ""
    """The field because of which `generation` has an `output_schema`."""

    def choice(self, index: int) -> GenerationRequest:
        """What is generated for the choice of this index: the first is as if it were alone."""
        if self.generation.seed is None or not index:
            return self.generation
        return replace(self.generation, seed=_shifted_seed(self.generation.seed, index))


def parse_chat_request(raw: bytes) -> ChatCompletionRequest:
    """What this body asks for, or `InvalidChatRequest`."""
    try:
        body = from_json(raw, _Body)
    except msgspec.ValidationError as error:
        _raise_invalid(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidChatRequest(
            f"The body is not JSON: {error}.", reason=Reason.MALFORMED
        ) from None
    _check_supported(body)
    options, generation = body.stream_options, _generation_request(body)
    constrained_by = "" if generation.output_schema is None else "response_format"
    if constrained_by and _forced_tools(body) is not None:
        constrained_by = "tool_choice"
    return ChatCompletionRequest(
        generation=generation,
        stream=bool(body.stream),
        include_usage=bool(options and options.include_usage),
        return_token_ids=bool(body.return_token_ids),
        choices=body.n or 1,
        constrained_by=constrained_by,
    )


def _check_tool(tool: JsonObject, where: str) -> None:
    function = tool.get("function")
    if tool.get("type", "function") != "function":
        kind = str(tool["type"])[:60]
        raise InvalidChatRequest(
            f"`{where}` is of type `{kind}`, and tools here are of type `function`.", where
        )
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InvalidChatRequest(f"`{where}` has no `function` with a `name`.", where)


def _shifted_seed(seed: int, index: int) -> int:
    """Another seed of 64 bits for each choice, always the same one."""
    return (seed + index * 0x9E3779B97F4A7C15 + (1 << 63)) % (1 << 64) - (1 << 63)


def _raise_invalid(message: str) -> NoReturn:
    found = _FIELD_PATH.search(message)
    param = found.group(1) if found else ""
    raise InvalidChatRequest(f"{message}.", param or None)


def _check_supported(body: _Body) -> None:
    if body.n is not None and not 1 <= body.n <= MAX_CHOICES:
        raise InvalidChatRequest(f"`n` is a number from 1 to {MAX_CHOICES}.", "n")
    for name, neutral in _NEUTRAL.items():
        if (value := getattr(body, name)) is not None and value not in neutral:
            raise InvalidChatRequest(f"`{name}` is not supported: leave it out.", name)
    for number, tool in enumerate(body.tools or ()):
        _check_tool(tool, f"tools[{number}]")
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidChatRequest("`top_logprobs` needs `logprobs: true`.", "top_logprobs")
    if body.stream_options is not None and not body.stream:
        raise InvalidChatRequest("`stream_options` needs `stream: true`.", "stream_options")
    if body.seed is not None and not -(1 << 63) <= body.seed < 1 << 63:
        raise InvalidChatRequest("`seed` is an integer of 64 bits.", "seed")


def _forced_tools(body: _Body) -> list[JsonObject] | None:
    """The tools of which one has to be called; None: none has."""
    match body.tool_choice:
        case "required":
            forced = body.tools or []
        case {"type": "function", "function": {"name": str(name)}}:
            forced = [tool for tool in body.tools or () if name in tool_names([tool])]
        case None | "auto" | "none":
            return None
        case _:
            message = "`tool_choice` is `none`, `auto`, `required` or names a function."
            raise InvalidChatRequest(message, "tool_choice")
    if not forced:
        raise InvalidChatRequest("The tool that has to be called is not there.", "tool_choice")
    return forced


def _schema_of_answer(body: _Body, tools: list[JsonObject]) -> JsonObject | None:
    try:
        wanted = format_schema(body.response_format)
        check_schema_cost([] if wanted is None else [wanted])
    except ValueError as error:
        raise InvalidChatRequest(f"`response_format`: {error}.", "response_format") from None
    forced = _forced_tools(body)
    called = tools if forced is None else forced
    try:
        check_schema_cost(called if forced is not None or wanted is not None else [])
    except ValueError as error:
        raise InvalidChatRequest(f"`tools`: {error}.", "tools") from None
    return output_schema(called, wanted, must_call=forced is not None)


def _generation_request(body: _Body) -> GenerationRequest:
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    tools = None if body.tool_choice == "none" else body.tools
    return GenerationRequest(
        model=body.model,
        messages=[_template_message(message, at) for at, message in enumerate(body.messages)],
        tools=tools or None,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        seed=body.seed,
        stop=tuple(text for text in stop if text),
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        output_schema=_schema_of_answer(body, tools or []),
    )


def _template_message(message: _Message, index: int) -> JsonObject:
    """As chat templates like it: text is text, and the arguments of a call are an object."""
    role = "system" if message.role == "developer" else message.role
    converted: JsonObject = {"role": role, "content": _text_content(message.content, index)}
    if message.name is not None:
        converted["name"] = message.name
    if message.tool_call_id is not None:
        converted["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        converted["tool_calls"] = [_decode_call_arguments(call) for call in message.tool_calls]
    return converted


def _text_content(content: str | Sequence[_Part] | None, message_index: int) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for number, part in enumerate(content):
        if part.type not in {"text", "refusal"}:
            raise InvalidChatRequest(
                f"This model reads text, not {part.type[:40]!r}.",
                f"messages[{message_index}].content[{number}]",
            )
    return "".join(part.text for part in content)


def _decode_call_arguments(call: Mapping[str, Any]) -> JsonObject:
    """A call with its arguments read, as far as they can be.

    >>> _decode_call_arguments({"id": "1", "function": {"name": "add", "arguments": '{"a":1}'}})["function"]
    {'name': 'add', 'arguments': {'a': 1}}
    """
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return dict(call)
    try:
        arguments = msgspec.json.decode(function["arguments"])
    except (msgspec.DecodeError, RecursionError):
        arguments = function["arguments"]
    return {**call, "function": {**function, "arguments": arguments}}
