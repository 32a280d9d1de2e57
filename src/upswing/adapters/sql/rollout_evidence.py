"""What have models earned since, and who complained about them?

Only episodes count that chance gave to a model: recorded by a gateway, not asked for by name, answered
by one model, not spoiled by the infrastructure, no evaluations and no practice. Each counts once: a reward at its first
revision, a complaint when it is the trajectory's first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from upswing.adapters.sql.database import Row, Tx, blob, blob_of
from upswing.adapters.sql.practice_tables import NOT_PRACTICE
from upswing.adapters.sql.store import moment
from upswing.contracts.typed import json_decoder
from upswing.errors import Rejected
from upswing.ports import may_speak
from upswing.ports_rollout import MOST_ASIDE, Complaints, Earned, Rewards, SeenComplaint, SeenReward

_PATIENCE_US = 3600 * 1_000_000
"""How long a complaint waits for its trajectory, which is stored when its episode is over."""
_FEEDBACK = "SELECT seq, body, trajectory_id, episode_id, user_id, trusted, stored_us, content_hash FROM feedback"
_EARLIER = "SELECT body, user_id, trusted, content_hash FROM feedback WHERE seq < ?"
_SOUND = "t.infra_error = 0 AND t.evaluation = 0 AND t.practice = 0 AND t.door = 'nats'"
"""A gateway records by the bus: what comes by HTTP only says that it was one."""


class _Gateway(msgspec.Struct):
    rollout: str = ""
    named: bool = False


class _Metadata(msgspec.Struct):
    gateway: _Gateway | None = None
    mixed_models: Any = None
    withdrawn_model: Any = None


class _Trajectory(msgspec.Struct):
    metadata: _Metadata


class _About(msgspec.Struct):
    raw_total: float | None = None


class _Reward(msgspec.Struct):
    metadata: _About


class _Word(msgspec.Struct):
    type: str
    rating: int | None = None


_TRAJECTORIES = json_decoder(_Trajectory)
_REWARDS = json_decoder(_Reward)
_WORDS = json_decoder(_Word)


def newest(tx: Tx) -> tuple[int, int]:
    """The newest sequence numbers of rewards and of feedback."""
    row = tx.row(
        "SELECT (SELECT COALESCE(MAX(seq), 0) FROM rewards), (SELECT COALESCE(MAX(seq), 0) FROM feedback)"
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)


def rewards_after(tx: Tx, seq: int, models: Sequence[str], limit: int) -> Rewards:
    """The next first rewards of these models, in the order in which they were stored."""
    marks = ", ".join("?" * len(models))
    counts = f"r.revision = 1 AND t.model IN ({marks}) AND {_SOUND}"
    sql = (
        f"SELECT r.seq, t.model, CASE WHEN {counts} THEN r.body END, CASE WHEN {counts} THEN t.body END, t.content_hash "
        "FROM rewards r LEFT JOIN trajectories t ON t.trajectory_id = r.trajectory_id "
        "WHERE r.seq > ? ORDER BY r.seq LIMIT ?"
    )
    rows = tx.rows(sql, (*models, *models, seq, limit))
    told = [row for row in rows if row[3] is not None]
    seen = tx.aside.sound("deploy", "rewards", told, _reward)
    return Rewards(
        tuple(each for each in seen if each), rows[-1][0] if rows else seq, more=len(rows) == limit
    )


def complaints_after(
    tx: Tx, seq: int, models: Sequence[str], limit: int, aside: Sequence[int] = ()
) -> Complaints:
    """The next first complaints about these models; one whose trajectory may still come is put aside."""
    news = tx.rows(f"{_FEEDBACK} WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit))
    marks = ", ".join("?" * len(aside))
    waited = (
        tx.rows(f"{_FEEDBACK} WHERE seq IN ({marks}) ORDER BY seq", tuple(aside)) if aside else []
    )
    last = tx.row("SELECT MAX(stored_us) FROM feedback")
    stale = (last[0] if last and last[0] is not None else 0) - _PATIENCE_US
    seen: list[SeenComplaint] = []
    waiting: list[int] = []

    def hear(row: Row) -> None:
        if not _negative(blob_of(row[1], row[7])) or not (row[2] or row[3]):
            return
        target = _target(tx, row)
        if target is not None and (found := _complaint(tx, row, target, models)):
            seen.append(found)
        elif target is None and row[6] > stale:
            waiting.append(row[0])

    tx.aside.sound("deploy", "feedback", (*waited, *news), hear)
    upto = news[-1][0] if news else seq
    return Complaints(tuple(seen), upto, len(news) == limit, tuple(waiting[-MOST_ASIDE:]))


def earned(tx: Tx, model_id: str, most: int) -> Earned:
    """What the newest trajectories of a model earned."""
    rows = tx.rows(
        "SELECT s.raw_total FROM scored s WHERE s.model = ? AND s.infra_error = 0 "
        "AND s.trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE evaluation = 1) "
        f"AND s.{NOT_PRACTICE} "
        "ORDER BY s.trajectory_seq DESC LIMIT ?",
        (model_id, most),
    )
    values = [row[0] for row in rows if isinstance(row[0], float) and math.isfinite(row[0])]
    return Earned(math.fsum(values) / len(values) if values else None, len(values))


def _reward(row: Row) -> SeenReward | None:
    rollout = _by_chance(blob_of(row[3], row[4]))
    if rollout is None:
        return None
    try:
        total = _REWARDS.decode(blob(row[2])).metadata.raw_total
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
        total = None
    return SeenReward(row[0], row[1], rollout, total)


def _by_chance(body: Any) -> str | None:
    """The rollout under which chance gave this episode to one model; None: it says nothing."""
    try:
        about = _TRAJECTORIES.decode(blob(body)).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
        return None
    gateway = about.gateway
    if gateway is None or not gateway.rollout or gateway.named:
        return None
    if about.mixed_models or about.withdrawn_model:
        return None
    return gateway.rollout


def _negative(body: Any) -> bool:
    try:
        word = _WORDS.decode(blob(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
        return False
    if word.type == "rating":
        return word.rating is not None and word.rating <= 2
    return word.type in {"thumbs_down", "abandoned", "correction", "demonstration"}


def _complained(earlier: Row) -> bool:
    """A word that is not what was stored says nothing."""
    try:
        return _negative(blob_of(earlier[0], earlier[3]))
    except (Rejected, TypeError):
        return False


def _target(tx: Tx, word: Row) -> str | None:
    """The scored trajectory that a word speaks of."""
    column, value = ("trajectory_id", word[2]) if word[2] else ("episode_id", word[3])
    row = tx.row(f"SELECT trajectory_id FROM scored WHERE {column} = ?", (value,))
    return row[0] if row else None


def _complaint(tx: Tx, word: Row, target: str, models: Sequence[str]) -> SeenComplaint | None:
    row = tx.row(
        "SELECT t.model, t.body, t.user_id, t.started_us, t.episode_id, t.content_hash FROM trajectories t "
        f"WHERE t.trajectory_id = ? AND {_SOUND}",
        (target,),
    )
    if row is None or row[0] not in models:
        return None
    if (rollout := _by_chance(blob_of(row[1], row[5]))) is None:
        return None
    owner = row[2]
    if not may_speak(word[4], owner, trusted=bool(word[5])):
        return None
    earlier = tx.rows(f"{_EARLIER} AND trajectory_id = ?", (word[0], target))
    if row[4] is not None:
        earlier += tx.rows(f"{_EARLIER} AND episode_id = ?", (word[0], row[4]))
    if any(_complained(e) and may_speak(e[1], owner, trusted=bool(e[2])) for e in earlier):
        return None
    return SeenComplaint(word[0], row[0], rollout, moment(row[3]))
