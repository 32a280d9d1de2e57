"""How does an answer look, whole and in a stream? As OpenAI's, with vLLM's fields for token ids.

| asked for                       | whole answer                       | stream                         |
|---------------------------------|------------------------------------|--------------------------------|
| `logprobs`                      | `choices[0].logprobs.content`      | the same in each chunk         |
| `return_token_ids`              | `choices[0].token_ids`             | the same, new ones only        |
|                                 | `prompt_token_ids`                 | in the first chunk             |
| `stream_options.include_usage`  | (`usage` is always there)          | in a last chunk of its own     |
| `tools`, and the model calls    | `choices[0].message.tool_calls`    | in one chunk, before the last  |
| and `return_token_ids`          | `choices[0].text`: what it wrote   | in the last chunk              |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from upswing.serve.asked import Asked
from upswing.serve.ports import Piece
from upswing.serve.tool_calls import Call, Heard, Listener, names_of, read_calls

Tree = dict[str, Any]
DONE = b"data: [DONE]\n\n"
_REPLACED = "�"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an answer is called, and when it was begun."""

    answer_id: str
    created: int
    """Seconds since 1970."""
    model: str


@dataclass(slots=True)
class Cost:
    """Tokens, counted while they come."""

    prompt: int = 0
    completion: int = 0

    def add(self, piece: Piece) -> None:
        self.prompt += len(piece.prompt_token_ids or ())
        self.completion += len(piece.token_ids)

    def told(self) -> Tree:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }


def whole(stamp: Stamp, asked: Asked, pieces: Sequence[Piece]) -> bytes:
    """The answer in one piece."""
    cost = Cost()
    for piece in pieces:
        cost.add(piece)
    text, tools = "".join(piece.text for piece in pieces), asked.prompt.tools
    heard = read_calls(text, names_of(tools)) if tools else Heard(text)
    finish = pieces[-1].finish if pieces else None
    choice: Tree = {
        "index": 0,
        "message": _message(stamp, heard),
        "logprobs": _logprobs(asked, pieces),
        "finish_reason": _CALLED if heard.calls else finish,
    }
    tree = {**_top(stamp, "chat.completion"), "choices": [choice], "usage": cost.told()}
    if asked.token_ids:
        choice["token_ids"] = [id_ for piece in pieces for id_ in piece.token_ids]
        choice |= {"text": text} if heard.calls else {}
        tree["prompt_token_ids"] = _prompt_ids(pieces)
    return msgspec.json.encode(tree)


