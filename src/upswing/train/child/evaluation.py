"""How is a policy measured while it trains? On a bounded sample, so that it costs little.

| what        | how                                                                             |
|-------------|---------------------------------------------------------------------------------|
| KL          | exact over the vocabulary, at each token of up to `MAX_REPLIES` logged episodes:     |
|             | held-out ones, else trained ones; prefixes are those of the start policy         |
| diversity   | of the first token of each, over the same episodes                               |
| value       | fresh samples where tasks can be played, else weighted logged held-out episodes; |
|             | of the start policy without a pass, from what it said of every token before      |
| answers     | greedy replies to up to `MAX_PROMPTS` of the prompts, before and after               |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from upswing.train.learn.evaluation import UNKNOWN_KL, PolicyEvaluation
from upswing.train.learn.example import Example
from upswing.train.learn.example_tensors import compute_logprobs, off_policy_value, turn_index
from upswing.train.learn.forward import full_distributions
from upswing.train.learn.packing import build_packs
from upswing.worlds.generate import GenerationParams, generate_completions

MAX_REPLIES, MAX_PROMPTS = 96, 48
_MAX_LOGPROBS = 1 << 24
"""Log-probabilities of the start policy that are kept: 64 MB."""
_MAX_REPLY_TOKENS = 16
"""Tokens of a greedy reply."""
_TRAINED, _HELD_OUT = 128, 160
"""Episodes that the reward on trained and on held-out tasks is estimated from."""

PlayHeldOut = Callable[[nn.Module], tuple[float, int] | None]
"""The mean score of fresh attempts at held-out tasks, and how many there were; None: it could not be
had."""


@dataclass(frozen=True, slots=True)
class LoggedEpisodes:
    """Episodes, and what the policy that acted said of their tokens."""

    examples: Sequence[Example]
    old: Sequence[Tensor]
    start: Sequence[Tensor]
    """What the policy said of them that training starts from."""

    def value(self, model: nn.Module, micro_tokens: int) -> tuple[float, float] | None:
        """What the model would have earned on them, and on how many of them that rests."""
        return self._estimate_value(
            compute_logprobs(model, self.examples, micro_tokens=micro_tokens)
        )

    def value_at_start(self) -> tuple[float, float] | None:
        """What the policy that training starts from would have earned on them."""
        return self._estimate_value(self.start)

    def _estimate_value(self, new: Sequence[Tensor]) -> tuple[float, float] | None:
        if not self.examples:
            return None
        found = off_policy_value([each.reward for each in self.examples], new, self.old)
        return (found.value, found.effective * len(self.examples)) if found else None

    def sample(self, count: int) -> LoggedEpisodes:
        """At most so many, evenly spread; attempts at one prompt stay together, since they share its pass.

        >>> tried = [Example("t", "g", "k", (prompt, n), (False, True), (0, 0), None, False, 1.0)
        ...          for prompt in range(6) for n in range(3)]
        >>> [each.ids for each in LoggedEpisodes(tried, tried, tried).sample(6).examples]
        [(0, 0), (0, 1), (0, 2), (3, 0), (3, 1), (3, 2)]
        """
        by_prompt: dict[tuple[int, ...], list[int]] = {}
        for place, example in enumerate(self.examples):
            by_prompt.setdefault(_prompt_ids(example), []).append(place)
        step = max(1, -(-len(self.examples) // count))
        places = [place for some in list(by_prompt.values())[::step] for place in some][:count]
        return LoggedEpisodes(
            [self.examples[at] for at in places],
            [self.old[at] for at in places],
            [self.start[at] for at in places],
        )


class Evaluator:
    """Compares a policy with the one it began as: it is made before the first step."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        train: LoggedEpisodes,
        held_out: LoggedEpisodes,
        *,
        micro_tokens: int,
        play_held_out: PlayHeldOut | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._train, self._held_out = train.sample(_TRAINED), held_out.sample(_HELD_OUT)
        self._micro_tokens = micro_tokens
        self._play_held_out = play_held_out
        pool = (held_out if held_out.examples else train).sample(MAX_REPLIES).examples
        self._sample = _limit_examples(pool, _vocabulary_size(model))
        self._start = self._token_distributions(model)
        self._prompts = list(dict.fromkeys(_prompt_ids(each) for each in self._sample))[
            :MAX_PROMPTS
        ]
        self._answers = self._greedy_replies(model)
        replies = sum(len(set(turn_index(each).tolist())) for each in self._sample)
        self.tokens_per_reply = sum(sum(each.trained) for each in self._sample) / max(1, replies)
        played = self._play_tasks(model)
        self.start = self._build_evaluation(0, self._start, played, self._held_out.value_at_start())
        rewarded = self._train.value_at_start()
        self.start_reward = rewarded[0] if rewarded else None

    def evaluate(self, model: nn.Module, step: int) -> PolicyEvaluation:
        """What can be said of the model after this step."""
        training = model.training
        model.eval()
        try:
            now, played = self._token_distributions(model), self._play_tasks(model)
            logged = None if played else self._held_out.value(model, self._micro_tokens)
            return self._build_evaluation(step, now, played, logged)
        finally:
            model.train(training)

    def _play_tasks(self, model: nn.Module) -> tuple[float, int] | None:
        return self._play_held_out(model) if self._play_held_out else None

    def _build_evaluation(
        self,
        step: int,
        distributions: Sequence[Tensor],
        played: tuple[float, float] | None,
        logged: tuple[float, float] | None,
    ) -> PolicyEvaluation:
        value, effective = played or logged or (None, 0.0)
        return PolicyEvaluation(
            step=step,
            kl=self._kl_divergence(distributions),
            diversity=_first_token_diversity(distributions),
            value=value,
            effective=effective,
            source="fresh" if played else "logged",
        )

    def train_reward(self, model: nn.Module) -> float | None:
        """What the model would have earned on a sample of what it was trained on."""
        found = self._train.value(model, self._micro_tokens)
        return found[0] if found else None

    def changed_answers(self, model: nn.Module) -> float | None:
        """The share of the prompts to which the model's greedy reply is no longer the start's."""
        if not self._answers:
            return None
        now = self._greedy_replies(model)
        return sum(a != b for a, b in zip(now, self._answers, strict=True)) / len(now)

    def _token_distributions(self, model: nn.Module) -> list[Tensor]:
        found: list[Tensor] = [torch.empty(0)] * len(self._sample)
        for pack in build_packs(self._sample, micro_tokens=self._micro_tokens):
            for index, logps_TV in zip(pack.examples, full_distributions(model, pack), strict=True):
                found[index] = logps_TV
        return found

    def _kl_divergence(self, distributions: Sequence[Tensor]) -> float:
        """Summed over the tokens of a reply, on the mean of all replies."""
        total, replies = 0.0, 0
        for example, new_TV, old_TV in zip(self._sample, distributions, self._start, strict=True):
            total += summed_kl(new_TV, old_TV)
            replies += len(set(turn_index(example).tolist()))
        found = total / max(1, replies)
        return max(0.0, found) if math.isfinite(found) else UNKNOWN_KL

    def _greedy_replies(self, model: nn.Module) -> list[tuple[int, ...]]:
        lengths = sorted(len(_first_reply(each)) for each in self._sample)
        most = min(_MAX_REPLY_TOKENS, lengths[-1]) if lengths else 1
        how = GenerationParams(_end_tokens(model, self._tokenizer), most)
        return [drawn.ids for drawn in generate_completions(model, self._prompts, None, how)]


