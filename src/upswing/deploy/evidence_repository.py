"""What have models earned since, and who complained about them?

Only episodes count that chance gave to a model: recorded by a gateway, not asked for by name, answered
by one model, not chosen by a switch of the gateway, not spoiled by the infrastructure, no evaluations and no practice. Each counts once: a reward at its first
revision, a complaint when it is the trajectory's first. What chance gave to a model and another had to finish, or the
infrastructure spoiled, is told as lost.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.deploy.core.rows import (
    MOST_PENDING,
    ComplaintBatch,
    ObservedComplaint,
    ObservedReward,
    RewardBatch,
    RewardMean,
)
from upswing.errors import Rejected
from upswing.infra.sql.database import Row, Tx, bytes_of_column, verified_bytes_of_column
from upswing.infra.sql.key_tables import HERE, OWN_FIRST
from upswing.infra.sql.store import from_microseconds
from upswing.principals import BUS, fair_newest, may_speak

_PATIENCE_US = 3600 * 1_000_000
"""How long a complaint waits for its trajectory, which is stored when its episode is over."""
_FEEDBACK = (
    "SELECT seq, body, trajectory_id, episode_id, user_id, trusted, stored_us, principal, content_hash, many "
    "FROM feedback"
)
_BEFORE = "SELECT body, user_id, trusted, principal, content_hash, many FROM feedback WHERE seq < ?"
_LATELY_US = 3 * 24 * 3600 * 1_000_000
"""How long a key that has spoken is one of those that speak lately: over a weekend, and less than a canary may wait."""
_OURS = "t.evaluation = 0 AND t.practice = 0 AND t.door = 'gateway'"
_SOUND = f"t.infra_error = 0 AND {_OURS}"
"""A gateway's own subject on the bus: what comes by another door only says that it was one."""


class _Gateway(msgspec.Struct):
    rollout: str = ""
    named: bool = False
    step: str = ""
    switch: str = ""
    unit: str = "episode"


class _Metadata(msgspec.Struct):
    gateway: _Gateway | None = None
    mixed_models: Any = None
    withdrawn_model: Any = None
    domain: Any = None
    segment: Any = None


class _Trajectory(msgspec.Struct):
    metadata: _Metadata


class _RewardMetadata(msgspec.Struct):
    raw_total: float | None = None


class _Component(msgspec.Struct):
    score: float | None = None


class _Reward(msgspec.Struct):
    metadata: _RewardMetadata
    reward_components: dict[str, _Component] = {}


class _StoredFeedback(msgspec.Struct):
    type: str
    rating: int | None = None


