"""Which earlier answers does a request refer to, and how much may that be?

A reference is some eighty bytes, and the answer behind it may have megabytes: what one request brings together by its
references is bounded, however often and to whatever it refers.
"""

from __future__ import annotations

from collections.abc import Callable

from upswing.errors import Reason, Rejected
from upswing.gateway.core.episode_table import ExchangeRecord, OpenEpisode
from upswing.gateway.core.native_answers import read_shaped_answer
from upswing.openai.responses_answer import answer_of_item

MAX_REFERENCED_BYTES = 16 * 1024 * 1024
"""Of answers as their servers sent them, each counted as often as it is referred to: what a hundred long ones have."""
FindEpisode = Callable[[str], OpenEpisode | None]
"""The open episode of this trajectory, if it is of the key that asks."""


class AnswerReferences:
    """The references of one request."""

    def __init__(self, find_episode: FindEpisode) -> None:
        self._find_episode = find_episode
        self._exchanges: dict[str, dict[str, ExchangeRecord]] = {}
        """Trajectory → inference → what was exchanged."""
        self._texts: dict[str, str | None] = {}
        self._bytes = 0

    def text(self, item_id: str) -> str | None:
        """What was answered there; None: nobody remembers. `Rejected` when a request refers to too much."""
        inference_id = answer_of_item(item_id)
        exchange = self._exchange(inference_id)
        if exchange is None:
            return None
        self._bytes += exchange.answer_bytes
        if self._bytes > MAX_REFERENCED_BYTES:
            message = (
                f"The answers behind `item_reference` have more than {MAX_REFERENCED_BYTES} bytes"
            )
            raise Rejected(Reason.TOO_LARGE, f"{message}: send the items themselves.")
        if inference_id not in self._texts:
            answer = read_shaped_answer(
                exchange.answer, stream=exchange.stream, shape=exchange.shape
            )
            self._texts[inference_id] = answer.content if answer else None
        return self._texts[inference_id]

    def _exchange(self, inference_id: str) -> ExchangeRecord | None:
        trajectory_id = inference_id.rpartition(".")[0]
        if trajectory_id not in self._exchanges:
            episode = self._find_episode(trajectory_id)
            self._exchanges[trajectory_id] = {
                exchange.inference_id: exchange
                for conversation in (episode.conversations if episode else ())
                for exchange in conversation.exchanges
            }
        return self._exchanges[trajectory_id].get(inference_id)