class Chunks:
    """An answer in a stream: `of` for each piece, `end` behind the last."""

    def __init__(self, stamp: Stamp, asked: Asked) -> None:
        self._stamp, self._asked = stamp, asked
        self._begun = False
        tools = asked.prompt.tools
        self._listener = Listener(names_of(tools)) if tools else None
        self.cost = Cost()

    def of(self, piece: Piece) -> bytes:
        """The events that this piece makes; none, if it shows nothing."""
        self.cost.add(piece)
        events = []
        if not self._begun:
            self._begun = True
            first: Tree = {"role": "assistant", "content": ""}
            more = {"prompt_token_ids": _prompt_ids([piece])} if self._asked.token_ids else {}
            events.append(self._event({"index": 0, "delta": first, "finish_reason": None}, more))
        heard = self._heard(piece)
        if heard.calls:
            delta: Tree = {"content": heard.content} if heard.content else {}
            delta |= {"tool_calls": _calls(self._stamp, heard.calls, numbered=True)}
            events.append(self._event({"index": 0, "delta": delta, "finish_reason": None}, {}))
            events.append(self._event(self._last_choice(piece), {}))
        elif self._shows(shown := replace(piece, text=heard.content)):
            events.append(self._event(self._choice(shown), {}))
        return b"".join(events)

    def end(self) -> bytes:
        if not self._asked.usage:
            return DONE
        tree = {**_top(self._stamp, _CHUNK), "choices": [], "usage": self.cost.told()}
        return _data(tree) + DONE

    def _heard(self, piece: Piece) -> Heard:
        """What this piece shows; at the end, with the calls of the whole answer."""
        if self._listener is None:
            return Heard(piece.text)
        shown = self._listener.hear(piece.text)
        if piece.finish is None:
            return Heard(shown)
        rest = self._listener.end()
        return Heard(shown + rest.content, rest.calls)

    def _last_choice(self, piece: Piece) -> Tree:
        """Of an answer that calls."""
        choice = self._choice(replace(piece, text="")) | {"finish_reason": _CALLED}
        if self._asked.token_ids and self._listener:
            choice["text"] = self._listener.text
        return choice

    def _shows(self, piece: Piece) -> bool:
        shown = self._asked.token_ids or self._asked.prompt.top_logprobs is not None
        return bool(piece.text or piece.finish or (shown and piece.token_ids))

    def _choice(self, piece: Piece) -> Tree:
        choice: Tree = {
            "index": 0,
            "delta": {"content": piece.text} if piece.text or not piece.finish else {},
            "logprobs": _logprobs(self._asked, [piece]),
            "finish_reason": piece.finish,
        }
        if self._asked.token_ids:
            choice["token_ids"] = list(piece.token_ids)
        return choice

    def _event(self, choice: Tree, more: Tree) -> bytes:
        tree = {**_top(self._stamp, _CHUNK), "choices": [choice], **more}
        return _data({**tree, "usage": None} if self._asked.usage else tree)


def models(names: Iterable[str], base: str, created: int) -> bytes:
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


_CHUNK, _CALLED = "chat.completion.chunk", "tool_calls"


def call_id(answer_id: str, number: int) -> str:
    """What the client names a call by when it brings the result.

    >>> call_id("chatcmpl-7f", 0)
    'call_7f_0'
    """
    return f"call_{answer_id.removeprefix('chatcmpl-')}_{number}"


def _message(stamp: Stamp, heard: Heard) -> Tree:
    if not heard.calls:
        return {"role": "assistant", "content": heard.content}
    calls = _calls(stamp, heard.calls, numbered=False)
    return {"role": "assistant", "content": heard.content or None, "tool_calls": calls}


def _calls(stamp: Stamp, calls: Sequence[Call], *, numbered: bool) -> list[Tree]:
    """As OpenAI has them; in a stream each says which it is."""
    return [
        {
            **({"index": number} if numbered else {}),
            "id": call_id(stamp.answer_id, number),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(calls)
    ]


def _top(stamp: Stamp, kind: str) -> Tree:
    return {
        "id": stamp.answer_id,
        "object": kind,
        "created": stamp.created,
        "model": stamp.model,
    }


def _data(tree: Tree) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(tree)


def _prompt_ids(pieces: Sequence[Piece]) -> list[int]:
    return list(pieces[0].prompt_token_ids or ()) if pieces else []


def _logprobs(asked: Asked, pieces: Sequence[Piece]) -> Tree | None:
    if asked.prompt.top_logprobs is None:
        return None
    return {"content": [told for piece in pieces for told in _told(piece)], "refusal": None}


def _told(piece: Piece) -> Iterator[Tree]:
    for at, logprob in enumerate(piece.logprobs):
        text = piece.tokens[at] if at < len(piece.tokens) else ""
        listed = piece.top[at] if at < len(piece.top) else ()
        top = [_likely(word, number) for _, word, number in listed]
        yield {**_likely(text, logprob), "top_logprobs": top}


def _likely(text: str, logprob: float) -> Tree:
    """A token; its bytes are not known where they are only a part of a character.

    >>> _likely("é", -0.5)
    {'token': 'é', 'logprob': -0.5, 'bytes': [195, 169]}
    """
    known = None if _REPLACED in text else list(text.encode())
    return {"token": text, "logprob": logprob, "bytes": known}
