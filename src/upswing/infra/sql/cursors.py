"""How far has somebody read? A number under a name, moved in the transaction of what was read."""

from __future__ import annotations

from upswing.infra.sql.database import Tx


def read_cursor(tx: Tx, name: str) -> int:
    """0: nothing was read yet."""
    row = tx.row("SELECT seq FROM cursors WHERE name = ?", (name,))
    return int(row[0]) if row else 0


def move_cursor(tx: Tx, name: str, seq: int) -> None:
    """Forward, never back."""
    tx.execute(
        "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
        "SET seq = excluded.seq WHERE cursors.seq < excluded.seq",
        (name, seq),
    )
