"""What does the trail of operators' actions need beside its first columns? A migration of `schema`.

Rows from before have no hash; the first one after them seals them in their order (`audit.append_audit`).
"""

from __future__ import annotations

AUDIT: tuple[str, ...] = (
    # JSON: how it stood before and after, where the action changed something.
    "ALTER TABLE audit ADD COLUMN before_state {blob}",
    "ALTER TABLE audit ADD COLUMN after_state {blob}",
    # The hash of the row before this one, and of this one with it.
    "ALTER TABLE audit ADD COLUMN prev TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT ''",
    # How many rows there are, and the hash of the newest: without it nobody would miss the last ones.
    """CREATE TABLE audit_head (
        id INTEGER PRIMARY KEY,
        entries {big} NOT NULL,
        hash TEXT NOT NULL
    )""",
)
