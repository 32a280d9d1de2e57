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
from upswing.serve.core.detokenizer import Decode, Detokenizer
from upswing.serve.core.engine import FinishReason, GenerationRequest, TokenChunk, TopLogprob

Event = dict[str, Any]
_MAX_SEED = (1 << 32) - 1
"""llama.cpp takes that many; the one behind them stands for chance."""
_FINISH_REASONS: dict[str, FinishReason] = {"eos": "stop", "word": "stop", "limit": "length"}


def completion_body(
    request: GenerationRequest, prompt_ids: Sequence[int], max_new_tokens: int
) -> Event:
    """The body of the request; `max_new_tokens` is how many tokens fit behind the prompt.

    The two samplers stand in the order of everybody else: the temperature first, then the nucleus.
    """
    n_predict = (
        max_new_tokens if request.max_tokens is None else min(request.max_tokens, max_new_tokens)
    )
    seed = {} if request.seed is None else {"seed": request.seed % _MAX_SEED}
    schema = {} if request.output_schema is None else {"json_schema": request.output_schema}
    return {
        "prompt": list(prompt_ids),
        "n_predict": n_predict,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "samplers": ["temperature", "top_p"],
        "n_probs": 0 if request.top_logprobs is None else max(1, request.top_logprobs),
        "post_sampling_probs": False,
        "return_tokens": True,
        "return_progress": True,
        "stream": True,
        "response_fields": ["stop", "stop_type", "tokens_predicted"],
        **seed,
        **schema,
    }


class LlamaCompletion:
    """One answer, while it comes."""

    def __init__(
        self,
        request: GenerationRequest,
        prompt_ids: tuple[int, ...],
        decode: Decode,
        token_text: Callable[[int], str],
    ) -> None:
        self._top_count = request.top_logprobs
        self._prompt_ids: tuple[int, ...] | None = prompt_ids
        self._detokenizer, self._token_text = Detokenizer(decode, request.stop), token_text
        self.token_ids: list[int] = []
        self.ended_by_eos = False
        """Whether the last token is the one that ends it."""

    def read_event(self, event: Event) -> TokenChunk | None:
        """The piece that this event becomes."""
        if "prompt_progress" in event:
            return None
        if event.get("stop"):
            return self._last_chunk(event)
        ids = event.get("tokens")
        if not isinstance(ids, list) or not ids:
            return None
        self._add_ids(event, ids)
        texts = [self._detokenizer.add(token) for token in ids]
        return self._token_chunk(
            "".join(texts), tuple(ids), event, "stop" if self._detokenizer.stopped else None
        )

    def _add_ids(self, event: Event, ids: list[int]) -> None:
        self.token_ids += ids
        if event.get("tokens_predicted") != len(self.token_ids):
            raise Transient("llama.cpp left out tokens of its answer.")

    def _last_chunk(self, event: Event) -> TokenChunk:
        if event.get("tokens_predicted") != len(self.token_ids):
            raise Transient("llama.cpp left out tokens of its answer.")
        finish_reason = _FINISH_REASONS.get(str(event.get("stop_type")))
        if finish_reason is None:
            raise Transient("llama.cpp does not say how its answer ended.")
        self.ended_by_eos = event["stop_type"] == "eos"
        text = self._detokenizer.finish()
        return self._token_chunk(
            text, (), {}, "stop" if self._detokenizer.stopped else finish_reason
        )

    def _token_chunk(
        self, text: str, ids: tuple[int, ...], event: Event, finish_reason: FinishReason | None
    ) -> TokenChunk:
        entries = event.get("completion_probabilities", ()) if self._top_count is not None else ()
        if self._top_count is not None and [each["id"] for each in entries] != list(ids):
            raise Transient("llama.cpp left out logprobs of its answer.")
        first, self._prompt_ids = self._prompt_ids, None
        return TokenChunk(
            text=text,
            token_ids=ids,
            logprobs=tuple(min(each["logprob"], 0.0) for each in entries),
            tokens=tuple(map(self._token_text, ids)),
            top_logprobs=tuple(self._top_logprobs(each) for each in entries)
            if self._top_count
            else (),
            finish_reason=finish_reason,
            prompt_token_ids=first,
        )

    def _top_logprobs(self, entry: Event) -> tuple[TopLogprob, ...]:
        candidates = entry["top_logprobs"][: self._top_count]
        return tuple(
            (each["id"], self._token_text(each["id"]), each["logprob"]) for each in candidates
        )
