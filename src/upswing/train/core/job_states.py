"""What may become of a job, which one is next, and when is its progress worth an announcement?

| state     | becomes                                | by                                     |
|-----------|----------------------------------------|----------------------------------------|
| queued    | running, cancelled                     | a worker that claims it; a person      |
| running   | completed, failed, cancelled, queued   | its worker; queued: for a next attempt |
| completed |                                        |                                        |
| failed    |                                        |                                        |
| cancelled |                                        |                                        |

A job that cannot even begin, because its base model is not to be had, is born failed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from upswing.contracts.training import JobError, TrainingStatus
from upswing.records import ACTIVE_JOBS
from upswing.train.core.progress import JobState

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    "queued": frozenset({"running", "cancelled"}),
    "running": frozenset({"completed", "failed", "cancelled", "queued"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
ACTIVE = ACTIVE_JOBS
"""Those that may become another."""
ENDED = tuple(state for state, after in TRANSITIONS.items() if not after)
PRIORITY_RANKS = {"urgent": 0, "high": 1, "normal": 2, "low": 3}
"""The lowest goes first; among equals, the oldest."""


def predecessors(state: JobState) -> tuple[JobState, ...]:
    """The states from which a job may come to this one.

    >>> predecessors("cancelled"), predecessors("running")
    (('queued', 'running'), ('queued',))
    >>> ACTIVE == tuple(state for state, later in TRANSITIONS.items() if later)
    True
    """
    return tuple(earlier for earlier, later in TRANSITIONS.items() if state in later)


def queued_status(job_id: str, now: datetime, note: str) -> TrainingStatus:
    """The status of a job that waits for a worker."""
    return TrainingStatus(
        training_job_id=job_id, timestamp=now, status="queued", metadata={"note": note}
    )


def failed_status(job_id: str, now: datetime, sentence: str) -> TrainingStatus:
    """The status of a job that cannot begin."""
    return TrainingStatus(
        training_job_id=job_id,
        timestamp=now,
        status="failed",
        error=JobError(code="INFRA", message=sentence),
    )


def with_state(
    status: TrainingStatus, state: JobState, now: datetime, **notes: Any
) -> TrainingStatus:
    """The same progress in another state; an error belongs to the state that it was told of."""
    known = status.metadata if isinstance(status.metadata, dict) else {}
    known = {name: value for name, value in known.items() if name != "note"} | notes
    return msgspec.structs.replace(
        status, status=state, timestamp=now, error=msgspec.UNSET, metadata=known or msgspec.UNSET
    )