_ALIKE = 100
"""Trajectories of one episode's name that are looked through."""
_SEARCHED = 5
"""Times as many trajectories are looked through as are wanted."""
_COMPLETION = "task_completion"
_LONGEST = 100
"""Characters of a segment's name."""
_EARLIER = 200
"""Of a user's newest episodes that are looked through for one that counted."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError)
_TRAJECTORIES = json_decoder(_Trajectory)
_REWARDS = json_decoder(_Reward)
_FEEDBACK_DECODER = json_decoder(_StoredFeedback)


def newest_sequences(tx: Tx) -> tuple[int, int]:
    """The newest sequence numbers of rewards and of feedback."""
    row = tx.row(
        "SELECT (SELECT COALESCE(MAX(seq), 0) FROM rewards), (SELECT COALESCE(MAX(seq), 0) FROM feedback)"
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)


def rewards_after(tx: Tx, seq: int, models: Sequence[str], limit: int) -> RewardBatch:
    """The next first rewards of these models, in the order in which they were stored."""
    marks = ", ".join("?" * len(models))
    counts = f"r.revision = 1 AND t.model IN ({marks}) AND {_OURS}"
    sql = (
        f"SELECT r.seq, t.model, CASE WHEN {counts} THEN r.body END, CASE WHEN {counts} THEN t.body END, "
        "t.agent_type, t.user_id, t.seq, t.content_hash, t.agent_id, t.key_id, t.many, t.infra_error, t.stored_us "
        "FROM rewards r LEFT JOIN trajectories t ON t.trajectory_id = r.trajectory_id "
        "WHERE r.seq > ? ORDER BY r.seq LIMIT ?"
    )
    rows = tx.rows(sql, (*models, *models, seq, limit))
    scored = [row for row in rows if row[3] is not None]
    seen = tx.bad_rows.read_each("deploy", "rewards", scored, lambda row: _reward(tx, row, models))
    counted = tuple(each for each in seen if each)
    return RewardBatch(
        counted,
        rows[-1][0] if rows else seq,
        more=len(rows) == limit,
        several=any(each.key for each in counted) and _several(tx, min(row[12] for row in scored)),
    )


def complaints_after(
    tx: Tx, seq: int, models: Sequence[str], limit: int, pending: Sequence[int] = ()
) -> ComplaintBatch:
    """The next first complaints about these models; one whose trajectory may still come is put aside."""
    new_rows = tx.rows(f"{_FEEDBACK} WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit))
    marks = ", ".join("?" * len(pending))
    waited = (
        tx.rows(f"{_FEEDBACK} WHERE seq IN ({marks}) ORDER BY seq", tuple(pending))
        if pending
        else []
    )
    last = tx.row("SELECT MAX(stored_us) FROM feedback")
    stale = (last[0] if last and last[0] is not None else 0) - _PATIENCE_US
    seen: list[ObservedComplaint] = []
    waiting: list[tuple[int, object]] = []

    def collect_complaint(row: Row) -> None:
        if not _negative(verified_bytes_of_column(row[1], row[8])) or not (row[2] or row[3]):
            return
        targets = _targets(tx, row)
        found = (_complaint(tx, row, target, models) for target in targets)
        if (first := next(filter(None, found), None)) is not None:
            seen.append(first)
        elif not targets and row[6] > stale:
            waiting.append((row[0], (row[7], row[4] if row[9] else None)))

    tx.bad_rows.read_each("deploy", "feedback", (*waited, *new_rows), collect_complaint)
    upto = new_rows[-1][0] if new_rows else seq
    several = any(each.key for each in seen) and _several(
        tx, min(row[6] for row in (*waited, *new_rows))
    )
    kept = fair_newest(waiting, lambda each: each[1], MOST_PENDING)
    return ComplaintBatch(
        tuple(seen), upto, len(new_rows) == limit, tuple(seq for seq, _ in kept), several
    )


def _several(tx: Tx, since_us: int) -> bool:
    """Have several keys spoken at a gateway lately, as of then? However much one of them says, the others have spoken.

    What comes by another door is no evidence, so it makes nobody's share smaller. The index leads from one key to the
    next, so it costs as many looks as there are keys.
    """
    row = tx.row(
        "WITH RECURSIVE k (key_id) AS ("
        f"SELECT MIN(key_id) FROM trajectories WHERE {HERE} UNION ALL "
        f"SELECT (SELECT MIN(key_id) FROM trajectories WHERE {HERE} AND key_id > k.key_id) "
        "FROM k WHERE k.key_id IS NOT NULL) "
        "SELECT COUNT(*) FROM k WHERE k.key_id IS NOT NULL AND ("
        f"SELECT stored_us FROM trajectories WHERE {HERE} AND key_id = k.key_id "
        "ORDER BY seq DESC LIMIT 1) > ?",
        (since_us - _LATELY_US,),
    )
    return bool(row and row[0] > 1)


def _who(user: Any, many: Any, seq: Any, agent: Any) -> object:
    """Whose an episode is: where a key speaks for many and names no user, nobody else's."""
    return user or (f"episode {seq}" if many else agent)


def _hashed(key: Any, user: Any) -> str:
    """Enough to tell the users of all keys apart, and to tell nobody who they are."""
    return sha256(f"{key}\0{user}".encode("utf-8", "replace")).hexdigest()[:10]


def mean_reward(tx: Tx, model_id: str, most: int) -> RewardMean:
    """What the newest trajectories of a model earned; those that a switch gave to it say nothing of the plan's."""
    rows = tx.rows(
        "SELECT s.raw_total, t.body FROM scored s JOIN trajectories t ON t.seq = s.trajectory_seq "
        f"WHERE s.model = ? AND s.infra_error = 0 AND {_SOUND} "
        "ORDER BY s.trajectory_seq DESC LIMIT ?",
        (model_id, _SEARCHED * most),
    )
    found = (row[0] for row in rows if not _by_switch(row[1]))
    sound = (total for total in found if isinstance(total, float) and math.isfinite(total))
    values = list(islice(sound, most))
    return RewardMean(math.fsum(values) / len(values) if values else None, len(values))


def _by_switch(body: Any) -> bool:
    try:
        gateway = _TRAJECTORIES.decode(bytes_of_column(body)).metadata.gateway
    except _UNREADABLE:
        return False
    return gateway is not None and bool(gateway.switch)


def _reward(tx: Tx, row: Row, models: Sequence[str]) -> ObservedReward | None:
    about = _drawn(verified_bytes_of_column(row[3], row[7]))
    if about is None or about.gateway is None:
        return None
    gateway, lost = about.gateway, bool(row[11]) or _mixed(about)
    by_user = gateway.unit == "user"
    if by_user and lost:
        return None  # the next one of this user counts
    if by_user and _came_before(tx, (row[5], row[9]), row[6], models, gateway.rollout):
        return None
    total = completion = None
    with contextlib.suppress(*_UNREADABLE):
        reward = _REWARDS.decode(bytes_of_column(row[2]))
        total = reward.metadata.raw_total
        completion = reward.reward_components.get(_COMPLETION, _Component()).score
    return ObservedReward(
        row[0],
        row[1],
        gateway.rollout,
        total,
        gateway.step,
        completion,
        _segments(about.domain, row[4], about.segment),
        by_user,
        key="" if row[10] else str(row[9]),
        user=_hashed(row[9], _who(row[5], row[10], row[6], row[8])),
        lost=lost,
    )


