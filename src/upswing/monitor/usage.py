"""What have models used so far? Tokens and judging, summed by day as they come, so that costs need no scan.

first rewards after the cursor ─▶ tokens of their models ─┐
judge's spending after the cursor ─▶ shared by its groups ─┴─▶ `model_usage`, with the cursor, in one transaction
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from upswing.infra.sql.cursors import move_cursor, read_cursor
from upswing.infra.sql.database import Database, Row, Tx
from upswing.infra.sql.job_rows import SELECT as JOBS
from upswing.infra.sql.job_rows import jobs_from_rows
from upswing.infra.sql.store import from_microseconds, to_microseconds
from upswing.monitor.core.costs import (
    CostTable,
    JudgedMembers,
    ModelUsage,
    PriceList,
    TrainedJob,
    cost_table,
    share_judge_costs,
)
from upswing.monitor.report_facts import ReportFacts

_REWARDS_READ, _JUDGE_READ = "usage rewards", "usage judge"
_BATCH = 1000
_PAUSE_SECONDS = 0.02
"""Between two batches of a store that was never counted: others write, too."""
_SETTLED = timedelta(minutes=1)
"""A judgement's price is written a moment before its group is."""
_DAY_US = 86_400_000_000
_LONGEST_NAME = 200
_NEW_WORK = (
    "SELECT r.seq, r.created_us, s.model, s.tokens FROM rewards r LEFT JOIN scored s "
    "ON r.revision = 1 AND s.trajectory_id = r.trajectory_id WHERE r.seq > ? ORDER BY r.seq LIMIT ?"
)
_ADD = (
    "INSERT INTO model_usage (day_us, model, trajectories, uncounted, tokens, judge_tokens, judge_usd) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day_us, model) DO UPDATE SET "
    "trajectories = model_usage.trajectories + excluded.trajectories, "
    "uncounted = model_usage.uncounted + excluded.uncounted, tokens = model_usage.tokens + excluded.tokens, "
    "judge_tokens = model_usage.judge_tokens + excluded.judge_tokens, "
    "judge_usd = model_usage.judge_usd + excluded.judge_usd"
)
_SUMS = (
    "SELECT model, SUM(trajectories), SUM(uncounted), SUM(tokens), SUM(judge_usd) FROM model_usage "
    "WHERE day_us >= ? AND day_us < ? GROUP BY model"
)
_MOST_JOBS = 10_000


