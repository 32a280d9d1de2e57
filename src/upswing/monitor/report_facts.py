"""What else happened in a period? Jobs, rollouts, validations, alerts and refused messages, as a report needs them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from msgspec import UnsetType

from upswing.contracts.typed import json_decoder
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column
from upswing.infra.sql.job_rows import SELECT as JOBS
from upswing.infra.sql.job_rows import job_by_id, jobs_from_rows
from upswing.infra.sql.models import SELECT as MODELS
from upswing.infra.sql.models import deployed_model, models_from_rows
from upswing.infra.sql.store import from_microseconds, to_microseconds
from upswing.monitor.core.costs import PriceList, TrainedJob, job_usd
from upswing.monitor.core.job_figures import JobFacts
from upswing.monitor.core.report_figures import (
    DeploymentSummary,
    JobSummary,
    ReportIssue,
    ValidationSummary,
)
from upswing.records import Job, ModelRow

STAGE = "monitor"
_MOST = 500
_MOST_DEAD = 5000
_SOON = timedelta(hours=1)
"""After a rollback: later episodes of the model belong to another rollout."""
_ROLLOUTS = "SELECT seq, model_id, state, body FROM rollouts ORDER BY seq DESC LIMIT 1000"
_OUT, _BACK = {"promoted", "succeeded"}, "rolled_back"


class _Rollout(msgspec.Struct):
    began: datetime | None = None
    ended: datetime | None = None
    reason: str = ""
    sentence: str = ""


_ROLLOUT = json_decoder(_Rollout)


@dataclass(frozen=True, slots=True)
class RolloutFact:
    """A rollout, as far as reports count it."""

    seq: int
    model_id: str
    state: str
    began: datetime | None
    ended: datetime | None
    reason: str
    sentence: str


class ReportFacts:
    """Reads; never writes."""

    def __init__(self, database: Database, prices: PriceList) -> None:
        self._database, self._prices = database, prices

    async def jobs(self, start: datetime, end: datetime) -> tuple[JobSummary, ...]:
        """Those that ended in the period, the newest first; cancelled ones say nothing of training."""
        sql = f"{JOBS} WHERE ended_us >= ? AND ended_us < ? AND state IN ('completed', 'failed') ORDER BY ended_us DESC LIMIT {_MOST}"

        def jobs_in_transaction(tx: Tx) -> tuple[list[Job], dict[str, ModelRow]]:
            found = jobs_from_rows(tx.rows(sql, _span(start, end)), tx.bad_rows)
            return found, {
                each.job_id: model for each in found if (model := _model_of_job(tx, each.job_id))
            }

        jobs, models = await self._database.view(jobs_in_transaction)
        return tuple(self.job_summary(job, models.get(job.job_id)) for job in jobs)

    def job_summary(self, job: Job, model: ModelRow | None) -> JobSummary:
        """What a report says of a job in one line."""
        used, error = job.status.resource_usage, job.status.error
        seconds = usd = 0.0
        if not isinstance(used, UnsetType):
            seconds, usd = (
                _number(used.total_training_time_seconds),
                _number(used.cost_usd),
            )
        code = (
            "" if isinstance(error, UnsetType) or isinstance(error.code, UnsetType) else error.code
        )
        name = model.model_id if model else ""
        return JobSummary(
            job_id=job.job_id,
            state=job.state,
            ended=job.ended or job.created,
            model_id=name,
            error=code,
            samples=model.samples if model else 0,
            seconds=seconds,
            cost_usd=round(job_usd(TrainedJob(name, seconds, usd), self._prices), 4),
        )

    async def job(self, job_id: str) -> JobFacts | None:
        """One job, its model, and what became of that."""

        def job_in_transaction(tx: Tx) -> JobFacts | None:
            job = job_by_id(tx, job_id)
            if job is None:
                return None
            model = _model_of_job(tx, job_id)
            name = model.model_id if model else ""
            own = [each for each in _rollouts(tx) if each.model_id == name]
            state = own[0].state if own else None
            line = self.job_summary(job, model)
            return JobFacts(job, line, model, _validation_of(tx, name), state)

        return await self._database.view(job_in_transaction)

    async def deployments(
        self, start: datetime, end: datetime
    ) -> tuple[tuple[DeploymentSummary, ...], frozenset[str]]:
        """Promotions and rollbacks of the period; and models that were promoted after a rollback."""

        def deployments_in_transaction(
            tx: Tx,
        ) -> tuple[tuple[DeploymentSummary, ...], frozenset[str]]:
            known = _rollouts(tx)
            inside = [each for each in known if each.ended and start <= each.ended < end]
            found = (_deployment(tx, each) for each in inside)
            return tuple(each for each in found if each), _promoted_later(known)

        return await self._database.view(deployments_in_transaction)

    async def validations(self, start: datetime, end: datetime) -> tuple[ValidationSummary, ...]:
        sql = (
            "SELECT candidate, COALESCE(word, ''), improvement, ended_us FROM validations "
            f"WHERE ended_us >= ? AND ended_us < ? AND state IN ('done', 'failed') ORDER BY ended_us DESC LIMIT {_MOST}"
        )
        rows = await self._database.view(lambda tx: tx.rows(sql, _span(start, end)))
        return tuple(self._database.bad_rows.read_each(STAGE, "validations", rows, _validation))

    async def issues(self, start: datetime, end: datetime) -> tuple[ReportIssue, ...]:
        """Alerts that were open at some time in the period, the open ones first."""
        sql = (
            "SELECT name, severity, state, summary, began_us FROM alerts WHERE began_us < ? "
            "AND (resolved_us IS NULL OR resolved_us >= ?) ORDER BY CASE WHEN state = 'resolved' "
            f"THEN 1 ELSE 0 END, seq DESC LIMIT {_MOST}"
        )
        at = (to_microseconds(end), to_microseconds(start))
        rows = await self._database.view(lambda tx: tx.rows(sql, at))
        return tuple(self._database.bad_rows.read_each(STAGE, "alerts", rows, _issue))

    async def refused(self, start: datetime, end: datetime) -> dict[str, int]:
        """Messages that were refused, by reason; of very many, the newest."""
        sql = f"SELECT reason, created_us, more FROM dead WHERE stage = 'collect' ORDER BY seq DESC LIMIT {_MOST_DEAD}"
        rows = await self._database.view(lambda tx: tx.rows(sql))
        first, last = _span(start, end)
        counts: Counter[str] = Counter()
        for reason, created, more in rows:
            if isinstance(created, int) and first <= created < last:
                counts[str(reason)] += 1 + int(more)
        return dict(sorted(counts.items()))

    async def serving(self) -> ModelRow | None:
        """The model that answers; None: the base does."""
        return await self._database.view(deployed_model)


def _rollouts(tx: Tx) -> list[RolloutFact]:
    """The newest first."""
    return tx.bad_rows.read_each(STAGE, "rollouts", tx.rows(_ROLLOUTS), _rollout_fact)


def _rollout_fact(row: Row) -> RolloutFact:
    seq, model_id, state, body = row
    read = _ROLLOUT.decode(bytes_of_column(body))
    return RolloutFact(
        int(seq), str(model_id), str(state), read.began, read.ended, read.reason, read.sentence
    )


def _deployment(tx: Tx, rollout: RolloutFact) -> DeploymentSummary | None:
    if rollout.ended is None or (rollout.state != _BACK and rollout.state not in _OUT):
        return None
    back = rollout.state == _BACK
    if back and rollout.began is None:
        return None  # it never had traffic
    return DeploymentSummary(
        model_id=rollout.model_id,
        outcome="rolled back" if back else "promoted",
        at=rollout.ended,
        reason=rollout.reason,
        sentence=rollout.sentence,
        seconds=_seconds_until_gone(tx, rollout.model_id, rollout.ended) if back else None,
    )


def _seconds_until_gone(tx: Tx, model_id: str, decided: datetime) -> float:
    """From the decision until the last episode began that the model answered; 0: none did."""
    rows = tx.rows(
        "SELECT t.started_us FROM scored s JOIN trajectories t ON t.seq = s.trajectory_seq "
        "WHERE s.model = ? AND s.gateway = 1 ORDER BY s.trajectory_seq DESC LIMIT 200",
        (model_id,),
    )
    first, last = to_microseconds(decided), to_microseconds(decided + _SOON)
    after = [row[0] for row in rows if isinstance(row[0], int) and first < row[0] <= last]
    return (max(after) - first) / 1e6 if after else 0.0


def _promoted_later(rollouts: list[RolloutFact]) -> frozenset[str]:
    back = {each.model_id: each.seq for each in reversed(rollouts) if each.state == _BACK}
    return frozenset(
        each.model_id
        for each in rollouts
        if each.state in _OUT and each.seq > back.get(each.model_id, each.seq)
    )


def _model_of_job(tx: Tx, job_id: str) -> ModelRow | None:
    found = models_from_rows(tx.rows(f"{MODELS} WHERE job_id = ?", (job_id,)), tx.bad_rows)
    return found[0] if found else None


def _validation_of(tx: Tx, model_id: str) -> tuple[str, str] | None:
    row = tx.row(
        "SELECT COALESCE(word, ''), COALESCE(sentence, '') FROM validations WHERE candidate = ? "
        "AND state IN ('done', 'failed') ORDER BY seq DESC LIMIT 1",
        (model_id,),
    )
    return (str(row[0]), str(row[1])) if row else None


def _validation(row: Row) -> ValidationSummary:
    return ValidationSummary(
        model_id=str(row[0]),
        verdict=str(row[1]),
        improvement=None if row[2] is None else float(row[2]),
        at=from_microseconds(row[3]),
    )


def _issue(row: Row) -> ReportIssue:
    name, severity, state, summary, began = row
    return ReportIssue(
        name=str(name),
        severity=str(severity),
        state=str(state),
        summary=str(summary),
        began=from_microseconds(began),
    )


def _span(start: datetime, end: datetime) -> tuple[int, int]:
    return to_microseconds(start), to_microseconds(end)


def _number(value: float | UnsetType) -> float:
    return 0.0 if isinstance(value, UnsetType) else value
