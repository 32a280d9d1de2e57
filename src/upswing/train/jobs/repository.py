"""Which jobs are there, whose are they, and what is their state?

Every change of a job's state and the message that tells of it are one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import cast

import msgspec

from upswing.contracts import TrainingRequest, TrainingStatus, canonical, encode
from upswing.contracts.topics import TRAINING_REQUEST, TRAINING_STATUS
from upswing.infra.sql.database import Database, Tx, bytes_of_column
from upswing.infra.sql.decisions import claim_schedule_slot, insert_decision
from upswing.infra.sql.job_rows import (
    LIST,
    LIVE,
    SELECT,
    STAGE,
    active_jobs,
    job_by_id,
    job_from_row,
    jobs_from_rows,
)
from upswing.infra.sql.paging import PageWanted
from upswing.infra.sql.store import insert_outbox_message, to_microseconds
from upswing.records import Decision, Job, Renewed, Taken
from upswing.train.core.job_states import ACTIVE, PRIORITY_RANKS, predecessors, with_state
from upswing.train.core.progress import JobState

_INSERT_COLUMNS = (
    "job_id",
    "state",
    "priority",
    "reason",
    "request",
    "recipe",
    "status",
    "failures",
    "created_us",
    "not_before_us",
    "ended_us",
    "covers_seq",
)
_INSERT = f"INSERT INTO jobs ({', '.join(_INSERT_COLUMNS)}) VALUES ({', '.join('?' * len(_INSERT_COLUMNS))})"


class JobRepository:
    """The rows of training jobs. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def submit(
        self,
        request: TrainingRequest,
        recipe: bytes,
        status: TrainingStatus,
        *,
        now: datetime,
        covers_seq: int | None = None,
        decision: Decision | None = None,
        slot: datetime | None = None,
        announce: bool = False,
        only_if_idle: bool = False,
    ) -> Taken:
        """Store a job once, however often it is submitted.

        `covers_seq` none means all that is stored now. `announce` publishes the request, for those
        that did not come by the bus. With `only_if_idle` nothing is done (KNOWN) while another job is
        queued or running, or when another process has dealt with the `slot`.
        """
        body = canonical(msgspec.to_builtins(request))

        def submit_in_transaction(tx: Tx) -> Taken:
            row = tx.row("SELECT request FROM jobs WHERE job_id = ?", (request.training_job_id,))
            if row is not None:
                return Taken.KNOWN if bytes_of_column(row[0]) == body else Taken.CONFLICT
            if only_if_idle and _has_live_job(tx):
                return Taken.KNOWN
            if slot is not None and not claim_schedule_slot(tx, slot):
                return Taken.KNOWN
            ended = to_microseconds(now) if status.status not in ACTIVE else None
            covers = _newest_seq(tx) if covers_seq is None else covers_seq
            tx.execute(
                _INSERT,
                (
                    request.training_job_id,
                    status.status,
                    PRIORITY_RANKS[request.priority],
                    request.trigger_reason,
                    body,
                    recipe,
                    encode(status),
                    b"[]",
                    to_microseconds(now),
                    to_microseconds(now),
                    ended,
                    covers,
                ),
            )
            if decision is not None:
                insert_decision(tx, decision)
            if announce:
                insert_outbox_message(tx, TRAINING_REQUEST, sha256(body).hexdigest(), payload=body)
            _announce_status(tx, status)
            return Taken.STORED

        return await self._database.write(submit_in_transaction)

    # ── a worker's ───────────────────────────────────────────────────────────────────────────

    async def claim(self, worker: str, now: datetime, lease: timedelta) -> Job | None:
        """The most urgent job that is due, now this worker's; or one whose worker is dead."""
        at = to_microseconds(now)
        sql = (
            f"{SELECT} WHERE (state = 'queued' AND not_before_us <= ?) "
            "OR (state = 'running' AND lease_us <= ? AND cancel = 0) ORDER BY priority, seq LIMIT 1"
        )

        def claim_in_transaction(tx: Tx) -> Job | None:
            _end_abandoned(tx, now)
            job = None
            while job is None:
                row = tx.row(sql, (at, at))
                if row is None:
                    return None
                job = tx.bad_rows.read_one(STAGE, "jobs", row, job_from_row)
                if job is None:  # nobody can run it, and it must not block others
                    tx.execute(
                        "UPDATE jobs SET state = 'failed', ended_us = ? WHERE seq = ?", (at, row[0])
                    )
            status = with_state(job.status, "running", now)
            tx.execute(
                "UPDATE jobs SET state = 'running', worker = ?, lease_us = ?, attempt = attempt + 1, "
                "started_us = COALESCE(started_us, ?), status = ? WHERE job_id = ?",
                (worker, to_microseconds(now + lease), at, encode(status), job.job_id),
            )
            if job.state != "running":
                _announce_status(tx, status)
            return job_by_id(tx, job.job_id)

        return await self._database.write(claim_in_transaction)

    async def renew(self, job_id: str, worker: str, until: datetime) -> Renewed:
        """Keep a job until then, if it is still this worker's."""

        def renew_in_transaction(tx: Tx) -> Renewed:
            kept = tx.execute(
                "UPDATE jobs SET lease_us = ? WHERE job_id = ? AND worker = ? AND state = 'running'",
                (to_microseconds(until), job_id, worker),
            )
            if not kept:
                return Renewed.LOST
            row = tx.row("SELECT cancel FROM jobs WHERE job_id = ?", (job_id,))
            return Renewed.CANCEL if row and row[0] else Renewed.KEPT

        return await self._database.write(renew_in_transaction)

    async def save_status(
        self, job_id: str, status: TrainingStatus, *, announce: bool, worker: str | None = None
    ) -> None:
        """Store the status of a running job. With `worker`, only while the job is this worker's."""
        body = encode(status)

        def save_status_in_transaction(tx: Tx) -> None:
            if _is_owned(tx, job_id, worker, ("running",)):
                tx.execute("UPDATE jobs SET status = ? WHERE job_id = ?", (body, job_id))
                if announce:
                    _announce_status(tx, status)

        await self._database.write(save_status_in_transaction)

    async def save_plan(self, job_id: str, recipe: bytes, snapshot: str | None) -> None:
        """Store the recipe and the data snapshot of a job."""
        sql = "UPDATE jobs SET recipe = ?, snapshot = ? WHERE job_id = ?"
        await self._database.write(lambda tx: tx.execute(sql, (recipe, snapshot, job_id)))

    async def requeue(
        self,
        job_id: str,
        *,
        recipe: bytes,
        failures: bytes,
        not_before: datetime,
        status: TrainingStatus,
        worker: str | None = None,
    ) -> None:
        """Put a running job back for another attempt, not before then; or end it, if it is to be cancelled."""

        def requeue_in_transaction(tx: Tx) -> None:
            if not _is_owned(tx, job_id, worker, predecessors("queued")):
                return
            tx.execute(
                "UPDATE jobs SET state = 'queued', recipe = ?, failures = ?, not_before_us = ?, "
                "status = ?, worker = NULL, lease_us = 0 WHERE job_id = ?",
                (recipe, failures, to_microseconds(not_before), encode(status), job_id),
            )
            if tx.row("SELECT 1 FROM jobs WHERE job_id = ? AND cancel = 1", (job_id,)):
                _end_job(
                    tx,
                    job_id,
                    "cancelled",
                    with_state(status, "cancelled", status.timestamp),
                    status.timestamp,
                )
            else:
                _announce_status(tx, status)

        await self._database.write(requeue_in_transaction)

    async def finish(
        self,
        job_id: str,
        state: str,
        status: TrainingStatus,
        failures: bytes,
        now: datetime,
        *,
        worker: str | None = None,
    ) -> None:
        """A running job has ended. One that has ended already stays as it is."""

        def finish_in_transaction(tx: Tx) -> None:
            if _is_owned(tx, job_id, worker, predecessors(cast("JobState", state))):
                _end_job(tx, job_id, state, status, now)
                tx.execute("UPDATE jobs SET failures = ? WHERE job_id = ?", (failures, job_id))

        await self._database.write(finish_in_transaction)

    async def release_orphans(self, now: datetime) -> list[str]:
        """After a restart: what ran is nobody's, and anybody may have it at once.

        In PostgreSQL other processes may run jobs, so there a claim ends with its lease.
        """

        def release_orphans_in_transaction(tx: Tx) -> list[str]:
            if tx.postgres:
                return []
            found = [row[0] for row in tx.rows("SELECT job_id FROM jobs WHERE state = 'running'")]
            tx.execute(
                "UPDATE jobs SET lease_us = ? WHERE state = 'running'", (to_microseconds(now),)
            )
            return found

        return await self._database.write(release_orphans_in_transaction)

    # ── a person's ───────────────────────────────────────────────────────────────────────────

    async def cancel(self, job_id: str, now: datetime) -> Job | None:
        """End a queued job at once; a running one is ended by its worker. The job as it is then."""

        def cancel_in_transaction(tx: Tx) -> Job | None:
            job = job_by_id(tx, job_id)
            if job is None or job.state not in ACTIVE:
                return job
            tx.execute("UPDATE jobs SET cancel = 1 WHERE job_id = ?", (job_id,))
            if job.state == "queued":
                _end_job(tx, job_id, "cancelled", with_state(job.status, "cancelled", now), now)
            return job_by_id(tx, job_id)

        return await self._database.write(cancel_in_transaction)

    async def get(self, job_id: str) -> Job | None:
        return await self._database.read(lambda tx: job_by_id(tx, job_id))

    async def list(
        self, status: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[Job]:
        """The newest first: those in this state, and made since then."""
        sql = f"{SELECT} WHERE (? = '' OR state = ?) AND created_us >= ? ORDER BY seq DESC LIMIT ?"
        earliest = to_microseconds(since) if since else 0
        params = (status or "", status or "", earliest, limit)
        return jobs_from_rows(
            await self._database.read(lambda tx: tx.rows(sql, params)), self._database.bad_rows
        )

    async def page(self, wanted: PageWanted) -> tuple[Sequence[Job], int | None]:
        """The newest first, and the row before which the next page begins."""
        page = await self._database.view(lambda tx: LIST.read(tx, wanted))
        return jobs_from_rows(page.rows, self._database.bad_rows), page.position

    async def count_trained_on(self, job_id: str) -> int:
        """Trajectories in a job's data."""
        sql = "SELECT COUNT(*) FROM trained_on WHERE job_id = ?"
        row = await self._database.view(lambda tx: tx.row(sql, (job_id,)))
        return int(row[0]) if row else 0

    async def last_ended(self, limit: int) -> Sequence[str]:
        """The states of the last jobs that completed or failed, the newest first."""
        sql = "SELECT state FROM jobs WHERE state IN ('completed', 'failed') ORDER BY seq DESC LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return [row[0] for row in rows]

    async def active(self) -> tuple[Job, ...]:
        """Those that are queued or running, in the order in which they are taken."""
        return await self._database.read(active_jobs)


def _end_job(tx: Tx, job_id: str, state: str, status: TrainingStatus, now: datetime) -> None:
    tx.execute(
        "UPDATE jobs SET state = ?, status = ?, ended_us = ?, lease_us = 0 WHERE job_id = ?",
        (state, encode(status), to_microseconds(now), job_id),
    )
    _announce_status(tx, status)


def _end_abandoned(tx: Tx, now: datetime) -> None:
    """Nobody begins a job again that was to be cancelled when its worker died."""
    sql = f"{SELECT} WHERE state = 'running' AND cancel = 1 AND lease_us <= ?"
    for job in jobs_from_rows(tx.rows(sql, (to_microseconds(now),)), tx.bad_rows):
        _end_job(tx, job.job_id, "cancelled", with_state(job.status, "cancelled", now), now)


def _is_owned(tx: Tx, job_id: str, worker: str | None, states: Iterable[str]) -> bool:
    row = tx.row("SELECT state, worker FROM jobs WHERE job_id = ?", (job_id,))
    return row is not None and row[0] in tuple(states) and worker in {None, row[1]}


def _has_live_job(tx: Tx) -> bool:
    return tx.row(f"SELECT 1 FROM jobs WHERE {LIVE}") is not None


def _newest_seq(tx: Tx) -> int:
    row = tx.row("SELECT MAX(seq) FROM trajectories")
    return int(row[0]) if row and row[0] is not None else 0


def _announce_status(tx: Tx, status: TrainingStatus) -> None:
    body = encode(status)
    insert_outbox_message(tx, TRAINING_STATUS, sha256(body).hexdigest(), payload=body)
