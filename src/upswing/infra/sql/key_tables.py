"""Whose key did it come with, and may that key speak for many users?

What was stored before says neither, and counts as it did: its users are believed.
"""

OWN_FIRST = "CASE WHEN t.key_id = ? THEN 0 ELSE 1 END"
"""Of what several keys have named alike, a key means its own."""
PRODUCTION_ONLY = "practice = 0 AND evaluation = 0"
KEY_COLUMNS = (
    # Which keys have spoken, and when last, is known without a look at the rows between.
    f"CREATE INDEX trajectories_by_key ON trajectories (key_id, seq) WHERE {PRODUCTION_ONLY}",
    # Whose a dead letter was, so that it is nobody else's when it is replayed; of those before nobody knows it.
    "ALTER TABLE dead ADD COLUMN key_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE dead ADD COLUMN many INTEGER NOT NULL DEFAULT 0",
)
HERE = f"{PRODUCTION_ONLY} AND door = 'gateway'"
"""Only what a gateway recorded can be evidence of a rollout."""
GATEWAY_KEY_INDEX = (
    "DROP INDEX trajectories_by_key",
    f"CREATE INDEX trajectories_by_gateway_key ON trajectories (key_id, seq) WHERE {HERE}",
)
RECORDED = (
    # Whether a gateway recorded it: only then is it certain which model answered.
    "ALTER TABLE scored ADD COLUMN gateway INTEGER NOT NULL DEFAULT 0",
    f"UPDATE scored SET gateway = 1 WHERE trajectory_seq IN (SELECT seq FROM trajectories WHERE {HERE})",
    "CREATE INDEX scored_by_gateway ON scored (model, trajectory_seq) WHERE gateway = 1",
)
SOURCES = (
    # By which door and key the newest came is known without a look at the large rows.
    (
        "CREATE INDEX trajectories_by_source ON trajectories (seq, key_id, many, door) "
        "WHERE evaluation = 0 AND infra_error = 0"
    ),
)
REQUESTS = (
    # What was asked, as a hash; of rows from before nobody knows it, and their task's name alone counts.
    "ALTER TABLE trajectories ADD COLUMN request TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX trajectories_by_request ON trajectories (request) WHERE request <> ''",
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
