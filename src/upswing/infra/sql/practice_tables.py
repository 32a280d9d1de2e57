"""Which episodes were practice? Curriculum and rollout episodes are learned from and prove nothing."""

PRACTICE = (
    "ALTER TABLE trajectories ADD COLUMN practice INTEGER NOT NULL DEFAULT 0",
    # Evidence, degradation and reports leave them out without a look at the large rows.
    "CREATE INDEX trajectories_practice ON trajectories (seq) WHERE practice = 1",
)
SOUND = (
    "infra_error = 0 AND trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE evaluation = 1)"
)
"""Of `scored`: neither spoiled by the infrastructure nor made to measure."""
EVIDENCE = f"{SOUND} AND trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE practice = 1)"
"""Of `scored`: what says how a model does. Degradation, comparison, metrics and reports rest on these rows alone."""
