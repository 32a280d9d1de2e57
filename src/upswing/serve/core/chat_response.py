"""How does an answer look, whole and in a stream? As OpenAI's, with vLLM's fields for token ids.

| asked for                       | whole answer                       | stream                         |
|---------------------------------|------------------------------------|--------------------------------|
| `logprobs`                      | `choices[0].logprobs.content`      | the same in each chunk         |
| `return_token_ids`              | `choices[0].token_ids`             | the same, new ones only        |
|                                 | `prompt_token_ids`                 | in the first chunk             |
| `stream_options.include_usage`  | (`usage` is always there)          | in a last chunk of its own     |
| `tools`, and the model calls    | `choices[0].message.tool_calls`    | in one chunk, before the last  |
| and `return_token_ids`          | `choices[0].text`: what it wrote   | in the last chunk              |
| `n`                             | as many choices                    | chunks of each, as they come   |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from upswing.openai.errors import DONE
from upswing.serve.core.chat_request import ChatCompletionRequest
from upswing.serve.core.engine import TokenChunk
from upswing.serve.core.tool_calls import (
    ParsedReply,
    ParsedToolCall,
    StreamingToolCallParser,
    parse_tool_calls,
    tool_names,
)

JsonObject = dict[str, Any]
_REPLACED = "�"


@dataclass(frozen=True, slots=True)
class CompletionInfo:
    """What an answer is called, and when it was begun."""

    completion_id: str
    created: int
    """Seconds since 1970."""
    model: str

    def choice_id(self, index: int) -> str:
        """What calls of a choice are named after; the first one's are named after the answer."""
        return f"{self.completion_id}.{index}" if index else self.completion_id


@dataclass(slots=True)
class TokenUsage:
    """Tokens, counted while they come."""

    prompt: int = 0
    completion: int = 0

    def add(self, chunk: TokenChunk, *, first_choice: bool = True) -> None:
        """All choices have one prompt."""
        self.prompt += len(chunk.prompt_token_ids or ()) if first_choice else 0
        self.completion += len(chunk.token_ids)

    def as_json(self) -> JsonObject:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }


def completion_body(
    info: CompletionInfo, request: ChatCompletionRequest, *choices: Sequence[TokenChunk]
) -> bytes:
    """The answer in one piece, with the chunks of each choice."""
    usage = TokenUsage()
    for index, chunks in enumerate(choices):
        for chunk in chunks:
            usage.add(chunk, first_choice=not index)
    tree = {
        **_response_envelope(info, "chat.completion"),
        "choices": [_whole_choice(info, request, at, each) for at, each in enumerate(choices)],
        "usage": usage.as_json(),
    }
    if request.return_token_ids:
        tree["prompt_token_ids"] = _prompt_token_ids(choices[0])
    return msgspec.json.encode(tree)


def _whole_choice(
    info: CompletionInfo, request: ChatCompletionRequest, index: int, chunks: Sequence[TokenChunk]
) -> JsonObject:
    text, tools = "".join(chunk.text for chunk in chunks), request.generation.tools
    reply = parse_tool_calls(text, tool_names(tools)) if tools else ParsedReply(text)
    finish = chunks[-1].finish_reason if chunks else None
    choice: JsonObject = {
        "index": index,
        "message": _message_of_reply(info.choice_id(index), reply),
        "logprobs": _logprobs_of_chunks(request, chunks),
        "finish_reason": _TOOL_CALLS if reply.calls else finish,
    }
    if request.return_token_ids:
        choice["token_ids"] = [id_ for chunk in chunks for id_ in chunk.token_ids]
        choice |= {"text": text} if reply.calls else {}
    return choice


