"""How is a model asked that is served somewhere, and may move? It is looked for when it is away.

| what comes                                       | what follows                                   |
|--------------------------------------------------|------------------------------------------------|
| an answer                                        | that                                           |
| the request is too long for the model            | an empty answer: the model cannot do this      |
| no answer, an odd one, or the model is not there | `Transient`; before the next try it is found   |
|                                                  | anew, for a server that starts again may have  |
|                                                  | another address                                |
| nothing but that, `PATIENCE` times in a row      | `Misuse`: nobody waits for it any longer       |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

from upswing.adapters.chat import Chat, Place
from upswing.contracts.validation import Answer
from upswing.errors import Misuse, Reason, Rejected, Transient

Find = Callable[[str], Awaitable[tuple[str, str]]]
"""Model id → the URL up to `/v1` and the server's name for it; loads it there if need be."""
KeyOf = Callable[[str], str]
"""A server's URL → the key that it is sent; no server gets another one's."""
Unusable = Callable[[str, str], Collection[str]]
"""A server's URL and its name for a model → optional fields that it does not take."""
PATIENCE = 200
"""With eight requests under way and seconds between tries, most of a minute: a model server that
died is up again by then."""


class Asking:
    """Asks models for one validation, and remembers who does not answer."""

    def __init__(
        self,
        find: Find,
        *,
        most: int,
        key_of: KeyOf = lambda _: "",
        unusable: Unusable = lambda _url, _name: (),
        temperature: float = 0.0,
        top_p: float = 1.0,
        timeout: timedelta = timedelta(seconds=100),
    ) -> None:
        """`most`: tokens of an answer, whatever a task would allow. `key_of`: a server's."""
        self._find, self._most, self._key_of, self._unusable = find, most, key_of, unusable
        self._places: dict[str, Place] = {}
        self._timeout = timeout
        self._chat = self._chatting(temperature, top_p)
        self._silent: Counter[str] = Counter()

    def sampled(self, temperature: float, top_p: float, *, most: int) -> Asking:
        """The same models, whose answers are drawn otherwise; who is silent here is silent there."""
        other = copy(self)
        other._chat = self._chatting(temperature, top_p)  # noqa: SLF001 - a copy of this object
        other._most = most  # noqa: SLF001 - the same
        return other

    def _chatting(self, temperature: float, top_p: float) -> Chat:
        return Chat(
            self._places.__getitem__, timeout=self._timeout, temperature=temperature, top_p=top_p
        )

    async def __call__(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        seed: int,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Answer:
        """One answer."""
        if self._silent[model] >= PATIENCE:
            raise Misuse(f"{model} has not answered {PATIENCE} times in a row.")
        try:
            if model not in self._places:
                url, name = await self._find(model)
                self._places[model] = replace(
                    place(url, name, self._key_of(url)),
                    unusable=frozenset(self._unusable(url, name)),
                )
            answer = await self._chat(
                model, messages, seed=seed, max_tokens=min(max_tokens, self._most), tools=tools
            )
        except Rejected as error:
            if error.reason is not Reason.TOO_LARGE:
                raise
            answer = Answer("")
        except (Transient, Misuse) as error:
            self._places.pop(model, None)
            self._silent[model] += 1
            raise Transient(str(error)) from None
        del self._silent[model]
        return answer


def place(url: str, name: str, key: str = "") -> Place:
    """Where to ask; an address without a path means `/v1`.

    >>> place("http://127.0.0.1:8000", "tiny").base_url
    'http://127.0.0.1:8000/v1'
    """
    _, _, path = url.partition("://")[2].rstrip("/").partition("/")
    return Place(url if path else f"{url.rstrip('/')}/v1", name, key)
