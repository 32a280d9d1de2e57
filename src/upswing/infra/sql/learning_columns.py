"""What does learning need to know of every trajectory? Columns, and what old rows tell of them.

Rows from before these columns are filled in as far as a statement can: the outcome's status, and
whether the scenario was more than the task; `rereading` reads the rest. Scores that were ranks of a raw
total are forgotten.
"""

from __future__ import annotations

_COMPLETED = (
    "('completed', 'complete', 'success', 'succeeded', 'successful', 'done', 'solved', 'passed')"
)
_FAILED = "('failed', 'failure', 'fail', 'error', 'timeout', 'aborted', 'cancelled', 'abandoned')"
_VALUE = (
    f"CASE WHEN LOWER({{status}}) IN {_COMPLETED} THEN 1.0 "
    f"WHEN LOWER({{status}}) IN {_FAILED} THEN 0.0 WHEN LOWER({{status}}) = 'partial' THEN 0.5 END"
)

LEARNING: tuple[str, ...] = (
    # Whether a window or scenario of a continuous world makes its group; a hash of what was done.
    "ALTER TABLE trajectories ADD COLUMN continuous INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE trajectories ADD COLUMN answers TEXT NOT NULL DEFAULT ''",
    (
        "UPDATE trajectories SET continuous = CASE WHEN {scenario} IS NOT NULL AND scenario_id <> task_id "
        "THEN 1 ELSE 0 END"
    ),
    # How well it went: checked, as reported, and as users say; `judge_score` is the judge's.
    "ALTER TABLE scored ADD COLUMN verified DOUBLE PRECISION",
    "ALTER TABLE scored ADD COLUMN reported DOUBLE PRECISION",
    "ALTER TABLE scored ADD COLUMN feedback DOUBLE PRECISION",
    # Beside them what makes a group: a large trajectory's row is slow to read for that.
    "ALTER TABLE scored ADD COLUMN task_id TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE scored ADD COLUMN continuous INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE scored ADD COLUMN answers TEXT NOT NULL DEFAULT ''",
    (
        "UPDATE scored SET task_id = COALESCE((SELECT t.task_id FROM trajectories t "
        "WHERE t.seq = scored.trajectory_seq), ''), continuous = COALESCE((SELECT t.continuous "
        "FROM trajectories t WHERE t.seq = scored.trajectory_seq), 0)"
    ),
    (
        f"UPDATE scored SET reported = (SELECT {_VALUE} FROM trajectories t "
        "WHERE t.seq = scored.trajectory_seq)"
    ),
    (
        "UPDATE scored SET judge_score = NULL WHERE EXISTS (SELECT 1 FROM judged j WHERE j.judge = 'outcome' "
        "AND j.window_id = scored.window_id AND j.scenario_id = scored.scenario_id)"
    ),
)
