"""What is a trajectory's place in the history, once people had an hour to speak of it?"""

from __future__ import annotations

from datetime import datetime, timedelta

from upswing.contracts import Reward, decode
from upswing.infra.sql.database import Row, Tx, bytes_of_column
from upswing.infra.sql.store import to_microseconds

CURSOR, RAW_TOTAL = "settled", "raw_total"
_STEP = 500
"""Trajectories in one transaction."""
_NEXT = (
    "SELECT s.trajectory_seq, s.trajectory_id, s.infra_error, r.created_us FROM scored s "
    "JOIN rewards r ON r.trajectory_id = s.trajectory_id AND r.revision = 1 "
    "WHERE s.trajectory_seq > ? ORDER BY s.trajectory_seq LIMIT ?"
)
_THEN = (
    "SELECT body FROM rewards WHERE trajectory_id = ? AND created_us <= ? "
    "ORDER BY revision DESC LIMIT 1"
)
_KEEP = (
    "INSERT INTO component_scores (name, trajectory_seq, score) VALUES (?, ?, ?) "
    "ON CONFLICT (name, trajectory_seq) DO UPDATE SET score = excluded.score"
)


def settle_late_components(tx: Tx, late: frozenset[str], after: timedelta, now: datetime) -> int:
    """Count the `late` components of the next trajectories that are so old, as they stood then; how many."""
    row = tx.row("SELECT seq FROM cursors WHERE name = ?", (CURSOR,))
    at = last = int(row[0]) if row else 0
    ripe, done = to_microseconds(now - after), 0
    for each in tx.rows(_NEXT, (at, _STEP)):
        seq, _, infra_error, created = each
        if isinstance(created, int) and created > ripe:
            break
        last, done = seq, done + 1
        if not infra_error:
            tx.bad_rows.read_each(
                "reward", "rewards", [each], lambda row: _settle_row(tx, row, late, after)
            )
    if last > at:
        tx.execute(
            "INSERT INTO cursors (name, seq) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq",
            (CURSOR, last),
        )
    return done


def _settle_row(tx: Tx, row: Row, late: frozenset[str], after: timedelta) -> None:
    seq, trajectory_id, _, created = row
    then = int(created) + after // timedelta(microseconds=1)
    found = tx.row(_THEN, (trajectory_id, then))
    if found is None:
        return
    reward = decode(Reward, bytes_of_column(found[0]))
    for name in late & reward.reward_components.keys():
        tx.execute(_KEEP, (name, seq, reward.reward_components[name].score))
    tx.execute(_KEEP, (RAW_TOTAL, seq, float(reward.metadata["raw_total"])))
