"""Which episodes were practice? Curriculum and rollout episodes are learned from and prove nothing."""

PRACTICE = (
    "ALTER TABLE trajectories ADD COLUMN practice INTEGER NOT NULL DEFAULT 0",
    # Evidence, degradation and reports leave them out without a look at the large rows.
    "CREATE INDEX trajectories_practice ON trajectories (seq) WHERE practice = 1",
)
NOT_PRACTICE = "trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE practice = 1)"
"""Of rows that have a `trajectory_seq`."""
