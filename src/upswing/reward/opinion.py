"""What did the people say who asked for it? Their last word, one voice each.

| word                  | score                        |
|-----------------------|------------------------------|
| thumbs up, down       | 1.0, 0.0                     |
| rating of 1 … 5 stars | 0.0, 0.25, 0.5, 0.75, 1.0    |
| correction            | 0.2                          |
| demonstration         | 0.2                          |
| abandoned             | 0.0                          |
| comment               | no vote                      |
| nothing               | 0.5                          |

A later word of the same user replaces the earlier one; all words without a user are one voice,
so that nobody gains weight by leaving the name out. Several voices: their mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import UnsetType

from upswing.contracts import Feedback
from upswing.reward.score import Score

WEIGHT = 0.25
NEUTRAL = 0.5
WORDS = {
    "thumbs_up": 1.0,
    "thumbs_down": 0.0,
    "correction": 0.2,
    "demonstration": 0.2,
    "abandoned": 0.0,
}


def opinion(feedback: Iterable[Feedback]) -> Score:
    """What the users think; neutral when they say nothing, and never absent."""
    newest: dict[str | None, tuple[Feedback, float]] = {}
    for word in sorted(feedback, key=lambda one: (one.timestamp, one.feedback_id)):
        vote = vote_of(word)
        if vote is not None:
            newest[None if isinstance(word.user_id, UnsetType) else word.user_id] = (word, vote)
    if not newest:
        return Score(
            NEUTRAL, "human", "Nobody gave feedback, so it is neutral.", {"voices": 0}, 0.5
        )
    votes = sorted(vote for _, vote in newest.values())  # sorted: the sum of any order is the same
    said = Counter(_say(word) for word, _ in newest.values())
    told = ", ".join(f"{count} × {name}" for name, count in sorted(said.items()))
    value = min(1.0, max(0.0, round(sum(votes) / len(votes), 12)))
    data = {"voices": len(votes), "words": dict(sorted(said.items()))}
    return Score(value, "human", f"Users said: {told}.", data)


def voiced(score: Score) -> float | None:
    """An opinion that somebody has; None when it is neutral because nobody spoke."""
    return score.value if score.raw_data.get("voices") else None


def vote_of(word: Feedback) -> float | None:
    """What this word is worth; None when it is no vote."""
    if word.type == "rating" and not isinstance(word.rating, UnsetType):
        return min(1.0, max(0.0, (word.rating - 1) / 4))
    return WORDS.get(word.type)


def _say(word: Feedback) -> str:
    if word.type == "rating":
        return f"{word.rating} of 5 stars"
    return word.type.replace("_", " ")
