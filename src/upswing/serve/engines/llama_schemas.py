"""Does llama.cpp hold answers to this schema? One that it cannot read it ignores without a word, so each is tried once.

A trial asks for one token and makes a closing brace the likeliest by far. No JSON begins with one: where it comes, the
schema was ignored. One that llama.cpp dies of, or makes a grammar of for too long, is not tried again.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from upswing.errors import Reason, Rejected
from upswing.infra.tasks import start_task
from upswing.serve.engines.llama_http import LlamaConnectionLost, LlamaSilent

Event = dict[str, Any]
_MAX_KNOWN = 1024
"""Schemas whose trial is remembered."""
_BIAS = 1000.0
TRIAL_SECONDS = 30.0
"""For which llama.cpp may make a grammar, which takes milliseconds; meanwhile it answers nobody."""
_HARD = frozenset(
    {"contains", "dependentRequired", "dependentSchemas", "else", "format", "if", "not", "oneOf"}
    | {"pattern", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
    | {"uniqueItems", "$ref"}
)
"""Keywords that llama.cpp does not know, or not in every form."""
_ENCODER = msgspec.json.Encoder(order="deterministic")


class SchemaTrials:
    """Which schemas llama.cpp can follow."""

    def __init__(self, brace_token: Callable[[], int]) -> None:
        self._brace_token = brace_token
        self._known: OrderedDict[str, bool] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[bool]] = {}

    async def check(
        self, schema: Mapping[str, Any], ask: Callable[[Event], AsyncIterator[Event]]
    ) -> None:
        """`Rejected` when answers cannot be held to this schema; `ask` gives the events of a completion.

        A trial goes on when whoever asked is gone: llama.cpp does not stop making a grammar, and somebody has to see
        that it takes too long.
        """
        key = sha256(_ENCODER.encode(schema)).hexdigest()
        if key not in self._known:
            if (trial := self._under_way.get(key)) is None:
                trial = self._under_way[key] = start_task(self._try(schema, ask), name="a schema")
                trial.add_done_callback(lambda done: self._note(key, done))
            await asyncio.shield(trial)
        if not self._known.get(key, True):
            raise Rejected(Reason.SCHEMA, _refusal(schema))

    async def _try(
        self, schema: Mapping[str, Any], ask: Callable[[Event], AsyncIterator[Event]]
    ) -> bool:
        """Whether the answer to this trial is one of the schema; it is none where llama.cpp dies of it, or falls silent."""
        try:
            drawn = [token async for token in _drawn(ask(trial_body(schema, self._brace_token())))]
        except (LlamaConnectionLost, LlamaSilent):
            return False
        return bool(drawn) and self._brace_token() not in drawn

    def _note(self, key: str, trial: asyncio.Task[bool]) -> None:
        del self._under_way[key]
        if trial.cancelled() or trial.exception() is not None:
            return  # whoever waits for it hears of it, and the next one tries again
        self._known[key] = trial.result()
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)


async def _drawn(events: AsyncIterator[Event]) -> AsyncIterator[int]:
    async for event in events:
        for token in event.get("tokens") or ():
            yield token


def trial_body(schema: Mapping[str, Any], brace_token: int) -> Event:
    """A request for the one token that shows it."""
    return {
        "prompt": [brace_token],
        "n_predict": 1,
        "temperature": 0.0,
        "samplers": ["temperature"],
        "logit_bias": [[brace_token, _BIAS]],
        "json_schema": schema,
        "cache_prompt": False,
        "return_tokens": True,
        "stream": True,
    }


def _refusal(schema: Mapping[str, Any]) -> str:
    found = sorted(_keywords(schema) & _HARD)
    named = f" It may be because of {', '.join(f'`{each}`' for each in found)}." if found else ""
    return f"llama.cpp cannot hold an answer to this schema: make it simpler.{named}"


def _keywords(schema: Any) -> set[str]:
    """All keys in a schema.

    >>> sorted(_keywords({"items": [{"not": {}}]}))
    ['items', 'not']
    """
    found: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            found.update(each)
            waiting += each.values()
        elif isinstance(each, Sequence) and not isinstance(each, str):
            waiting += each
    return found
