"""Which jobs are there, whose are they, and how do they stand?

Every change of a job's state and the message that tells of it are one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import cast

import msgspec

from upswing.adapters.sql.database import Database, Tx, blob
from upswing.adapters.sql.decisions import deal_with_slot, insert
from upswing.adapters.sql.job_rows import LIVE, SELECT, STAGE, active, job_of, many, one
from upswing.adapters.sql.store import micros, post
from upswing.contracts import TrainingRequest, TrainingStatus, canonical, encode
from upswing.contracts.topics import TRAINING_REQUEST, TRAINING_STATUS
from upswing.ports import Decision, Job, Renewed, Taken
from upswing.train.jobs import ACTIVE, RANKS, before, moved
from upswing.train.progress import State

_WRITTEN = (
    "job_id", "state", "priority", "reason", "request", "recipe", "status", "failures",
    "created_us", "not_before_us", "ended_us", "covers_seq",
)  # fmt: skip
_INSERT = f"INSERT INTO jobs ({', '.join(_WRITTEN)}) VALUES ({', '.join('?' * len(_WRITTEN))})"


class Jobs:
    """The store's side of training. Every write is durable when it returns."""

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
        alone: bool = False,
    ) -> Taken:
        """Take a job once, whatever asks for it how often.

        `covers_seq` none means all that is stored now. `announce` publishes the request, for those
        that did not come by the bus. With `alone` nothing is done (KNOWN) while another job is on
        its way, or when another process has dealt with the `slot`.
        """
        body = canonical(msgspec.to_builtins(request))

        def unit(tx: Tx) -> Taken:
            row = tx.row("SELECT request FROM jobs WHERE job_id = ?", (request.training_job_id,))
            if row is not None:
                return Taken.KNOWN if blob(row[0]) == body else Taken.CONFLICT
            if alone and _crowded(tx):
                return Taken.KNOWN
            if slot is not None and not deal_with_slot(tx, slot):
                return Taken.KNOWN
            ended = micros(now) if status.status not in ACTIVE else None
            covers = _newest_seq(tx) if covers_seq is None else covers_seq
            tx.execute(_INSERT, (
                request.training_job_id, status.status, RANKS[request.priority], request.trigger_reason,
                body, recipe, encode(status), b"[]", micros(now), micros(now), ended, covers,
            ))  # fmt: skip
            if decision is not None:
                insert(tx, decision)
            if announce:
                post(tx, TRAINING_REQUEST, sha256(body).hexdigest(), payload=body)
            _announce(tx, status)
            return Taken.STORED

        return await self._database.write(unit)

    # ── a worker's ───────────────────────────────────────────────────────────────────────────

    async def claim(self, worker: str, now: datetime, lease: timedelta) -> Job | None:
        """The most urgent job that is due, now this worker's; or one whose worker is dead."""
        at = micros(now)
        sql = (
            f"{SELECT} WHERE (state = 'queued' AND not_before_us <= ?) "
            "OR (state = 'running' AND lease_us <= ? AND cancel = 0) ORDER BY priority, seq LIMIT 1"
        )

        def unit(tx: Tx) -> Job | None:
            _end_abandoned(tx, now)
            job = None
            while job is None:
                row = tx.row(sql, (at, at))
                if row is None:
                    return None
                job = tx.aside.one(STAGE, "jobs", row, job_of)
                if job is None:  # nobody can do it, and it must not stand in the way of others
                    tx.execute(
                        "UPDATE jobs SET state = 'failed', ended_us = ? WHERE seq = ?", (at, row[0])
                    )
            status = moved(job.status, "running", now)
            tx.execute(
                "UPDATE jobs SET state = 'running', worker = ?, lease_us = ?, attempt = attempt + 1, "
                "started_us = COALESCE(started_us, ?), status = ? WHERE job_id = ?",
                (worker, micros(now + lease), at, encode(status), job.job_id),
            )
            if job.state != "running":
                _announce(tx, status)
            return one(tx, job.job_id)

        return await self._database.write(unit)

    async def renew(self, job_id: str, worker: str, until: datetime) -> Renewed:
        """Keep a job until then, if it is still this worker's."""

        def unit(tx: Tx) -> Renewed:
            kept = tx.execute(
                "UPDATE jobs SET lease_us = ? WHERE job_id = ? AND worker = ? AND state = 'running'",
                (micros(until), job_id, worker),
            )
            if not kept:
                return Renewed.LOST
            row = tx.row("SELECT cancel FROM jobs WHERE job_id = ?", (job_id,))
            return Renewed.CANCEL if row and row[0] else Renewed.KEPT

        return await self._database.write(unit)

    async def note(
        self, job_id: str, status: TrainingStatus, *, announce: bool, worker: str | None = None
    ) -> None:
        """Remember how a running job goes. With `worker`, only while the job is this worker's."""
        body = encode(status)

        def unit(tx: Tx) -> None:
            if _owned(tx, job_id, worker, ("running",)):
                tx.execute("UPDATE jobs SET status = ? WHERE job_id = ?", (body, job_id))
                if announce:
                    _announce(tx, status)

        await self._database.write(unit)

    async def plan(self, job_id: str, recipe: bytes, snapshot: str | None) -> None:
        """Remember how and on what it is trained."""
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
        """Put a running job back for another attempt, not before then; or end it, if so wished."""

        def unit(tx: Tx) -> None:
            if not _owned(tx, job_id, worker, before("queued")):
                return
            tx.execute(
                "UPDATE jobs SET state = 'queued', recipe = ?, failures = ?, not_before_us = ?, "
                "status = ?, worker = NULL, lease_us = 0 WHERE job_id = ?",
                (recipe, failures, micros(not_before), encode(status), job_id),
            )
            if tx.row("SELECT 1 FROM jobs WHERE job_id = ? AND cancel = 1", (job_id,)):
                _end(tx, job_id, "cancelled", moved(status, "cancelled", status.timestamp), status.timestamp)  # fmt: skip
            else:
                _announce(tx, status)

        await self._database.write(unit)

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

        def unit(tx: Tx) -> None:
            if _owned(tx, job_id, worker, before(cast("State", state))):
                _end(tx, job_id, state, status, now)
                tx.execute("UPDATE jobs SET failures = ? WHERE job_id = ?", (failures, job_id))

        await self._database.write(unit)

    async def orphans(self, now: datetime) -> list[str]:
        """After a restart: what ran is nobody's, and anybody may have it at once.

        In PostgreSQL other processes may run jobs, so there a claim ends with its lease.
        """

        def unit(tx: Tx) -> list[str]:
            if tx.postgres:
                return []
            found = [row[0] for row in tx.rows("SELECT job_id FROM jobs WHERE state = 'running'")]
            tx.execute("UPDATE jobs SET lease_us = ? WHERE state = 'running'", (micros(now),))
            return found

        return await self._database.write(unit)

    # ── a person's ───────────────────────────────────────────────────────────────────────────

    async def cancel(self, job_id: str, now: datetime) -> Job | None:
        """End a queued job at once; a running one is ended by its worker. The job as it is then."""

        def unit(tx: Tx) -> Job | None:
            job = one(tx, job_id)
            if job is None or job.state not in ACTIVE:
                return job
            tx.execute("UPDATE jobs SET cancel = 1 WHERE job_id = ?", (job_id,))
            if job.state == "queued":
                _end(tx, job_id, "cancelled", moved(job.status, "cancelled", now), now)
            return one(tx, job_id)

        return await self._database.write(unit)

    async def get(self, job_id: str) -> Job | None:
        return await self._database.read(lambda tx: one(tx, job_id))

    async def list(
        self, status: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[Job]:
        """The newest first: those in this state, and made since then."""
        sql = f"{SELECT} WHERE (? = '' OR state = ?) AND created_us >= ? ORDER BY seq DESC LIMIT ?"
        earliest = micros(since) if since else 0
        params = (status or "", status or "", earliest, limit)
        return many(
            await self._database.read(lambda tx: tx.rows(sql, params)), self._database.aside
        )

    async def active(self) -> tuple[Job, ...]:
        """Those that are queued or running, in the order in which they are taken."""
        return await self._database.read(active)


def _end(tx: Tx, job_id: str, state: str, status: TrainingStatus, now: datetime) -> None:
    tx.execute(
        "UPDATE jobs SET state = ?, status = ?, ended_us = ?, lease_us = 0 WHERE job_id = ?",
        (state, encode(status), micros(now), job_id),
    )
    _announce(tx, status)


def _end_abandoned(tx: Tx, now: datetime) -> None:
    """Nobody begins a job again that was to be cancelled when its worker died."""
    sql = f"{SELECT} WHERE state = 'running' AND cancel = 1 AND lease_us <= ?"
    for job in many(tx.rows(sql, (micros(now),)), tx.aside):
        _end(tx, job.job_id, "cancelled", moved(job.status, "cancelled", now), now)


def _owned(tx: Tx, job_id: str, worker: str | None, states: Iterable[str]) -> bool:
    row = tx.row("SELECT state, worker FROM jobs WHERE job_id = ?", (job_id,))
    return row is not None and row[0] in tuple(states) and worker in {None, row[1]}


def _crowded(tx: Tx) -> bool:
    return tx.row(f"SELECT 1 FROM jobs WHERE {LIVE}") is not None


def _newest_seq(tx: Tx) -> int:
    row = tx.row("SELECT MAX(seq) FROM trajectories")
    return int(row[0]) if row and row[0] is not None else 0


def _announce(tx: Tx, status: TrainingStatus) -> None:
    body = encode(status)
    post(tx, TRAINING_STATUS, sha256(body).hexdigest(), payload=body)