def _limit_examples(examples: Sequence[Example], vocabulary: int) -> list[Example]:
    """As many of them as the start policy's words on them can be kept."""
    kept: list[Example] = []
    room = _MAX_LOGPROBS
    for example in examples:
        room -= sum(example.trained) * vocabulary
        if room < 0 and kept:
            break
        kept.append(example)
    return kept


def _first_token_diversity(distributions: Sequence[Tensor]) -> float:
    mean_V = torch.stack([logps_TV[0].exp() for logps_TV in distributions]).mean(0)
    count = float(torch.special.entr(mean_V).sum().exp())
    return count if math.isfinite(count) else 0.0


def summed_kl(new_TV: Tensor, old_TV: Tensor) -> float:
    """KL(new ‖ old), summed over the tokens; a word that the new one never says adds nothing.

    >>> never = torch.tensor([[0.0, -math.inf]])
    >>> summed_kl(never, never), summed_kl(torch.tensor([[math.nan, 0.0]]), never)
    (0.0, nan)
    """
    apart_TV = new_TV.exp() * (new_TV - old_TV)
    return float(torch.where(new_TV.isneginf(), 0.0, apart_TV).sum())


def _prompt_ids(example: Example) -> tuple[int, ...]:
    """What was read before the first reply."""
    return example.ids[: example.trained.index(True)]


def _first_reply(example: Example) -> tuple[int, ...]:
    """The first reply."""
    first = example.trained.index(True)
    turn = example.turns[first]
    return tuple(
        each
        for each, trained, at in zip(example.ids, example.trained, example.turns, strict=True)
        if trained and at == turn
    )


def _vocabulary_size(model: Any) -> int:
    return int(model.get_input_embeddings().num_embeddings)


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply, by the word of model and tokenizer."""
    eos = model.generation_config.eos_token_id
    listed = eos if isinstance(eos, list) else [eos]
    return frozenset(token for token in (*listed, tokenizer.eos_token_id) if token is not None)
