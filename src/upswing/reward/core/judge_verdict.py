r"""What did the judge say? Scores by id, or the reason why its answer cannot be used.

| the answer                                 | becomes                                      |
|--------------------------------------------|----------------------------------------------|
| prose or a code fence around the JSON      | `AttemptVerdicts`                                   |
| a score outside [0, 1]                     | clamped and counted                          |
| NaN, Infinity, text or nothing for a score | that id is lacking, with the reason          |
| the same id twice, with the same score     | taken once, noted                            |
| the same id twice, with different scores   | `Unusable(CONTRADICTION)`                    |
| an id that was not asked about             | `Unusable(UNKNOWN_ID)`                       |
| ids left out                               | `Unusable(MISSING_ID)`                       |
| no JSON, other JSON                        | `Unusable(NOT_JSON)`, `Unusable(NO_SCORES)`  |
| more than 200 KB                           | `Unusable(TOO_LARGE)`                        |

A score belongs to the id beside it, wherever in the list it stands.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

LIMIT = 200_000
"""Bytes; no comparison of eight attempts needs as many."""
EXPLANATION = 1_000
"""Characters of an explanation that are kept."""
_TRIES = 64
_OPENING = re.compile(r"[\[{]\s*[\"{]")
_DECODER = json.JSONDecoder()


class AnswerFlaw(StrEnum):
    """Why an answer cannot be used."""

    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    NO_SCORES = "no_scores"
    UNKNOWN_ID = "unknown_id"
    MISSING_ID = "missing_id"
    CONTRADICTION = "contradiction"
    NOT_A_NUMBER = "not_a_number"


@dataclass(frozen=True, slots=True)
class AttemptVerdicts:
    """Usable scores by id."""

    scores: dict[str, float]
    explanations: dict[str, str]
    clamped: int = 0
    repeated: int = 0
    lacking: tuple[str, ...] = ()
    """Ids whose score is not a number."""


@dataclass(frozen=True, slots=True)
class UnusableAnswer:
    """Not one score of the answer is taken."""

    flaw: AnswerFlaw
    sentence: str


@dataclass(frozen=True, slots=True)
class JudgeSpend:
    """What asking has cost."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    cached: int = 0
    """Answers that were known already and cost nothing."""

    def __add__(self, other: JudgeSpend) -> JudgeSpend:
        return JudgeSpend(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.usd + other.usd,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """What is known of a whole group: its scores, or why it has none."""

    judged: bool
    reason: str
    """A sentence for a person, in either case."""
    judge: str
    """The model that was asked, or `outcome`."""
    scores: dict[str, float] = field(default_factory=dict)
    """By trajectory id, in [0, 1]."""
    explanations: dict[str, str] = field(default_factory=dict)
    spend: JudgeSpend = JudgeSpend()
    clamped: int = 0
    lacking: tuple[str, ...] = ()
    """Trajectories of a judged group that got no usable score."""

    @classmethod
    def unjudged(cls, judge: str, reason: str, spend: JudgeSpend = JudgeSpend()) -> GroupVerdict:  # noqa: B008  it is frozen
        """The group is kept; it has no scores."""
        return cls(False, reason, judge, spend=spend)


def parse_verdicts(answer: str, ids: Collection[str]) -> AttemptVerdicts | UnusableAnswer:
    """The scores of exactly these ids.

    >>> parse_verdicts('Sure! {"scores": [{"id": "K7QP", "score": 1.4, "explanation": "Good."}]}', {"K7QP"})
    AttemptVerdicts(scores={'K7QP': 1.0}, explanations={'K7QP': 'Good.'}, clamped=1, repeated=0, lacking=())
    >>> parse_verdicts("The first one was best.", {"K7QP"}).sentence
    'The answer holds no JSON.'
    """
    if len(answer) > LIMIT or len(answer.encode(errors="replace")) > LIMIT:
        return UnusableAnswer(
            AnswerFlaw.TOO_LARGE, f"The answer is larger than {LIMIT // 1000} KB."
        )
    found = list(_find_json(answer))
    if not found:
        return UnusableAnswer(AnswerFlaw.NOT_JSON, "The answer holds no JSON.")
    lists = [entries for each in found if (entries := _score_entries(each))]
    if not lists:
        return UnusableAnswer(AnswerFlaw.NO_SCORES, "The answer holds JSON, but no list of scores.")
    return _check_entries(lists[-1], ids)  # a judge that thinks aloud comes to its answer last


def _check_entries(
    entries: list[dict[str, Any]], ids: Collection[str]
) -> AttemptVerdicts | UnusableAnswer:
    scores: dict[str, float | None] = {}
    explanations: dict[str, str] = {}
    clamped = repeated = 0
    for entry in entries:
        name, score = (
            entry.get("id", entry.get("trajectory_id")),
            _finite_number(entry.get("score")),
        )
        if not isinstance(name, str) or name not in ids:
            return UnusableAnswer(
                AnswerFlaw.UNKNOWN_ID,
                f"The answer scores {_short_repr(name)}, which was not asked.",
            )
        if name in scores:
            if scores[name] != score:
                return UnusableAnswer(
                    AnswerFlaw.CONTRADICTION, f"The answer scores {name} twice, differently."
                )
            repeated += 1
            continue
        clamped += score is not None and not 0 <= score <= 1
        scores[name] = score
        explanations[name] = str(entry.get("explanation") or "")[:EXPLANATION]
    missing = [each for each in ids if each not in scores]
    if missing:
        return UnusableAnswer(
            AnswerFlaw.MISSING_ID, f"The answer leaves out {len(missing)} of {len(ids)} attempts."
        )
    usable = {name: min(1.0, max(0.0, s)) for name, s in scores.items() if s is not None}
    if not usable:
        return UnusableAnswer(AnswerFlaw.NOT_A_NUMBER, "Not one score of the answer is a number.")
    lacking = tuple(name for name in scores if name not in usable)
    return AttemptVerdicts(usable, explanations, clamped, repeated, lacking)


def _finite_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _find_json(answer: str) -> Iterator[Any]:
    """Each JSON value in the answer, in order; not many are tried, so no answer is slow to read."""
    end = tries = 0
    for opening in _OPENING.finditer(answer):
        if opening.start() < end:
            continue
        tries += 1
        if tries > _TRIES:
            return
        try:
            value, end = _DECODER.raw_decode(answer, opening.start())
        except (ValueError, RecursionError):
            continue
        yield value


def _score_entries(value: Any) -> list[dict[str, Any]] | None:
    """The list of scores in a JSON value: under `scores`, or the value itself."""
    listed = value.get("scores") if isinstance(value, dict) else value
    if not isinstance(listed, list) or not listed:
        return None
    return listed if all(isinstance(each, dict) for each in listed) else None


def _short_repr(name: Any) -> str:
    plain = name if isinstance(name, str) else type(name).__name__
    return repr(plain[:20])
