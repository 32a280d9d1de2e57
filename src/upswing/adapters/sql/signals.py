"""What does the store say that bears on when to train?

Rewards are read from `scored`, whose rows are small; the trajectories themselves are not touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from upswing.adapters.sql.database import Database, Tx
from upswing.adapters.sql.datasets import DataSets
from upswing.adapters.sql.decisions import last_slot
from upswing.adapters.sql.job_rows import active
from upswing.adapters.sql.models import deployed
from upswing.adapters.sql.practice_tables import EVIDENCE, SOUND
from upswing.adapters.sql.rewards import MEMBER, earned_of, members_of
from upswing.adapters.sql.store import LATEST, micros, moment
from upswing.dataset.groups import MIN_AGENTS, MIN_ATTEMPTS, Learnable, learnable
from upswing.ports import ModelRow, ScoredMember, Signals
from upswing.senders import Speaker

LOOKED_AT = 20_000
"""The newest trajectories that are looked at for what they can teach: a look should stay cheap."""

_TRAINABLE = f"{SOUND} AND principal NOT IN (SELECT user_id FROM optouts)"
_TIMELY = "trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE ended_us < ?)"
_ANY_LENGTH = 2**31 - 1
_A_PLACE = f"covers_seq BETWEEN 0 AND {2**53}"
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

        def unit(tx: Tx) -> Signals:
            model = deployed(tx)
            return Signals(
                deployed=model,
                values=_values(tx, model.model_id, recent) if model else (),
                before=_before(tx, model, recent) if model else (),
                new=_new(tx, most, _other_policies(tx, model, base)),
                newest_seq=_number(tx, "SELECT MAX(seq) FROM trajectories"),
                active=active(tx),
                failed=_failed(tx),
                last_training=_last_training(tx),
                last_slot=last_slot(tx),
                pending=_pending(tx),
            )

        return await self._database.read(unit)

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
                learnable, members, min_agents=min_agents, min_attempts=min_attempts, own=[start],
                shown=shown, self_reported=self_reported,
            )
        )  # fmt: skip

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

        def unit(tx: Tx) -> tuple[list[ScoredMember], str]:
            serving = deployed(tx)
            others = _other_policies(tx, serving, base)
            sql = (
                f"{MEMBER} WHERE {_TRAINABLE} AND model NOT IN ({_marks(others)}) AND turns <= ? "
                f"AND {_TIMELY} ORDER BY trajectory_seq DESC LIMIT ?"
            )
            longest = _ANY_LENGTH if max_turns is None else max_turns
            first = 0 if since is None else micros(since)
            rows = tx.rows(sql, (*others, longest, first, LOOKED_AT))
            return members_of(rows, tx.aside), serving.model_id if serving else base or ""

        return await self._database.read(unit)

    async def collected_since(self, since: datetime) -> int:
        """How many trajectories were stored since then."""

        def unit(tx: Tx) -> int:
            first = _first_since(tx, micros(since))
            return _number(tx, "SELECT COUNT(*) FROM trajectories WHERE seq >= ?", first)

        return await self._database.read(unit)


def _number(tx: Tx, sql: str, *params: object) -> int:
    row = tx.row(sql, params)
    return int(row[0]) if row and row[0] is not None else 0


def _values(tx: Tx, model_id: str, recent: int) -> tuple[tuple[Speaker, float], ...]:
    """The newest rewards of a model, after what a job was asked for on already."""
    floor = _number(
        tx,
        f"SELECT MAX(covers_seq) FROM jobs WHERE {_A_PLACE} AND (state IN ('queued', 'running') OR reason = ?)",
        _DEGRADED,
    )
    sql = (
        "SELECT principal, raw_total, key_id FROM scored WHERE model = ? AND trajectory_seq > ? "
        f"AND {EVIDENCE} ORDER BY trajectory_seq DESC LIMIT ?"
    )
    return earned_of(tx.rows(sql, (model_id, floor, recent)))


def _before(tx: Tx, model: ModelRow, recent: int) -> tuple[tuple[Speaker, float], ...]:
    """The newest rewards of a model that it earned before it was promoted."""
    if model.deployed is None:
        return ()
    sql = (
        "SELECT principal, raw_total, key_id FROM scored WHERE model = ? AND trajectory_seq < ? "
        f"AND {EVIDENCE} ORDER BY trajectory_seq DESC LIMIT ?"
    )
    first = _first_since(tx, micros(model.deployed))
    return earned_of(tx.rows(sql, (model.model_id, first, recent)))


def _other_policies(tx: Tx, serving: ModelRow | None, base: str | None) -> tuple[str, ...]:
    """The models of ours that training does not start from: what they did is not news to learn from."""
    names = {row[0] for row in tx.rows("SELECT model_id FROM models")} | {base or ""}
    if serving is not None:
        names |= {serving.base_model}
    return tuple(sorted(names - {serving.model_id if serving is not None else base}))


def _pending(tx: Tx) -> str | None:
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


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values)) or "''"


def _new(tx: Tx, most: int, others: Sequence[str]) -> int:
    """Trainable ones of the policy that training starts from that no job covers and no model has seen.

    A job that failed covers nothing; one that was cancelled does, because somebody decided so.
    """
    floor = _number(tx, f"SELECT MAX(covers_seq) FROM jobs WHERE {_A_PLACE} AND state <> 'failed'")
    seen = (
        "EXISTS (SELECT 1 FROM trained_on o JOIN models m ON m.job_id = o.job_id "
        "WHERE o.trajectory_id = scored.trajectory_id)"
    )
    sql = (
        "SELECT COUNT(*) FROM (SELECT 1 FROM scored "
        f"WHERE trajectory_seq > ? AND {_TRAINABLE} AND model NOT IN ({_marks(others)}) "
        f"AND NOT {seen} LIMIT ?) n"
    )
    return _number(tx, sql, floor, *others, most)


def _failed(tx: Tx) -> dict[str, datetime]:
    """Reasons whose newest ended job failed, and when."""
    sql = (
        "SELECT reason, state, ended_us FROM jobs WHERE seq IN "
        "(SELECT MAX(seq) FROM jobs WHERE ended_us IS NOT NULL GROUP BY reason)"
    )
    ended = (row for row in tx.rows(sql) if row[1] == "failed")
    return dict(tx.aside.sound("trigger", "jobs", ended, lambda row: (row[0], moment(row[2]))))


def _last_training(tx: Tx) -> datetime | None:
    sql = (
        "SELECT MAX(started_us) FROM jobs WHERE state IN ('running', 'completed') "
        "AND started_us BETWEEN 0 AND ?"
    )
    row = tx.row(sql, (LATEST,))
    return moment(row[0]) if row and row[0] is not None else None


def _first_since(tx: Tx, since_us: int) -> int:
    """The first sequence number stored since then. Times rise with the sequence: halve and look."""
    low, high = 1, _number(tx, "SELECT MAX(seq) FROM trajectories") + 1
    while low < high:
        middle = (low + high) // 2
        row = tx.row(
            "SELECT seq, stored_us FROM trajectories WHERE seq >= ? ORDER BY seq LIMIT 1", (middle,)
        )
        if row is None or row[1] >= since_us:
            high = middle
        else:
            low = int(row[0]) + 1
    return low
