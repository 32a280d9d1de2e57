"""What really happened in each window, and which groups has a judge dealt with?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from msgspec import UnsetType

from upswing.contracts import canonical, decode
from upswing.contracts.outcome import Outcome
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.store import LATEST, from_microseconds, to_microseconds
from upswing.records import JudgeBacklog, JudgedGroup, Taken

JudgedPlace = tuple[int, str, str]
"""When a group was dealt with, its window and its scenario: its place in the list."""


class OutcomeRepository:
    """Outcomes by window, scenario and source, and which groups the judge has dealt with."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, outcome: Outcome, now: datetime) -> Taken:
        """The newest report of a source counts; the same again changes nothing."""
        scenario = "" if isinstance(outcome.scenario_id, UnsetType) else outcome.scenario_id
        key = (outcome.window_id, scenario, outcome.source)
        body = canonical(outcome)

        def put_in_transaction(tx: Tx) -> Taken:
            where = "WHERE window_id = ? AND scenario_id = ? AND source = ?"
            row = tx.row(f"SELECT body FROM outcomes {where}", key)
            if row and bytes_of_column(row[0]) == body:
                return Taken.KNOWN
            tx.execute(f"DELETE FROM outcomes {where}", key)
            tx.execute(
                "INSERT INTO outcomes (window_id, scenario_id, source, body, stored_us) "
                "VALUES (?, ?, ?, ?, ?)",
                (*key, body, to_microseconds(now)),
            )
            return Taken.STORED

        return await self._database.write(put_in_transaction)

    async def for_window(self, window_id: str) -> list[Outcome]:
        sql = "SELECT body, window_id, scenario_id, source FROM outcomes WHERE window_id = ? ORDER BY stored_us"
        rows = await self._database.read(lambda tx: tx.rows(sql, (window_id,)))
        return self._database.bad_rows.read_each(
            "reward", "outcomes", rows, _decode_outcome, key=lambda row: "/".join(map(str, row[1:]))
        )

    async def due_groups(
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
        values = (before, to_microseconds(now), min_agents, min_attempts, limit)
        rows = await self._database.read(lambda tx: tx.rows(sql, values))
        return [(row[0], row[1]) for row in rows]

    async def due_turns(self, window_id: str, *, now: datetime, limit: int = 50) -> list[str]:
        """What is recorded under this window and is to be asked about now, oldest first."""
        sql = (
            "SELECT scenario_id FROM judged WHERE window_id = ? AND judged = 0 AND next_us <= ? "
            "ORDER BY next_us LIMIT ?"
        )
        rows = await self._database.read(
            lambda tx: tx.rows(sql, (window_id, to_microseconds(now), limit))
        )
        return [str(row[0]) for row in rows]

    async def count_tries(self, window_id: str, scenario_id: str) -> tuple[int, datetime | None]:
        """How often this group was asked about, and when first."""
        sql = "SELECT tries, first_us FROM judged WHERE window_id = ? AND scenario_id = ?"
        row = await self._database.read(lambda tx: tx.row(sql, (window_id, scenario_id)))
        if row is None or not isinstance(row[0], int):
            return 0, None
        return row[0], _time_or_none(row[1])

    async def record_judgement(self, group: JudgedGroup, now: datetime) -> None:
        """Remember what came of a group, when it is asked about again, and what that cost."""
        key = (group.window_id, group.scenario_id)
        cost = (group.prompt_tokens, group.completion_tokens, group.usd)
        again = None if group.again is None else to_microseconds(group.again)
        values = (
            *key,
            group.judge,
            int(group.judged),
            group.reason,
            *cost,
            to_microseconds(now),
            group.tries,
            to_microseconds(group.first or now),
            again,
        )
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

        def record_judgement_in_transaction(tx: Tx) -> None:
            tx.execute(sql, values)
            tx.execute(
                "INSERT INTO judge_spend (asked_us, prompt_tokens, completion_tokens, usd) "
                "VALUES (?, ?, ?, ?)",
                (to_microseconds(now), *cost),
            )

        await self._database.write(record_judgement_in_transaction)

    async def retry_unjudged(self, now: datetime) -> int:
        """Ask about all groups that could not be judged, at once and for another week; how many."""
        sql = "UPDATE judged SET tries = 0, first_us = ?, next_us = ? WHERE judged = 0"
        return await self._database.write(
            lambda tx: tx.execute(sql, (to_microseconds(now), to_microseconds(now)))
        )

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
        return JudgeBacklog(int(row[0]), int(row[1]), int(row[2]), _time_or_none(row[3]))

    async def verdicts(self, limit: int = 100) -> list[JudgedGroup]:
        """The newest groups that were dealt with."""
        found, _ = await self.verdicts_page(limit)
        return found

    async def verdicts_page(
        self, limit: int, after: JudgedPlace | None = None
    ) -> tuple[list[JudgedGroup], JudgedPlace | None]:
        """The newest groups that were dealt with, and where the next page begins."""
        begin = after or (LATEST, "", "")
        sql = (
            "SELECT window_id, scenario_id, judge, judged, reason, prompt_tokens, completion_tokens, usd, "
            "tries, first_us, next_us, judged_us FROM judged "
            "WHERE (judged_us, window_id, scenario_id) < (?, ?, ?) "
            "ORDER BY judged_us DESC, window_id DESC, scenario_id DESC LIMIT ?"
        )
        rows = await self._database.view(lambda tx: tx.rows(sql, (*begin, limit + 1)))
        shown = rows[:limit]
        found = self._database.bad_rows.read_each("reward", "judged", shown, _judged_group)
        last = shown[-1] if len(rows) > limit else None
        return found, (last[11], last[0], last[1]) if last else None

    async def spent_since(self, since: datetime) -> tuple[int, int, float]:
        """Prompt tokens, completion tokens and dollars since then."""
        sql = (
            "SELECT COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), "
            "COALESCE(SUM(usd), 0) FROM judge_spend WHERE asked_us >= ?"
        )
        row = await self._database.read(lambda tx: tx.row(sql, (to_microseconds(since),)))
        return (int(row[0]), int(row[1]), float(row[2])) if row else (0, 0, 0.0)


def _decode_outcome(row: Row) -> Outcome:
    return decode(Outcome, bytes_of_column(row[0]))


def _judged_group(row: Row) -> JudgedGroup:
    group = check_row_types(JudgedGroup(*(*row[:3], bool(row[3]), *row[4:9])))
    return replace(group, first=_time_or_none(row[9]), again=_time_or_none(row[10]))


def _time_or_none(us: object) -> datetime | None:
    """A time, unless there is none or the row is spoilt."""
    return from_microseconds(us) if isinstance(us, int) and 0 <= us <= LATEST else None
