"""How is a model asked that is served somewhere, and may move? It is looked for when it is away.

| what comes                                       | what follows                                   |
|--------------------------------------------------|------------------------------------------------|
| an answer                                        | that                                           |
| the request is too long for the model            | an empty answer: the model cannot do this      |
| no answer, an odd one, or the model is not there | `Transient`; before the next try it is found   |
|                                                  | anew, for a server that starts again may have  |
|                                                  | another address                                |
| nothing but that, `MAX_SILENT_ANSWERS` times in a row      | `Misuse`: nobody waits for it any longer       |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from upswing.contracts.validation import TaskAnswer
from upswing.errors import Misuse, Reason, Rejected, Transient
from upswing.validate.chat_client import ChatClient, ModelEndpoint

FindModel = Callable[[str], Awaitable[tuple[str, str]]]
"""Model id → the URL up to `/v1` and the server's name for it; loads it there if need be."""
KeyOf = Callable[[str], str]
"""A server's URL → the key that it is sent; no server gets another one's."""
UnusableFields = Callable[[str, str], Collection[str]]
"""A server's URL and its name for a model → optional fields that it does not take."""
MAX_SILENT_ANSWERS = 200
"""With eight requests under way and seconds between tries, most of a minute: a model server that
died is up again by then."""


class ModelClient:
    """Asks models for one validation, and remembers who does not answer."""

    def __init__(
        self,
        find: FindModel,
        *,
        max_tokens: int,
        key_of: KeyOf = lambda _: "",
        unusable_fields: UnusableFields = lambda _url, _name: (),
        temperature: float = 0.0,
        top_p: float = 1.0,
        timeout: timedelta = timedelta(seconds=100),
    ) -> None:
        """`max_tokens`: tokens of an answer, whatever a task would allow. `key_of`: a server's."""
        self._find, self._max_tokens, self._key_of, self._unusable_fields = (
            find,
            max_tokens,
            key_of,
            unusable_fields,
        )
        self._endpoints: dict[str, ModelEndpoint] = {}
        self._timeout = timeout
        self._chat = self._chat_client(temperature, top_p)
        self._silent_answers: Counter[str] = Counter()

    def with_sampling(self, temperature: float, top_p: float, *, max_tokens: int) -> ModelClient:
        """The same models, whose answers are drawn otherwise; who is silent here is silent there."""
        other = copy(self)
        other._chat = self._chat_client(temperature, top_p)  # noqa: SLF001 - a copy of this object
        other._max_tokens = max_tokens  # noqa: SLF001 - the same
        return other

    def _chat_client(self, temperature: float, top_p: float) -> ChatClient:
        return ChatClient(
            self._endpoints.__getitem__, timeout=self._timeout, temperature=temperature, top_p=top_p
        )

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
        if self._silent_answers[model] >= MAX_SILENT_ANSWERS:
            raise Misuse(f"{model} has not answered {MAX_SILENT_ANSWERS} times in a row.")
        try:
            if model not in self._endpoints:
                url, name = await self._find(model)
                self._endpoints[model] = replace(
                    model_endpoint(url, name, self._key_of(url)),
                    unusable=frozenset(self._unusable_fields(url, name)),
                )
            answer = await self._chat(
                model,
                messages,
                seed=seed,
                max_tokens=min(max_tokens, self._max_tokens),
                tools=tools,
            )
        except Rejected as error:
            if error.reason is not Reason.TOO_LARGE:
                raise
            answer = TaskAnswer("")
        except (Transient, Misuse) as error:
            self._endpoints.pop(model, None)
            self._silent_answers[model] += 1
            raise Transient(str(error)) from None
        del self._silent_answers[model]
        return answer


def model_endpoint(url: str, name: str, key: str = "") -> ModelEndpoint:
    """Where to ask; an address without a path means `/v1`.

    >>> model_endpoint("http://127.0.0.1:8000", "tiny").base_url
    'http://127.0.0.1:8000/v1'
    """
    _, _, path = url.partition("://")[2].rstrip("/").partition("/")
    return ModelEndpoint(url if path else f"{url.rstrip('/')}/v1", name, key)
