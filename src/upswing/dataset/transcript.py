"""How do an agent's messages read as what it saw and did?

| message                                   | in the trajectory                                  |
|-------------------------------------------|----------------------------------------------------|
| `system`, `developer` at the beginning    | `task_context.instructions`                        |
| `user`                                    | `observation`, a `user_message`                    |
| `tool`, `function`                        | `observation`, a `tool_result`, and the `result`   |
|                                           | of the turn that called it                         |
| `assistant` from before the first request | `observation`, beside what else was said before    |
| several new ones at once                  | `observation.content.messages`, in their order     |
| a picture or a file in base64             | its kind, size and sha256                          |
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from upswing.dataset.model_answer import AnswerToolCall, ModelAnswer

Tree = dict[str, Any]
_INSTRUCTION_ROLES = frozenset({"system", "developer"})
_OBSERVATION_TYPES = {"tool": "tool_result", "function": "tool_result", "user": "user_message"}
_MAX_INLINE = 2048
_ERROR_PREFIXES = ("error", "traceback (most recent call last)", "an error occurred", '{"error"')


def chosen_answer(choices: Sequence[ModelAnswer], later_messages: Sequence[Tree]) -> ModelAnswer:
    """Of several choices, the one that the next request goes on with; else the first.

    >>> said = [ModelAnswer(content="a"), ModelAnswer(content="b")]
    >>> chosen_answer(said, [{"role": "assistant", "content": "b"}]).content, chosen_answer(said, []).content
    ('b', 'a')
    """
    words = next((m for m in later_messages if m.get("role") == "assistant"), None)
    if len(choices) == 1 or words is None:
        return choices[0]
    text = content_text(words.get("content"))
    calls = [call.get("id") for call in words.get("tool_calls") or () if isinstance(call, dict)]
    same = (
        answer
        for answer in choices
        if answer.content == text and [call.call_id for call in answer.tool_calls] == calls
    )
    return next(same, choices[0])


def instructions_of(messages: Sequence[Tree]) -> str:
    """The system prompt; without one, the first user message."""
    instructions = []
    for message in messages:
        if message.get("role") not in _INSTRUCTION_ROLES:
            break
        instructions.append(content_text(message.get("content")))
    if instructions:
        return "\n\n".join(instructions)
    return next((content_text(m.get("content")) for m in messages if m.get("role") == "user"), "")


def observation_of(new_messages: Sequence[Tree], *, first: bool) -> Tree:
    """What is new to the agent in these messages."""
    seen = list(new_messages)
    while first and len(seen) > 1 and seen[0].get("role") in _INSTRUCTION_ROLES:
        seen = seen[1:]
    if not first:  # its own last words are no news to it
        seen = [message for message in seen if message.get("role") != "assistant"]
    last = seen[-1] if seen else {}
    kind = _OBSERVATION_TYPES.get(last.get("role", ""), "system_message")
    if len(seen) > 1:
        return {
            "type": kind,
            "content": {"messages": [_plain_message(message) for message in seen]},
        }
    return {"type": kind, "content": _observed_content(last.get("content"))}


def action_of(answer: ModelAnswer) -> Tree:
    """What the agent did: it called, or it answered; in the model's own words, where they are known."""
    text = answer.raw_text or answer.content
    raw_response = {"raw_response": text} if text else {}
    match answer.tool_calls:
        case []:
            return {"type": "response", "raw_response": answer.content}
        case [call]:
            return {
                "type": "tool_call",
                "tool_name": call.name,
                "tool_args": arguments_of(call),
                **raw_response,
            }
        case calls:
            several = [{"id": c.call_id, "name": c.name, "args": arguments_of(c)} for c in calls]
            return {
                "type": "tool_call",
                "tool_name": "+".join(call.name for call in calls),
                "tool_args": {"calls": several},
                **raw_response,
            }


def arguments_of(call: AnswerToolCall) -> Tree:
    """The arguments as an object; what is no JSON object stays readable.

    >>> arguments_of(AnswerToolCall("1", "f", '{"x": 1}')), arguments_of(AnswerToolCall("1", "f", "oops"))
    ({'x': 1}, {'arguments': 'oops'})
    """
    try:
        value = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = None
    return value if isinstance(value, dict) else {"arguments": call.arguments}


def result_of(answer: ModelAnswer, later_messages: Sequence[Tree]) -> Tree:
    """What came of it: what the tools returned in `later_messages`, or the answer itself."""
    if not answer.tool_calls:
        cut = answer.finish_reason in {"length", "content_filter"}
        error = {"error": f"The answer ended by {answer.finish_reason}."} if cut else {}
        return {"success": not cut, "output": answer.content, **error}
    wanted = {call.call_id for call in answer.tool_calls}
    results = [
        m for m in later_messages if m.get("role") == "tool" and m.get("tool_call_id") in wanted
    ]
    if not results:  # some agents report as the user, or under the old name
        results = [
            m for m in later_messages if m.get("role") not in {"assistant", *_INSTRUCTION_ROLES}
        ][:1]
    if not results:
        return {"success": True, "output": None}
    texts = [content_text(message.get("content")) for message in results]
    failed = next(
        (text for text in texts if text.lstrip().lower().startswith(_ERROR_PREFIXES)), None
    )
    output: str | Tree = texts[0]
    if len(results) > 1:
        output = {
            "results": {
                m.get("tool_call_id") or str(n): t
                for n, (m, t) in enumerate(zip(results, texts, strict=True))
            }
        }
    return {
        "success": failed is None,
        "output": output,
        **({"error": failed[:500]} if failed else {}),
    }


def content_text(content: Any) -> str:
    """The words in a content."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _observed_content(content: Any) -> str | Tree:
    if isinstance(content, list):
        if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            return content_text(content)
        return {"parts": [_replace_base64(part) for part in content]}
    return content if isinstance(content, str | dict) else ""


def _plain_message(message: Tree) -> Tree:
    kept = {
        key: message[key]
        for key in ("role", "name", "tool_call_id", "tool_calls")
        if message.get(key)
    }
    return {**kept, "content": _observed_content(message.get("content"))}


def _replace_base64(value: Any) -> Any:
    """Long base64 says nothing to a reader, and little to training: its hash stands for it."""
    if isinstance(value, dict):
        return {key: _replace_base64(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_replace_base64(part) for part in value]
    if isinstance(value, str) and len(value) > _MAX_INLINE and " " not in value[:_MAX_INLINE]:
        kind = value[5:].partition(";")[0] if value.startswith("data:") else "unknown"
        return {"kind": kind, "bytes": len(value), "sha256": sha256(value.encode()).hexdigest()}
    return value
