"""How do rollouts stand, who leads, and what did operators do? Each change is one transaction.

A change is taken only from the controller whose fence is the newest: whoever takes over raises the
fence, and from then on nothing of an older controller is written, however late it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import sha256

from upswing.adapters.sql.database import Database, Row, Tx, blob, checked
from upswing.adapters.sql.decisions import insert
from upswing.adapters.sql.models import SELECT as MODELS
from upswing.adapters.sql.models import many as models_of
from upswing.adapters.sql.rollout_evidence import (
    complaints_after,
    earned,
    newest,
    rewards_after,
)
from upswing.adapters.sql.store import micros, moment, post
from upswing.aside import Aside
from upswing.contracts.topics import MODEL_DEPLOYED
from upswing.errors import Conflict
from upswing.ports import ModelRow
from upswing.ports_rollout import (
    MOST_WITHDRAWN,
    Audit,
    Change,
    Complaints,
    Earned,
    Incident,
    Leader,
    ModelMove,
    NewModel,
    RecordRow,
    Rewards,
    RolloutRow,
    Rows,
    Superseded,
)

STAGE = "deploy"
_COLUMNS = "rollout_id, model_id, baseline_id, state, share, body"
_SELECT = f"SELECT {_COLUMNS} FROM rollouts"
_OVER = "('rolled_back', 'replaced', 'cancelled')"
_ON_THEIR_WAY = "('trained', 'validating', 'passed', 'canary', 'deployed')"
_WITHDRAWN = "('rolled_back', 'aborted', 'retired')"
_FIRST_STATE = "trained"


class Rollouts:
    """The store's side of deployment. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ── who leads ────────────────────────────────────────────────────────────────────────────

    async def take_over(
        self, holder: str, now: datetime, above: int = 0
    ) -> tuple[int, Leader | None]:
        """The new fence, higher than any before and than `above`, and who led before."""

        def unit(tx: Tx) -> tuple[int, Leader | None]:
            before = _leader(tx)
            fence = max(before.fence if before else 0, above) + 1
            held = micros(before.held) if before and before.held else None
            tx.execute(
                "INSERT INTO controller (id, fence, holder, beat_us, held_us) VALUES (1, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, holder = excluded.holder, "
                "beat_us = excluded.beat_us",
                (fence, holder, micros(now), held),
            )
            return fence, before

        return await self._database.write(unit)

    async def leader(self) -> Leader | None:
        return await self._database.read(_leader)

    async def origin(self, new: str) -> str:
        """The name of this store, which never changes: `new`, if it has none yet."""

        def unit(tx: Tx) -> str:
            tx.execute(
                "INSERT INTO origin (id, name) VALUES (1, ?) ON CONFLICT (id) DO NOTHING", (new,)
            )
            ((name,),) = tx.rows("SELECT name FROM origin WHERE id = 1")
            return str(name)

        return await self._database.write(unit)

    async def beat(self, fence: int, now: datetime, held: datetime | None) -> None:
        """The leader lives; with `held`, its plan holds at that time of ramps."""
        sql = "UPDATE controller SET beat_us = ?, held_us = COALESCE(?, held_us) WHERE fence = ?"
        values = (micros(now), micros(held) if held else None, fence)

        def unit(tx: Tx) -> None:
            if not tx.execute(sql, values):
                raise _superseded(fence)

        await self._database.write(unit)

    # ── how everything stands ────────────────────────────────────────────────────────────────

    async def standing(self) -> Rows:
        def unit(tx: Tx) -> Rows:
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
                (MOST_WITHDRAWN,),
            )
            return Rows(
                tuple(_rollouts(live, tx.aside)),
                tuple(models_of(tx.rows(sql), tx.aside)),
                tuple(row[0] for row in gone),
            )

        return await self._database.read(unit)

    async def history(self, limit: int = 100) -> list[RolloutRow]:
        """All rollouts, the newest first."""
        sql = f"{_SELECT} ORDER BY seq DESC LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return _rollouts(rows, self._database.aside)

    async def latest(self, model_id: str) -> RolloutRow | None:
        sql = f"{_SELECT} WHERE model_id = ? ORDER BY seq DESC LIMIT 1"
        row = await self._database.read(lambda tx: tx.row(sql, (model_id,)))
        return self._database.aside.one(STAGE, "rollouts", row, _rollout)

    async def model(self, model_id: str) -> ModelRow | None:
        sql = f"{MODELS} WHERE model_id = ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (model_id,)))
        found = models_of(rows, self._database.aside)
        return found[0] if found else None

    async def models(self) -> list[ModelRow]:
        sql = f"{MODELS} ORDER BY version DESC LIMIT 1000"
        return models_of(await self._database.read(lambda tx: tx.rows(sql)), self._database.aside)

    async def record(self, rollout_id: str) -> bytes | None:
        """What a rollout has shown."""
        sql = "SELECT body FROM evidence WHERE rollout_id = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (rollout_id,)))
        return blob(row[0]) if row else None

    async def incidents(self, limit: int = 100) -> list[Incident]:
        """The newest first."""
        sql = (
            "SELECT incident_id, rollout_id, model_id, reason, sentence, metrics, happened_us "
            "FROM incidents ORDER BY seq DESC LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.aside.sound(STAGE, "incidents", rows, _incident)

    async def audit(self, limit: int = 100) -> list[Audit]:
        """The newest first."""
        sql = "SELECT who, what, about, detail, written_us FROM audit ORDER BY seq DESC LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.aside.sound(STAGE, "audit", rows, _audit)

    # ── what is seen ─────────────────────────────────────────────────────────────────────────

    async def newest(self) -> tuple[int, int]:
        """The newest sequence numbers of rewards and of feedback."""
        return await self._database.read(newest)

    async def rewards_after(self, seq: int, models: Sequence[str], limit: int = 500) -> Rewards:
        return await self._database.read(lambda tx: rewards_after(tx, seq, models, limit))

    async def complaints_after(
        self, seq: int, models: Sequence[str], limit: int = 500, aside: Sequence[int] = ()
    ) -> Complaints:
        return await self._database.read(lambda tx: complaints_after(tx, seq, models, limit, aside))

    async def earned(self, model_id: str, most: int = 200) -> Earned:
        return await self._database.read(lambda tx: earned(tx, model_id, most))

    # ── changes ──────────────────────────────────────────────────────────────────────────────

    async def commit(self, fence: int, change: Change) -> None:
        """All of it or nothing, and only while this fence is the newest."""

        def unit(tx: Tx) -> None:
            if not tx.row("SELECT 1 FROM controller WHERE fence = ?", (fence,)):
                raise _superseded(fence)
            _apply(tx, change)

        await self._database.write(unit)


def _apply(tx: Tx, change: Change) -> None:
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
        insert(tx, decision)
    for body in change.messages:
        post(tx, MODEL_DEPLOYED, sha256(body).hexdigest(), payload=body)
    for incident in change.incidents:
        _note(tx, incident)
    for audit in change.audit:
        _write_down(tx, audit)


def _superseded(fence: int) -> Superseded:
    return Superseded(f"Another controller has taken over from this one (fence {fence}).")


def _leader(tx: Tx) -> Leader | None:
    row = tx.row("SELECT fence, holder, beat_us, held_us FROM controller WHERE id = 1")
    if row is None:
        return None
    return Leader(row[0], row[1], moment(row[2]), moment(row[3]) if row[3] is not None else None)


def _rollouts(rows: Iterable[Row], aside: Aside) -> list[RolloutRow]:
    return aside.sound(STAGE, "rollouts", rows, _rollout)


def _rollout(row: Row) -> RolloutRow:
    return checked(RolloutRow(*(*row[:5], blob(row[5]))))


def _incident(row: Row) -> Incident:
    return checked(Incident(*(*row[:5], blob(row[5]), moment(row[6]))))


def _audit(row: Row) -> Audit:
    return checked(Audit(*(*row[:3], blob(row[3]), moment(row[4]))))


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
            micros(now),
        ),
    )


