"""How do rollouts stand, who leads, and what did operators do? Each change is one transaction.

A change is taken only from the controller whose fence is the newest: whoever takes over raises the
fence, and from then on nothing of an older controller is written, however late it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from upswing.contracts.topics import MODEL_DEPLOYED
from upswing.deploy.core.rows import (
    MOST_WITHDRAWN,
    ComplaintBatch,
    DeploymentChange,
    DeploymentRows,
    EvidencePoint,
    Incident,
    LeaderRow,
    LeadershipLost,
    ModelStateChange,
    RecordRow,
    RegisteredModel,
    RewardBatch,
    RewardMean,
    RolloutRow,
)
from upswing.deploy.evidence_repository import (
    complaints_after,
    mean_reward,
    newest_sequences,
    rewards_after,
)
from upswing.errors import Conflict
from upswing.infra.dead_letters import BadRows
from upswing.infra.sql.audit import append_audit, log_audit
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.decisions import insert_decision
from upswing.infra.sql.models import SELECT as MODELS
from upswing.infra.sql.models import models_from_rows as models_of
from upswing.infra.sql.store import from_microseconds, insert_outbox_message, to_microseconds
from upswing.records import AuditEntry, ModelRow

STAGE = "deploy"
_COLUMNS = "rollout_id, model_id, baseline_id, state, share, body"
_SELECT = f"SELECT {_COLUMNS} FROM rollouts"
_OVER = "('rolled_back', 'replaced', 'cancelled')"
_ON_THEIR_WAY = "('trained', 'validating', 'passed', 'canary', 'deployed')"
_WITHDRAWN = "('rolled_back', 'aborted', 'retired')"
_FIRST_STATE = "trained"


class RolloutRepository:
    """The store's side of deployment. Every write is durable when it returns."""

    def __init__(self, database: Database, *, most_withdrawn: int = MOST_WITHDRAWN) -> None:
        self._database, self._most_withdrawn = database, most_withdrawn

    # ── who leads ────────────────────────────────────────────────────────────────────────────

    async def take_over(
        self, holder: str, now: datetime, above: int = 0
    ) -> tuple[int, LeaderRow | None]:
        """The new fence, higher than any before and than `above`, and who led before."""

        def take_over_in_transaction(tx: Tx) -> tuple[int, LeaderRow | None]:
            before = _leader(tx)
            fence = max(before.fence if before else 0, above) + 1
            held = to_microseconds(before.held) if before and before.held else None
            tx.execute(
                "INSERT INTO controller (id, fence, holder, beat_us, held_us) VALUES (1, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, holder = excluded.holder, "
                "beat_us = excluded.beat_us",
                (fence, holder, to_microseconds(now), held),
            )
            return fence, before

        return await self._database.write(take_over_in_transaction)

    async def leader(self) -> LeaderRow | None:
        return await self._database.read(_leader)

    async def origin(self, new: str) -> str:
        """The name of this store, which never changes: `new`, if it has none yet."""

        def origin_in_transaction(tx: Tx) -> str:
            tx.execute(
                "INSERT INTO origin (id, name) VALUES (1, ?) ON CONFLICT (id) DO NOTHING", (new,)
            )
            ((name,),) = tx.rows("SELECT name FROM origin WHERE id = 1")
            return str(name)

        return await self._database.write(origin_in_transaction)

    async def heartbeat(self, fence: int, now: datetime, held: datetime | None) -> None:
        """The leader lives; with `held`, its plan holds at that time of ramps."""
        sql = "UPDATE controller SET beat_us = ?, held_us = COALESCE(?, held_us) WHERE fence = ?"
        values = (to_microseconds(now), to_microseconds(held) if held else None, fence)

        def heartbeat_in_transaction(tx: Tx) -> None:
            if not tx.execute(sql, values):
                raise _superseded(fence)

        await self._database.write(heartbeat_in_transaction)

    # ── how everything stands ────────────────────────────────────────────────────────────────

    async def deployment_rows(self) -> DeploymentRows:
        def deployment_rows_in_transaction(tx: Tx) -> DeploymentRows:
            live = tx.rows(f"{_SELECT} WHERE state NOT IN {_OVER} ORDER BY seq")
            named = (
                f"SELECT model_id FROM rollouts WHERE state NOT IN {_OVER} "
                f"UNION SELECT baseline_id FROM rollouts WHERE state NOT IN {_OVER}"
            )
            sql = (
                f"{MODELS} WHERE state IN {_ON_THEIR_WAY} OR model_id IN ({named}) ORDER BY version"
            )
            gone = tx.rows(
                f"SELECT model_id FROM models WHERE state IN {_WITHDRAWN} "
                "ORDER BY version DESC LIMIT ?",
                (self._most_withdrawn,),
            )
            return DeploymentRows(
                tuple(_rollouts(live, tx.bad_rows)),
                tuple(models_of(tx.rows(sql), tx.bad_rows)),
                tuple(row[0] for row in gone),
            )

        return await self._database.read(deployment_rows_in_transaction)

    async def list_rollouts(self, limit: int = 100) -> list[RolloutRow]:
        """All rollouts, the newest first."""
        sql = f"{_SELECT} ORDER BY seq DESC LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return _rollouts(rows, self._database.bad_rows)

    async def latest_rollout(self, model_id: str) -> RolloutRow | None:
        sql = f"{_SELECT} WHERE model_id = ? ORDER BY seq DESC LIMIT 1"
        row = await self._database.read(lambda tx: tx.row(sql, (model_id,)))
        return self._database.bad_rows.read_one(STAGE, "rollouts", row, _rollout)

    async def model(self, model_id: str) -> ModelRow | None:
        sql = f"{MODELS} WHERE model_id = ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (model_id,)))
        found = models_of(rows, self._database.bad_rows)
        return found[0] if found else None

    async def models(self) -> list[ModelRow]:
        sql = f"{MODELS} ORDER BY version DESC LIMIT 1000"
        return models_of(
            await self._database.read(lambda tx: tx.rows(sql)), self._database.bad_rows
        )

    async def record(self, rollout_id: str) -> bytes | None:
        """What a rollout has shown."""
        sql = "SELECT body FROM evidence WHERE rollout_id = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (rollout_id,)))
        return bytes_of_column(row[0]) if row else None

    async def incidents(self, limit: int = 100) -> list[Incident]:
        """The newest first."""
        sql = (
            "SELECT incident_id, rollout_id, model_id, reason, sentence, metrics, happened_us "
            "FROM incidents ORDER BY seq DESC LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.bad_rows.read_each(STAGE, "incidents", rows, _incident)

    async def audit(self, limit: int = 100) -> list[AuditEntry]:
        """The newest first."""
        sql = (
            "SELECT who, what, about, detail, written_us, before_state, after_state FROM audit "
            "ORDER BY seq DESC LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.bad_rows.read_each(STAGE, "audit", rows, _audit)

    # ── what is seen ─────────────────────────────────────────────────────────────────────────

    async def newest_sequences(self) -> tuple[int, int]:
        """The newest sequence numbers of rewards and of feedback."""
        return await self._database.read(newest_sequences)

    async def rewards_after(self, seq: int, models: Sequence[str], limit: int = 500) -> RewardBatch:
        return await self._database.read(lambda tx: rewards_after(tx, seq, models, limit))

    async def complaints_after(
        self, seq: int, models: Sequence[str], limit: int = 500, pending: Sequence[int] = ()
    ) -> ComplaintBatch:
        return await self._database.read(
            lambda tx: complaints_after(tx, seq, models, limit, pending)
        )

    async def mean_reward(self, model_id: str, most: int = 200) -> RewardMean:
        return await self._database.read(lambda tx: mean_reward(tx, model_id, most))

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    async def commit(self, fence: int, change: DeploymentChange) -> None:
        """All of it or nothing, and only while this fence is the newest."""

        def commit_in_transaction(tx: Tx) -> list[str]:
            if not tx.row("SELECT 1 FROM controller WHERE fence = ?", (fence,)):
                raise _superseded(fence)
            _apply(tx, change)
            return [append_audit(tx, audit) for audit in change.audit]

        digests = await self._database.write(commit_in_transaction)
        for entry, digest in zip(change.audit, digests, strict=True):
            log_audit(entry, digest)


def _apply(tx: Tx, change: DeploymentChange) -> None:
    now = change.now
    if change.newcomer is not None:
        _register(tx, change.newcomer, now)
    for row in change.rollouts:
        _put(tx, row, now)
    for record in change.records:
        _keep(tx, record, now)
    for move in change.models:
        _move(tx, move)
    for decision in change.decisions:
        insert_decision(tx, decision)
    for body in change.messages:
        insert_outbox_message(tx, MODEL_DEPLOYED, sha256(body).hexdigest(), payload=body)
    for incident in change.incidents:
        _note(tx, incident)
    _remember(tx, change)


def _remember(tx: Tx, change: DeploymentChange) -> None:
    """For who looks back."""
    for point in change.points:
        _draw(tx, point)
    if (step := change.traffic) is not None:
        tx.execute(
            "INSERT INTO traffic_history (at_us, shares, events, decision_id) VALUES (?, ?, ?, ?)",
            (
                to_microseconds(step.at),
                msgspec.json.encode(step.shares),
                msgspec.json.encode(step.events),
                step.decision_id,
            ),
        )


def _superseded(fence: int) -> LeadershipLost:
    return LeadershipLost(f"Another controller has taken over from this one (fence {fence}).")


def _leader(tx: Tx) -> LeaderRow | None:
    row = tx.row("SELECT fence, holder, beat_us, held_us FROM controller WHERE id = 1")
    if row is None:
        return None
    return LeaderRow(
        row[0],
        row[1],
        from_microseconds(row[2]),
        from_microseconds(row[3]) if row[3] is not None else None,
    )


def _rollouts(rows: Iterable[Row], bad_rows: BadRows) -> list[RolloutRow]:
    return bad_rows.read_each(STAGE, "rollouts", rows, _rollout)


def _rollout(row: Row) -> RolloutRow:
    return check_row_types(RolloutRow(*(*row[:5], bytes_of_column(row[5]))))


def _incident(row: Row) -> Incident:
    return check_row_types(
        Incident(*(*row[:5], bytes_of_column(row[5]), from_microseconds(row[6])))
    )


def _audit(row: Row) -> AuditEntry:
    states = (None if each is None else bytes_of_column(each) for each in row[5:])
    return check_row_types(
        AuditEntry(*(*row[:3], bytes_of_column(row[3]), from_microseconds(row[4]), *states))
    )


def _put(tx: Tx, row: RolloutRow, now: datetime) -> None:
    tx.execute(
        f"INSERT INTO rollouts ({_COLUMNS}, changed_us) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (rollout_id) DO UPDATE SET state = excluded.state, share = excluded.share, "
        "baseline_id = excluded.baseline_id, body = excluded.body, changed_us = excluded.changed_us",
        (
            row.rollout_id,
            row.model_id,
            row.baseline_id,
            row.state,
            row.share,
            row.body,
            to_microseconds(now),
        ),
    )


def _keep(tx: Tx, record: RecordRow, now: datetime) -> None:
    tx.execute(
        "INSERT INTO evidence (rollout_id, reward_seq, complaint_seq, body, written_us) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT (rollout_id) DO UPDATE SET reward_seq = excluded.reward_seq, "
        "complaint_seq = excluded.complaint_seq, body = excluded.body, written_us = excluded.written_us",
        (
            record.rollout_id,
            record.reward_seq,
            record.complaint_seq,
            record.body,
            to_microseconds(now),
        ),
    )


def _draw(tx: Tx, point: EvidencePoint) -> None:
    tx.execute(
        "INSERT INTO evidence_history (rollout_id, at_us, share, rewards, difference, lower_bound, "
        "upper_bound, requests, errors) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            point.rollout_id,
            to_microseconds(point.at),
            point.share,
            point.rewards,
            point.difference,
            point.lower,
            point.upper,
            point.requests,
            point.errors,
        ),
    )


def _move(tx: Tx, move: ModelStateChange) -> None:
    marks = ", ".join("?" * len(move.before))
    moved = tx.execute(
        "UPDATE models SET state = ?, deployed_us = COALESCE(?, deployed_us), "
        f"baseline_reward = COALESCE(?, baseline_reward) WHERE model_id = ? AND state IN ({marks})",
        (
            move.state,
            to_microseconds(move.deployed) if move.deployed else None,
            move.reward,
            move.model_id,
            *move.before,
        ),
    )
    if not moved:
        row = tx.row("SELECT state FROM models WHERE model_id = ?", (move.model_id,))
        stands = f"is {row[0]}" if row else "is not known"
        raise Conflict(f"{move.model_id} {stands}: it cannot be {move.state}.")


def _register(tx: Tx, new: RegisteredModel, now: datetime) -> None:
    job = f"registered-{sha256(new.model_id.encode()).hexdigest()[:32]}"
    known = tx.row("SELECT base_model, path FROM models WHERE model_id = ?", (new.model_id,))
    if known is None:
        tx.execute(
            "INSERT INTO models (model_id, job_id, base_model, parent, snapshot, path, card, state, "
            "samples, created_us) VALUES (?, ?, ?, NULL, '', ?, '', ?, 0, ?)",
            (new.model_id, job, new.base_model, new.path, _FIRST_STATE, to_microseconds(now)),
        )
    elif tuple(known) != (new.base_model, new.path):
        raise Conflict(f"{new.model_id} is known with another base or checkpoint.")


def _note(tx: Tx, incident: Incident) -> None:
    tx.execute(
        "INSERT INTO incidents (incident_id, rollout_id, model_id, reason, sentence, metrics, happened_us) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            incident.incident_id,
            incident.rollout_id,
            incident.model_id,
            incident.reason,
            incident.sentence,
            incident.metrics,
            to_microseconds(incident.happened),
        ),
    )
