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

What the user's own turns show (`upswing.reward.implicit`) is a voice while that user has not spoken. A word of
theirs, or one of which nobody says whose it is, counts instead of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import fsum
from typing import Any, assert_never

from msgspec import UnsetType

from upswing.contracts import Feedback
from upswing.reward.implicit import SILENT, ImplicitSignal, ImplicitSignals
from upswing.reward.implicit_text import SignalKind
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


def opinion(
    feedback: Iterable[Feedback], shown: ImplicitSignals = SILENT, owner: str | None = None
) -> Score:
    """What the users think; neutral when they say and show nothing, and never absent.

    `shown` is what the turns of the user `owner` show.
    """
    newest: dict[str | None, tuple[Feedback, float]] = {}
    for word in sorted(feedback, key=lambda one: (one.timestamp, one.feedback_id)):
        vote = vote_of(word)
        if vote is not None:
            newest[None if isinstance(word.user_id, UnsetType) else word.user_id] = (word, vote)
    signal = shown.deciding
    spoke = bool(newest) and (owner is None or None in newest or owner in newest)
    counted = None if spoke else signal
    beside = (
        {"implicit": shown.to_raw() | {"counted": counted is not None}} if shown.to_raw() else {}
    )
    if not newest:
        return _silent(shown, counted, beside)
    votes = [vote for _, vote in newest.values()] + ([counted.value] if counted else [])
    said = Counter(_say(word) for word, _ in newest.values())
    told = ", ".join(f"{count} × {name}" for name, count in sorted(said.items()))
    value = min(1.0, max(0.0, round(fsum(votes) / len(votes), 12)))
    data = {"voices": len(newest), "words": dict(sorted(said.items())), **beside}
    more = f" {_show(counted)}" if counted else " Their word counts, not what their turns show." if signal else ""  # fmt: skip
    return Score(value, "human", f"Users said: {told}.{more}", data)


def _silent(
    shown: ImplicitSignals, counted: ImplicitSignal | None, beside: dict[str, Any]
) -> Score:
    """Nobody spoke: what the turns show, or neutral."""
    if counted is not None:
        reasoning = f"Nobody gave feedback. {_show(counted)}"
        data = {"voices": 0, **beside}
        return Score(counted.value, "automated", reasoning, data, counted.confidence)
    reasoning = "Nobody gave feedback, so it is neutral."
    if shown.undecided is not None:
        reasoning += f" What the user means in turn {shown.undecided} is not clear."
    return Score(NEUTRAL, "human", reasoning, {"voices": 0, **beside}, 0.5)


def _show(signal: ImplicitSignal) -> str:
    """A signal as a sentence, with the sum behind it."""
    match signal.kind:
        case SignalKind.THANKS:
            seen = f"The user thanks in turn {signal.turn_id}"
        case SignalKind.CORRECTION:
            seen = f"The user corrects the answer in turn {signal.turn_id}"
        case SignalKind.REPEAT:
            seen = f"The user asks the same again in turn {signal.turn_id}"
        case SignalKind.ABANDONED:
            seen = f"The user left after turn {signal.turn_id}"
        case _:
            assert_never(signal.kind)
    by = "" if signal.by == "rules" else f", as {signal.by} reads it"
    return f"{seen} (implicit, confidence {signal.confidence:g}{by})."


def voiced(score: Score) -> float | None:
    """An opinion that somebody has given; None when nobody spoke, whatever their turns show."""
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
