"""How does a row become a job?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from upswing.adapters.sql.database import Row, Tx, blob
from upswing.adapters.sql.store import moment
from upswing.aside import Aside
from upswing.contracts import TrainingRequest, TrainingStatus, decode
from upswing.ports import Job
from upswing.train.jobs import ACTIVE

STAGE = "train"
_COLUMNS = (
    "seq", "job_id", "state", "priority", "reason", "request", "recipe", "status", "failures",
    "attempt", "created_us", "not_before_us", "started_us", "ended_us", "cancel", "worker",
    "lease_us", "snapshot", "covers_seq",
)  # fmt: skip
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM jobs"
LIVE = f"state IN ({', '.join(repr(state) for state in ACTIVE)})"
"""Queued or running."""


def active(tx: Tx) -> tuple[Job, ...]:
    """Those that are queued or running, in the order in which they are taken."""
    return tuple(many(tx.rows(f"{SELECT} WHERE {LIVE} ORDER BY priority, seq"), tx.aside))


def one(tx: Tx, job_id: str) -> Job | None:
    row = tx.row(f"{SELECT} WHERE job_id = ?", (job_id,))
    return tx.aside.one(STAGE, "jobs", row, job_of)


def many(rows: Iterable[Row], aside: Aside) -> list[Job]:
    return aside.sound(STAGE, "jobs", rows, job_of)


def job_of(row: Row) -> Job:
    at = dict(zip(_COLUMNS, row, strict=True))
    if not all(isinstance(at[name], int) for name in ("seq", "priority", "attempt", "covers_seq")):
        raise TypeError("a number of the job is none")
    return Job(
        seq=at["seq"],
        job_id=at["job_id"],
        state=at["state"],
        priority=at["priority"],
        reason=at["reason"],
        request=decode(TrainingRequest, blob(at["request"])),
        recipe=blob(at["recipe"]),
        status=decode(TrainingStatus, blob(at["status"])),
        failures=blob(at["failures"]),
        attempt=at["attempt"],
        created=moment(at["created_us"]),
        not_before=moment(at["not_before_us"]),
        started=_moment(at["started_us"]),
        ended=_moment(at["ended_us"]),
        cancel=bool(at["cancel"]),
        worker=at["worker"],
        lease=moment(at["lease_us"]),
        snapshot=at["snapshot"],
        covers_seq=at["covers_seq"],
    )


def _moment(us: int | None) -> datetime | None:
    return None if us is None else moment(us)
