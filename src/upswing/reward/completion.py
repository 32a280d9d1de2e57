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
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from upswing.contracts import Trajectory, Turn
from upswing.dataset.outcome import read_outcome, status_word
from upswing.reward.score import Score

WEIGHT = 0.40

CORRECTION = re.compile(
    r"(?:no\s*[,.!;:—-]|no\s+(?:that|this|it|you|i|not)\b|nope\b|wrong\b|incorrect\b|not (?:what|quite|right|correct)\b"
    r"|that(?:'|’)?s (?:not|wrong|incorrect)|that (?:is|was) (?:not|wrong|incorrect)|(?:try |do it |once )?again\b"
    r"|you (?:forgot|missed|misunderstood|ignored)|i (?:said|asked|meant)\b|(?:it |this |that )?still (?:not|does|fails|broken|wrong)"
    r"|(?:it |this |that )?(?:doesn(?:'|’)?t|does not|didn(?:'|’)?t|did not) work|redo\b|undo\b|please fix\b)",
    re.IGNORECASE,
)
"""How a user's message begins that says: this was not it."""

_DONE_KEYS = ("done", "completed", "complete", "success", "finished")
_ERROR_COST, _CORRECTION_COST, _CORRECTIONS = 0.3, 0.2, 2


def completion(trajectory: Trajectory) -> Score:
    """How much of the task is done."""
    told = trajectory.metadata.get("outcome")
    stated = read_outcome(told)
    status, share, notes = stated.status, stated.share, stated.notes
    note = f" ({'; '.join(notes)}: left out.)" if notes else ""
    if status is None and share is not None:
        status = "completed" if share == 1 else "partial" if share else "failed"
    data: dict[str, Any] = {} if share is None else {"share": share}
    match status:
        case "completed":
            return Score(
                1.0,
                "automated",
                f"The task is reported as completed.{note}",
                data | {"status": status},
            )
        case "partial":
            how_much = "half" if share is None else f"{share:.0%}"
            reasoning = f"The task is reported as partly done, {how_much} of it.{note}"
            return Score(_credit(share), "automated", reasoning, data | {"status": status})
        case "failed":
            return Score(
                0.0,
                "automated",
                f"The task is reported as failed.{note}",
                data | {"status": status},
            )
        case _:
            return _derived(trajectory, note)  # fmt: skip


def _credit(share: float | None) -> float:
    return 0.5 if share is None else 0.5 + share / 2


def _derived(trajectory: Trajectory, note: str) -> Score:
    turns = trajectory.turns
    value, confidence, why = _by_subtasks(trajectory) or _by_last_turn(turns[-1])
    failed = sum(not turn.result.success for turn in turns) / len(turns)
    corrections = count_corrections(trajectory)
    value -= _ERROR_COST * failed + _CORRECTION_COST * min(corrections, _CORRECTIONS)
    if failed:
        why += f", {failed:.0%} of the turns failed"
    if corrections:
        why += f", the user corrected or asked again {corrections}×"
    data = {"derived": True, "failed_turns": round(failed, 4), "corrections": corrections}
    value = min(1.0, max(0.0, round(value, 12)))
    unsaid = "The reported outcome is not understood" if note else "Nobody reports the outcome"
    return Score(value, "automated", f"{unsaid}: {why}.{note}", data, confidence)


def _by_last_turn(turn: Turn) -> tuple[float, float, str]:
    if not turn.result.success:
        return 0.2, 0.6, "the last turn failed"
    if turn.action.type == "response":
        return 0.8, 0.6, "it ends with an answer"
    return 0.6, 0.5, "it ends without an answer"


def _by_subtasks(trajectory: Trajectory) -> tuple[float, float, str] | None:
    told = trajectory.task_context.get("subtasks", trajectory.metadata.get("subtasks"))
    flags = [] if not isinstance(told, list) else [_done(one) for one in told]
    known = [flag for flag in flags if flag is not None]
    if not known:
        return None
    share = sum(known) / len(known)
    value = _credit(share) if share else 0.0
    return value, 0.7, f"{sum(known)} of {len(known)} subtasks are done"


def _done(subtask: Any) -> bool | None:
    if not isinstance(subtask, dict):
        return None
    for key in _DONE_KEYS:
        if isinstance(subtask.get(key), bool):
            return bool(subtask[key])
    status = status_word(subtask.get("status"))
    return None if status is None else status == "completed"


def count_corrections(trajectory: Trajectory) -> int:
    """How often the user had to correct, or to ask again what had been answered."""
    asked = _plain(trajectory.task_context["instructions"])
    found = 0
    for before, turn in pairwise(trajectory.turns):
        if turn.observation.type != "user_message":
            continue
        text = _text(turn)
        if text == _text(before) and before.action.type != "response":
            continue  # the recorder shows the same message with every step
        repeats = len(asked) > 3 and before.action.type == "response" and asked in _plain(text)
        found += bool(CORRECTION.match(text.lstrip())) or repeats
    return found


def _text(turn: Turn) -> str:
    content = turn.observation.content
    if isinstance(content, dict):
        content = next((content[k] for k in ("text", "message", "content") if k in content), "")
    return content[:10_000] if isinstance(content, str) else ""


def _plain(text: str) -> str:
    return " ".join(text[:10_000].lower().split()).rstrip(".!? ")
