"""How many dead letters are kept? Some of each key and hour; beyond them they are counted.

| whose                                        | letters per key and hour | beyond them                       |
|----------------------------------------------|--------------------------|-----------------------------------|
| a sender that was answered (HTTP, steps, SDK) | 200                      | `more` of the key's newest letter |
| the bus                                      | 5000                     | of the same reason                |
| a stage's own rows                           | all                      | –                                 |

Of one key the newest 5000 stay, and none stays longer than `[collect] dead_days`.
"""

from __future__ import annotations

from upswing.infra.sql.database import Tx
from upswing.principals import BUS, Sender

LETTERS = (
    # How many were refused alike in the same hour, of which no letter is kept.
    "ALTER TABLE dead ADD COLUMN more INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX dead_by_key ON dead (key_id, created_us)",
)
SUBJECTS = "agent.rl.dead."
"""Dead letters on the bus: nobody waits for them, so all else is sent first."""
PER_HOUR, PER_HOUR_ON_BUS = 200, 5000
PER_KEY = 5000
_HOUR_US = 3_600_000_000


def count_with_newest_letter(tx: Tx, reason: str, created_us: int, sender: Sender) -> bool:
    """Count it with the key's newest letter of this reason, where the key has had its share of letters."""
    if not sender.key_id:
        return False
    most = PER_HOUR_ON_BUS if sender.key_id == BUS else PER_HOUR
    since = created_us - _HOUR_US
    had = tx.rows(
        "SELECT COUNT(*) FROM dead WHERE key_id = ? AND created_us > ?", (sender.key_id, since)
    )
    if had[0][0] < most:
        return False
    return bool(
        tx.execute(
            "UPDATE dead SET more = more + 1 WHERE seq = (SELECT MAX(seq) FROM dead "
            "WHERE key_id = ? AND created_us > ? AND reason = ?)",
            (sender.key_id, since, reason),
        )
    )


def prune_dead(tx: Tx, before_us: int) -> int:
    """Delete letters from before then, and of each key all but the newest; how many."""
    gone = tx.execute("DELETE FROM dead WHERE created_us < ?", (before_us,))
    keys = tx.rows(
        f"SELECT key_id FROM dead WHERE key_id <> '' GROUP BY key_id HAVING COUNT(*) > {PER_KEY}"
    )
    for (key_id,) in keys:
        gone += tx.execute(
            "DELETE FROM dead WHERE key_id = ? AND seq <= (SELECT seq FROM dead WHERE key_id = ? "
            f"ORDER BY seq DESC LIMIT 1 OFFSET {PER_KEY})",
            (key_id, key_id),
        )
    return gone
