"""A chat completion as a message of Anthropic's API: which blocks, and why did it stop?

| chat completion                       | message                                                |
|---------------------------------------|--------------------------------------------------------|
| reasoning, where thoughts are shown   | a block `thinking`                                     |
| content                               | a block `text`                                         |
| each call of a tool                   | a block `tool_use`                                     |
| finish `length`                       | `max_tokens`                                           |
| finish `tool_calls`                   | `tool_use`                                             |
| finish `content_filter`               | `refusal`                                              |
| finish `stop`                         | `stop_sequence` where the server says which; `end_turn` |
"""

from __future__ import annotations

from typing import Any

import msgspec

from upswing.anthropic.request import MessageSettings
from upswing.openai.completions import ChatCompletion, CompletionToolCall, UsageCounts

JsonObject = dict[str, Any]
_STOP_REASONS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def message_id(answer_id: str) -> str:
    return f"msg_{answer_id}"


def message_body(completion: ChatCompletion, answer_id: str, settings: MessageSettings) -> bytes:
    """The answer in one piece."""
    content: list[JsonObject] = []
    if completion.reasoning and settings.thinking:
        content.append({"type": "thinking", "thinking": completion.reasoning, "signature": ""})
    if completion.text or not completion.tool_calls:
        content.append({"type": "text", "text": completion.text})
    calls = enumerate(completion.tool_calls)
    content += [call_block(call, answer_id, number) for number, call in calls]
    usage = UsageCounts(
        completion.prompt_tokens, completion.completion_tokens, completion.cached_tokens
    )
    tree = message_tree(answer_id, completion.model, content, usage)
    return msgspec.json.encode(
        tree | stop_fields(completion.finish_reason, completion.stop_text, settings)
    )


def message_tree(
    answer_id: str, model: str, content: list[JsonObject], usage: UsageCounts
) -> JsonObject:
    return {
        "id": message_id(answer_id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage_tree(usage),
    }


def stop_fields(finish_reason: str, stop_text: str, settings: MessageSettings) -> JsonObject:
    """Why it stopped.

    >>> stop_fields("stop", "END", MessageSettings(stop_sequences=("END",)))
    {'stop_reason': 'stop_sequence', 'stop_sequence': 'END'}
    """
    if stop_text and stop_text in settings.stop_sequences:
        return {"stop_reason": "stop_sequence", "stop_sequence": stop_text}
    return {"stop_reason": _STOP_REASONS.get(finish_reason, "end_turn"), "stop_sequence": None}


def call_block(call: CompletionToolCall, answer_id: str, number: int) -> JsonObject:
    return {
        "type": "tool_use",
        "id": call.id or call_id(answer_id, number),
        "name": call.name,
        "input": _input_object(call.arguments),
    }


def call_id(answer_id: str, number: int) -> str:
    """What a call is named by whose server gave it no id."""
    return f"toolu_{answer_id}_{number}"


def usage_tree(usage: UsageCounts) -> JsonObject:
    return {
        "input_tokens": max(0, (usage.prompt_tokens or 0) - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens or 0,
    }


def _input_object(arguments: str) -> Any:
    """The arguments as an object; what the model wrote and is none stays readable."""
    try:
        value = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": arguments}
