"""What did the model say? A server's answer as values, whether it came whole or in a stream, one for each choice."""

from __future__ import annotations

from typing import Any

import msgspec

from upswing.dataset.model_answer import AnswerToolCall, ModelAnswer
from upswing.gateway.core.sse import event_payloads

Tree = dict[str, Any]
UNREADABLE = (
    *(msgspec.DecodeError, UnicodeDecodeError, RecursionError),
    *(AttributeError, TypeError, ValueError),
)
"""What reading an answer may raise that is none: not JSON, too deep, or of other types than its shape has."""
MAX_CHOICES = 8
"""Choices of an answer that are read."""


def read_answer(pieces: list[bytes], *, stream: bool) -> ModelAnswer | None:
    """The first choice in a server's chat completion; None when there is none in it."""
    return next(iter(read_choices(pieces, stream=stream)), None)


def read_choices(pieces: list[bytes], *, stream: bool) -> list[ModelAnswer]:
    """The choices in a server's chat completion, in their order; none when it cannot be read."""
    body = b"".join(pieces)
    try:
        if not stream:
            return _from_completion(msgspec.json.decode(body))
        chunks = [msgspec.json.decode(data) for data in event_payloads(body) if data != b"[DONE]"]
        return _from_chunks(chunks)
    except UNREADABLE:
        return []


def _from_completion(tree: Tree) -> list[ModelAnswer]:
    choices = [each for each in tree.get("choices") or [] if isinstance(each, dict)]
    answers = []
    for choice in sorted(choices, key=_index)[:MAX_CHOICES]:
        message = choice.get("message") or {}
        answer = ModelAnswer(
            content=said(message),
            reasoning=reasoning_of(message),
            tool_calls=[_read_tool_call(call) for call in tool_call_trees(message)],
            token_ids=_read_token_ids(choice.get("token_ids")),
            logprobs=_read_logprobs(choice.get("logprobs")),
            token_texts=_read_token_texts(choice.get("logprobs")),
        )
        _add_common_fields(answer, tree, choice)
        answers.append(_with_counts(answer, 0))
    return answers


class _StreamedChoice:
    """A choice while its chunks are put together."""

    def __init__(self) -> None:
        self.answer = ModelAnswer()
        self._tool_calls: dict[int, list[str]] = {}
        self._token_ids: list[int] = []
        self._logprobs: list[float] = []
        self._token_texts: list[str] = []
        self.chunks_with_text = 0

    def add(self, choice: Tree) -> None:
        delta = choice.get("delta") or {}
        text, thought = said(delta), reasoning_of(delta)
        self.answer.content += text
        self.answer.reasoning += thought
        calls = tool_call_trees(delta)
        self.chunks_with_text += bool(text or thought or calls)
        for position, call in enumerate(calls):
            _append_call_delta(
                self._tool_calls.setdefault(int(call.get("index", position)), ["", "", ""]), call
            )
        self._token_ids += _read_token_ids(choice.get("token_ids")) or []
        self._logprobs += _read_logprobs(choice.get("logprobs")) or []
        self._token_texts += _read_token_texts(choice.get("logprobs")) or []

    def finish(self) -> ModelAnswer:
        answer = self.answer
        answer.tool_calls = [
            AnswerToolCall(*parts) for _, parts in sorted(self._tool_calls.items())
        ]
        answer.token_ids = self._token_ids or None
        answer.logprobs = self._logprobs or None
        answer.token_texts = self._token_texts or None
        return answer


