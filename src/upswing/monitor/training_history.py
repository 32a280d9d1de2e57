"""How do training jobs end, one after the other?"""

from __future__ import annotations

from upswing.infra.sql.database import Database
from upswing.infra.sql.job_rows import LIVE
from upswing.monitor.core.conditions import failures_in_a_row
from upswing.records import ACTIVE_JOBS

_NEWEST = 50
"""Ended jobs that are looked at: more failures in a row than that are no news."""
_ENDED = (
    "SELECT state FROM (SELECT seq, state, ended_us FROM jobs WHERE ended_us IS NOT NULL "
    "ORDER BY seq DESC LIMIT ?) AS newest ORDER BY ended_us DESC, seq DESC"
)
_ACTIVE = f"SELECT state, COUNT(*) FROM jobs WHERE {LIVE} GROUP BY state"


class TrainingHistory:
    """Reads the states of jobs; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def failed_in_a_row(self) -> int:
        """How many of the jobs that ended last have failed, up to the last success."""
        rows = await self._database.read(lambda tx: tx.rows(_ENDED, (_NEWEST,)))
        return failures_in_a_row(str(row[0]) for row in rows)

    async def active(self) -> dict[str, int]:
        """State → how many jobs have it, of those that have not ended."""
        rows = await self._database.read(lambda tx: tx.rows(_ACTIVE))
        return dict.fromkeys(ACTIVE_JOBS, 0) | {str(state): int(count) for state, count in rows}
