"""A chat completion as a response of OpenAI's Responses API: which items, and which status?

| chat completion                        | response                                             |
|----------------------------------------|------------------------------------------------------|
| reasoning                              | an item `reasoning`                                  |
| content                                | an item `message` with one `output_text`             |
| each call of a tool                    | an item `function_call`                              |
| finish `length`                        | status `incomplete`: `max_output_tokens`             |
| finish `content_filter`                | status `incomplete`: `content_filter`                |
| any other finish                       | status `completed`                                   |

Items are named after the answer that they are of, so that a client may refer to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import Raw

from upswing.openai.completions import ChatCompletion, CompletionToolCall, UsageCounts
from upswing.openai.responses_request import ResponseSettings, encode_echo

JsonObject = dict[str, Any]
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_DEFAULTS: JsonObject = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
ItemKind = Literal["reasoning", "message", "call"]
_PREFIXES: dict[ItemKind, str] = {"reasoning": "rs_", "message": "msg_", "call": "fc_"}


@dataclass(frozen=True, slots=True)
class ResponseIds:
    """What a response and its items are called."""

    answer_id: str

    @property
    def response(self) -> str:
        return f"resp_{self.answer_id}"

    def item(self, kind: ItemKind, number: int = 0) -> str:
        """The id of an item, by its number among those of its kind.

        >>> ResponseIds("t.1").item("message"), ResponseIds("t.1").item("call", 1)
        ('msg_t.1', 'fc_t.1_1')
        """
        return f"{_PREFIXES[kind]}{self.answer_id}{f'_{number}' if number else ''}"


def answer_of_item(item_id: str) -> str:
    """The answer that a message is of, by its id; empty: this is no message of ours.

    >>> answer_of_item("msg_t.1"), answer_of_item("fc_t.1")
    ('t.1', '')
    """
    prefix = _PREFIXES["message"]
    return item_id.removeprefix(prefix) if item_id.startswith(prefix) else ""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What every form of one response has in common."""

    ids: ResponseIds
    settings: ResponseSettings
    created: int = 0
    model: str = ""

    def tree(
        self, status: str, output: list[JsonObject], usage: UsageCounts | None = None
    ) -> JsonObject:
        """The response object in this state."""
        return {
            "id": self.ids.response,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": output,
            "usage": None if usage is None else usage_tree(usage),
            **_DEFAULTS,
            **encode_echo(self.settings),
        }


def response_body(
    completion: ChatCompletion, ids: ResponseIds, settings: ResponseSettings
) -> bytes:
    """The answer in one piece."""
    output: list[JsonObject] = []
    if completion.reasoning:
        output.append(reasoning_item(ids.item("reasoning"), completion.reasoning))
    if completion.text or not completion.tool_calls:
        logprobs = Raw(completion.logprobs) if settings.logprobs and completion.logprobs else []
        output.append(message_item(ids.item("message"), completion.text, logprobs))
    calls = enumerate(completion.tool_calls)
    output += [call_item(ids.item("call", number), call) for number, call in calls]
    usage = UsageCounts(
        completion.prompt_tokens, completion.completion_tokens, completion.cached_tokens
    )
    head = ResponseHead(ids, settings, completion.created, completion.model)
    tree = head.tree("completed", output, usage) | ending(completion.finish_reason)
    return msgspec.json.encode(tree)


def ending(finish_reason: str) -> JsonObject:
    """Status and details of a response that ended so.

    >>> ending("length"), ending("stop")
    ({'status': 'incomplete', 'incomplete_details': {'reason': 'max_output_tokens'}}, {'status': 'completed'})
    """
    if (reason := _INCOMPLETE.get(finish_reason)) is None:
        return {"status": "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def message_item(
    item_id: str, text: str, logprobs: Any = (), status: str = "completed"
) -> JsonObject:
    part = text_part(text, logprobs)
    content = [part] if status == "completed" else []
    return {
        "id": item_id,
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def text_part(text: str, logprobs: Any = ()) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def call_item(item_id: str, call: CompletionToolCall, status: str = "completed") -> JsonObject:
    return {
        "id": item_id,
        "type": "function_call",
        "status": status,
        "call_id": call.id or item_id,
        "name": call.name,
        "arguments": call.arguments,
    }


def reasoning_item(item_id: str, text: str | None) -> JsonObject:
    content = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return {"id": item_id, "type": "reasoning", "summary": [], "content": content}


def usage_tree(usage: UsageCounts) -> JsonObject:
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }
