"""A streamed chat completion as events of OpenAI's Responses API, each as soon as its chunk has come.

    response.created, response.in_progress
      response.output_item.added                                     for each item: thoughts, message, calls
        response.content_part.added
        response.output_text.delta …  | .function_call_arguments.delta … | .reasoning_text.delta …
        the same `.done`, response.content_part.done
      response.output_item.done
    response.completed | response.incomplete | response.failed, error

Items of calls stay open until the end, for a server may send parts of several calls in turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from upswing.openai.chunks import ChunkChoice, ChunkToolCall, read_chunk
from upswing.openai.completions import CompletionToolCall, UsageCounts, argument_text
from upswing.openai.responses_answer import (
    ItemKind,
    JsonObject,
    ResponseHead,
    ResponseIds,
    call_item,
    ending,
    message_item,
    reasoning_item,
    text_part,
)
from upswing.openai.responses_request import ResponseSettings

_ENCODER = msgspec.json.Encoder()
_DELTAS: dict[ItemKind, str] = {
    "reasoning": "response.reasoning_text",
    "message": "response.output_text",
    "call": "response.function_call_arguments",
}


@dataclass(slots=True)
class _OpenItem:
    """An item that is being written."""

    kind: ItemKind
    output_index: int
    item_id: str
    head: bytes
    """Of each of its delta events, up to the delta."""
    number: int = 0
    """Among those of its kind."""
    name: str = ""
    call_id: str = ""
    parts: list[str] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    open: bool = True

    @property
    def text(self) -> str:
        return "".join(self.parts)


class ResponseStream:
    """One response, event by event: `feed` for each chunk, `finish` behind the last."""

    def __init__(self, answer_id: str, settings: ResponseSettings) -> None:
        self._ids, self._settings = ResponseIds(answer_id), settings
        self._head: ResponseHead | None = None
        self._items: list[_OpenItem] = []
        self._prose: _OpenItem | None = None
        """The thoughts or the message that is being written."""
        self._calls: dict[int, _OpenItem] = {}
        self._usage, self._finish_reason = UsageCounts(), ""
        self._sequence = 0
        self._finished = False

    def feed(self, payload: bytes) -> bytes:
        """The events of a chunk; `msgspec.MsgspecError` when it is none. Nothing of one that comes behind the end."""
        chunk = read_chunk(payload)
        if self._finished:
            return b""
        events = []
        if self._head is None:
            events += self._begin(chunk.created_at, chunk.model_name)
        if chunk.usage is not None:
            self._usage = chunk.usage_counts()
        if (choice := chunk.first_choice) is not None:
            self._feed_choice(choice, events)
        return b"".join(events)

    def finish(self) -> bytes:
        """Nothing more comes; some servers say so twice."""
        if self._finished:
            return b""
        self._finished = True
        events = [] if self._head else self._begin(0, "")
        if not any(item.kind != "reasoning" for item in self._items):
            self._prose_item("message", events)
        events += [event for item in self._items for event in self._close(item)]
        end = ending(self._finish_reason)
        response = self._response("completed", self._usage) | end
        events.append(self._event(f"response.{end['status']}", {"response": response}))
        return b"".join(events)

    def fail(self, message: str, error_type: str, code: str) -> bytes:
        """The rest does not come: clients read the one event or the other."""
        error = {"message": message, "type": error_type, "code": code, "param": None}
        response = self._response("failed") | {"error": {"code": code, "message": message}}
        return self._event("response.failed", {"response": response}) + self._event(
            "error", {"code": code, "message": message, "param": None, "error": error}
        )

    def _begin(self, created: int, model: str) -> list[bytes]:
        self._head = ResponseHead(self._ids, self._settings, created, model)
        response = {"response": Raw(_ENCODER.encode(self._head.tree("in_progress", [])))}
        return [
            self._event("response.created", response),
            self._event("response.in_progress", response),
        ]

    def _feed_choice(self, choice: ChunkChoice, events: list[bytes]) -> None:
        if isinstance(choice.finish_reason, str):
            self._finish_reason = choice.finish_reason
        if (delta := choice.delta) is None:
            return
        if thought := delta.reasoning_content or delta.reasoning:
            self._write(self._prose_item("reasoning", events), thought, events)
        if text := delta.text:
            item = self._prose_item("message", events)
            logprobs = choice.token_logprobs() if self._settings.logprobs else []
            item.logprobs += logprobs
            self._write(item, text, events, logprobs)
        for position, call in enumerate(delta.tool_calls or ()):
            self._feed_call(position, call, events)

    def _feed_call(self, position: int, call: ChunkToolCall, events: list[bytes]) -> None:
        index = position if call.index is None else call.index
        function = call.function
        if (item := self._calls.get(index)) is None:
            self._close_prose(events)
            name = (function.name if function else None) or ""
            item = self._calls[index] = self._add_item("call", events, name, call.id or "")
        if function and function.arguments:
            self._write(item, argument_text(function.arguments), events)

    def _prose_item(self, kind: ItemKind, events: list[bytes]) -> _OpenItem:
        """The item that words of this kind go to."""
        if self._prose is None or self._prose.kind != kind:
            self._close_prose(events)
            self._prose = self._add_item(kind, events)
        return self._prose

    def _close_prose(self, events: list[bytes]) -> None:
        if self._prose is not None:
            events += self._close(self._prose)
            self._prose = None

    def _add_item(
        self, kind: ItemKind, events: list[bytes], name: str = "", call_id: str = ""
    ) -> _OpenItem:
        number, at = sum(item.kind == kind for item in self._items), len(self._items)
        item_id = self._ids.item(kind, number)
        item = _OpenItem(kind, at, item_id, _delta_head(kind, item_id, at), number, name, call_id)
        self._items.append(item)
        added = {"output_index": at, "item": self._item_tree(item, "in_progress")}
        events.append(self._event("response.output_item.added", added))
        if kind != "call":
            part = text_part("", []) if kind == "message" else _thought("")
            events.append(self._part_event("added", item, part))
        return item

    def _write(
        self, item: _OpenItem, text: str, events: list[bytes], logprobs: list[Any] | None = None
    ) -> None:
        """The hot path: a piece of text."""
        item.parts.append(text)
        more = (
            b',"logprobs":%s' % _ENCODER.encode(logprobs or []) if item.kind == "message" else b""
        )
        events.append(
            b'%s%d,"delta":%s%s}\n\n' % (item.head, self._sequence, _ENCODER.encode(text), more)
        )
        self._sequence += 1

    def _close(self, item: _OpenItem) -> list[bytes]:
        if not item.open:
            return []
        item.open = False
        done: JsonObject = {"item_id": item.item_id, "output_index": item.output_index}
        events = []
        if item.kind == "call":
            done |= {"name": item.name, "arguments": item.text}
            events.append(self._event(f"{_DELTAS[item.kind]}.done", done))
        else:
            more = {"logprobs": item.logprobs} if item.kind == "message" else {}
            done |= {"content_index": 0, "text": item.text, **more}
            events.append(self._event(f"{_DELTAS[item.kind]}.done", done))
            thought = item.kind == "reasoning"
            part = _thought(item.text) if thought else text_part(item.text, item.logprobs)
            events.append(self._part_event("done", item, part))
        tree = {"output_index": item.output_index, "item": self._item_tree(item, "completed")}
        return [*events, self._event("response.output_item.done", tree)]

    def _item_tree(self, item: _OpenItem, status: str) -> JsonObject:
        match item.kind:
            case "message":
                return message_item(item.item_id, item.text, item.logprobs, status)
            case "reasoning":
                return reasoning_item(item.item_id, item.text if status == "completed" else None)
            case "call":
                call = CompletionToolCall(item.name, item.text, item.call_id)
                return call_item(item.item_id, call, status)

    def _response(self, status: str, usage: UsageCounts | None = None) -> JsonObject:
        head = self._head or ResponseHead(self._ids, self._settings)
        return head.tree(
            status, [self._item_tree(item, "completed") for item in self._items], usage
        )

    def _part_event(self, what: str, item: _OpenItem, part: JsonObject) -> bytes:
        place = {"item_id": item.item_id, "output_index": item.output_index, "content_index": 0}
        return self._event(f"response.content_part.{what}", {**place, "part": part})

    def _event(self, name: str, fields: JsonObject) -> bytes:
        tree = {"type": name, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return b"event: %s\ndata: %s\n\n" % (name.encode(), _ENCODER.encode(tree))


def _thought(text: str) -> JsonObject:
    return {"type": "reasoning_text", "text": text}


def _delta_head(kind: ItemKind, item_id: str, output_index: int) -> bytes:
    """A delta event up to its sequence number."""
    name = f"{_DELTAS[kind]}.delta"
    tree: JsonObject = {"type": name, "item_id": item_id, "output_index": output_index}
    if kind != "call":
        tree["content_index"] = 0
    body = _ENCODER.encode(tree)[:-1]
    return b'event: %s\ndata: %s,"sequence_number":' % (name.encode(), body)