def _segments(domain: Any, agent_type: Any, declared: Any) -> tuple[str, ...]:
    """Which parts of the traffic an episode belongs to, by what was told before a model acted.

    A domain that is guessed from the tools that were called would compare the easy tasks of one model with the
    hard ones of another.

    >>> _segments("coding", "main", "eu")
    ('domain coding', 'agent type main', 'segment eu')
    """
    labels = (("domain", domain), ("agent type", agent_type), ("segment", declared))
    return tuple(
        f"{kind} {name}"[:_LONGEST] for kind, name in labels if isinstance(name, str) and name
    )


def _came_before(
    tx: Tx, who: tuple[Any, Any], seq: int, models: Sequence[str], rollout: str
) -> bool:
    """Has this user of this key been counted? The newest of their episodes say so."""
    marks = ", ".join("?" * len(models))
    rows = tx.rows(
        f"SELECT t.body FROM trajectories t WHERE t.user_id = ? AND t.key_id = ? AND t.seq < ? AND t.model IN ({marks}) "
        f"AND {_SOUND} ORDER BY t.seq DESC LIMIT ?",
        (*who, seq, *models, _EARLIER),
    )
    found = (_randomised_metadata(row[0]) for row in rows)
    return any(about and about.gateway and about.gateway.rollout == rollout for about in found)


def _randomised_metadata(body: Any) -> _Metadata | None:
    """What is said of an episode that chance gave to one model; None: it is no evidence."""
    about = _drawn(body)
    return None if about is None or _mixed(about) else about


def _mixed(about: _Metadata) -> bool:
    return bool(about.mixed_models or about.withdrawn_model)


def _drawn(body: Any) -> _Metadata | None:
    """What is said of an episode for which chance chose, whoever answered it in the end."""
    try:
        about = _TRAJECTORIES.decode(bytes_of_column(body)).metadata
    except _UNREADABLE:
        return None
    gateway = about.gateway
    if gateway is None or not gateway.rollout or gateway.named or gateway.switch:
        return None
    return about


def _may_complain(
    user_id: str | None, owner: str | None, trusted: int, principal: str, many: int, key: str
) -> bool:
    """An agent on the bus hears of everybody's episodes: it speaks for none that names no user."""
    may = may_speak(
        user_id, owner, trusted=bool(trusted), key=principal, recorded_by=key, many=bool(many)
    )
    return may and not (principal == BUS and owner is None)


def _negative(body: Any) -> bool:
    try:
        feedback = _FEEDBACK_DECODER.decode(bytes_of_column(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError):
        return False
    if feedback.type == "rating":
        return feedback.rating is not None and feedback.rating <= 2
    return feedback.type in {"thumbs_down", "abandoned", "correction", "demonstration"}


def _complained(earlier: Row) -> bool:
    """A word that is not what was stored says nothing."""
    try:
        return _negative(verified_bytes_of_column(earlier[0], earlier[4]))
    except (Rejected, TypeError):
        return False


def _targets(tx: Tx, feedback: Row) -> list[str]:
    """The scored trajectories that a word may speak of, its own key's first: others may name an episode alike."""
    column, value = ("trajectory_id", feedback[2]) if feedback[2] else ("episode_id", feedback[3])
    rows = tx.rows(
        "SELECT s.trajectory_id FROM scored s JOIN trajectories t ON t.seq = s.trajectory_seq "
        f"WHERE s.{column} = ? ORDER BY {OWN_FIRST}, s.trajectory_seq LIMIT {_ALIKE}",
        (value, feedback[7]),
    )
    return [row[0] for row in rows]


def _complaint(
    tx: Tx, feedback: Row, target: str, models: Sequence[str]
) -> ObservedComplaint | None:
    row = tx.row(
        "SELECT t.model, t.body, t.user_id, t.started_us, t.episode_id, t.content_hash, t.key_id, t.many, "
        "t.agent_id, t.seq FROM trajectories t "
        f"WHERE t.trajectory_id = ? AND {_SOUND}",
        (target,),
    )
    if row is None or row[0] not in models:
        return None
    about = _randomised_metadata(verified_bytes_of_column(row[1], row[5]))
    if about is None or about.gateway is None:
        return None
    if about.gateway.unit == "user":
        return None  # one who complains often is one user
    owner, key = row[2], row[6]
    if not _may_complain(feedback[4], owner, feedback[5], feedback[7], feedback[9], key):
        return None
    earlier = tx.rows(f"{_BEFORE} AND trajectory_id = ?", (feedback[0], target))
    if row[4] is not None:
        earlier += tx.rows(f"{_BEFORE} AND episode_id = ?", (feedback[0], row[4]))
    if any(_complained(e) and _may_complain(e[1], owner, e[2], e[3], e[5], key) for e in earlier):
        return None
    gateway = about.gateway
    return ObservedComplaint(
        feedback[0],
        row[0],
        gateway.rollout,
        from_microseconds(row[3]),
        gateway.step,
        key="" if row[7] else str(key),
        user=_hashed(key, _who(owner, row[7], row[9], row[8])),
    )
