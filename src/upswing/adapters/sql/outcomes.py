"""What really happened in each window, and which groups has a judge dealt with?"""

from __future__ import annotations

from datetime import datetime

from msgspec import UnsetType

from upswing.adapters.sql.database import Database, Row, Tx, blob, checked
from upswing.adapters.sql.store import micros
from upswing.contracts import canonical, decode
from upswing.contracts.outcome import Outcome
from upswing.ports import JudgedGroup, Taken


class Outcomes:
    """Outcomes by window, scenario and source, and the judge's ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, outcome: Outcome, now: datetime) -> Taken:
        """The newest word of a source counts; the same word again changes nothing."""
        scenario = "" if isinstance(outcome.scenario_id, UnsetType) else outcome.scenario_id
        key = (outcome.window_id, scenario, outcome.source)
        body = canonical(outcome)

        def unit(tx: Tx) -> Taken:
            where = "WHERE window_id = ? AND scenario_id = ? AND source = ?"
            row = tx.row(f"SELECT body FROM outcomes {where}", key)
            if row and blob(row[0]) == body:
                return Taken.KNOWN
            tx.execute(f"DELETE FROM outcomes {where}", key)
            tx.execute(
                "INSERT INTO outcomes (window_id, scenario_id, source, body, stored_us) "
                "VALUES (?, ?, ?, ?, ?)",
                (*key, body, micros(now)),
            )
            return Taken.STORED

        return await self._database.write(unit)

    async def of_window(self, window_id: str) -> list[Outcome]:
        sql = "SELECT body, window_id, scenario_id, source FROM outcomes WHERE window_id = ? ORDER BY stored_us"
        rows = await self._database.read(lambda tx: tx.rows(sql, (window_id,)))
        return self._database.aside.sound(
            "reward", "outcomes", rows, _outcome, key=lambda row: "/".join(map(str, row[1:]))
        )

    async def unjudged(
        self, before: str, min_agents: int, min_attempts: int, limit: int = 50
    ) -> list[tuple[str, str]]:
        """Groups of ended windows that are large enough and that no judge has dealt with.

        In a continuous world different agents count, at a task attempts do.
        """
        sql = (
            "SELECT s.window_id, s.scenario_id FROM scored s LEFT JOIN judged j "
            "ON j.window_id = s.window_id AND j.scenario_id = s.scenario_id "
            "WHERE s.window_id < ? AND s.infra_error = 0 AND j.window_id IS NULL "
            "GROUP BY s.window_id, s.scenario_id HAVING "
            "(MAX(s.continuous) = 1 AND COUNT(DISTINCT s.agent_id) >= ?) "
            "OR (MAX(s.continuous) = 0 AND COUNT(*) >= ?) ORDER BY s.window_id LIMIT ?"
        )
        values = (before, min_agents, min_attempts, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, values))
        return [(row[0], row[1]) for row in rows]

    async def judged(self, group: JudgedGroup, now: datetime) -> None:
        """Remember that a group was dealt with, and what that cost."""
        values = (
            group.window_id, group.scenario_id, group.judge, int(group.judged), group.reason,
            group.prompt_tokens, group.completion_tokens, group.usd, micros(now),
        )  # fmt: skip
        sql = (
            "INSERT INTO judged (window_id, scenario_id, judge, judged, reason, prompt_tokens, "
            "completion_tokens, usd, judged_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        await self._database.write(lambda tx: tx.execute(sql, values))

    async def verdicts(self, limit: int = 100) -> list[JudgedGroup]:
        """The newest groups that were dealt with."""
        sql = (
            "SELECT window_id, scenario_id, judge, judged, reason, prompt_tokens, completion_tokens, usd "
            "FROM judged ORDER BY judged_us DESC LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.aside.sound("reward", "judged", rows, _judged)

    async def spent(self, since: datetime) -> tuple[int, int, float]:
        """Prompt tokens, completion tokens and dollars since then."""
        sql = (
            "SELECT COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), "
            "COALESCE(SUM(usd), 0) FROM judged WHERE judged_us >= ?"
        )
        row = await self._database.read(lambda tx: tx.row(sql, (micros(since),)))
        return (int(row[0]), int(row[1]), float(row[2])) if row else (0, 0, 0.0)


def _outcome(row: Row) -> Outcome:
    return decode(Outcome, blob(row[0]))


def _judged(row: Row) -> JudgedGroup:
    return checked(JudgedGroup(*(*row[:3], bool(row[3]), *row[4:])))
