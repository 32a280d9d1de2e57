"""Inside a group, whose word decides who did better? One source, never two.

| source     | what it is                                                                     |
|------------|--------------------------------------------------------------------------------|
| `verified` | what a world, tests or a verifier says; where all members have only a P&L, their rank by it |
| `judge`    | a judge model's score: it saw the outcome                                      |
| `reported` | the outcome as somebody reports it, the agent itself included                  |
| `feedback` | what users said: thumbs, stars, corrections                                    |

The first source that *every* member has is taken. If there is none, the first one that enough members
have, and the others are left out of the group. Scores of two sources never meet in one group, because
their scales do not. Single attempts are compared beside others of their domain, and there one stray word
of a better source must not silence all the others: see `single_scores`. Latency, style and the absence of feedback are in `total_reward`, for people and
for monitoring; they decide nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import fsum, isfinite, sqrt
from typing import Protocol

MIN_SPREAD = 0.02
"""A standard deviation of scores below this is no difference: the group is flat."""


class Source(StrEnum):
    """Who said how well it went."""

    VERIFIED = "verified"
    JUDGE = "judge"
    REPORTED = "reported"
    FEEDBACK = "feedback"


PRECEDENCE = (Source.VERIFIED, Source.JUDGE, Source.REPORTED, Source.FEEDBACK)
"""Whose word counts most, first."""


class Evidence(Protocol):
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

    source: Source
    scores: Mapping[str, float]
    """By trajectory; members without a word of this source are not in it."""

    @property
    def flat(self) -> bool:
        """Nobody did better than another."""
        return not spread(self.scores.values()) >= MIN_SPREAD


_READ: dict[Source, Callable[[Evidence], float | None]] = {
    Source.VERIFIED: lambda each: each.verified,
    Source.JUDGE: lambda each: each.judged,
    Source.REPORTED: lambda each: each.reported,
    Source.FEEDBACK: lambda each: each.feedback,
}


def group_scores(
    members: Sequence[Evidence], least: int = 2, order: Sequence[Source] = PRECEDENCE
) -> GroupScores | None:
    """The scores of these members; None when too few have a word of any one source."""
    if not members:
        return None
    found = [(source, _said(members, source)) for source in order]
    for source, scores in found:
        if len(scores) == len(members) >= least:
            return GroupScores(source, scores)
    for source, scores in found:
        if len(scores) >= least:
            return GroupScores(source, scores)
    return None


def single_scores(
    members: Sequence[Evidence], order: Sequence[Source] = PRECEDENCE
) -> GroupScores | None:
    """The scores of a domain's single trajectories, of those of which anything is said.

    The first source that all of these have; if there is none, the first that half of them have; else the
    one that most have.
    """
    found = [GroupScores(source, _said(members, source)) for source in order]
    whole = len({name for each in found for name in each.scores})
    if not whole:
        return None
    most = max(len(each.scores) for each in found)
    for enough in (whole, whole / 2, most):
        for each in found:
            if len(each.scores) >= enough:
                return each
    return None


def _said(members: Sequence[Evidence], source: Source) -> dict[str, float]:
    read = _READ[source]
    said = {each.trajectory_id: _finite(read(each)) for each in members}
    known = {name: min(1.0, max(0.0, score)) for name, score in said.items() if score is not None}
    if source is Source.VERIFIED and not known and len(members) > 1:
        earned = {each.trajectory_id: _finite(each.pnl) for each in members}
        return ranks({name: pnl for name, pnl in earned.items() if pnl is not None})
    return known


def ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Numbers of no known scale as shares of the way from the worst to the best; equals alike.

    >>> ranks({"a": -200.0, "b": 500.0, "c": 100.0}), ranks({"a": 3.0, "b": 3.0})
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
    told = list(numbers)
    if len(told) < 2:
        return 0.0
    mean = fsum(told) / len(told)
    return sqrt(fsum((each - mean) ** 2 for each in told) / len(told))


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
