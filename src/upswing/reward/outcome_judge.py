"""No judge is configured: who did best, by the world's own numbers?

Members are ranked by P&L and, among equals, by their raw total; when not every member has a P&L,
by the raw total alone. A rank becomes a score in [0, 1]: the best 1, the worst 0, equals the same.
The verdict says `outcome` and is never passed off as a model's.
"""

from __future__ import annotations

from collections.abc import Sequence

from upswing.reward.verdict import GroupVerdict
from upswing.reward.windows import Member

NAME = "outcome"
EVEN = 0.5
"""Everybody's score when the numbers tell nobody apart."""


def rank(members: Sequence[Member], minimum: int = 2) -> GroupVerdict:
    """The verdict of the outcome; those with an infrastructure fault are left out."""
    sound = [each for each in members if not each.infra_error]
    priced = bool(sound) and all(each.pnl is not None for each in sound)
    keys = {each.trajectory_id: key for each in sound if (key := _key(each, priced)) is not None}
    if len(keys) < minimum:
        return GroupVerdict.unjudged(
            NAME,
            f"Only {len(keys)} of {len(members)} trajectories have outcome numbers to compare.",
        )
    by = "P&L, then raw total" if priced else "raw total"
    if len(set(keys.values())) == 1:
        return GroupVerdict(
            True,
            f"All {len(keys)} have the same {by}, so each gets {EVEN}; there is nothing to learn.",
            NAME,
            dict.fromkeys(keys, EVEN),
            dict.fromkeys(keys, f"Nobody stands out by {by}."),
        )
    scores = _shares(keys)
    told = {
        each.trajectory_id: _explained(each, scores[each.trajectory_id], priced)
        for each in sound
        if each.trajectory_id in scores
    }
    return GroupVerdict(
        True, f"Ranked {len(keys)} trajectories by {by}; no model was asked.", NAME, scores, told
    )


def _key(member: Member, priced: bool) -> tuple[float, float] | None:
    raw = member.raw_total
    if priced and member.pnl is not None:
        return member.pnl, float("-inf") if raw is None else raw
    return None if raw is None else (raw, 0.0)


def _shares(keys: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Mean rank of each value, as a share: equal values get equal shares."""
    ordered = sorted(keys.values())
    first = {value: place for place, value in reversed(list(enumerate(ordered)))}
    last = {value: place for place, value in enumerate(ordered)}
    top = len(ordered) - 1
    lowest, highest = last[ordered[0]] / 2, (first[ordered[-1]] + top) / 2
    return {
        name: ((first[value] + last[value]) / 2 - lowest) / (highest - lowest)
        for name, value in keys.items()
    }


def _explained(member: Member, score: float, priced: bool) -> str:
    number = f"P&L {member.pnl:+,.2f}" if priced else f"raw total {member.raw_total:.3f}"
    return f"{number}, which is {score:.2f} of the way from the worst to the best of the group."
