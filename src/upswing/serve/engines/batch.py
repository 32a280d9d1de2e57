"""What does one model do in a step? It decodes a token for every running request, then prefills some of a prompt.

Requests join and leave at each token. One that has ended, or whose client is gone, frees its row at
once; the last row is moved into it.

    waiting ─▶ prefill, a chunk a step ─▶ decode, a token a step ─▶ finished
                    └──────────────┴─▶ cancelled: the client is gone
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from random import Random
from typing import Any

import torch
from torch import Tensor

from upswing.errors import Transient
from upswing.serve.core.detokenizer import Detokenizer
from upswing.serve.core.engine import FinishReason, GenerationRequest, TokenChunk, TopLogprob
from upswing.serve.core.sampling import SamplingParams, logprobs, sample_tokens, top_tokens
from upswing.serve.core.scheduler import prefill_chunk
from upswing.serve.engines.kv_cache import KVCache
from upswing.serve.engines.tokenizing import PromptTokenizer, TokenizedPrompt

StreamItem = TokenChunk | Exception


@dataclass(eq=False, slots=True)
class RunningRequest:
    """One request in the batch, or waiting for a slot."""

    request: GenerationRequest
    tokenized: TokenizedPrompt
    rng: Random
    detokenizer: Detokenizer
    max_new_tokens: int
    """Tokens that may be generated."""
    emit: Callable[[StreamItem], None]
    prefilled: int = 0
    """Tokens of the prompt whose keys and values are in the cache."""
    generated: list[int] = field(default_factory=list)
    cancelled: bool = False
    """The client is gone."""

    @property
    def sampling(self) -> SamplingParams:
        return SamplingParams(self.request.temperature, self.request.top_p)

    @property
    def cached_tokens(self) -> int:
        """Tokens whose keys and values are in the cache."""
        return self.prefilled + max(0, len(self.generated) - 1)


@dataclass(slots=True)
class BatchCounts:
    """Since the start of the engine."""

    steps: int = 0
    generated_tokens: int = 0
    cancelled: int = 0


class Batch:
    """The requests of one model that are in the batch."""

    def __init__(
        self, name: str, num_layers: int, tokenizer: PromptTokenizer, eos_ids: frozenset[int]
    ) -> None:
        self.name = name
        self._num_layers, self._tokenizer, self._eos_ids = num_layers, tokenizer, eos_ids
        self._kv_cache = KVCache(num_layers)
        self._decoding: list[RunningRequest] = []
        self._prefilling: deque[RunningRequest] = deque()

    def __len__(self) -> int:
        return len(self._decoding) + len(self._prefilling)

    def add(self, request: RunningRequest) -> None:
        self._prefilling.append(request)

    def step(self, model: Any, prefill_budget: int, counts: BatchCounts) -> None:
        """Decode a token for each running request, then prefill up to `prefill_budget` prompt tokens."""
        self._drop_cancelled(counts)
        if self._decoding:
            counts.steps += 1
            counts.generated_tokens += len(self._decoding)
            self._decode_step(model)
        while self._prefilling and (
            count := prefill_chunk(self._remaining_prompt(), prefill_budget)
        ):
            prefill_budget -= count
            self._prefill_chunk(model, count)
        if not self:
            self._kv_cache = KVCache(self._num_layers)  # memory of a large batch is given back

    def fail_all(self, error: Exception) -> None:
        """End every request with this error."""
        for request in (*self._decoding, *self._prefilling):
            request.emit(error)
        self._decoding, self._prefilling = [], deque()
        self._kv_cache = KVCache(self._num_layers)

    # ── forward passes ───────────────────────────────────────────────────────────────────────────────────

    def _decode_step(self, model: Any) -> None:
        inputs = self._kv_cache.begin_decode([request.cached_tokens for request in self._decoding])
        tokens_B1 = torch.tensor(
            [[each.generated[-1]] for each in self._decoding], dtype=torch.long
        )
        requests = list(self._decoding)
        ended = self._sample_tokens(requests, self._forward_pass(model, tokens_B1, inputs))
        for request in ended:
            self._free_row(self._decoding.index(request))

    def _prefill_chunk(self, model: Any, count: int) -> None:
        """A chunk of the first prompt; after its last chunk, the first token."""
        request, row = self._prefilling[0], len(self._decoding)
        token_ids = request.tokenized.token_ids[request.prefilled : request.prefilled + count]
        inputs = self._kv_cache.begin_prefill(row, request.prefilled, count)
        logits_1V = self._forward_pass(model, torch.tensor([token_ids], dtype=torch.long), inputs)
        request.prefilled += count
        if request.prefilled < len(request.tokenized.token_ids):
            return
        ended = self._sample_tokens([request], logits_1V)
        self._prefilling.popleft()
        if ended:
            self._kv_cache.clear_row(row)
        else:
            self._decoding.append(request)

    def _forward_pass(self, model: Any, tokens_BT: Tensor, inputs: dict[str, Tensor]) -> Tensor:
        out = model(
            input_ids=tokens_BT,
            past_key_values=self._kv_cache.hf_cache,
            use_cache=True,
            logits_to_keep=1,
            **inputs,
        )
        logits_BV: Tensor = out.logits[:, -1]
        return logits_BV

    def _remaining_prompt(self) -> int:
        return len(self._prefilling[0].tokenized.token_ids) - self._prefilling[0].prefilled

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────

    def _sample_tokens(
        self, requests: Sequence[RunningRequest], logits_BV: Tensor
    ) -> list[RunningRequest]:
        """Sample the next token of each request; those that are finished by it."""
        logps_BV = logprobs(logits_BV)
        uniforms = [each.rng.random() if each.sampling.temperature else 0.0 for each in requests]
        tokens = sample_tokens(logps_BV, [each.sampling for each in requests], uniforms)
        ended = []
        for row, (request, token) in enumerate(zip(requests, tokens, strict=True)):
            logprob = float(logps_BV[row, token])
            if not isfinite(logprob):
                request.emit(Transient(f"The logits of {self.name} are no number."))
                ended.append(request)
                continue
            chunk = self._token_chunk(request, token, logprob, logps_BV[row])
            request.emit(chunk)
            if chunk.finish_reason:
                ended.append(request)
        return ended

    def _token_chunk(
        self, request: RunningRequest, token: int, logprob: float, logps_V: Tensor
    ) -> TokenChunk:
        first = not request.generated
        request.generated.append(token)
        text, finish = self._detokenize_token(request, token)
        top_count = request.request.top_logprobs
        if finish and not request.detokenizer.stopped:
            ids = tuple(request.generated)
            self._tokenizer.remember_reply(request.tokenized, ids, ended=token in self._eos_ids)
        return TokenChunk(
            text=text,
            token_ids=(token,),
            logprobs=(min(logprob, 0.0),),
            tokens=() if top_count is None else (self._tokenizer.token_text(token),),
            top_logprobs=(self._top_logprobs(logps_V, top_count),) if top_count else (),
            finish_reason=finish,
            prompt_token_ids=request.tokenized.token_ids if first else None,
        )

    def _detokenize_token(
        self, request: RunningRequest, token: int
    ) -> tuple[str, FinishReason | None]:
        detokenizer = request.detokenizer
        if token in self._eos_ids:
            return detokenizer.finish(), "stop"
        text, full = detokenizer.add(token), len(request.generated) >= request.max_new_tokens
        if full:
            text += detokenizer.finish()
        if detokenizer.stopped:
            return text, "stop"
        return text, "length" if full else None

    def _top_logprobs(self, logps_V: Tensor, count: int) -> tuple[TopLogprob, ...]:
        return tuple(
            (token, self._tokenizer.token_text(token), logprob)
            for token, logprob in top_tokens(logps_V, count)
        )

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    def _drop_cancelled(self, counts: BatchCounts) -> None:
        """Free the rows of cancelled requests before anything more is computed for them."""
        for request in [each for each in self._decoding if each.cancelled]:
            self._free_row(self._decoding.index(request))
            counts.cancelled += 1
        cancelled = [each for each in self._prefilling if each.cancelled]
        for request in cancelled:
            if request.prefilled:
                self._kv_cache.clear_row(len(self._decoding))
            self._prefilling.remove(request)
            counts.cancelled += 1

    def _free_row(self, row: int) -> None:
        """Move the last decoding row into this one; the row that is being prefilled moves up."""
        last = len(self._decoding) - 1
        if row != last:
            self._kv_cache.copy_row(last, row, self._decoding[last].cached_tokens)
            self._decoding[row] = self._decoding[last]
        self._decoding.pop()
        free = last
        if self._prefilling and self._prefilling[0].prefilled:
            self._kv_cache.copy_row(last + 1, last, self._prefilling[0].prefilled)
            free = last + 1
        self._kv_cache.clear_row(free)