class UsageRecorder:
    """Adds up what is new."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    async def record(self) -> int:
        """Count everything that came since; how many trajectories."""
        counted = 0
        while new := await self._database.write(_record_work):
            counted += new
            if new < _BATCH:
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        upto = to_microseconds(self._clock() - _SETTLED)
        more = True
        while more:
            more = await self._database.write(lambda tx: _record_judging(tx, upto))
        return counted


@dataclass(slots=True)
class _Used:
    trajectories: int = 0
    uncounted: int = 0
    tokens: float = 0.0


def _record_work(tx: Tx) -> int:
    """A batch of rewards; how many rows it had."""
    rows = tx.rows(_NEW_WORK, (read_cursor(tx, _REWARDS_READ), _BATCH))
    used: dict[tuple[int, str], _Used] = {}
    for _, created_us, model, tokens in rows:
        if model is None or not isinstance(created_us, int):
            continue
        each = used.setdefault((_day(created_us), str(model)[:_LONGEST_NAME]), _Used())
        each.trajectories += 1
        if isinstance(tokens, int | float) and tokens >= 0:
            each.tokens += tokens
        else:
            each.uncounted += 1
    for (day, model), each in sorted(used.items()):
        tx.execute(_ADD, (day, model, each.trajectories, each.uncounted, each.tokens, 0.0, 0.0))
    if rows:
        move_cursor(tx, _REWARDS_READ, int(rows[-1][0]))
    return len(rows)


def _record_judging(tx: Tx, upto: int) -> bool:
    """What was spent on one day; true when there may be more."""
    since = read_cursor(tx, _JUDGE_READ)
    row = tx.row(
        "SELECT MIN(asked_us) FROM judge_spend WHERE asked_us > ? AND asked_us <= ?", (since, upto)
    )
    if row is None or row[0] is None:
        return False
    day = _day(int(row[0]))
    end = min(upto, day + _DAY_US - 1)
    spent = tx.row(
        "SELECT COALESCE(SUM(usd), 0), COALESCE(SUM(prompt_tokens + completion_tokens), 0) FROM judge_spend "
        "WHERE asked_us > ? AND asked_us <= ?",
        (since, end),
    )
    usd, tokens = (float(spent[0]), float(spent[1])) if spent else (0.0, 0.0)
    groups = list(judged_members(tx, since, end))
    by_usd, by_tokens = share_judge_costs(usd, groups), share_judge_costs(tokens, groups)
    for model in sorted(by_usd.keys() | by_tokens.keys()):
        name, shares = model[:_LONGEST_NAME], (by_tokens.get(model, 0.0), by_usd.get(model, 0.0))
        tx.execute(_ADD, (day, name, 0, 0, 0.0, *shares))
    move_cursor(tx, _JUDGE_READ, end)
    return end < upto


def judged_members(tx: Tx, after_us: int, upto_us: int) -> Iterable[JudgedMembers]:
    """Groups that were judged then, and how many of their members each model has.

    Where nothing has a price, a group's tokens say how large a part of the whole it is.
    """
    rows = tx.rows(
        "SELECT window_id, scenario_id, usd, prompt_tokens + completion_tokens FROM judged "
        "WHERE judged_us > ? AND judged_us <= ?",
        (after_us, upto_us),
    )
    for window_id, scenario_id, usd, tokens in rows:
        members = tx.rows(
            "SELECT model, COUNT(*) FROM scored WHERE window_id = ? AND scenario_id = ? GROUP BY model",
            (window_id, scenario_id),
        ) or tx.rows("SELECT model, 1 FROM scored WHERE trajectory_id = ?", (scenario_id,))
        if members:
            weight = float(usd) or float(tokens) or 1.0
            yield JudgedMembers(weight, {str(name): int(count) for name, count in members})


class CostReader:
    """Reads what everything has cost."""

    def __init__(self, database: Database, prices: PriceList) -> None:
        self._database, self._prices = database, prices
        self._facts = ReportFacts(database, prices)

    async def table(
        self, since: datetime | None = None, until: datetime | None = None
    ) -> CostTable:
        """Costs of the days from `since` to `until`; None: from the first, to the last."""
        first = _day(to_microseconds(since)) if since else 0
        last = to_microseconds(until) if until else 2**62
        rows = await self._database.view(lambda tx: tx.rows(_SUMS, (first, last)))
        jobs = await self._jobs(first, last)
        return await asyncio.to_thread(lambda: cost_table(map(_usage, rows), jobs, self._prices))

    async def period(
        self,
        start: datetime,
        end: datetime,
        usage: Iterable[ModelUsage],
        jobs: Iterable[TrainedJob],
    ) -> CostTable:
        """Costs of exactly this period, of which the work and the jobs are known already."""
        span = to_microseconds(start) - 1, to_microseconds(end) - 1

        def judge_in_transaction(tx: Tx) -> dict[str, float]:
            spent = tx.row(
                "SELECT COALESCE(SUM(usd), 0) FROM judge_spend WHERE asked_us > ? AND asked_us <= ?",
                span,
            )
            return share_judge_costs(float(spent[0]) if spent else 0.0, judged_members(tx, *span))

        judged = await self._database.view(judge_in_transaction)
        used = {each.model: each for each in usage}
        names = used.keys() | judged.keys()
        return cost_table(
            [_with_judging(name, used.get(name), judged.get(name, 0.0)) for name in names],
            jobs,
            self._prices,
        )

    async def _jobs(self, first: int, last: int) -> list[TrainedJob]:
        sql = f"{JOBS} WHERE ended_us >= ? AND ended_us < ? ORDER BY seq DESC LIMIT {_MOST_JOBS}"

        def jobs_in_transaction(tx: Tx) -> list[TrainedJob]:
            made = {
                str(row[0]): str(row[1]) for row in tx.rows("SELECT job_id, model_id FROM models")
            }
            found = jobs_from_rows(tx.rows(sql, (first, last)), tx.bad_rows)
            summaries = (self._facts.job_summary(job, None) for job in found)
            return [
                TrainedJob(made.get(each.job_id, ""), each.seconds, each.cost_usd)
                for each in summaries
            ]

        return await self._database.view(jobs_in_transaction)

    async def as_of(self) -> datetime | None:
        """When the newest work that is counted was scored."""
        row = await self._database.view(
            lambda tx: tx.row(
                "SELECT created_us FROM rewards WHERE seq <= ? ORDER BY seq DESC LIMIT 1",
                (read_cursor(tx, _REWARDS_READ),),
            )
        )
        return from_microseconds(row[0]) if row and isinstance(row[0], int) else None


def _with_judging(name: str, used: ModelUsage | None, usd: float) -> ModelUsage:
    used = used or ModelUsage(name)
    return ModelUsage(name, used.trajectories, used.uncounted, used.tokens, usd)


def _usage(row: Row) -> ModelUsage:
    model, trajectories, uncounted, tokens, usd = row
    return ModelUsage(str(model), int(trajectories), int(uncounted), float(tokens), float(usd))


def _day(us: int) -> int:
    return us // _DAY_US * _DAY_US
