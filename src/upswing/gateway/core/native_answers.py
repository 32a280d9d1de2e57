"""What did a model say that was asked in OpenAI's Responses or Anthropic's Messages itself?

| Responses                        | Messages                    | an answer's                        |
|----------------------------------|-----------------------------|------------------------------------|
| `message`, `output_text`         | `text`                      | content                            |
| `function_call`                  | `tool_use`                  | calls                              |
| `reasoning`                      | `thinking`                  | reasoning                          |
| `incomplete`: max_output_tokens  | `max_tokens`                | finish `length`                    |

A stream that was left is read as far as it came.
"""

from __future__ import annotations

from typing import Any

import msgspec

from upswing.dataset.model_answer import AnswerToolCall, ModelAnswer
from upswing.gateway.core.answers import UNREADABLE, Tree, read_choices, usage_count
from upswing.gateway.core.sse import event_payloads

_STOP_REASONS = {"max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
RESPONSE_DELTAS = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
}
"""Events with a piece of an item → the kind of that item."""
_INCOMPLETE = {"max_output_tokens": "length"}


def read_shaped_choices(pieces: list[bytes], *, stream: bool, shape: str) -> list[ModelAnswer]:
    """The choices of an answer in this shape; none when it cannot be read."""
    if shape == "chat":
        return read_choices(pieces, stream=stream)
    body = b"".join(pieces)
    try:
        if not stream:
            tree = msgspec.json.decode(body)
            answer = _response_answer(tree) if shape == "responses" else _message_answer(tree)
        else:
            payloads = [data for data in event_payloads(body) if data != b"[DONE]"]
            trees = [msgspec.json.decode(data) for data in payloads]
            answer = _response_events(trees) if shape == "responses" else _message_events(trees)
    except UNREADABLE:
        return []
    return [] if answer.is_empty else [answer]


def read_shaped_answer(pieces: list[bytes], *, stream: bool, shape: str) -> ModelAnswer | None:
    return next(iter(read_shaped_choices(pieces, stream=stream, shape=shape)), None)


def _response_answer(tree: Tree) -> ModelAnswer:
    answer = ModelAnswer(answer_id=str(tree.get("id") or ""))
    for item in _trees(tree.get("output")):
        _add_item(answer, item)
    reason = str((tree.get("incomplete_details") or {}).get("reason") or "")
    ended = "tool_calls" if answer.tool_calls else "stop"
    answer.finish_reason = _INCOMPLETE.get(reason, reason) or ended
    usage = tree.get("usage") or {}
    answer.prompt_tokens = usage_count(usage, "input_tokens")
    answer.completion_tokens = usage_count(usage, "output_tokens")
    return answer


def _add_item(answer: ModelAnswer, item: Tree) -> None:
    match item.get("type"):
        case "message":
            parts = _trees(item.get("content"))
            answer.content += "".join(str(p.get("text") or p.get("refusal") or "") for p in parts)
        case "function_call":
            call_id = str(item.get("call_id") or item.get("id") or "")
            arguments = str(item.get("arguments") or "")
            answer.tool_calls.append(AnswerToolCall(call_id, str(item.get("name")), arguments))
        case "reasoning":
            parts = _trees(item.get("content")) or _trees(item.get("summary"))
            answer.reasoning += "".join(str(part.get("text") or "") for part in parts)
        case _:
            pass


def _response_events(trees: list[Tree]) -> ModelAnswer:
    for tree in reversed(trees):
        if tree.get("type") in {"response.completed", "response.incomplete"}:
            return _response_answer(tree.get("response") or {})
    items: dict[str, Tree] = {}
    deltas: dict[str, list[str]] = {}
    for tree in trees:
        kind = tree.get("type")
        if kind in {"response.output_item.added", "response.output_item.done"}:
            item = tree.get("item") or {}
            items[str(item.get("id"))] = item
        elif kind in RESPONSE_DELTAS:
            name = str(tree.get("item_id"))
            items.setdefault(name, {"type": RESPONSE_DELTAS[kind]})
            deltas.setdefault(name, []).append(str(tree.get("delta") or ""))
    for name, parts in deltas.items():
        text = "".join(parts)
        items[name] = {**items[name], "arguments": text, "content": [{"text": text}]}
    answer = _response_answer({"output": [*items.values()]})
    answer.completion_tokens = sum(map(len, deltas.values()))
    answer.finish_reason = ""
    return answer


def _message_answer(tree: Tree) -> ModelAnswer:
    answer = ModelAnswer(answer_id=str(tree.get("id") or ""))
    for block in _trees(tree.get("content")):
        _add_block(answer, block)
    reason = str(tree.get("stop_reason") or "")
    answer.finish_reason = _STOP_REASONS.get(reason, "stop" if reason else "")
    usage = tree.get("usage") or {}
    prompt = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    answer.prompt_tokens = sum(usage_count(usage, key) for key in prompt)
    answer.completion_tokens = usage_count(usage, "output_tokens")
    return answer


def _add_block(answer: ModelAnswer, block: Tree) -> None:
    match block.get("type"):
        case "text":
            answer.content += str(block.get("text") or "")
        case "thinking":
            answer.reasoning += str(block.get("thinking") or "")
        case "tool_use":
            given = block.get("input")
            text = given if isinstance(given, str) else msgspec.json.encode(given or {}).decode()
            call = AnswerToolCall(str(block.get("id") or ""), str(block.get("name")), text)
            answer.tool_calls.append(call)
        case _:
            pass


def _message_events(trees: list[Tree]) -> ModelAnswer:
    message: Tree = {}
    blocks: dict[int, Tree] = {}
    deltas: dict[int, list[str]] = {}
    for tree in trees:
        match tree.get("type"):
            case "message_start":
                message = {**(tree.get("message") or {})}
            case "content_block_start":
                blocks[int(tree.get("index") or 0)] = tree.get("content_block") or {}
            case "content_block_delta":
                at = int(tree.get("index") or 0)
                deltas.setdefault(at, []).append(_delta_text(tree.get("delta") or {}))
            case "message_delta":
                usage = {**(message.get("usage") or {}), **(tree.get("usage") or {})}
                message |= {**(tree.get("delta") or {}), "usage": usage}
            case _:
                pass
    content = []
    for at, block in sorted(blocks.items()):
        text = "".join(deltas.get(at, ()))
        content.append({**block, "text": text, "thinking": text, "input": text or "{}"})
    return _message_answer({**message, "content": content})


def _delta_text(delta: Tree) -> str:
    texts = (delta.get(key) for key in ("text", "thinking", "partial_json"))
    return next((text for text in texts if isinstance(text, str)), "")


def _trees(value: Any) -> list[Tree]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
