"""Which trajectories does a word speak of?

A trajectory's id names one. An episode's id is each key's own: a key means its own episode, and only one that has none
of this name, and may speak for others, means theirs. So what one key stores under a name neither hides nor delays a
word of another, however much it is.
"""

from __future__ import annotations

from upswing.infra.sql.database import Row, Tx

MOST_ALIKE = 100
"""Trajectories of one name that a word speaks of, the newest: an episode has one, or a few where it was cut."""
_SELECT = "SELECT t.seq, t.trajectory_id, t.episode_id, t.user_id, t.key_id FROM trajectories t"
_NEWEST = f"ORDER BY t.seq DESC LIMIT {MOST_ALIKE}"
EPISODES = (
    "CREATE INDEX trajectories_by_episode ON trajectories (episode_id, key_id, seq) WHERE episode_id IS NOT NULL",
)


def feedback_targets(
    tx: Tx,
    trajectory_id: str | None,
    episode_id: str | None,
    principal: str,
    *,
    for_others: bool,
) -> list[Row]:
    """(seq, trajectory, episode, user, key) of each; `for_others`: its key speaks for more than itself."""
    if trajectory_id is not None:
        return tx.rows(f"{_SELECT} WHERE t.trajectory_id = ?", (trajectory_id,))
    if episode_id is None:
        return []
    if own := _episode_rows_of_key(tx, episode_id, principal):
        return own
    if for_others:
        return tx.rows(f"{_SELECT} WHERE t.episode_id = ? {_NEWEST}", (episode_id,))
    return _episode_rows_of_key(tx, episode_id, "") if principal else []


def has_own_episode(tx: Tx, episode_id: str, principal: str) -> bool:
    """Has this key an episode of this name?"""
    sql = "SELECT 1 FROM trajectories t WHERE t.episode_id = ? AND t.key_id = ? LIMIT 1"
    return bool(principal) and tx.row(sql, (episode_id, principal)) is not None


def _episode_rows_of_key(tx: Tx, episode_id: str, key_id: str) -> list[Row]:
    sql = f"{_SELECT} WHERE t.episode_id = ? AND t.key_id = ? {_NEWEST}"
    return tx.rows(sql, (episode_id, key_id))
