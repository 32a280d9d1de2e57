"""What is asked of llama.cpp for a prompt, and which pieces do its events become?

| event                              | piece                                                         |
|------------------------------------|---------------------------------------------------------------|
| `prompt_progress`                  | none: it only shows that the server works                     |
| a token                            | its id, its logprob, and what can be shown of the text by now |
| a token that completes a stop text | the last one, `stop`                                          |
| `stop_type` `eos`                  | the last one, `stop`                                          |
| `stop_type` `limit`                | the last one, `length`                                        |

Text is spelled here and not taken from the server, so that it is the same as with PyTorch. A token
that the server skips would make the ids wrong without a sign; so they are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from upswing.errors import Transient
from upswing.serve.ports import Finish, Piece, Prompt, Top
from upswing.serve.spelling import Decode, Spelling

Event = dict[str, Any]
_SEEDS = (1 << 32) - 1
"""llama.cpp takes that many; the one behind them stands for chance."""
_FINISHES: dict[str, Finish] = {"eos": "stop", "word": "stop", "limit": "length"}


def question(prompt: Prompt, ids: Sequence[int], room: int) -> Event:
    """The body of the request; `room` is how many tokens fit behind the prompt.

    The two samplers stand in the order of everybody else: the temperature first, then the nucleus.
    """
    wanted = room if prompt.max_tokens is None else min(prompt.max_tokens, room)
    chance = {} if prompt.seed is None else {"seed": prompt.seed % _SEEDS}
    return {
        "prompt": list(ids),
        "n_predict": wanted,
        "temperature": prompt.temperature,
        "top_p": prompt.top_p,
        "samplers": ["temperature", "top_p"],
        "n_probs": 0 if prompt.top_logprobs is None else max(1, prompt.top_logprobs),
        "post_sampling_probs": False,
        "return_tokens": True,
        "return_progress": True,
        "stream": True,
        "response_fields": ["stop", "stop_type", "tokens_predicted"],
        **chance,
    }


class Answer:
    """One answer, while it comes."""

    def __init__(
        self, prompt: Prompt, ids: tuple[int, ...], decode: Decode, word: Callable[[int], str]
    ) -> None:
        self._top = prompt.top_logprobs
        self._prompt_ids: tuple[int, ...] | None = ids
        self._spelling, self._word = Spelling(decode, prompt.stop), word
        self.ids: list[int] = []
        self.ended = False
        """Whether the last token is the one that ends it."""

    def take(self, event: Event) -> Piece | None:
        """The piece that this event becomes."""
        if "prompt_progress" in event:
            return None
        if event.get("stop"):
            return self._end(event)
        ids = event.get("tokens")
        if not isinstance(ids, list) or not ids:
            return None
        self._count(event, ids)
        texts = [self._spelling.add(token) for token in ids]
        return self._piece(
            "".join(texts), tuple(ids), event, "stop" if self._spelling.stopped else None
        )

    def _count(self, event: Event, ids: list[int]) -> None:
        self.ids += ids
        if event.get("tokens_predicted") != len(self.ids):
            raise Transient("llama.cpp left out tokens of its answer.")

    def _end(self, event: Event) -> Piece:
        if event.get("tokens_predicted") != len(self.ids):
            raise Transient("llama.cpp left out tokens of its answer.")
        finish = _FINISHES.get(str(event.get("stop_type")))
        if finish is None:
            raise Transient("llama.cpp does not say how its answer ended.")
        self.ended = event["stop_type"] == "eos"
        text = self._spelling.end()
        return self._piece(text, (), {}, "stop" if self._spelling.stopped else finish)

    def _piece(self, text: str, ids: tuple[int, ...], event: Event, finish: Finish | None) -> Piece:
        told = event.get("completion_probabilities", ()) if self._top is not None else ()
        if self._top is not None and [each["id"] for each in told] != list(ids):
            raise Transient("llama.cpp left out logprobs of its answer.")
        first, self._prompt_ids = self._prompt_ids, None
        return Piece(
            text=text,
            token_ids=ids,
            logprobs=tuple(min(each["logprob"], 0.0) for each in told),
            tokens=tuple(map(self._word, ids)),
            top=tuple(self._others(each) for each in told) if self._top else (),
            finish=finish,
            prompt_token_ids=first,
        )

    def _others(self, told: Event) -> tuple[Top, ...]:
        listed = told["top_logprobs"][: self._top]
        return tuple((each["id"], self._word(each["id"]), each["logprob"]) for each in listed)