def _keep(tx: Tx, record: RecordRow, now: datetime) -> None:
    tx.execute(
        "INSERT INTO evidence (rollout_id, reward_seq, complaint_seq, body, written_us) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT (rollout_id) DO UPDATE SET reward_seq = excluded.reward_seq, "
        "complaint_seq = excluded.complaint_seq, body = excluded.body, written_us = excluded.written_us",
        (record.rollout_id, record.reward_seq, record.complaint_seq, record.body, micros(now)),
    )


def _move(tx: Tx, move: ModelMove) -> None:
    marks = ", ".join("?" * len(move.before))
    moved = tx.execute(
        "UPDATE models SET state = ?, deployed_us = COALESCE(?, deployed_us), "
        f"baseline_reward = COALESCE(?, baseline_reward) WHERE model_id = ? AND state IN ({marks})",
        (move.state, micros(move.deployed) if move.deployed else None, move.reward, move.model_id, *move.before),
    )  # fmt: skip
    if not moved:
        row = tx.row("SELECT state FROM models WHERE model_id = ?", (move.model_id,))
        stands = f"is {row[0]}" if row else "is not known"
        raise Conflict(f"{move.model_id} {stands}: it cannot be {move.state}.")


def _register(tx: Tx, new: NewModel, now: datetime) -> None:
    job = f"registered-{sha256(new.model_id.encode()).hexdigest()[:32]}"
    known = tx.row("SELECT base_model, path FROM models WHERE model_id = ?", (new.model_id,))
    if known is None:
        tx.execute(
            "INSERT INTO models (model_id, job_id, base_model, parent, snapshot, path, card, state, "
            "samples, created_us) VALUES (?, ?, ?, NULL, '', ?, '', ?, 0, ?)",
            (new.model_id, job, new.base_model, new.path, _FIRST_STATE, micros(now)),
        )
    elif tuple(known) != (new.base_model, new.path):
        raise Conflict(f"{new.model_id} is known with another base or checkpoint.")


def _note(tx: Tx, incident: Incident) -> None:
    tx.execute(
        "INSERT INTO incidents (incident_id, rollout_id, model_id, reason, sentence, metrics, happened_us) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            incident.incident_id, incident.rollout_id, incident.model_id, incident.reason,
            incident.sentence, incident.metrics, micros(incident.happened),
        ),
    )  # fmt: skip


def _write_down(tx: Tx, audit: Audit) -> None:
    tx.execute(
        "INSERT INTO audit (who, what, about, detail, written_us) VALUES (?, ?, ?, ?, ?)",
        (audit.who, audit.what, audit.about, audit.detail, micros(audit.written)),
    )
