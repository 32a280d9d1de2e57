"""A chat completion is asked for: is it taken, and how does the answer get to the client?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from upswing.errors import Misuse, Reason, UpswingError
from upswing.serve.answers import Chunks, Stamp, call_id, whole
from upswing.serve.asked import Asked, BadRequest, read_asked
from upswing.serve.door_service import (
    Gone,
    Receive,
    Scope,
    Send,
    Stream,
    body_of,
    refuse,
    reply,
    while_there,
)
from upswing.serve.limits import Limits
from upswing.serve.metrics import Tally
from upswing.serve.ports import Engine, Piece
from upswing.serve.problems import BROKEN, FULL, Problem, problem_of
from upswing.serve.tool_calls import names_of, read_calls
from upswing.serve.words import Words


class Chat:
    """`POST /v1/chat/completions`."""

    def __init__(
        self, engine: Engine, limits: Limits, tally: Tally, *,
        clock: Callable[[], float], new_id: Callable[[], str],
    ) -> None:  # fmt: skip
        self._engine, self._limits, self._tally = engine, limits, tally
        self._clock, self._new_id = clock, new_id
        self._words = Words()
        self.under_way = 0
        self.closing: Problem | None = None
        """Once it closes: what is told to whoever comes now."""

    async def take(self, scope: Scope, receive: Receive, send: Send) -> None:
        model = ""
        try:
            asked = await self._asked(scope, receive)
            if asked.prompt.model not in self._engine.names():
                raise Misuse(
                    f"The model {asked.prompt.model[:200]!r} is not served here; "
                    "GET /v1/models lists those that are."
                )
            model = asked.prompt.model
            outcome = await self._admitted(asked, receive, send)
        except Gone:
            outcome = "cancelled"
        except UpswingError as error:
            outcome = await _refused(send, _problem(error))
        self._tally.requests[model, outcome] += 1

    async def _asked(self, scope: Scope, receive: Receive) -> Asked:
        limit = self._limits.body_bytes
        if (body := await body_of(scope, receive, limit)) is None:
            raise BadRequest(f"The body may have {limit} bytes.", reason=Reason.TOO_LARGE)
        asked = read_asked(body)
        told = [self._words.restored(message) for message in asked.prompt.messages]
        return replace(asked, prompt=replace(asked.prompt, messages=told))

    async def _admitted(self, asked: Asked, receive: Receive, send: Send) -> str:
        if self.closing is not None:
            return await _refused(send, self.closing)
        if self.under_way >= self._limits.requests:
            await refuse(send, FULL)
            return "full"
        self.under_way += 1
        try:
            await while_there(receive, self._answer(asked, send))
        finally:
            self.under_way -= 1
        return "answered"

    async def _answer(self, asked: Asked, send: Send) -> None:
        stamp = Stamp(f"chatcmpl-{self._new_id()}", int(self._clock()), asked.prompt.model)
        answer = _Answer(asked, stamp)
        made: Any = self._engine.generate(asked.prompt)  # an async generator, as promised
        async with aclosing(made) as pieces:
            if asked.stream:
                await self._streamed(pieces, answer, Stream(send))
            else:
                async for piece in pieces:
                    self._note(piece, answer)
                await reply(send, 200, whole(stamp, asked, answer.said))

    async def _streamed(
        self, pieces: AsyncIterator[Piece], answer: _Answer, stream: Stream
    ) -> None:
        """What is wrong before the first piece is an answer of its own; later, the last word."""
        chunks = Chunks(answer.stamp, answer.asked)
        try:
            async for piece in pieces:
                self._note(piece, answer)
                await stream.write(chunks.of(piece))
        except UpswingError as error:
            if not stream.begun:
                raise
            await stream.write(problem_of(error).event(), last=True)
            raise Broken from error
        await stream.write(chunks.end(), last=True)

    def _note(self, piece: Piece, answer: _Answer) -> None:
        """Count it; at the end, keep what was written, before the client can come back with it."""
        model, tools = answer.stamp.model, answer.asked.prompt.tools
        self._tally.prompt_tokens[model] += len(piece.prompt_token_ids or ())
        self._tally.completion_tokens[model] += len(piece.token_ids)
        answer.said.append(piece)
        if piece.finish and tools:
            text = "".join(each.text for each in answer.said)
            if (heard := read_calls(text, names_of(tools))).calls:
                self._words.note(call_id(answer.stamp.answer_id, 0), text, heard)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer on its way."""

    asked: Asked
    stamp: Stamp
    said: list[Piece] = field(default_factory=list)


class Broken(UpswingError):
    """An answer that ended too early; its client knows."""


def _problem(error: UpswingError) -> Problem | None:
    if isinstance(error, Broken):
        return None
    if isinstance(error, BadRequest) and error.reason is Reason.TOO_LARGE:
        return Problem(413, str(error), code=error.reason)
    return problem_of(error)


async def _refused(send: Send, problem: Problem | None) -> str:
    if problem is None:
        return "failed"
    await refuse(send, problem)
    return "failed" if problem is BROKEN or problem.status >= 500 else "refused"
