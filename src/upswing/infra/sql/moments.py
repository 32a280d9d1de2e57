"""Which trajectory was the first to be stored since then?"""

from __future__ import annotations

from upswing.infra.sql.database import Tx

_FROM = "SELECT seq, stored_us FROM trajectories WHERE seq >= ? ORDER BY seq LIMIT 1"


def first_seq_since(tx: Tx, since_us: int) -> int:
    """The first sequence number stored since then. Times rise with the sequence: halve and look."""
    newest = tx.row("SELECT MAX(seq) FROM trajectories")
    low, high = 1, int(newest[0] or 0) + 1 if newest else 1
    while low < high:
        middle = (low + high) // 2
        row = tx.row(_FROM, (middle,))
        # A time that is no number belongs to a row that somebody spoilt: nothing is left out because of it.
        if row is None or not isinstance(row[1], int) or row[1] >= since_us:
            high = middle
        else:
            low = int(row[0]) + 1
    return low
