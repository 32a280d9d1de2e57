"""A streamed chat completion as events of Anthropic's Messages API, each as soon as its chunk has come.

    message_start
      content_block_start, content_block_delta …, content_block_stop        for each block
    message_delta (why it stopped, what it took), message_stop
    error                                                                   when the rest does not come

Blocks of calls stay open until the end, for a server may send parts of several calls in turn.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from upswing.anthropic.answer import JsonObject, call_id, message_tree, stop_fields, usage_tree
from upswing.anthropic.errors import error_body
from upswing.anthropic.request import MessageSettings
from upswing.openai.chunks import ChunkChoice, ChunkToolCall, read_chunk
from upswing.openai.completions import UsageCounts, argument_text

_ENCODER = msgspec.json.Encoder()
BlockKind = Literal["thinking", "text"]
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%s","%s":%s}}\n\n'
_DELTAS: dict[BlockKind, tuple[bytes, bytes]] = {
    "text": (b"text_delta", b"text"),
    "thinking": (b"thinking_delta", b"thinking"),
}
_EMPTY_BLOCKS: dict[BlockKind, JsonObject] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


class MessageStream:
    """One message, event by event: `feed` for each chunk, `finish` behind the last."""

    def __init__(self, answer_id: str, settings: MessageSettings) -> None:
        self._answer_id, self._settings = answer_id, settings
        self._begun = self._finished = False
        self._blocks = 0
        self._says_something = False
        """There is a block that is no thought."""
        self._open: tuple[BlockKind, int] | None = None
        """The block of words that is being written, and its index."""
        self._calls: dict[int, int] = {}
        """A call's index in the chunks → its block's."""
        self._usage = UsageCounts()
        self._finish_reason = self._stop_text = ""

    def feed(self, payload: bytes) -> bytes:
        """The events of a chunk; `msgspec.MsgspecError` when it is none. Nothing of one that comes behind the end."""
        chunk = read_chunk(payload)
        if self._finished:
            return b""
        events: list[bytes] = []
        if chunk.usage is not None:
            self._usage = chunk.usage_counts()
        if not self._begun:
            self._begin(chunk.model_name, events)
        if (choice := chunk.first_choice) is not None:
            self._feed_choice(choice, events)
        return b"".join(events)

    def finish(self) -> bytes:
        """Nothing more comes; some servers say so twice."""
        if self._finished:
            return b""
        self._finished = True
        events: list[bytes] = []
        if not self._begun:
            self._begin("", events)
        if not self._says_something:
            self._stop_words(events)
            self._start_words("text", events)
        self._stop_words(events)
        events += [_event("content_block_stop", {"index": at}) for at in self._calls.values()]
        stop = stop_fields(self._finish_reason, self._stop_text, self._settings)
        ending = {"delta": stop, "usage": usage_tree(self._usage)}
        events += [_event("message_delta", ending), _event("message_stop", {})]
        return b"".join(events)

    def fail(self, message: str, error_type: str, code: str) -> bytes:
        """The rest does not come."""
        del code  # Anthropic's errors have none
        return b"event: error\ndata: %s\n\n" % error_body(message, error_type)

    def _begin(self, model: str, events: list[bytes]) -> None:
        self._begun = True
        message = message_tree(self._answer_id, model, [], self._usage)
        events.append(_event("message_start", {"message": message}))

    def _feed_choice(self, choice: ChunkChoice, events: list[bytes]) -> None:
        if isinstance(choice.finish_reason, str):
            self._finish_reason = choice.finish_reason
        if isinstance(choice.stop_reason, str):
            self._stop_text = choice.stop_reason
        if (delta := choice.delta) is None:
            return
        if (thought := delta.reasoning_content or delta.reasoning) and self._settings.thinking:
            self._write_words("thinking", thought, events)
        if text := delta.text:
            self._write_words("text", text, events)
        for position, call in enumerate(delta.tool_calls or ()):
            self._feed_call(position, call, events)

    def _write_words(self, kind: BlockKind, text: str, events: list[bytes]) -> None:
        """The hot path: a piece of text."""
        if self._open is None or self._open[0] != kind:
            self._stop_words(events)
            self._start_words(kind, events)
        at = self._blocks - 1 if self._open is None else self._open[1]
        events.append(_DELTA % (at, *_DELTAS[kind], _ENCODER.encode(text)))

    def _start_words(self, kind: BlockKind, events: list[bytes]) -> None:
        self._open = (kind, self._blocks)
        self._says_something |= kind == "text"
        self._start_block(_EMPTY_BLOCKS[kind], events)

    def _stop_words(self, events: list[bytes]) -> None:
        if self._open is not None:
            events.append(_event("content_block_stop", {"index": self._open[1]}))
            self._open = None

    def _feed_call(self, position: int, call: ChunkToolCall, events: list[bytes]) -> None:
        index = position if call.index is None else call.index
        function = call.function
        if (at := self._calls.get(index)) is None:
            self._stop_words(events)
            at = self._blocks
            block = {
                "type": "tool_use",
                "id": call.id or call_id(self._answer_id, len(self._calls)),
                "name": (function.name if function else None) or "",
                "input": {},
            }
            self._calls[index] = at
            self._says_something = True
            self._start_block(block, events)
        if function and function.arguments:
            part = _ENCODER.encode(argument_text(function.arguments))
            events.append(_DELTA % (at, b"input_json_delta", b"partial_json", part))

    def _start_block(self, block: JsonObject, events: list[bytes]) -> None:
        events.append(
            _event("content_block_start", {"index": self._blocks, "content_block": block})
        )
        self._blocks += 1


def _event(name: str, fields: JsonObject) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _ENCODER.encode({"type": name, **fields}))
