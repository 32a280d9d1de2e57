"""What does the store say that bears on when to train?

Rewards are read from `scored`, whose rows are small; the trajectories themselves are not touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS, Learnable, count_learnable
from upswing.infra.sql.database import Database, Tx
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.decisions import last_schedule_slot
from upswing.infra.sql.job_rows import active_jobs
from upswing.infra.sql.models import deployed_model
from upswing.infra.sql.moments import first_seq_since
from upswing.infra.sql.practice_tables import EVIDENCE, SOUND
from upswing.infra.sql.rewards import MEMBER, members_from_rows, rewards_by_principal
from upswing.infra.sql.store import LATEST, from_microseconds, to_microseconds
from upswing.principals import Speaker, fair_newest
from upswing.records import Job, ModelRow, ScoredMember, Signals

MAX_READ = 20_000
"""The newest trajectories that are read for what they can teach: reading should stay cheap."""

_TRAINABLE = f"{SOUND} AND principal NOT IN (SELECT user_id FROM optouts)"
_TIMELY = (
    "trajectory_seq >= ? AND trajectory_seq NOT IN "
    "(SELECT seq FROM trajectories WHERE ended_us < ? AND seq >= ?)"
)
"""As a job reads the dates: what ended by a clock that is ahead ended when it was stored."""
_ANY_LENGTH = 2**31 - 1
_VALID_COVERS = f"covers_seq BETWEEN 0 AND {2**53}"
"""What is none, because a row is spoilt, covers nothing."""
_DEGRADED = "performance_degradation"


class SignalReader:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def signals(self, recent: int, most: int, base: str | None = None) -> Signals:
        """Everything at once: so many newest rewards, and new trajectories counted up to `most`.

        `base` is what training starts from while no model is deployed.
        """

        def signals_in_transaction(tx: Tx) -> Signals:
            model = deployed_model(tx)
            return Signals(
                deployed=model,
                values=_recent_rewards(tx, model.model_id, recent) if model else (),
                before=_rewards_before_promotion(tx, model, recent) if model else (),
                new=_count_new(tx, most, _other_policies(tx, model, base)),
                newest_seq=_read_number(tx, "SELECT MAX(seq) FROM trajectories"),
                active=active_jobs(tx),
                failed=_failed_reasons(tx),
                last_training=_last_training(tx),
                last_slot=last_schedule_slot(tx),
                pending=_pending_model(tx),
            )

        return await self._database.read(signals_in_transaction)

    async def learnable(
        self,
        base: str | None = None,
        *,
        min_agents: int = MIN_AGENTS,
        min_attempts: int = MIN_ATTEMPTS,
        max_turns: int | None = None,
        since: datetime | None = None,
        self_reported: bool = False,
    ) -> Learnable:
        """What the newest trajectories of the policy that training starts from can teach."""
        members, start = await self.pool(base, max_turns=max_turns, since=since)
        shown = await DataSets(self._database).demonstrations()
        return await asyncio.to_thread(
            partial(
                count_learnable,
                members,
                min_agents=min_agents,
                min_attempts=min_attempts,
                own_policies=[start],
                demonstrated_ids=shown,
                self_reported=self_reported,
            )
        )

    async def pool(
        self,
        base: str | None = None,
        *,
        max_turns: int | None = None,
        since: datetime | None = None,
    ) -> tuple[list[ScoredMember], str]:
        """These trajectories, and the policy that training starts from.

        Those that are longer, or ended before, are none that a job takes.
        """

        def pool_in_transaction(tx: Tx) -> tuple[list[ScoredMember], str]:
            serving = deployed_model(tx)
            others = _other_policies(tx, serving, base)
            sql = (
                f"{MEMBER} WHERE {_TRAINABLE} AND model NOT IN ({_placeholders(others)}) AND turns <= ? "
                f"AND {_TIMELY} ORDER BY trajectory_seq DESC LIMIT ?"
            )
            longest = _ANY_LENGTH if max_turns is None else max_turns
            first = 0 if since is None else to_microseconds(since)
            stored = 0 if since is None else first_seq_since(tx, first)
            rows = tx.rows(sql, (*others, longest, stored, first, stored, MAX_READ))
            return members_from_rows(rows, tx.bad_rows), serving.model_id if serving else base or ""

        return await self._database.view(pool_in_transaction)

    async def collected_since(self, since: datetime) -> int:
        """How many trajectories were stored since then."""
        sql = "SELECT COUNT(*) FROM trajectories WHERE stored_us >= ?"
        return await self._database.view(lambda tx: _read_number(tx, sql, to_microseconds(since)))

    async def unfinished(self) -> tuple[tuple[Job, ...], str | None]:
        """Jobs that have not ended, and the model that is on its way."""
        return await self._database.view(lambda tx: (active_jobs(tx), _pending_model(tx)))

    async def learnable_version(self) -> tuple[object, ...]:
        """Changes whenever what can be learned from may have: rewards, users' words, models, opt-outs, erasures."""

        def version_in_transaction(tx: Tx) -> tuple[object, ...]:
            newest = tuple(
                _read_number(tx, f"SELECT MAX(seq) FROM {table}")
                for table in ("rewards", "feedback")
            )
            counts = tx.rows(
                "SELECT name, n FROM counts WHERE name IN ('trajectories', 'models', 'optouts') ORDER BY name"
            )
            serving = deployed_model(tx)
            return (*newest, *map(tuple, counts), serving.model_id if serving else None)

        return await self._database.view(version_in_transaction)


