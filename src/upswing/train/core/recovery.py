"""A job failed: try again, with what changed, and when?

| what happened       | what changes                               | when                | gives up            |
|---------------------|--------------------------------------------|---------------------|---------------------|
| OOM                 | half the tokens in a pass, the same step   | at once             | at the smallest     |
| CONVERGENCE         | learning rate × 0.5, from the last good    | at once             | at the third in row |
| DATA, and which     | what is bad is left out                    | at once             | at the third in row |
| DATA, nothing named | nothing could                              |                     | at once             |
| INFRA               | nothing                                    | after the wait      | never               |
| TIMEOUT             | nothing; it goes behind the others         | after the wait      | at the third in row |
| LOST                | nothing                                    | at once             | at the third in row |
| UNKNOWN             |                                            |                     | at once             |

Failures count as in a row while no checkpoint was saved between them. The third in a row alerts,
and so does giving up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from upswing.errors import count_phrase
from upswing.train.core.recipe import Recipe
from upswing.train.core.report import FailureCode

Cause = FailureCode | Literal["LOST"]
MAX_CONSECUTIVE_FAILURES = 3
MIN_MICRO_TOKENS = 64
"""Tokens of a forward pass below which halving no longer helps."""


class Failure(msgspec.Struct, frozen=True):
    """One attempt that did not end well."""

    cause: Cause
    message: str
    at: datetime
    saved_step: int = 0
    """The newest whole checkpoint when it failed; 0 when there is none."""
    bad: list[str] = []
    """Trajectories that were to blame."""
    seconds: float = 0.0
    """How long the attempt took."""


class Retry(msgspec.Struct, frozen=True, tag="retry"):
    """Another attempt."""

    recipe: Recipe
    not_before: datetime
    sentence: str
    alert: bool = False
    last_good_step: int | None = None
    """Go on from here at the latest; none means the newest checkpoint."""


class GiveUp(msgspec.Struct, frozen=True, tag="give_up"):
    """The job has failed for good; a person should look."""

    sentence: str
    alert: bool = True


RecoveryDecision = Retry | GiveUp


def decide_recovery(
    recipe: Recipe, failures: Sequence[Failure], now: datetime, retry_delay: timedelta
) -> RecoveryDecision:
    """What to do about the last of these failures."""
    failure = failures[-1]
    row = consecutive_failures(failures)
    alert = row >= MAX_CONSECUTIVE_FAILURES
    match failure.cause:
        case "OOM":
            return _retry_with_less_memory(recipe, failure, now, alert=alert)
        case "CONVERGENCE" if not alert:
            rate = recipe.learning_rate * 0.5
            return Retry(
                msgspec.structs.replace(recipe, learning_rate=rate),
                now,
                f"It diverged ({failure.message}): half the learning rate, {rate:g}, from the last good checkpoint.",
                last_good_step=failure.saved_step,
            )
        case "DATA" if failure.bad and not alert:
            return Retry(
                recipe,
                now,
                f"Left out: {count_phrase(len(failure.bad), 'bad trajectory', 'bad trajectories')}: {failure.message}",
            )
        case "DATA" if not failure.bad:
            return GiveUp(failure.message)
        case "INFRA":
            return Retry(
                recipe,
                now + retry_delay,
                f"Tried again in {_duration_text(retry_delay)}: {failure.message}",
                alert,
            )
        case "TIMEOUT" if not alert:
            return Retry(
                recipe, now + retry_delay, f"Cancelled and put behind the others: {failure.message}"
            )
        case "LOST" if not alert:
            return Retry(recipe, now, f"Goes on from step {failure.saved_step}: {failure.message}")
        case "UNKNOWN":
            return GiveUp(f"Nobody knows what to change: {failure.message}")
        case _:
            return GiveUp(
                f"Failed {row} times in a row, at last with {failure.cause}: {failure.message}"
            )


def consecutive_failures(failures: Sequence[Failure]) -> int:
    """How many failures, up to the last, had no new checkpoint between them.

    >>> when = datetime(2026, 1, 1)
    >>> consecutive_failures([Failure("LOST", "", when, step) for step in (10, 20, 20, 20)])
    3
    """
    newest = failures[-1].saved_step
    row = 0
    for failure in reversed(failures):
        if failure.saved_step != newest:
            break
        row += 1
    return row


def _retry_with_less_memory(
    recipe: Recipe, failure: Failure, now: datetime, *, alert: bool
) -> RecoveryDecision:
    tokens = recipe.micro_tokens // 2
    if tokens < MIN_MICRO_TOKENS:
        return GiveUp(
            f"Memory runs out even with {recipe.micro_tokens} tokens at a time: {failure.message}"
        )
    return Retry(
        msgspec.structs.replace(recipe, micro_tokens=tokens),
        now,
        f"Memory ran out: {tokens} tokens at a time, in as many passes as the same step needs.",
        alert,
    )


def _duration_text(duration: timedelta) -> str:
    minutes = duration.total_seconds() / 60
    return f"{minutes:g} minutes" if minutes >= 1 else f"{duration.total_seconds():g} seconds"