def _from_chunks(chunks: list[Tree]) -> list[ModelAnswer]:
    streamed = {0: _StreamedChoice()}
    for tree in chunks:
        choices = [each for each in tree.get("choices") or [] if isinstance(each, dict)]
        for choice in choices:
            if 0 <= (index := _index(choice)) < MAX_CHOICES:
                known = streamed.setdefault(index, _StreamedChoice())
                _add_common_fields(known.answer, tree, choice)
                known.add(choice)
        if not choices:
            _add_common_fields(streamed[0].answer, tree, {})
    first = streamed[0].answer
    texts = sum(each.chunks_with_text for each in streamed.values())
    answers = [each.finish() for _, each in sorted(streamed.items())]
    for answer in answers:
        answer.answer_id = answer.answer_id or first.answer_id
        answer.prompt_tokens = first.prompt_tokens
        answer.completion_tokens = first.completion_tokens
        answer.prompt_token_ids = answer.prompt_token_ids or first.prompt_token_ids
        _with_counts(answer, texts)
    return [answer for answer in answers if not answer.is_empty]


def _with_counts(answer: ModelAnswer, texts: int) -> ModelAnswer:
    """Where the server does not say what it took, as of a stream that was left: its ids, or its pieces."""
    answer.prompt_tokens = answer.prompt_tokens or len(answer.prompt_token_ids or ())
    answer.completion_tokens = answer.completion_tokens or len(answer.token_ids or ()) or texts
    return answer


def _add_common_fields(answer: ModelAnswer, tree: Tree, choice: Tree) -> None:
    """What chunks and whole answers say in the same place."""
    answer.answer_id = answer.answer_id or str(tree.get("id") or "")
    answer.finish_reason = str(choice.get("finish_reason") or answer.finish_reason)
    answer.raw_text = _content_text(choice.get("text")) or answer.raw_text
    prompt_token_ids = _read_token_ids(tree.get("prompt_token_ids")) or _read_token_ids(
        choice.get("prompt_token_ids")
    )
    answer.prompt_token_ids = prompt_token_ids or answer.prompt_token_ids
    usage = tree.get("usage") or {}
    answer.prompt_tokens = usage_count(usage, "prompt_tokens") or answer.prompt_tokens
    answer.completion_tokens = usage_count(usage, "completion_tokens") or answer.completion_tokens


def _index(choice: Tree) -> int:
    index = choice.get("index", 0)
    return index if isinstance(index, int) else 0


def tool_call_trees(message: Tree) -> list[Tree]:
    """The calls in a message, or parts of them in a delta."""
    if old := message.get("function_call"):
        return [{"index": 0, "id": "", "function": old}]
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _read_tool_call(call: Tree) -> AnswerToolCall:
    parts = ["", "", ""]
    _append_call_delta(parts, call)
    return AnswerToolCall(*parts)


def _append_call_delta(parts: list[str], call: Tree) -> None:
    function = call.get("function") or {}
    parts[0] = parts[0] or str(call.get("id") or "")
    parts[1] += str(function.get("name") or "")
    arguments = function.get("arguments") or ""
    parts[2] += arguments if isinstance(arguments, str) else _as_json(arguments)


def _content_text(content: Any) -> str:
    """The text of a content, which may be in parts."""
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return content if isinstance(content, str) else ""


def said(message: Tree) -> str:
    """What a message says; a refusal stands in a field of its own."""
    return _content_text(message.get("content")) or _content_text(message.get("refusal"))


def reasoning_of(message: Tree) -> str:
    """What the model thought before."""
    return _content_text(message.get("reasoning_content") or message.get("reasoning"))


def _read_token_ids(value: Any) -> list[int] | None:
    return value if isinstance(value, list) and all(type(n) is int for n in value) else None


def _logprob_entries(value: Any) -> list[Tree] | None:
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return None
    return content


def _read_logprobs(value: Any) -> list[float] | None:
    if (entries := _logprob_entries(value)) is None:
        return None
    values = [entry.get("logprob") for entry in entries]
    sound = [float(number) for number in values if isinstance(number, int | float)]
    return sound if len(sound) == len(entries) else None


def _read_token_texts(value: Any) -> list[str] | None:
    if (entries := _logprob_entries(value)) is None:
        return None
    texts = [entry.get("token") for entry in entries]
    return [text if isinstance(text, str) else "" for text in texts]


def usage_count(usage: Tree, key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) and value >= 0 else 0


def _as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
