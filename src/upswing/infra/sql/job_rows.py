"""How does a row become a job?"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from upswing.contracts import TrainingRequest, TrainingStatus, decode
from upswing.infra.dead_letters import BadRows
from upswing.infra.sql.database import Row, Tx, bytes_of_column
from upswing.infra.sql.paging import TableList
from upswing.infra.sql.store import from_microseconds
from upswing.records import ACTIVE_JOBS, Job

STAGE = "train"
_COLUMNS = (
    "seq",
    "job_id",
    "state",
    "priority",
    "reason",
    "request",
    "recipe",
    "status",
    "failures",
    "attempt",
    "created_us",
    "not_before_us",
    "started_us",
    "ended_us",
    "cancel",
    "worker",
    "lease_us",
    "snapshot",
    "covers_seq",
)
SELECT = f"SELECT {', '.join(_COLUMNS)} FROM jobs"
LIST = TableList("jobs", ", ".join(_COLUMNS[1:]), "created_us")
LIVE = f"state IN ({', '.join(repr(state) for state in ACTIVE_JOBS)})"
"""Queued or running."""


def active_jobs(tx: Tx) -> tuple[Job, ...]:
    """Those that are queued or running, in the order in which they are taken."""
    return tuple(
        jobs_from_rows(tx.rows(f"{SELECT} WHERE {LIVE} ORDER BY priority, seq"), tx.bad_rows)
    )


def job_by_id(tx: Tx, job_id: str) -> Job | None:
    row = tx.row(f"{SELECT} WHERE job_id = ?", (job_id,))
    return tx.bad_rows.read_one(STAGE, "jobs", row, job_from_row)


def jobs_from_rows(rows: Iterable[Row], bad_rows: BadRows) -> list[Job]:
    return bad_rows.read_each(STAGE, "jobs", rows, job_from_row)


def job_from_row(row: Row) -> Job:
    at = dict(zip(_COLUMNS, row, strict=True))
    if not all(isinstance(at[name], int) for name in ("seq", "priority", "attempt", "covers_seq")):
        raise TypeError("a number of the job is none")
    return Job(
        seq=at["seq"],
        job_id=at["job_id"],
        state=at["state"],
        priority=at["priority"],
        reason=at["reason"],
        request=decode(TrainingRequest, bytes_of_column(at["request"])),
        recipe=bytes_of_column(at["recipe"]),
        status=decode(TrainingStatus, bytes_of_column(at["status"])),
        failures=bytes_of_column(at["failures"]),
        attempt=at["attempt"],
        created=from_microseconds(at["created_us"]),
        not_before=from_microseconds(at["not_before_us"]),
        started=_datetime_of(at["started_us"]),
        ended=_datetime_of(at["ended_us"]),
        cancel=bool(at["cancel"]),
        worker=at["worker"],
        lease=from_microseconds(at["lease_us"]),
        snapshot=at["snapshot"],
        covers_seq=at["covers_seq"],
    )


def _datetime_of(us: int | None) -> datetime | None:
    return None if us is None else from_microseconds(us)
