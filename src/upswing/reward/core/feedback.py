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

What the user's own turns show (`upswing.reward.core.implicit`) is a voice while that user has not spoken. A word of
theirs, or one of which nobody says whose it is, counts instead of it. So does a follow-up: a comment with
`metadata.follow_up` is what the user wrote next, in a chat whose requests are recorded one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, assert_never

from msgspec import UnsetType

from upswing.contracts import Feedback
from upswing.reward.core.implicit import MESSAGE, SILENT, ImplicitSignal, ImplicitSignals
from upswing.reward.core.implicit_text import SignalKind, read_text
from upswing.reward.core.score import Score

WEIGHT = 0.25
AFTERWARDS = 0
"""In place of a turn's number: it was said after the last one."""
NEUTRAL = 0.5
VOTES = {
    "thumbs_up": 1.0,
    "thumbs_down": 0.0,
    "correction": 0.2,
    "demonstration": 0.2,
    "abandoned": 0.0,
}


def feedback_score(
    feedback: Iterable[Feedback], shown: ImplicitSignals = SILENT, owner: str | None = None
) -> Score:
    """What the users think; neutral when they say and show nothing, and never absent.

    `shown` is what the turns of the user `owner` show.
    """
    newest: dict[str | None, tuple[Feedback, float]] = {}
    in_order = sorted(feedback, key=lambda one: (one.timestamp, one.feedback_id))
    shown = with_follow_ups(shown, in_order)
    for each in in_order:
        vote = vote_of(each)
        if vote is not None:
            newest[None if isinstance(each.user_id, UnsetType) else each.user_id] = (each, vote)
    signal = shown.deciding
    owner_spoke = bool(newest) and (owner is None or None in newest or owner in newest)
    counted = None if owner_spoke else signal
    beside = (
        {"implicit": shown.to_raw() | {"counted": counted is not None}} if shown.to_raw() else {}
    )
    if not newest:
        return _score_without_feedback(shown, counted, beside)
    votes = [vote for _, vote in newest.values()] + ([counted.value] if counted else [])
    votes_by_label = Counter(_vote_label(each) for each, _ in newest.values())
    summary = ", ".join(f"{count} × {name}" for name, count in sorted(votes_by_label.items()))
    value = min(1.0, max(0.0, round(fsum(votes) / len(votes), 12)))
    data = {"voices": len(newest), "words": dict(sorted(votes_by_label.items())), **beside}
    more = (
        f" {_signal_sentence(counted)}"
        if counted
        else " Their word counts, not what their turns show."
        if signal
        else ""
    )
    return Score(value, "human", f"Users said: {summary}.{more}", data)


def with_follow_ups(shown: ImplicitSignals, feedback: Sequence[Feedback]) -> ImplicitSignals:
    """These signals, and what the user's next messages say of the work; `feedback` in its order.

    >>> with_follow_ups(SILENT, []) is SILENT
    True
    """
    found, undecided = [each for each in shown.found if each.turn_id != AFTERWARDS], shown.undecided
    written = [each.comment for each in feedback if is_follow_up(each)]
    for text in written:
        reading = read_text(text[:MESSAGE]) if isinstance(text, str) else None
        if reading is not None and reading.kind is not None:
            signal = ImplicitSignal(reading.kind, reading.confidence, AFTERWARDS, reading.language)
            found, undecided = [*found, signal], None
    return ImplicitSignals(tuple(found), undecided) if written else shown


def is_follow_up(feedback: Feedback) -> bool:
    about = feedback.metadata
    return (
        feedback.type == "comment" and isinstance(about, Mapping) and about.get("follow_up") is True
    )


def _score_without_feedback(
    shown: ImplicitSignals, counted: ImplicitSignal | None, beside: dict[str, Any]
) -> Score:
    """Nobody spoke: what the turns show, or neutral."""
    if counted is not None:
        reasoning = f"Nobody gave feedback. {_signal_sentence(counted)}"
        data = {"voices": 0, **beside}
        return Score(counted.value, "automated", reasoning, data, counted.confidence)
    reasoning = "Nobody gave feedback, so it is neutral."
    if shown.undecided is not None:
        reasoning += f" What the user means in turn {shown.undecided} is not clear."
    return Score(NEUTRAL, "human", reasoning, {"voices": 0, **beside}, 0.5)


def _signal_sentence(signal: ImplicitSignal) -> str:
    """A signal as a sentence, with the sum behind it."""
    where = "the next message" if signal.turn_id == AFTERWARDS else f"turn {signal.turn_id}"
    match signal.kind:
        case SignalKind.THANKS:
            seen = f"The user thanks in {where}"
        case SignalKind.CORRECTION:
            seen = f"The user corrects the answer in {where}"
        case SignalKind.REPEAT:
            seen = f"The user asks the same again in {where}"
        case SignalKind.ABANDONED:
            seen = f"The user left after turn {signal.turn_id}"
        case _:
            assert_never(signal.kind)
    by = "" if signal.by == "rules" else f", as {signal.by} reads it"
    return f"{seen} (implicit, confidence {signal.confidence:g}{by})."


def explicit_score(score: Score) -> float | None:
    """An opinion that somebody has given; None when nobody spoke, whatever their turns show."""
    return score.value if score.raw_data.get("voices") else None


def vote_of(feedback: Feedback) -> float | None:
    """What this feedback is worth; None when it is no vote."""
    if feedback.type == "rating" and not isinstance(feedback.rating, UnsetType):
        return min(1.0, max(0.0, (feedback.rating - 1) / 4))
    return VOTES.get(feedback.type)


def _vote_label(feedback: Feedback) -> str:
    if feedback.type == "rating":
        return f"{feedback.rating} of 5 stars"
    return feedback.type.replace("_", " ")
