"""What does a client ask for? A chat completion as OpenAI has it, with vLLM's `return_token_ids`.

| field                                        | what becomes of it                               |
|----------------------------------------------|--------------------------------------------------|
| one we know                                  | checked                                          |
| one that changes the distribution and that   | refused, unless it changes nothing: an answer    |
| we cannot honour (penalties, logit_bias, …)  | that is not what was asked for helps nobody      |
| `n`                                          | 1                                                |
| any other (`user`, `metadata`, …)            | ignored                                          |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn

import msgspec
from msgspec import Meta

from upswing.contracts.typed import from_json
from upswing.errors import Reason, Rejected
from upswing.serve.ports import Prompt

Tree = dict[str, Any]
_PLACE = re.compile(r"`\$\.?([^`]*)`")
_HONOURED_ELSEWHERE = ("frequency_penalty", "presence_penalty", "logit_bias")


class BadRequest(Rejected):
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
    tool_calls: list[Tree] | None = None
    tool_call_id: str | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Body(msgspec.Struct):
    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[_Message], Meta(min_length=1)]
    tools: list[Tree] | None = None
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
    response_format: Tree | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What to generate, and how to answer."""

    prompt: Prompt
    stream: bool = False
    usage: bool = False
    """Whether a stream ends with what it has cost."""
    token_ids: bool = False


def read_asked(raw: bytes) -> Asked:
    """What this body asks for, or `BadRequest`."""
    try:
        body = from_json(raw, _Body)
    except msgspec.ValidationError as error:
        _wrong(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {error}.", reason=Reason.MALFORMED) from None
    _check(body)
    options = body.stream_options
    return Asked(
        prompt=_prompt(body),
        stream=bool(body.stream),
        usage=bool(options and options.include_usage),
        token_ids=bool(body.return_token_ids),
    )


def _wrong(told: str) -> NoReturn:
    found = _PLACE.search(told)
    param = found.group(1) if found else ""
    raise BadRequest(f"{told}.", param or None)


def _check(body: _Body) -> None:
    if body.n not in {None, 1}:
        raise BadRequest("Only one answer is given: leave `n` out, or set it to 1.", "n")
    for name in _HONOURED_ELSEWHERE:
        if getattr(body, name):
            raise BadRequest(f"`{name}` is not supported: leave it out.", name)
    if body.response_format and body.response_format.get("type") not in {None, "text"}:
        raise BadRequest("Only plain text can be promised: leave it out.", "response_format")
    if body.top_logprobs is not None and not body.logprobs:
        raise BadRequest("`top_logprobs` needs `logprobs: true`.", "top_logprobs")
    if body.stream_options is not None and not body.stream:
        raise BadRequest("`stream_options` needs `stream: true`.", "stream_options")
    if body.seed is not None and not -(1 << 63) <= body.seed < 1 << 63:
        raise BadRequest("`seed` is an integer of 64 bits.", "seed")


def _prompt(body: _Body) -> Prompt:
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    tools = None if body.tool_choice == "none" else body.tools
    return Prompt(
        model=body.model,
        messages=[_message(message, at) for at, message in enumerate(body.messages)],
        tools=tools or None,
        max_tokens=body.max_completion_tokens or body.max_tokens,
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        seed=body.seed,
        stop=tuple(text for text in stop if text),
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )


def _message(message: _Message, at: int) -> Tree:
    """As chat templates like it: text is text, and the arguments of a call are an object."""
    role = "system" if message.role == "developer" else message.role
    told: Tree = {"role": role, "content": _text(message.content, at)}
    if message.name is not None:
        told["name"] = message.name
    if message.tool_call_id is not None:
        told["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        told["tool_calls"] = [_call(call) for call in message.tool_calls]
    return told


def _text(content: str | Sequence[_Part] | None, at: int) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for number, part in enumerate(content):
        if part.type not in {"text", "refusal"}:
            raise BadRequest(
                f"This model reads text, not {part.type[:40]!r}.",
                f"messages[{at}].content[{number}]",
            )
    return "".join(part.text for part in content)


def _call(call: Mapping[str, Any]) -> Tree:
    """A call with its arguments read, as far as they can be.

    >>> _call({"id": "1", "function": {"name": "add", "arguments": '{"a":1}'}})["function"]
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
