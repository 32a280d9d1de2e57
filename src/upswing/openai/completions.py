"""What is in a whole chat completion? The text, the calls of tools, how it ended, and what it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from upswing.contracts.typed import from_json

_NOTHING = Raw(b"")


@dataclass(frozen=True, slots=True)
class CompletionToolCall:
    name: str
    arguments: str
    """JSON."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class ChatCompletion:
    """A model's answer; counts are None where the server does not say them."""

    text: str
    tool_calls: tuple[CompletionToolCall, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning: str = ""
    finish_reason: str = ""
    stop_text: str = ""
    """The stop text that ended it, where the server tells that, as vLLM does."""
    cached_tokens: int = 0
    """Of the prompt's tokens, those that the server had read before."""
    created: int = 0
    """Seconds since 1970."""
    model: str = ""
    logprobs: bytes = b""
    """A JSON list with an entry for each token; empty where there is none."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any]] | None = None
    refusal: Any = None
    tool_calls: list[_Call] | None = None
    reasoning_content: Any = None
    reasoning: Any = None


class _Logprobs(msgspec.Struct):
    content: Raw = _NOTHING


class _Choice(msgspec.Struct):
    message: _Message
    index: int | None = None
    finish_reason: Any = None
    stop_reason: Any = None
    logprobs: _Logprobs | None = None


class _Body(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None
    created: Any = None
    model: Any = None


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """What an answer took, as far as its server says."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0


def read_completion(body: bytes) -> ChatCompletion | None:
    """The first choice of a chat completion; None when it is none.

    >>> read_completion(b'{"choices": [{"message": {"content": "Hi."}}], "usage": {"prompt_tokens": 7}}').prompt_tokens
    7
    >>> read_completion(b'{"error": {"message": "overloaded"}}') is None
    True
    """
    try:
        completion = from_json(body, _Body)
        choice = min(completion.choices, key=lambda each: each.index or 0)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    message, usage = choice.message, read_usage(completion.usage)
    return ChatCompletion(
        _text(message.content) or _plain_text(message.refusal),
        tuple(
            CompletionToolCall(
                call.function.name or "",
                argument_text(call.function.arguments or "{}"),
                call.id or "",
            )
            for call in message.tool_calls or ()
        ),
        usage.prompt_tokens,
        usage.completion_tokens,
        reasoning=_plain_text(message.reasoning_content or message.reasoning),
        finish_reason=_plain_text(choice.finish_reason),
        stop_text=_plain_text(choice.stop_reason),
        cached_tokens=usage.cached_tokens,
        created=_count(completion.created) or 0,
        model=_plain_text(completion.model),
        logprobs=bytes(choice.logprobs.content) if choice.logprobs else b"",
    )


def read_usage(usage: Any) -> UsageCounts:
    """The counts in a `usage` of any form.

    >>> read_usage({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}})
    UsageCounts(prompt_tokens=5, completion_tokens=None, cached_tokens=3)
    """
    if not isinstance(usage, dict):
        return UsageCounts()
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return UsageCounts(
        _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")), cached or 0
    )


def argument_text(given: str | dict[str, Any]) -> str:
    """A call's arguments as JSON text: some servers send the object and not its text."""
    return given if isinstance(given, str) else msgspec.json.encode(given).decode()


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return content or ""


def _plain_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
