"""What is kept of the past for who looks back? A migration of `schema`.

Rollouts and evidence hold how it stands now. These rows hold how it came to that: few, and never changed.
"""

from __future__ import annotations

HISTORY: tuple[str, ...] = (
    # The model or job that a decision is about; of those from before nobody knows it without reading them.
    "ALTER TABLE decisions ADD COLUMN about TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX decisions_by_about ON decisions (about, seq) WHERE about <> ''",
    # The newest groups that a judge has dealt with are found without a look at all.
    "CREATE INDEX judged_by_time ON judged (judged_us, window_id, scenario_id)",
    # Who got which share from then on. `shares` is JSON: model → percent; `events`: model → what happened to it.
    """CREATE TABLE traffic_history (
        seq {serial},
        at_us {big} NOT NULL,
        shares {blob} NOT NULL,
        events {blob} NOT NULL,
        decision_id TEXT NOT NULL
    )""",
    # The evidence of a rollout as it grew; a row whenever there is a fiftieth more of it.
    """CREATE TABLE evidence_history (
        seq {serial},
        rollout_id TEXT NOT NULL,
        at_us {big} NOT NULL,
        share DOUBLE PRECISION NOT NULL,
        rewards {big} NOT NULL,
        difference DOUBLE PRECISION,
        lower_bound DOUBLE PRECISION,
        upper_bound DOUBLE PRECISION,
        requests {big} NOT NULL,
        errors {big} NOT NULL
    )""",
    "CREATE INDEX evidence_history_by_rollout ON evidence_history (rollout_id, seq)",
)
