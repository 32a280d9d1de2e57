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
from upswing.train.progress import State

BECOMES: dict[State, frozenset[State]] = {
    "queued": frozenset({"running", "cancelled"}),
    "running": frozenset({"completed", "failed", "cancelled", "queued"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
ACTIVE = tuple(state for state, after in BECOMES.items() if after)
ENDED = tuple(state for state, after in BECOMES.items() if not after)
RANKS = {"urgent": 0, "high": 1, "normal": 2, "low": 3}
"""The lowest goes first; among equals, the oldest."""


def before(state: State) -> tuple[State, ...]:
    """The states from which a job may come to this one.

    >>> before("cancelled"), before("running")
    (('queued', 'running'), ('queued',))
    """
    return tuple(earlier for earlier, later in BECOMES.items() if state in later)


def first(job_id: str, now: datetime, note: str) -> TrainingStatus:
    """The status of a job that waits for a worker."""
    return TrainingStatus(
        training_job_id=job_id, timestamp=now, status="queued", metadata={"note": note}
    )


def stillborn(job_id: str, now: datetime, sentence: str) -> TrainingStatus:
    """The status of a job that cannot begin."""
    return TrainingStatus(
        training_job_id=job_id,
        timestamp=now,
        status="failed",
        error=JobError(code="INFRA", message=sentence),
    )


def moved(status: TrainingStatus, state: State, now: datetime, **notes: Any) -> TrainingStatus:
    """The same progress in another state; an error belongs to the state that it was told of."""
    known = status.metadata if isinstance(status.metadata, dict) else {}
    known = {name: value for name, value in known.items() if name != "note"} | notes
    return msgspec.structs.replace(
        status, status=state, timestamp=now, error=msgspec.UNSET, metadata=known or msgspec.UNSET
    )
