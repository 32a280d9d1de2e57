"""How does a trajectory become tokens, and which of them train?

| the record                                        | ids, logprobs                | `exact` |
|---------------------------------------------------|------------------------------|---------|
| every turn has its tokens, and they can be true   | as recorded                  | yes     |
| some turn has none (redaction took them)          | text tokenised again, none   | no      |
| they cannot be true                               | the same, with the reason    | no      |

Recorded tokens of a turn are those new since the turn before; the last `len(logprobs)` of them are
what the model produced. They are not believed when a number is no logprob, when an id is not in the
vocabulary, or when they do not spell what the model is recorded to have said: then they are another
tokenizer's.

A trajectory longer than `max_tokens` does not train: its end, where the reward comes from, cannot be
cut off without rewarding what did not earn it. It is *masked*: others of its group are still
compared with its reward, so a group does not look better because its longest attempts are missing.
Only what the model produced trains, the mark that ends a turn included.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from upswing.dataset.sample import Sample, SampleTurn
from upswing.train.chat.tokenizer import ChatTokenizer, UnsupportedConversation
from upswing.train.chat.turns import chat_turns
from upswing.train.core.recipe import Recipe
from upswing.train.core.spec import group_key
from upswing.train.learn.example import EncodedSamples, Example

log = logging.getLogger(__name__)
_LOGPROB_TOLERANCE = 1e-6
"""A logprob may be that much too large: servers round."""


@dataclass(frozen=True, slots=True)
class _EncodedTurn:
    ids: tuple[int, ...]
    trained: int
    """How many of the last ones the model produced."""
    logps: tuple[float, ...] | None = None
    """Of those."""


class _ImplausibleTokens(Exception):
    """Recorded tokens that cannot be true; the sentence says why."""


class _Unusable(Exception):
    """A trajectory that cannot be trained on; the sentence says why."""


def encode_samples(samples: Sequence[Sample], tokenizer: Any, recipe: Recipe) -> EncodedSamples:
    """The examples of these samples, in their order, and what did not become one."""
    encoder = _Encoder(tokenizer, recipe)
    examples: list[Example] = []
    dropped: dict[str, str] = {}
    for sample in samples:
        try:
            examples.append(encoder.build_example(sample))
        except _Unusable as error:
            dropped[sample.trajectory_id] = str(error)
        except Exception as error:  # one that nobody foresaw is left out like the others
            log.exception(
                "%s cannot be encoded",
                sample.trajectory_id,
                extra={"action": "alert", "reason": "not_encodable"},
            )
            dropped[sample.trajectory_id] = f"It breaks the encoder: {type(error).__name__}."
    return EncodedSamples(
        examples=tuple(examples),
        dropped=dropped,
        masked=sum(example.masked for example in examples),
        pieced=encoder.pieced,
        doubted=dict(encoder.doubted),
    )


class _Encoder:
    def __init__(self, tokenizer: Any, recipe: Recipe) -> None:
        self._chat_tokenizer = ChatTokenizer(tokenizer)
        self._vocabulary = len(tokenizer)
        self._limit = recipe.max_tokens
        self._at_temperature = recipe.at_temperature
        self._text_by_ids: dict[tuple[int, ...], str] = {}
        self.pieced = 0
        self.doubted: Counter[str] = Counter()

    def build_example(self, sample: Sample) -> Example:
        if not sample.turns:
            raise _Unusable("It has no turns.")
        if not isfinite(sample.reward):
            raise _Unusable("Its reward is not a number.")
        turns, exact = self._recorded_turns(sample), True
        if turns is None:
            turns, exact = self._tokenize_text(sample), False
        if not any(turn.trained for turn in turns):
            raise _Unusable("Nothing in it was said by the model, as far as is known.")
        if sum(len(turn.ids) for turn in turns) > self._limit:
            return _masked_example(sample, exact=exact)
        example = _build_example(sample, turns, exact=exact)
        return example if self._at_temperature else replace(example, temperature=1.0)

    def _recorded_turns(self, sample: Sample) -> list[_EncodedTurn] | None:
        """The tokens as they were recorded, where there are some for every turn."""
        if any(turn.token_ids is None or turn.logprobs is None for turn in sample.turns):
            return None
        try:
            return [
                self._recorded_turn(turn, first=number == 0)
                for number, turn in enumerate(sample.turns)
            ]
        except _ImplausibleTokens as doubt:
            self.doubted[str(doubt)] += 1
            return None

    def _recorded_turn(self, turn: SampleTurn, *, first: bool) -> _EncodedTurn:
        ids, logps = tuple(turn.token_ids or ()), tuple(turn.logprobs or ())
        if len(logps) > len(ids):
            raise _ImplausibleTokens("There are more logprobs than tokens.")
        if first and len(logps) == len(ids):
            raise _ImplausibleTokens("The model is said to have spoken before it read anything.")
        if not all(0 <= number < self._vocabulary for number in ids):
            raise _ImplausibleTokens("A token is not in the vocabulary.")
        if not all(isfinite(logp) and logp <= _LOGPROB_TOLERANCE for logp in logps):
            raise _ImplausibleTokens("A logprob is no logprob.")
        completion = turn.action.get("raw_response") if isinstance(turn.action, dict) else None
        if isinstance(completion, str) and not self._matches_text(
            ids[len(ids) - len(logps) :], completion
        ):
            raise _ImplausibleTokens("The tokens do not spell what was said.")
        return _EncodedTurn(ids, len(logps), tuple(min(logp, 0.0) for logp in logps))

    def _matches_text(self, ids: tuple[int, ...], completion: str) -> bool:
        """Blanks do not count: a recorder may have trimmed them."""
        if ids not in self._text_by_ids:
            self._text_by_ids[ids] = "".join(self._chat_tokenizer.decode(ids).split())
        return self._text_by_ids[ids] == "".join(
            self._chat_tokenizer.strip_markers(completion).split()
        )

    def _tokenize_text(self, sample: Sample) -> list[_EncodedTurn]:
        """The text of the record, tokenised again."""
        try:
            turns = chat_turns(
                sample, self._chat_tokenizer.features, self._chat_tokenizer.format_calls
            )
            spoken = self._chat_tokenizer.tokenize_turns(turns, sample.tools)
        except UnsupportedConversation as error:
            raise _Unusable(str(error)) from None
        self.pieced += any(turn.in_pieces for turn in spoken)
        return [
            _EncodedTurn(
                turn.prompt_ids + turn.completion_ids,
                0 if recorded.context_only else len(turn.completion_ids),
            )
            for turn, recorded in zip(spoken, sample.turns, strict=True)
        ]


def _masked_example(sample: Sample, *, exact: bool) -> Example:
    return replace(_build_example(sample, [], exact=exact), turn_rewards=None, masked=True)


def _build_example(sample: Sample, turns: Sequence[_EncodedTurn], *, exact: bool) -> Example:
    rewards = sample.turn_rewards
    whole = rewards is not None and len(rewards) == len(sample.turns)
    return Example(
        trajectory_id=sample.trajectory_id,
        group=sample.group or group_key(sample.window_id, sample.scenario_id),
        task=sample.task_id,
        ids=tuple(number for turn in turns for number in turn.ids),
        trained=tuple(
            place >= len(turn.ids) - turn.trained
            for turn in turns
            for place in range(len(turn.ids))
        ),
        turns=tuple(number for number, turn in enumerate(turns) for _ in turn.ids),
        logps=_aligned_logprobs(turns) if exact else None,
        exact=exact,
        reward=sample.reward,
        turn_rewards=tuple(rewards) if rewards is not None and whole else None,
        agent_id=sample.agent_id,
        behaviour=sample.model,
        domain=sample.domain,
        score_scale=sample.score_scale,
        temperature=sample.temperature or 1.0,
    )


def _aligned_logprobs(turns: Sequence[_EncodedTurn]) -> tuple[float, ...]:
    """Logprobs in the places of their tokens, 0 where the model did not speak."""
    return tuple(
        logp
        for turn in turns
        for logp in (*[0.0] * (len(turn.ids) - turn.trained), *(turn.logps or ()))
    )
