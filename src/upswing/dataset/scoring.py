"""Inside a group, which source decides who did better? One source, never two.

| source     | what it is                                                                     |
|------------|--------------------------------------------------------------------------------|
| `verified` | what a world, tests or a verifier says; where all members have only a P&L, their rank by it |
| `judge`    | a judge model's score: it saw the outcome                                      |
| `reported` | the outcome as somebody reports it, the agent itself included                  |
| `feedback` | what users said: thumbs, stars, corrections                                    |

The first source that *every* member has is taken. If there is none, the first one that enough members
have, and the others are left out of the group. Scores of two sources never meet in one group, because
their scales do not. A single attempt is scored by the best source that says anything of it, and compared with
those of its domain that the same source scores (`single_scores`): what is said of others changes neither.
Latency, style and the absence of feedback are in `total_reward`, for people and for monitoring; they decide
nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum, isfinite, sqrt
from typing import Protocol

MIN_SPREAD = 0.02
"""A standard deviation of scores below this is no difference: the group is flat."""


class ScoreSource(StrEnum):
    """Who said how well it went."""

    VERIFIED = "verified"
    JUDGE = "judge"
    REPORTED = "reported"
    FEEDBACK = "feedback"


PRECEDENCE = (ScoreSource.VERIFIED, ScoreSource.JUDGE, ScoreSource.REPORTED, ScoreSource.FEEDBACK)
"""The most trusted source first."""


class ScoreEvidence(Protocol):
    """What was said of one trajectory, by source; None where nothing was."""

    @property
    def trajectory_id(self) -> str: ...
    @property
    def verified(self) -> float | None: ...
    @property
    def pnl(self) -> float | None: ...
    @property
    def judged(self) -> float | None: ...
    @property
    def reported(self) -> float | None: ...
    @property
    def feedback(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class GroupScores:
    """The scores of a group, from 0 to 1, all of one source."""

    source: ScoreSource
    scores: Mapping[str, float]
    """By trajectory; members without a word of this source are not in it."""

    @property
    def flat(self) -> bool:
        """Nobody did better than another."""
        return not spread(self.scores.values()) >= MIN_SPREAD


_SCORE_READERS: dict[ScoreSource, Callable[[ScoreEvidence], float | None]] = {
    ScoreSource.VERIFIED: lambda each: each.verified,
    ScoreSource.JUDGE: lambda each: each.judged,
    ScoreSource.REPORTED: lambda each: each.reported,
    ScoreSource.FEEDBACK: lambda each: each.feedback,
}


def group_scores(
    members: Sequence[ScoreEvidence],
    min_members: int = 2,
    precedence: Sequence[ScoreSource] = PRECEDENCE,
) -> GroupScores | None:
    """The scores of these members; None when too few have a word of any one source."""
    if not members:
        return None
    found = [(source, _scores_from(members, source)) for source in precedence]
    for source, scores in found:
        if len(scores) == len(members) >= min_members:
            return GroupScores(source, scores)
    for source, scores in found:
        if len(scores) >= min_members:
            return GroupScores(source, scores)
    return None


def covers(members: Sequence[ScoreEvidence], source: ScoreSource) -> bool:
    """Whether every one of these has a word of this source."""
    return len(_scores_from(members, source)) == len(members)


@dataclass(frozen=True, slots=True)
class SingleScore:
    """What is said of a trajectory that is no member of a group."""

    score: float
    source: ScoreSource
    scale: str
    """Only scores of the same scale are compared: the source, or `pnl` where it is a rank by profit."""


PNL_SCALE = "pnl"


def single_scores(
    members: Sequence[ScoreEvidence], precedence: Sequence[ScoreSource] = PRECEDENCE
) -> dict[str, SingleScore]:
    """What is said of each of a domain's single trajectories, by the best source that says anything of it.

    Those of which nothing is said are not in it. Other trajectories do not change a score, but for ranks by
    profit, which are among those that have a P&L and no verified outcome.
    """
    found: dict[str, SingleScore] = {}
    for source in precedence:
        read = _SCORE_READERS[source]
        for each in members:
            score = _finite(read(each))
            if score is not None and each.trajectory_id not in found:
                share = min(1.0, max(0.0, score))
                found[each.trajectory_id] = SingleScore(share, source, source.value)
        if source is ScoreSource.VERIFIED:
            for name, rank in _profit_ranks(members, found).items():
                found[name] = SingleScore(rank, source, PNL_SCALE)
    return found


def _profit_ranks(members: Sequence[ScoreEvidence], scored: Collection[str]) -> dict[str, float]:
    """Ranks of those that have a P&L and no score yet; one alone has none."""
    earned = {
        each.trajectory_id: pnl
        for each in members
        if each.trajectory_id not in scored and (pnl := _finite(each.pnl)) is not None
    }
    return rank_shares(earned) if len(earned) > 1 else {}


def _scores_from(members: Sequence[ScoreEvidence], source: ScoreSource) -> dict[str, float]:
    read = _SCORE_READERS[source]
    scores = {each.trajectory_id: _finite(read(each)) for each in members}
    known = {name: min(1.0, max(0.0, score)) for name, score in scores.items() if score is not None}
    if source is ScoreSource.VERIFIED and not known and len(members) > 1:
        earned = {each.trajectory_id: _finite(each.pnl) for each in members}
        return rank_shares({name: pnl for name, pnl in earned.items() if pnl is not None})
    return known


def rank_shares(values: Mapping[str, float]) -> dict[str, float]:
    """Numbers of no known scale as shares of the way from the worst to the best; equals alike.

    >>> rank_shares({"a": -200.0, "b": 500.0, "c": 100.0}), rank_shares({"a": 3.0, "b": 3.0})
    ({'a': 0.0, 'b': 1.0, 'c': 0.5}, {'a': 0.5, 'b': 0.5})
    """
    if not values:
        return {}
    ordered = sorted(values.values())
    first = {value: place for place, value in reversed(list(enumerate(ordered)))}
    last = {value: place for place, value in enumerate(ordered)}
    top = len(ordered) - 1
    lowest, highest = last[ordered[0]] / 2, (first[ordered[-1]] + top) / 2
    if lowest == highest:
        return dict.fromkeys(values, 0.5)
    return {
        name: ((first[value] + last[value]) / 2 - lowest) / (highest - lowest)
        for name, value in values.items()
    }


def spread(numbers: Iterable[float]) -> float:
    """The standard deviation; 0 of fewer than two numbers.

    >>> spread([0.0, 1.0]), spread([1.0])
    (0.5, 0.0)
    """
    values = list(numbers)
    if len(values) < 2:
        return 0.0
    mean = fsum(values) / len(values)
    return sqrt(fsum((each - mean) ** 2 for each in values) / len(values))


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
