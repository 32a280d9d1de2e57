"""A chat completion is asked for: is it taken, and how does the answer get to the client?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from upswing.errors import Misuse, Reason, UpswingError
from upswing.serve.asgi import (
    ClientDisconnected,
    EventStream,
    Receive,
    Scope,
    Send,
    read_body,
    run_until_disconnect,
    send_error,
    send_response,
)
from upswing.serve.choices import merge_choices
from upswing.serve.core.chat_request import (
    ChatCompletionRequest,
    InvalidChatRequest,
    parse_chat_request,
)
from upswing.serve.core.chat_response import (
    CompletionInfo,
    StreamEncoder,
    TokenUsage,
    completion_body,
    tool_call_id,
)
from upswing.serve.core.engine import InferenceEngine, TokenChunk
from upswing.serve.core.error_response import (
    INTERNAL_ERROR,
    TOO_MANY_REQUESTS,
    ErrorResponse,
    error_response,
)
from upswing.serve.core.limits import ModelServerLimits
from upswing.serve.core.tool_call_texts import ToolCallTexts
from upswing.serve.core.tool_calls import parse_tool_calls, tool_names
from upswing.serve.metrics import ServerCounters


class ChatCompletions:
    """`POST /v1/chat/completions`."""

    def __init__(
        self,
        engine: InferenceEngine,
        limits: ModelServerLimits,
        counters: ServerCounters,
        *,
        clock: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        self._engine, self._limits, self._counters = engine, limits, counters
        self._clock, self._new_id = clock, new_id
        self._tool_call_texts = ToolCallTexts()
        self.in_flight = 0
        self.closing: ErrorResponse | None = None
        """Once it closes: what is told to whoever comes now."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        model = ""
        try:
            request = await self._read_request(scope, receive)
            if request.generation.model not in self._engine.model_names():
                raise Misuse(
                    f"The model {request.generation.model[:200]!r} is not served here; "
                    "GET /v1/models lists those that are."
                )
            model = request.generation.model
            self._check_engine(request)
            outcome = await self._admit_request(request, receive, send)
        except ClientDisconnected:
            outcome = "cancelled"
        except UpswingError as error:
            outcome = await _send_refusal(send, _error_reply(error))
        self._counters.requests[model, outcome] += 1

    def _check_engine(self, request: ChatCompletionRequest) -> None:
        """What an engine cannot promise is refused by its name: another answer helps nobody."""
        if request.constrained_by and not self._engine.follows_schemas:
            message = f"`{request.constrained_by}` cannot be promised by the engine of this server"
            remedy = "leave it out, or serve a GGUF base with llama.cpp"
            raise InvalidChatRequest(f"{message}: {remedy}.", request.constrained_by)

    async def _read_request(self, scope: Scope, receive: Receive) -> ChatCompletionRequest:
        limit = self._limits.body_bytes
        if (body := await read_body(scope, receive, limit)) is None:
            raise InvalidChatRequest(f"The body may have {limit} bytes.", reason=Reason.TOO_LARGE)
        request = parse_chat_request(body)
        messages = [
            self._tool_call_texts.restore(message) for message in request.generation.messages
        ]
        return replace(request, generation=replace(request.generation, messages=messages))

    async def _admit_request(
        self, request: ChatCompletionRequest, receive: Receive, send: Send
    ) -> str:
        if self.closing is not None:
            return await _send_refusal(send, self.closing)
        if self.in_flight + request.choices > max(self._limits.requests, request.choices):
            await send_error(send, TOO_MANY_REQUESTS)
            return "full"
        self.in_flight += request.choices
        try:
            await run_until_disconnect(receive, self._generate_response(request, send))
        finally:
            self.in_flight -= request.choices
        return "answered"

    async def _generate_response(self, request: ChatCompletionRequest, send: Send) -> None:
        info = CompletionInfo(
            f"chatcmpl-{self._new_id()}", int(self._clock()), request.generation.model
        )
        completions = [_Completion(request, info, index) for index in range(request.choices)]
        engine: Any = self._engine  # its generators are async ones, as promised
        generators = [engine.generate(request.choice(index)) for index in range(request.choices)]
        async with aclosing(merge_choices(generators)) as generated:
            if request.stream:
                await self._stream_response(generated, completions, EventStream(send))
            else:
                async for index, chunk in generated:
                    self._record_chunk(chunk, completions[index])
                choices = [completion.chunks for completion in completions]
                await send_response(send, 200, completion_body(info, request, *choices))

    async def _stream_response(
        self,
        generated: AsyncIterator[tuple[int, TokenChunk]],
        completions: Sequence[_Completion],
        stream: EventStream,
    ) -> None:
        """What is wrong before the first piece is an answer of its own; later, the last word."""
        usage = TokenUsage()
        encoders = [
            StreamEncoder(each.info, each.request, each.index, usage) for each in completions
        ]
        try:
            async for index, chunk in generated:
                self._record_chunk(chunk, completions[index])
                await stream.write(encoders[index].encode(chunk))
        except UpswingError as error:
            if not stream.begun:
                raise
            await stream.write(error_response(error).sse_event(), last=True)
            raise StreamFailed from error
        await stream.write(encoders[0].encode_end(), last=True)

    def _record_chunk(self, chunk: TokenChunk, completion: _Completion) -> None:
        """Count it; at the end, keep what was written, before the client can come back with it."""
        model, tools = completion.info.model, completion.request.generation.tools
        self._counters.prompt_tokens[model] += len(chunk.prompt_token_ids or ())
        self._counters.completion_tokens[model] += len(chunk.token_ids)
        completion.chunks.append(chunk)
        if chunk.finish_reason and tools:
            text = "".join(each.text for each in completion.chunks)
            if (reply := parse_tool_calls(text, tool_names(tools))).calls:
                name = completion.info.choice_id(completion.index)
                self._tool_call_texts.remember(tool_call_id(name, 0), text, reply)


@dataclass(frozen=True, slots=True)
class _Completion:
    """An answer on its way."""

    request: ChatCompletionRequest
    info: CompletionInfo
    index: int = 0
    chunks: list[TokenChunk] = field(default_factory=list)


class StreamFailed(UpswingError):
    """An answer that ended too early; its client knows."""


def _error_reply(error: UpswingError) -> ErrorResponse | None:
    if isinstance(error, StreamFailed):
        return None
    if isinstance(error, InvalidChatRequest) and error.reason is Reason.TOO_LARGE:
        return ErrorResponse(413, str(error), code=error.reason)
    return error_response(error)


async def _send_refusal(send: Send, error: ErrorResponse | None) -> str:
    if error is None:
        return "failed"
    await send_error(send, error)
    return "failed" if error is INTERNAL_ERROR or error.status >= 500 else "refused"
