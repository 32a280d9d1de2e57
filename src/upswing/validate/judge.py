"""How does a checker ask the judge, without taking it away from the rewards?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from upswing.openai.completions import ChatCompletion
from upswing.validate.core.moves import Message

_CONCURRENT_QUESTIONS = 2
"""Each holds a connection to the judge that rewards need, too."""


class JudgeModel(Protocol):
    """The model that the reward stage asks, too; stages do not import each other."""

    model: str

    async def __call__(self, messages: Sequence[Mapping[str, str]]) -> ChatCompletion: ...


class LimitedJudge:
    """The judge, asked a few questions at a time."""

    def __init__(self, ask: JudgeModel) -> None:
        self._ask = ask
        self._slots = asyncio.Semaphore(_CONCURRENT_QUESTIONS)
        self.name = ask.model

    async def __call__(self, messages: Sequence[Message]) -> str:
        """The text of its answer."""
        async with self._slots:
            return (await self._ask(messages)).text
