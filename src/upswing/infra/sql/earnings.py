"""What have two models earned in production, in the order in which it came?"""

from __future__ import annotations

from dataclasses import dataclass

from upswing.infra.sql.database import Database, check_row_types
from upswing.infra.sql.practice_tables import EVIDENCE

MOST = 50_000
"""Trajectories of both together, the newest: they tell a difference of 0.01, and take a second."""
_SQL = (
    "SELECT trajectory_seq, model, principal, raw_total, key_id FROM scored WHERE model IN (?, ?) "
    f"AND {EVIDENCE} ORDER BY trajectory_seq DESC LIMIT ?"
)
BY_MODEL = (
    "SELECT model, COUNT(*), AVG(raw_total), AVG(COALESCE(verified, reported)) FROM scored "
    f"WHERE {EVIDENCE} GROUP BY model"
)
"""What the trajectories of each model came to: reward, and how well the tasks went."""


@dataclass(frozen=True, slots=True)
class ModelReward:
    """One trajectory's raw reward."""

    seq: int
    model: str
    principal: str
    raw: float
    key: str = ""
    """That it came with, where that may not speak for many users."""


class Earnings:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest_rewards(
        self, model_id: str, other_model_id: str, limit: int = MOST
    ) -> list[ModelReward]:
        """The newest rewards of these two models, the oldest of them first."""
        rows = await self._database.read(
            lambda tx: tx.rows(_SQL, (model_id, other_model_id, limit))
        )
        return self._database.bad_rows.read_each(
            "deploy", "scored", reversed(rows), lambda row: check_row_types(ModelReward(*row))
        )
