"""What did the model say? A server's answer as one value, whether it came whole or in a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from upswing.gateway.sse import payloads

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants called."""

    call_id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Answer:
    """The first choice of an answer."""

    answer_id: str = ""
    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    text: str = ""
    """What the model wrote before calls were read out of it, where the server tells that."""
    finish: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_ids: list[int] | None = None
    """Where the server tells them, as vLLM does."""
    ids: list[int] | None = None
    logprobs: list[float] | None = None
    """Of the completion, one per id."""


def read_answer(pieces: list[bytes], *, stream: bool) -> Answer | None:
    """The answer in a server's body; None when there is none in it."""
    body = b"".join(pieces)
    try:
        if not stream:
            return _whole(msgspec.json.decode(body))
        chunks = [msgspec.json.decode(data) for data in payloads(body) if data != b"[DONE]"]
        return _joined(chunks)
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, TypeError, ValueError):
        return None


def _whole(tree: Tree) -> Answer | None:
    choice = _first(tree)
    if choice is None:
        return None
    message = choice.get("message") or {}
    answer = Answer(
        content=_words(message.get("content")),
        reasoning=_reasoning(message),
        calls=[_call(call) for call in _calls(message)],
        ids=_ids(choice.get("token_ids")),
        logprobs=_logprobs(choice.get("logprobs")),
    )
    _note(answer, tree, choice)
    return answer


def _joined(chunks: list[Tree]) -> Answer | None:
    answer = Answer()
    calls: dict[int, list[str]] = {}
    ids: list[int] = []
    logprobs: list[float] = []
    for tree in chunks:
        choice = _first(tree)
        _note(answer, tree, choice or {})
        if choice is None:
            continue
        delta = choice.get("delta") or {}
        answer.content += _words(delta.get("content"))
        answer.reasoning += _reasoning(delta)
        for place, call in enumerate(_calls(delta)):
            _grow(calls.setdefault(int(call.get("index", place)), ["", "", ""]), call)
        ids += _ids(choice.get("token_ids")) or []
        logprobs += _logprobs(choice.get("logprobs")) or []
    answer.calls = [Call(*parts) for _, parts in sorted(calls.items())]
    answer.ids = ids or None
    answer.logprobs = logprobs or None
    return answer if answer.finish or answer.content or answer.calls else None


def _note(answer: Answer, tree: Tree, choice: Tree) -> None:
    """What chunks and whole answers say in the same place."""
    answer.answer_id = answer.answer_id or str(tree.get("id") or "")
    answer.finish = str(choice.get("finish_reason") or answer.finish)
    answer.text = _words(choice.get("text")) or answer.text
    prompt_ids = _ids(tree.get("prompt_token_ids")) or _ids(choice.get("prompt_token_ids"))
    answer.prompt_ids = prompt_ids or answer.prompt_ids
    usage = tree.get("usage") or {}
    answer.prompt_tokens = _count(usage, "prompt_tokens") or answer.prompt_tokens
    answer.completion_tokens = _count(usage, "completion_tokens") or answer.completion_tokens


def _first(tree: Tree) -> Tree | None:
    choices = tree.get("choices") or []
    found = next((c for c in choices if c.get("index", 0) == 0), None)
    return found if isinstance(found, dict) else None


def _calls(message: Tree) -> list[Tree]:
    if old := message.get("function_call"):
        return [{"index": 0, "id": "", "function": old}]
    return [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]


def _call(call: Tree) -> Call:
    parts = ["", "", ""]
    _grow(parts, call)
    return Call(*parts)


def _grow(parts: list[str], call: Tree) -> None:
    function = call.get("function") or {}
    parts[0] = parts[0] or str(call.get("id") or "")
    parts[1] += str(function.get("name") or "")
    arguments = function.get("arguments") or ""
    parts[2] += arguments if isinstance(arguments, str) else _text(arguments)


def _words(content: Any) -> str:
    """The text of a content, which may be in parts."""
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def _reasoning(message: Tree) -> str:
    return _words(message.get("reasoning_content") or message.get("reasoning"))


def _ids(value: Any) -> list[int] | None:
    return value if isinstance(value, list) and all(type(n) is int for n in value) else None


def _logprobs(value: Any) -> list[float] | None:
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list):
        return None
    told = [part.get("logprob") for part in content if isinstance(part, dict)]
    sound = [float(number) for number in told if isinstance(number, int | float)]
    return sound if len(sound) == len(content) else None


def _count(usage: Tree, key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and value >= 0 else 0


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
