"""How often did the current policy solve each task? Of its newest episodes only, so that it stays quick."""

from __future__ import annotations

from dataclasses import dataclass

from upswing.infra.sql.database import Database, Tx
from upswing.infra.sql.models import deployed_model

MOST = 4000
"""Episodes that are looked at, the newest."""
_NEWEST = 200
"""Episodes that tell who answers, where no model was deployed yet."""
_SOLVED = 1.0
"""Task completion of an episode that did all that was asked."""
_TASKS = (
    "SELECT t.task_id, COUNT(*), SUM(CASE WHEN c.score >= ? THEN 1 ELSE 0 END) FROM "
    "(SELECT trajectory_seq FROM scored WHERE model = ? AND infra_error = 0 "
    "ORDER BY trajectory_seq DESC LIMIT ?) s "
    "JOIN component_scores c ON c.name = 'task_completion' AND c.trajectory_seq = s.trajectory_seq "
    "JOIN trajectories t ON t.seq = s.trajectory_seq "
    "WHERE t.evaluation = 0 AND t.task_id <> '' GROUP BY t.task_id"
)
_ACTING = (
    "SELECT model, COUNT(*) FROM (SELECT model FROM scored ORDER BY trajectory_seq DESC LIMIT ?) n "
    "GROUP BY model ORDER BY COUNT(*) DESC, model LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class TaskStats:
    """What one model did."""

    model: str | None
    """None: nobody has acted yet."""
    tasks: dict[str, tuple[int, int]]
    """Task → attempts and successes."""


class TaskStatsReader:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current_stats(self, limit: int = MOST) -> TaskStats:
        """Of the deployed model; before there is one, of whoever acted most of late."""

        def current_in_transaction(tx: Tx) -> TaskStats:
            model = _acting_model(tx)
            if model is None:
                return TaskStats(None, {})
            rows = tx.rows(_TASKS, (_SOLVED, model, limit))
            return TaskStats(model, {row[0]: (int(row[1]), int(row[2])) for row in rows})

        return await self._database.read(current_in_transaction)


def _acting_model(tx: Tx) -> str | None:
    if (model := deployed_model(tx)) is not None:
        return model.model_id
    row = tx.row(_ACTING, (_NEWEST,))
    return str(row[0]) if row else None
