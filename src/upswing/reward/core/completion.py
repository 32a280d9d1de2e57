"""Did it do what was asked? As reported; or, when nobody reports, as the turns show.

| reported in `metadata.outcome`                       | score           |
|------------------------------------------------------|-----------------|
| completed (complete, success, succeeded, done, true) | 1.0             |
| partial (incomplete, in_progress), with a share      | 0.5 + share / 2 |
| partial, without a share                             | 0.5             |
| failed (failure, error, timeout, aborted, …, false)  | 0.0             |
| only a share (or a number): 0, between, 1            | 0, 0.5 + share / 2, 1 |

| derived, when nothing usable is reported             | score           |
|------------------------------------------------------|-----------------|
| subtasks: none done, some, all                       | 0, 0.5 + share / 2, 1 |
| else the last turn answers, and succeeds             | 0.8             |
| … does something else, and succeeds                  | 0.6             |
| … fails                                              | 0.2             |
| the share of failed turns                            | − 0.3 × share   |
| each time the user corrects or asks again, up to two | − 0.2           |

A correction that is the user's last word is their opinion (`upswing.reward.core.implicit`): it counts in
`user_feedback`, and not here too.
"""

from __future__ import annotations

from typing import Any

from upswing.contracts import Trajectory, Turn
from upswing.contracts.words import AGENT, VERIFIERS
from upswing.dataset.outcome import parse_outcome, parse_status
from upswing.reward.core.implicit import implicit_signals
from upswing.reward.core.score import Score

WEIGHT = 0.40

_DONE_KEYS = ("done", "completed", "complete", "success", "finished")
_ERROR_COST, _CORRECTION_COST, _CORRECTIONS = 0.3, 0.2, 2


def completion_score(trajectory: Trajectory, corrections: int | None = None) -> Score:
    """How much of the task is done.

    `corrections` are those that count here; None: all that the turns show, because nothing else counts them.
    """
    reported = trajectory.metadata.get("outcome")
    stated = parse_outcome(reported)
    status, share, notes = stated.status, stated.share, stated.notes
    note = f" ({'; '.join(notes)}: left out.)" if notes else ""
    if status is None and share is not None:
        status = "completed" if share == 1 else "partial" if share else "failed"
    data: dict[str, Any] = {} if share is None else {"share": share}
    by = _reporter(stated.source)
    match status:
        case "completed":
            return Score(
                1.0,
                "automated",
                f"The task is reported as completed, {by}.{note}",
                data | {"status": status},
            )
        case "partial":
            how_much = "half" if share is None else f"{share:.0%}"
            reasoning = f"The task is reported as partly done, {how_much} of it, {by}.{note}"
            return Score(_partial_credit(share), "automated", reasoning, data | {"status": status})
        case "failed":
            return Score(
                0.0,
                "automated",
                f"The task is reported as failed, {by}.{note}",
                data | {"status": status},
            )
        case _:
            if corrections is None:
                corrections = implicit_signals(trajectory).complaints()
            return _derived_score(trajectory, note, corrections)


def _reporter(source: str) -> str:
    """Who reports it, as part of a sentence.

    >>> _reporter("tests"), _reporter("agent"), _reporter("")
    ('by `tests`', 'by the agent itself', 'by the agent itself, as no source is named')
    """
    if not source:
        return "by the agent itself, as no source is named"
    if source == AGENT:
        return "by the agent itself"
    return f"by `{source[:40]}`" + ("" if source in VERIFIERS else ", which verifies nothing")


def _partial_credit(share: float | None) -> float:
    return 0.5 if share is None else 0.5 + share / 2


def _derived_score(trajectory: Trajectory, note: str, corrections: int) -> Score:
    turns = trajectory.turns
    value, confidence, why = _score_subtasks(trajectory) or _score_last_turn(turns[-1])
    failed = sum(not turn.result.success for turn in turns) / len(turns)
    value -= _ERROR_COST * failed + _CORRECTION_COST * min(corrections, _CORRECTIONS)
    if failed:
        why += f", {failed:.0%} of the turns failed"
    if corrections:
        why += f", the user corrected or asked again {corrections}×"
    data = {"derived": True, "failed_turns": round(failed, 4), "corrections": corrections}
    value = min(1.0, max(0.0, round(value, 12)))
    unreported = "The reported outcome is not understood" if note else "Nobody reports the outcome"
    return Score(value, "automated", f"{unreported}: {why}.{note}", data, confidence)


def _score_last_turn(turn: Turn) -> tuple[float, float, str]:
    if not turn.result.success:
        return 0.2, 0.6, "the last turn failed"
    if turn.action.type == "response":
        return 0.8, 0.6, "it ends with an answer"
    return 0.6, 0.5, "it ends without an answer"


def _score_subtasks(trajectory: Trajectory) -> tuple[float, float, str] | None:
    reported = trajectory.task_context.get("subtasks", trajectory.metadata.get("subtasks"))
    flags = [] if not isinstance(reported, list) else [_is_subtask_done(one) for one in reported]
    known = [flag for flag in flags if flag is not None]
    if not known:
        return None
    share = sum(known) / len(known)
    value = _partial_credit(share) if share else 0.0
    return value, 0.7, f"{sum(known)} of {len(known)} subtasks are done"


def _is_subtask_done(subtask: Any) -> bool | None:
    if not isinstance(subtask, dict):
        return None
    for key in _DONE_KEYS:
        if isinstance(subtask.get(key), bool):
            return bool(subtask[key])
    status = parse_status(subtask.get("status"))
    return None if status is None else status == "completed"
