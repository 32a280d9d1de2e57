"""What really happened in each window, and which groups has a judge dealt with?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from msgspec import UnsetType

from upswing.adapters.sql.database import Database, Row, Tx, blob, checked
from upswing.adapters.sql.store import LATEST, micros, moment
from upswing.contracts import canonical, decode
from upswing.contracts.outcome import Outcome
from upswing.ports import JudgeBacklog, JudgedGroup, Taken


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
        self, before: str, min_agents: int, min_attempts: int, *, now: datetime, limit: int = 50
    ) -> list[tuple[str, str]]:
        """Groups of ended windows that are large enough, and that no judge has dealt with or it is time to ask again.

        In a continuous world different agents count, at a task attempts do.
        """
        sql = (
            "SELECT s.window_id, s.scenario_id FROM scored s LEFT JOIN judged j "
            "ON j.window_id = s.window_id AND j.scenario_id = s.scenario_id "
            "WHERE s.window_id < ? AND s.infra_error = 0 "
            "AND (j.window_id IS NULL OR (j.judged = 0 AND j.next_us <= ?)) "
            "GROUP BY s.window_id, s.scenario_id HAVING "
            "(MAX(s.continuous) = 1 AND COUNT(DISTINCT s.agent_id) >= ?) "
            "OR (MAX(s.continuous) = 0 AND COUNT(*) >= ?) ORDER BY s.window_id LIMIT ?"
        )
        values = (before, micros(now), min_agents, min_attempts, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, values))
        return [(row[0], row[1]) for row in rows]

    async def due(self, window_id: str, *, now: datetime, limit: int = 50) -> list[str]:
        """What stands in the ledger under this window and is to be asked about now, oldest first."""
        sql = (
            "SELECT scenario_id FROM judged WHERE window_id = ? AND judged = 0 AND next_us <= ? "
            "ORDER BY next_us LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (window_id, micros(now), limit)))
        return [str(row[0]) for row in rows]

    async def tried(self, window_id: str, scenario_id: str) -> tuple[int, datetime | None]:
        """How often this group was asked about, and when first."""
        sql = "SELECT tries, first_us FROM judged WHERE window_id = ? AND scenario_id = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (window_id, scenario_id)))
        if row is None or not isinstance(row[0], int):
            return 0, None
        return row[0], _moment(row[1])

    async def judged(self, group: JudgedGroup, now: datetime) -> None:
        """Remember what came of a group, when it is asked about again, and what that cost."""
        key = (group.window_id, group.scenario_id)
        cost = (group.prompt_tokens, group.completion_tokens, group.usd)
        again = None if group.again is None else micros(group.again)
        values = (
            *key, group.judge, int(group.judged), group.reason, *cost, micros(now), group.tries,
            micros(group.first or now), again,
        )  # fmt: skip
        sql = (
            "INSERT INTO judged (window_id, scenario_id, judge, judged, reason, prompt_tokens, "
            "completion_tokens, usd, judged_us, tries, first_us, next_us) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (window_id, scenario_id) DO UPDATE SET judge = excluded.judge, "
            "judged = excluded.judged, reason = excluded.reason, "
            "prompt_tokens = judged.prompt_tokens + excluded.prompt_tokens, "
            "completion_tokens = judged.completion_tokens + excluded.completion_tokens, "
            "usd = judged.usd + excluded.usd, judged_us = excluded.judged_us, "
            "tries = excluded.tries, first_us = excluded.first_us, next_us = excluded.next_us "
            "WHERE judged.judged = 0"
        )

        def unit(tx: Tx) -> None:
            tx.execute(sql, values)
            tx.execute(
                "INSERT INTO judge_spend (asked_us, prompt_tokens, completion_tokens, usd) "
                "VALUES (?, ?, ?, ?)",
                (micros(now), *cost),
            )

        await self._database.write(unit)

    async def ask_again(self, now: datetime) -> int:
        """Ask about all groups that could not be judged, at once and for another week; how many."""
        sql = "UPDATE judged SET tries = 0, first_us = ?, next_us = ? WHERE judged = 0"
        return await self._database.write(lambda tx: tx.execute(sql, (micros(now), micros(now))))

    async def backlog(self) -> JudgeBacklog:
        """How many groups are judged, wait, or are given up."""
        sql = (
            "SELECT COALESCE(SUM(judged), 0), "
            "COALESCE(SUM(CASE WHEN judged = 0 AND next_us IS NOT NULL THEN 1 ELSE 0 END), 0), "
            "COALESCE(SUM(CASE WHEN judged = 0 AND next_us IS NULL THEN 1 ELSE 0 END), 0), "
            "MIN(CASE WHEN judged = 0 AND next_us IS NOT NULL THEN first_us END) FROM judged"
        )
        row = await self._database.read(lambda tx: tx.row(sql))
        if row is None:
            return JudgeBacklog()
        return JudgeBacklog(int(row[0]), int(row[1]), int(row[2]), _moment(row[3]))

    async def verdicts(self, limit: int = 100) -> list[JudgedGroup]:
        """The newest groups that were dealt with."""
        sql = (
            "SELECT window_id, scenario_id, judge, judged, reason, prompt_tokens, completion_tokens, usd, "
            "tries, first_us, next_us FROM judged ORDER BY judged_us DESC LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.aside.sound("reward", "judged", rows, _judged)

    async def spent(self, since: datetime) -> tuple[int, int, float]:
        """Prompt tokens, completion tokens and dollars since then."""
        sql = (
            "SELECT COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), "
            "COALESCE(SUM(usd), 0) FROM judge_spend WHERE asked_us >= ?"
        )
        row = await self._database.read(lambda tx: tx.row(sql, (micros(since),)))
        return (int(row[0]), int(row[1]), float(row[2])) if row else (0, 0, 0.0)


def _outcome(row: Row) -> Outcome:
    return decode(Outcome, blob(row[0]))


def _judged(row: Row) -> JudgedGroup:
    told = checked(JudgedGroup(*(*row[:3], bool(row[3]), *row[4:9])))
    return replace(told, first=_moment(row[9]), again=_moment(row[10]))


def _moment(us: object) -> datetime | None:
    """A time, unless there is none or the row is spoilt."""
    return moment(us) if isinstance(us, int) and 0 <= us <= LATEST else None
