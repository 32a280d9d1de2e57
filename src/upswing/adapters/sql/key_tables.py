"""Whose key did it come with, and may that key speak for many users?

What was stored before says neither, and counts as it did: its users are believed.
"""

OWN_FIRST = "CASE WHEN t.key_id = ? THEN 0 ELSE 1 END"
"""Of what several keys have named alike, a key means its own."""
SPOKEN = "practice = 0 AND evaluation = 0"
SPEAKERS = (
    # Which keys have spoken, and when last, is known without a look at the rows between.
    f"CREATE INDEX trajectories_by_key ON trajectories (key_id, seq) WHERE {SPOKEN}",
    # Whose a dead letter was, so that it is nobody else's when it is replayed; of those before nobody knows it.
    "ALTER TABLE dead ADD COLUMN key_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dead ADD COLUMN many INTEGER NOT NULL DEFAULT 0",
)
HERE = f"{SPOKEN} AND door = 'gateway'"
"""Only what a gateway recorded can be evidence of a rollout."""
HEARD = (
    "DROP INDEX trajectories_by_key",
    f"CREATE INDEX trajectories_by_gateway_key ON trajectories (key_id, seq) WHERE {HERE}",
)
KEYS = (
    # API keys that may speak for many users.
    "CREATE TABLE trusted_keys (key_id TEXT PRIMARY KEY)",
    "ALTER TABLE trajectories ADD COLUMN key_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE trajectories ADD COLUMN many INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE feedback ADD COLUMN many INTEGER NOT NULL DEFAULT 0",
    # Only of a key that may not speak for many users: with it, all its users are one voice.
    "ALTER TABLE scored ADD COLUMN key_id TEXT NOT NULL DEFAULT ''",
)
