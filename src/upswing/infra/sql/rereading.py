"""How well did trajectories go that were scored before outcomes were read? Their bodies say so.

A migration can read no more than a status out of a body. The number, the tests and who checked them, and
what the agent did, are read here, once, the newest first; rows that have all that are not touched.
"""

from __future__ import annotations

from typing import Any

from upswing.contracts.typed import from_json
from upswing.dataset.outcome import trajectory_outcome
from upswing.dataset.task import actions_digest
from upswing.infra.sql.database import Row, Tx, verified_bytes_of_column

CURSOR = "outcomes_read"
STEP = 500
"""Trajectories in one transaction."""
_NEXT = (
    "SELECT t.seq, t.body, t.content_hash FROM scored s JOIN trajectories t ON t.seq = s.trajectory_seq "
    "WHERE s.trajectory_seq < ? AND s.answers = '' ORDER BY s.trajectory_seq DESC LIMIT ?"
)
_NEWEST = "SELECT COALESCE(MAX(trajectory_seq), 0) + 1 FROM scored"
_KEEP = (
    "INSERT INTO cursors (name, seq) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET seq = excluded.seq"
)


def reread_outcomes(tx: Tx, step: int = STEP) -> int:
    """Read the next old rows; how many there were."""
    row = tx.row("SELECT seq FROM cursors WHERE name = ?", (CURSOR,)) or tx.row(_NEWEST)
    before = int(row[0]) if row else 0
    if not before:
        return 0
    rows = tx.rows(_NEXT, (before, step))
    tx.bad_rows.read_each("reward", "trajectories", rows, lambda each: _reread_row(tx, each))
    tx.execute(_KEEP, (CURSOR, int(rows[-1][0]) if len(rows) == step else 0))
    return len(rows)


def _reread_row(tx: Tx, row: Row) -> None:
    seq, body, content_hash = row
    tree: dict[str, Any] = from_json(verified_bytes_of_column(body, content_hash), dict[str, Any])
    outcome, answers = trajectory_outcome(tree.get("metadata") or {}), actions_digest(tree)
    tx.execute(
        "UPDATE scored SET verified = ?, reported = ?, answers = ? WHERE trajectory_seq = ?",
        (outcome.verified, outcome.value, answers, seq),
    )
    tx.execute("UPDATE trajectories SET answers = ? WHERE seq = ?", (answers, seq))
