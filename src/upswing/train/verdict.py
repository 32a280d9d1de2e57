"""Why did a training child end, as far as one can tell from outside?"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from upswing.train.progress import Told
from upswing.train.recovery import Cause

_OUT_OF_MEMORY = ("can't allocate memory", "bad_alloc", "MemoryError", "out of memory", "Cannot allocate memory")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exit:
    """How it ended."""

    code: int
    """Negative: the signal."""
    ended_by: Literal["itself", "timeout", "silence", "frozen", "cancel", "lost"] = "itself"
    """Whether we ended it, and why."""
    tail: str = ""


def cause_of(told: Told, end: Exit, memory_bytes: int | None) -> tuple[Cause, str]:
    """The cause and a sentence; the child's own word counts most.

    >>> cause_of(Told(), Exit(-9), None)
    ('LOST', 'The training process was killed (SIGKILL).')
    >>> cause_of(Told(rss_bytes=990), Exit(-9), 1000)[0], cause_of(Told(), Exit(0, "silence"), None)[0]
    ('OOM', 'TIMEOUT')
    """
    if told.failed is not None:
        return told.failed.code, told.failed.message
    if end.ended_by == "timeout":
        return "TIMEOUT", "The job took longer than it may."
    if end.ended_by == "silence":
        return "TIMEOUT", "The training process gave no sign of life and was ended."
    if end.ended_by == "frozen":
        return "LOST", "The training process was frozen and was ended."
    if any(words in end.tail for words in _OUT_OF_MEMORY):
        return "OOM", "The training process ran out of memory."
    if end.code < 0:
        if memory_bytes and told.rss_bytes >= 0.9 * memory_bytes:
            return "OOM", "The training process was killed near its memory limit."
        return "LOST", f"The training process was killed ({signal.Signals(-end.code).name})."
    return "UNKNOWN", f"The training process ended with exit code {end.code} and no word."