def _read_number(tx: Tx, sql: str, *params: object) -> int:
    row = tx.row(sql, params)
    return int(row[0]) if row and row[0] is not None else 0


def _recent_rewards(tx: Tx, model_id: str, recent: int) -> tuple[tuple[Speaker, float], ...]:
    """The newest rewards of a model, after what a job was asked for on already."""
    floor = _read_number(
        tx,
        f"SELECT MAX(covers_seq) FROM jobs WHERE {_VALID_COVERS} AND (state IN ('queued', 'running') OR reason = ?)",
        _DEGRADED,
    )
    return _newest_rewards(tx, model_id, "trajectory_seq > ?", floor, recent)


def _rewards_before_promotion(
    tx: Tx, model: ModelRow, recent: int
) -> tuple[tuple[Speaker, float], ...]:
    """The newest rewards of a model that it earned before it was promoted."""
    if model.deployed is None:
        return ()
    first = first_seq_since(tx, to_microseconds(model.deployed))
    return _newest_rewards(tx, model.model_id, "trajectory_seq < ?", first, recent)


def _newest_rewards(
    tx: Tx, model_id: str, where: str, seq: int, recent: int
) -> tuple[tuple[Speaker, float], ...]:
    """The newest rewards of a model, of no key more than its share.

    Where a gateway serves the model, what names it by another door is no evidence: anybody can name a model.
    """
    served = tx.row("SELECT 1 FROM scored WHERE model = ? AND gateway = 1 LIMIT 1", (model_id,))
    by_gateway = "AND gateway = 1" if served else ""
    sql = (
        f"SELECT principal, raw_total, key_id FROM scored WHERE model = ? AND {where} {by_gateway} "
        f"AND {EVIDENCE} ORDER BY trajectory_seq DESC LIMIT ?"
    )
    newest = tx.rows(sql, (model_id, seq, max(MAX_READ, recent)))
    fair = fair_newest(newest[::-1], lambda row: row[2] or ("user", row[0]), recent)
    return rewards_by_principal(fair[::-1])


def _other_policies(tx: Tx, serving: ModelRow | None, base: str | None) -> tuple[str, ...]:
    """The models of ours that training does not start from: what they did is not news to learn from."""
    names = {row[0] for row in tx.rows("SELECT model_id FROM models")} | {base or ""}
    if serving is not None:
        names |= {serving.base_model}
    return tuple(sorted(names - {serving.model_id if serving is not None else base}))


def _pending_model(tx: Tx) -> str | None:
    """The newest model that is on its way; one that waits for a person's word holds up nobody.

    Nor does one that is older than a model with a rollout: nobody validates it meanwhile.
    """
    row = tx.row(
        "SELECT model_id FROM rollouts WHERE state IN ('queued', 'ramping', 'paused') "
        "ORDER BY seq DESC LIMIT 1"
    ) or tx.row(
        "SELECT model_id FROM models WHERE state IN ('trained', 'validating') "
        "AND job_id NOT LIKE 'registered-%' AND version >= COALESCE((SELECT MAX(m.version) "
        "FROM models m JOIN rollouts r ON r.model_id = m.model_id "
        "WHERE r.state IN ('awaiting_approval', 'promoted')), 0) ORDER BY version DESC LIMIT 1"
    )
    return str(row[0]) if row else None


def _placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values)) or "''"


def _count_new(tx: Tx, most: int, others: Sequence[str]) -> int:
    """Trainable ones of the policy that training starts from that no job covers and no model has seen.

    A job that failed covers nothing; one that was cancelled does, because somebody decided so.
    """
    floor = _read_number(
        tx, f"SELECT MAX(covers_seq) FROM jobs WHERE {_VALID_COVERS} AND state <> 'failed'"
    )
    seen = (
        "EXISTS (SELECT 1 FROM trained_on o JOIN models m ON m.job_id = o.job_id "
        "WHERE o.trajectory_id = scored.trajectory_id)"
    )
    sql = (
        "SELECT COUNT(*) FROM (SELECT 1 FROM scored "
        f"WHERE trajectory_seq > ? AND {_TRAINABLE} AND model NOT IN ({_placeholders(others)}) "
        f"AND NOT {seen} LIMIT ?) n"
    )
    return _read_number(tx, sql, floor, *others, most)


def _failed_reasons(tx: Tx) -> dict[str, datetime]:
    """Reasons whose newest ended job failed, and when."""
    sql = (
        "SELECT reason, state, ended_us FROM jobs WHERE seq IN "
        "(SELECT MAX(seq) FROM jobs WHERE ended_us IS NOT NULL GROUP BY reason)"
    )
    ended = (row for row in tx.rows(sql) if row[1] == "failed")
    return dict(
        tx.bad_rows.read_each(
            "trigger", "jobs", ended, lambda row: (row[0], from_microseconds(row[2]))
        )
    )


def _last_training(tx: Tx) -> datetime | None:
    sql = (
        "SELECT MAX(started_us) FROM jobs WHERE state IN ('running', 'completed') "
        "AND started_us BETWEEN 0 AND ?"
    )
    row = tx.row(sql, (LATEST,))
    return from_microseconds(row[0]) if row and row[0] is not None else None