class StreamEncoder:
    """A choice in a stream: `encode` for each piece, `encode_end` behind the last of all choices."""

    def __init__(
        self,
        info: CompletionInfo,
        request: ChatCompletionRequest,
        index: int = 0,
        usage: TokenUsage | None = None,
    ) -> None:
        """`usage` is that of all choices."""
        self._info, self._request, self._index = info, request, index
        self._begun = False
        tools = request.generation.tools
        self._tool_parser = StreamingToolCallParser(tool_names(tools)) if tools else None
        self.usage = usage or TokenUsage()

    def encode(self, chunk: TokenChunk) -> bytes:
        """The events that this piece makes; none, if it shows nothing."""
        self.usage.add(chunk, first_choice=not self._index)
        events = []
        if not self._begun:
            self._begun = True
            first: JsonObject = {"role": "assistant", "content": ""}
            more = (
                {"prompt_token_ids": _prompt_token_ids([chunk])}
                if self._request.return_token_ids
                else {}
            )
            events.append(self._encode_delta(first, more))
        reply = self._parse_reply(chunk)
        if reply.calls:
            delta: JsonObject = {"content": reply.content} if reply.content else {}
            name = self._info.choice_id(self._index)
            delta |= {"tool_calls": _tool_call_objects(name, reply.calls, with_index=True)}
            events.append(self._encode_delta(delta, {}))
            events.append(self._encode_event(self._last_choice(chunk), {}))
        elif self._is_visible(shown := replace(chunk, text=reply.content)):
            events.append(self._encode_event(self._choice_of_chunk(shown), {}))
        return b"".join(events)

    def encode_end(self) -> bytes:
        if not self._request.include_usage:
            return DONE
        tree = {
            **_response_envelope(self._info, _CHUNK),
            "choices": [],
            "usage": self.usage.as_json(),
        }
        return _sse_event(tree) + DONE

    def _parse_reply(self, chunk: TokenChunk) -> ParsedReply:
        """What this piece shows; at the end, with the calls of the whole answer."""
        if self._tool_parser is None:
            return ParsedReply(chunk.text)
        shown = self._tool_parser.feed(chunk.text)
        if chunk.finish_reason is None:
            return ParsedReply(shown)
        rest = self._tool_parser.finish()
        return ParsedReply(shown + rest.content, rest.calls)

    def _last_choice(self, chunk: TokenChunk) -> JsonObject:
        """Of an answer that calls."""
        choice = self._choice_of_chunk(replace(chunk, text="")) | {"finish_reason": _TOOL_CALLS}
        if self._request.return_token_ids and self._tool_parser:
            choice["text"] = self._tool_parser.text
        return choice

    def _is_visible(self, chunk: TokenChunk) -> bool:
        shown = self._request.return_token_ids or self._request.generation.top_logprobs is not None
        return bool(chunk.text or chunk.finish_reason or (shown and chunk.token_ids))

    def _choice_of_chunk(self, chunk: TokenChunk) -> JsonObject:
        choice: JsonObject = {
            "index": self._index,
            "delta": {"content": chunk.text} if chunk.text or not chunk.finish_reason else {},
            "logprobs": _logprobs_of_chunks(self._request, [chunk]),
            "finish_reason": chunk.finish_reason,
        }
        if self._request.return_token_ids:
            choice["token_ids"] = list(chunk.token_ids)
        return choice

    def _encode_delta(self, delta: JsonObject, more: JsonObject) -> bytes:
        return self._encode_event(
            {"index": self._index, "delta": delta, "finish_reason": None}, more
        )

    def _encode_event(self, choice: JsonObject, more: JsonObject) -> bytes:
        tree = {**_response_envelope(self._info, _CHUNK), "choices": [choice], **more}
        return _sse_event({**tree, "usage": None} if self._request.include_usage else tree)


def model_list_body(names: Iterable[str], base: str, created: int) -> bytes:
    """The list of what is served."""
    data = [
        {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "upswing",
            "root": base,
            "parent": None if name == base else base,
        }
        for name in names
    ]
    return msgspec.json.encode({"object": "list", "data": data})


_CHUNK, _TOOL_CALLS = "chat.completion.chunk", "tool_calls"


def tool_call_id(completion_id: str, number: int) -> str:
    """What the client names a call by when it brings the result.

    >>> tool_call_id("chatcmpl-7f", 0)
    'call_7f_0'
    """
    return f"call_{completion_id.removeprefix('chatcmpl-')}_{number}"


def _message_of_reply(choice_id: str, reply: ParsedReply) -> JsonObject:
    if not reply.calls:
        return {"role": "assistant", "content": reply.content}
    calls = _tool_call_objects(choice_id, reply.calls, with_index=False)
    return {"role": "assistant", "content": reply.content or None, "tool_calls": calls}


def _tool_call_objects(
    choice_id: str, calls: Sequence[ParsedToolCall], *, with_index: bool
) -> list[JsonObject]:
    """As OpenAI has them; in a stream each says which it is."""
    return [
        {
            **({"index": number} if with_index else {}),
            "id": tool_call_id(choice_id, number),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(calls)
    ]


def _response_envelope(info: CompletionInfo, object_type: str) -> JsonObject:
    return {
        "id": info.completion_id,
        "object": object_type,
        "created": info.created,
        "model": info.model,
    }


def _sse_event(payload: JsonObject) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(payload)


def _prompt_token_ids(chunks: Sequence[TokenChunk]) -> list[int]:
    return list(chunks[0].prompt_token_ids or ()) if chunks else []


def _logprobs_of_chunks(
    request: ChatCompletionRequest, chunks: Sequence[TokenChunk]
) -> JsonObject | None:
    if request.generation.top_logprobs is None:
        return None
    return {
        "content": [entry for chunk in chunks for entry in _logprob_entries(chunk)],
        "refusal": None,
    }


def _logprob_entries(chunk: TokenChunk) -> Iterator[JsonObject]:
    for index, logprob in enumerate(chunk.logprobs):
        text = chunk.tokens[index] if index < len(chunk.tokens) else ""
        candidates = chunk.top_logprobs[index] if index < len(chunk.top_logprobs) else ()
        top = [
            _token_entry(token_text, token_logprob) for _, token_text, token_logprob in candidates
        ]
        yield {**_token_entry(text, logprob), "top_logprobs": top}


def _token_entry(text: str, logprob: float) -> JsonObject:
    """A token; its bytes are not known where they are only a part of a character.

    >>> _token_entry("é", -0.5)
    {'token': 'é', 'logprob': -0.5, 'bytes': [195, 169]}
    """
    known = None if _REPLACED in text else list(text.encode())
    return {"token": text, "logprob": logprob, "bytes": known}
