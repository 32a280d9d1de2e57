"""How is a model asked over HTTP, in the shape of chat completions, with tools and a seed?

| answer                                          | becomes                                        |
|-------------------------------------------------|------------------------------------------------|
| 200 with a chat completion                      | `TaskAnswer`                                       |
| 200 with an error or something else, cut short  | `Transient`: the server is at fault            |
| 400, 422 that names an optional parameter       | asked again without it, from then on           |
| 400, 413, 422 that speaks of the context        | asked again for fewer tokens, then `Rejected`, |
|                                                 | too_large: the model cannot take it            |
| 401, 403                                        | `Denied`                                       |
| 408, 425, 429, 5xx, no connection, slow         | `Transient`                                    |
| 404, 405, 3xx                                   | `Misuse`: the address or the model is wrong    |
| any other 4xx                                   | `Rejected`                                     |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from upswing.contracts.validation import TaskAnswer, ToolCall
from upswing.errors import Denied, Misuse, Reason, Rejected, Transient, UpswingError
from upswing.infra.http import exchange
from upswing.openai.completions import read_completion

MAX_ANSWER_BYTES = 4_000_000
"""Bytes of an answer."""
_OPTIONAL = ("seed", "temperature", "top_p", "max_tokens")
_RETRY_STATUSES = frozenset({408, 425, 429})
_MIN_TOKENS = 16
"""Tokens of an answer below which a request that is too long is not tried again."""
_CONTEXT_ERROR = re.compile(r"context[_ ](length|size|window)", re.IGNORECASE)
"""How servers say that prompt and answer together are longer than the model can take."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Where a model answers."""

    base_url: str
    """Up to and with `/v1`."""
    name: str
    """What the server calls it."""
    key: str = field(default="", repr=False)
    unusable: frozenset[str] = frozenset()
    """Optional fields that its server is known not to take."""


class ChatClient:
    """Models behind OpenAI-shaped endpoints."""

    def __init__(
        self,
        endpoint_of: Callable[[str], ModelEndpoint],
        *,
        timeout: timedelta = timedelta(seconds=120),
        temperature: float = 0.0,
        top_p: float = 1.0,
    ) -> None:
        self._endpoint_of = endpoint_of
        self._timeout = timeout.total_seconds()
        self._temperature, self._top_p = temperature, top_p
        self._refused: dict[str, set[str]] = {}

    async def __call__(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        seed: int,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> TaskAnswer:
        """One answer."""
        endpoint = self._endpoint_of(model)
        refused = self._refused.setdefault(model, set())
        refused |= endpoint.unusable
        while True:
            optional = {"seed": seed, "temperature": self._temperature, "max_tokens": max_tokens}
            if self._top_p < 1:
                optional["top_p"] = self._top_p
            fields = {name: value for name, value in optional.items() if name not in refused}
            if "max_tokens" in refused and "max_completion_tokens" not in refused:
                fields["max_completion_tokens"] = max_tokens
            offered = {"tools": tools} if tools and "tools" not in refused else {}
            body = {"model": endpoint.name, "messages": messages, **fields}
            status, raw = await self._post(endpoint, body | offered)
            if status == 200:
                return parse_completion(raw)
            error_text = raw[:2000].decode(errors="replace")
            if status in {400, 413, 422} and _CONTEXT_ERROR.search(error_text):
                if max_tokens < _MIN_TOKENS:
                    raise Rejected(Reason.TOO_LARGE, f"This is too long for {endpoint.name}.")
                max_tokens //= 4
                continue
            culprit = next(
                (name for name in _OPTIONAL if name in fields and name in error_text), None
            )
            if status not in {400, 422} or culprit is None:
                raise _error_for_status(endpoint, status)
            refused.add(culprit)

    async def _post(self, endpoint: ModelEndpoint, body: Mapping[str, Any]) -> tuple[int, bytes]:
        url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
        try:
            reply = await exchange(
                "POST",
                url,
                body=msgspec.json.encode(body),
                key=endpoint.key,
                seconds=self._timeout,
                limit=MAX_ANSWER_BYTES,
            )
        except Rejected as error:
            raise Transient(str(error)) from None
        return reply.status, reply.body


def parse_completion(raw: bytes) -> TaskAnswer:
    """The answer in a chat completion.

    >>> parse_completion(b'{"choices": [{"message": {"content": "Hi."}}]}')
    TaskAnswer(text='Hi.', tool_calls=())
    >>> parse_completion(b'{"error": {"message": "overloaded"}}')
    Traceback (most recent call last):
    upswing.errors.Transient: The server's answer is no chat completion.
    """
    completion = read_completion(raw)
    if completion is None:
        raise Transient("The server's answer is no chat completion.")
    calls = [ToolCall(call.name, call.arguments, call.id) for call in completion.tool_calls]
    return TaskAnswer(completion.text, tuple(calls))


def _error_for_status(endpoint: ModelEndpoint, status: int) -> UpswingError:
    host = urlsplit(endpoint.base_url).netloc
    if status in {401, 403}:
        return Denied(f"{host} refuses the key for {endpoint.name}.")
    if status in _RETRY_STATUSES or status >= 500:
        return Transient(f"{host} answers {status}.")
    if status in {404, 405} or 300 <= status < 400:
        return Misuse(f"{host} answers {status}: check its address and the model {endpoint.name}.")
    return Rejected(Reason.SCHEMA, f"{host} answers {status} to {endpoint.name}.")
