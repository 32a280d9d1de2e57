"""Why did a training child end, as far as one can tell from outside?"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Literal

from upswing.train.core.progress import JobProgress
from upswing.train.core.recovery import Cause

_OUT_OF_MEMORY = (
    "can't allocate memory",
    "bad_alloc",
    "MemoryError",
    "out of memory",
    "Cannot allocate memory",
    "not enough memory",
)


def says_out_of_memory(text: str) -> bool:
    """As libraries write it that have no type for it: torch on a CPU, C++ and the operating system."""
    return any(phrase in text for phrase in _OUT_OF_MEMORY)


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How it ended."""

    code: int
    """Negative: the signal."""
    ended_by: Literal["itself", "timeout", "silence", "frozen", "cancel", "lost"] = "itself"
    """Whether we ended it, and why."""
    log_tail: str = ""


def failure_cause(
    progress: JobProgress, process_exit: ProcessExit, memory_bytes: int | None
) -> tuple[Cause, str]:
    """The cause and a sentence; the child's own report counts most.

    >>> failure_cause(JobProgress(), ProcessExit(-9), None)
    ('LOST', 'The training process was killed (SIGKILL).')
    >>> failure_cause(JobProgress(rss_bytes=990), ProcessExit(-9), 1000)[0], failure_cause(JobProgress(), ProcessExit(0, "silence"), None)[0]
    ('OOM', 'TIMEOUT')
    """
    if progress.failed is not None:
        return progress.failed.code, progress.failed.message
    if process_exit.ended_by == "timeout":
        return "TIMEOUT", "The job took longer than it may."
    if process_exit.ended_by == "silence":
        return "TIMEOUT", "The training process gave no sign of life and was ended."
    if process_exit.ended_by == "frozen":
        return "LOST", "The training process was frozen and was ended."
    if says_out_of_memory(process_exit.log_tail):
        return "OOM", "The training process ran out of memory."
    if process_exit.code < 0:
        if memory_bytes and progress.rss_bytes >= 0.9 * memory_bytes:
            return "OOM", "The training process was killed near its memory limit."
        return (
            "LOST",
            f"The training process was killed ({signal.Signals(-process_exit.code).name}).",
        )
    return (
        "UNKNOWN",
        f"The training process ended with exit code {process_exit.code} and no report.",
    )
