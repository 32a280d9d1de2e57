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

from upswing.gateway.answers import Answer, Call

Tree = dict[str, Any]
_INSTRUCTING = frozenset({"system", "developer"})
_KINDS = {"tool": "tool_result", "function": "tool_result", "user": "user_message"}
_LONGEST_INLINE = 2048
_FAILED = ("error", "traceback (most recent call last)", "an error occurred", '{"error"')


def instructions_of(messages: Sequence[Tree]) -> str:
    """What the agent is told to be and do; without that, what it is asked first."""
    told = []
    for message in messages:
        if message.get("role") not in _INSTRUCTING:
            break
        told.append(text_of(message.get("content")))
    if told:
        return "\n\n".join(told)
    return next((text_of(m.get("content")) for m in messages if m.get("role") == "user"), "")


def observation_of(news: Sequence[Tree], *, first: bool) -> Tree:
    """What is new to the agent in these messages."""
    seen = list(news)
    while first and len(seen) > 1 and seen[0].get("role") in _INSTRUCTING:
        seen = seen[1:]
    if not first:  # its own last words are no news to it
        seen = [message for message in seen if message.get("role") != "assistant"]
    last = seen[-1] if seen else {}
    kind = _KINDS.get(last.get("role", ""), "system_message")
    if len(seen) > 1:
        return {"type": kind, "content": {"messages": [_plain(message) for message in seen]}}
    return {"type": kind, "content": _content(last.get("content"))}


def action_of(answer: Answer) -> Tree:
    """What the agent did: it called, or it answered; in the model's own words, where they are known."""
    words = answer.text or answer.content
    said = {"raw_response": words} if words else {}
    match answer.calls:
        case []:
            return {"type": "response", "raw_response": answer.content}
        case [call]:
            return {
                "type": "tool_call", "tool_name": call.name, "tool_args": arguments_of(call), **said,
            }  # fmt: skip
        case calls:
            several = [{"id": c.call_id, "name": c.name, "args": arguments_of(c)} for c in calls]
            return {
                "type": "tool_call", "tool_name": "+".join(call.name for call in calls),
                "tool_args": {"calls": several}, **said,
            }  # fmt: skip


def arguments_of(call: Call) -> Tree:
    """The arguments as an object; what is no JSON object stays readable.

    >>> arguments_of(Call("1", "f", '{"x": 1}')), arguments_of(Call("1", "f", "oops"))
    ({'x': 1}, {'arguments': 'oops'})
    """
    try:
        value = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = None
    return value if isinstance(value, dict) else {"arguments": call.arguments}


def result_of(answer: Answer, later: Sequence[Tree]) -> Tree:
    """What came of it: what the tools returned in `later` messages, or the answer itself."""
    if not answer.calls:
        cut = answer.finish in {"length", "content_filter"}
        told = {"error": f"The answer ended by {answer.finish}."} if cut else {}
        return {"success": not cut, "output": answer.content, **told}
    wanted = {call.call_id for call in answer.calls}
    results = [m for m in later if m.get("role") == "tool" and m.get("tool_call_id") in wanted]
    if not results:  # some agents report as the user, or under the old name
        results = [m for m in later if m.get("role") not in {"assistant", *_INSTRUCTING}][:1]
    if not results:
        return {"success": True, "output": None}
    texts = [text_of(message.get("content")) for message in results]
    failed = next((text for text in texts if text.lstrip().lower().startswith(_FAILED)), None)
    output: str | Tree = texts[0]
    if len(results) > 1:
        output = {"results": {m.get("tool_call_id") or str(n): t
                              for n, (m, t) in enumerate(zip(results, texts, strict=True))}}  # fmt: skip
    return {
        "success": failed is None,
        "output": output,
        **({"error": failed[:500]} if failed else {}),
    }


def text_of(content: Any) -> str:
    """The words in a content."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _content(content: Any) -> str | Tree:
    if isinstance(content, list):
        if all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            return text_of(content)
        return {"parts": [_slim(part) for part in content]}
    return content if isinstance(content, str | dict) else ""


def _plain(message: Tree) -> Tree:
    kept = {
        key: message[key]
        for key in ("role", "name", "tool_call_id", "tool_calls")
        if message.get(key)
    }
    return {**kept, "content": _content(message.get("content"))}


def _slim(value: Any) -> Any:
    """Long base64 says nothing to a reader, and little to training: its hash stands for it."""
    if isinstance(value, dict):
        return {key: _slim(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_slim(part) for part in value]
    if (
        isinstance(value, str)
        and len(value) > _LONGEST_INLINE
        and " " not in value[:_LONGEST_INLINE]
    ):
        kind = value[5:].partition(";")[0] if value.startswith("data:") else "unknown"
        return {"kind": kind, "bytes": len(value), "sha256": sha256(value.encode()).hexdigest()}
    return value
