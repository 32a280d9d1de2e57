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
from upswing.train.chat import exchanges
from upswing.train.example import Encoded, Example
from upswing.train.recipe import Recipe
from upswing.train.spec import group_key
from upswing.train.speech import Speech, Unspeakable

log = logging.getLogger(__name__)
_ABOVE_ZERO = 1e-6
"""A logprob may be that much too large: servers round."""


@dataclass(frozen=True, slots=True)
class _Turn:
    ids: tuple[int, ...]
    trained: int
    """How many of the last ones the model produced."""
    logps: tuple[float, ...] | None = None
    """Of those."""


class _Doubt(Exception):
    """Recorded tokens that cannot be true; the sentence says why."""


class _Unusable(Exception):
    """A trajectory that cannot be trained on; the sentence says why."""


def encode(samples: Sequence[Sample], tokenizer: Any, recipe: Recipe) -> Encoded:
    """The examples of these samples, in their order, and what did not become one."""
    encoder = _Encoder(tokenizer, recipe)
    examples: list[Example] = []
    dropped: dict[str, str] = {}
    for sample in samples:
        try:
            examples.append(encoder.example(sample))
        except _Unusable as error:
            dropped[sample.trajectory_id] = str(error)
        except Exception as error:  # one that nobody foresaw is left out like the others
            log.exception("%s cannot be encoded", sample.trajectory_id, extra={"action": "alert"})
            dropped[sample.trajectory_id] = f"It breaks the encoder: {type(error).__name__}."
    return Encoded(
        examples=tuple(examples),
        dropped=dropped,
        masked=sum(example.masked for example in examples),
        pieced=encoder.pieced,
        doubted=dict(encoder.doubted),
    )


class _Encoder:
    def __init__(self, tokenizer: Any, recipe: Recipe) -> None:
        self._speech = Speech(tokenizer)
        self._vocabulary = len(tokenizer)
        self._limit = recipe.max_tokens
        self._heated = recipe.at_temperature
        self._spelled: dict[tuple[int, ...], str] = {}
        self.pieced = 0
        self.doubted: Counter[str] = Counter()

    def example(self, sample: Sample) -> Example:
        if not sample.turns:
            raise _Unusable("It has no turns.")
        if not isfinite(sample.reward):
            raise _Unusable("Its reward is not a number.")
        turns, exact = self._recorded(sample), True
        if turns is None:
            turns, exact = self._told(sample), False
        if not any(turn.trained for turn in turns):
            raise _Unusable("Nothing in it was said by the model, as far as is known.")
        if sum(len(turn.ids) for turn in turns) > self._limit:
            return _masked(sample, exact=exact)
        example = _example(sample, turns, exact=exact)
        return example if self._heated else replace(example, temperature=1.0)

    def _recorded(self, sample: Sample) -> list[_Turn] | None:
        """The tokens as they were recorded, where there are some for every turn."""
        if any(turn.token_ids is None or turn.logprobs is None for turn in sample.turns):
            return None
        try:
            return [
                self._recorded_turn(turn, first=number == 0)
                for number, turn in enumerate(sample.turns)
            ]
        except _Doubt as doubt:
            self.doubted[str(doubt)] += 1
            return None

    def _recorded_turn(self, turn: SampleTurn, *, first: bool) -> _Turn:
        ids, logps = tuple(turn.token_ids or ()), tuple(turn.logprobs or ())
        if len(logps) > len(ids):
            raise _Doubt("There are more logprobs than tokens.")
        if first and len(logps) == len(ids):
            raise _Doubt("The model is said to have spoken before it read anything.")
        if not all(0 <= number < self._vocabulary for number in ids):
            raise _Doubt("A token is not in the vocabulary.")
        if not all(isfinite(logp) and logp <= _ABOVE_ZERO for logp in logps):
            raise _Doubt("A logprob is no logprob.")
        said = turn.action.get("raw_response") if isinstance(turn.action, dict) else None
        if isinstance(said, str) and not self._spells(ids[len(ids) - len(logps) :], said):
            raise _Doubt("The tokens do not spell what was said.")
        return _Turn(ids, len(logps), tuple(min(logp, 0.0) for logp in logps))

    def _spells(self, ids: tuple[int, ...], said: str) -> bool:
        """Blanks do not count: a recorder may have trimmed them."""
        if ids not in self._spelled:
            self._spelled[ids] = "".join(self._speech.decoded(ids).split())
        return self._spelled[ids] == "".join(self._speech.bare(said).split())

    def _told(self, sample: Sample) -> list[_Turn]:
        """The text of the record, tokenised again."""
        try:
            talk = exchanges(sample, self._speech.manners, self._speech.spell)
            spoken = self._speech.spoken(talk, sample.tools)
        except Unspeakable as error:
            raise _Unusable(str(error)) from None
        self.pieced += any(turn.pieced for turn in spoken)
        return [
            _Turn(turn.heard + turn.said, 0 if told.context_only else len(turn.said))
            for turn, told in zip(spoken, sample.turns, strict=True)
        ]


def _masked(sample: Sample, *, exact: bool) -> Example:
    return replace(_example(sample, [], exact=exact), turn_rewards=None, masked=True)


def _example(sample: Sample, kept: Sequence[_Turn], *, exact: bool) -> Example:
    rewards = sample.turn_rewards
    whole = rewards is not None and len(rewards) == len(sample.turns)
    return Example(
        trajectory_id=sample.trajectory_id,
        group=sample.group or group_key(sample.window_id, sample.scenario_id),
        task=sample.task_id,
        ids=tuple(number for turn in kept for number in turn.ids),
        trained=tuple(
            place >= len(turn.ids) - turn.trained for turn in kept for place in range(len(turn.ids))
        ),
        turns=tuple(number for number, turn in enumerate(kept) for _ in turn.ids),
        logps=_aligned(kept) if exact else None,
        exact=exact,
        reward=sample.reward,
        turn_rewards=tuple(rewards) if rewards is not None and whole else None,
        agent_id=sample.agent_id,
        behaviour=sample.model,
        domain=sample.domain,
        temperature=sample.temperature or 1.0,
    )


def _aligned(kept: Sequence[_Turn]) -> tuple[float, ...]:
    """Logprobs in the places of their tokens, 0 where the model did not speak."""
    return tuple(
        logp
        for turn in kept
        for logp in (*[0.0] * (len(turn.ids) - turn.trained), *(turn.logps or ()))
    )
