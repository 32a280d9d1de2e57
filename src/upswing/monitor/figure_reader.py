"""What did models do in a period? Scored trajectories, read in small steps, so that nobody waits for a report.

Evaluations and practice say nothing of how a model does and are left out, as everywhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import partial

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.moments import first_seq_since
from upswing.infra.sql.store import to_microseconds
from upswing.monitor.core.model_figures import (
    MOST_MODELS,
    OTHER,
    ModelSums,
    PeriodSums,
    ScoredTrajectory,
)

STAGE = "monitor"
_HALF_DAY = timedelta(hours=12)
_STEP = 2000
"""Sequence numbers of one read: some milliseconds."""
_NAMED = 500
"""Trajectories that one read names."""
MOST = 500_000
"""Trajectories of one report; of more, the newest are read."""
_LONGEST_NAME = 200
_MODEL = f"SUBSTR({{}}model, 1, {_LONGEST_NAME})"
_COUNTED, _REMEMBERED = 20_000, 10_000
"""Sequence numbers of which models are counted at once, and models that are remembered from one count to the next."""
_MODELS = f"SELECT {_MODEL.format('')}, COUNT(*) FROM scored WHERE trajectory_seq >= ? AND trajectory_seq < ? GROUP BY 1"
_COLUMNS = f"trajectory_seq, {_MODEL.format('')}, raw_total, turns, tokens, pnl, infra_error, verified, reported, feedback"
_NO_EVIDENCE = "SELECT seq FROM trajectories WHERE {} = 1 AND seq >= ? AND seq < ?"
_ROWS = (
    f"SELECT {_COLUMNS} FROM scored WHERE trajectory_seq >= ? AND trajectory_seq < ? "
    f"AND trajectory_seq NOT IN ({_NO_EVIDENCE.format('evaluation')}) "
    f"AND trajectory_seq NOT IN ({_NO_EVIDENCE.format('practice')}) ORDER BY trajectory_seq"
)
_OF_MODEL = (
    f"SELECT {_COLUMNS} FROM scored WHERE model = ? "
    "AND trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE evaluation = 1) "
    "AND trajectory_seq NOT IN (SELECT seq FROM trajectories WHERE practice = 1) "
    "ORDER BY trajectory_seq DESC LIMIT ?"
)
_LINTED = (
    f"SELECT c.trajectory_seq, {_MODEL.format('s.')}, r.body FROM component_scores c "
    "JOIN scored s ON s.trajectory_seq = c.trajectory_seq "
    "JOIN rewards r ON r.trajectory_id = s.trajectory_id AND r.revision = s.revision "
    "WHERE c.name = 'code_quality'"
)


class _Parts(msgspec.Struct, frozen=True):
    linter: float | None = None


class _RawData(msgspec.Struct, frozen=True):
    parts: _Parts = _Parts()


class _Quality(msgspec.Struct, frozen=True):
    raw_data: _RawData = _RawData()


class _Components(msgspec.Struct):
    code_quality: _Quality = _Quality()


class _Reward(msgspec.Struct):
    reward_components: _Components


_REWARD = json_decoder(_Reward)


class FigureReader:
    """Reads; never writes."""

    def __init__(self, database: Database, *, most: int = MOST) -> None:
        self._database, self._most = database, most

    async def period(
        self, start: datetime, end: datetime, named: Collection[str] = ()
    ) -> PeriodSums:
        """Everything that was stored from `start` on and before `end`; `named` are told by name in any case."""
        days = _days(start, end)
        marks = [await self._first_seq(day) for day in (*days, end)]
        low = max(marks[0], marks[-1] - self._most)
        names = [day_name(day) for day in days]

        def day_of(seq: int) -> str:
            return names[min(len(names) - 1, max(0, bisect_right(marks, seq) - 1))]

        told = {*named, *await self._frequent_models(low, marks[-1])}

        def place_of(seq: int, model: str) -> tuple[str, str]:
            return day_of(seq), model if model in told else OTHER

        sums: dict[tuple[str, str], ModelSums] = {}
        for first in range(low, marks[-1], _STEP):
            await self._add_step(first, min(first + _STEP, marks[-1]), place_of, sums)
        return PeriodSums(sums, low > marks[0])

    async def _frequent_models(self, low: int, end: int) -> list[str]:
        """Those with most trajectories. Of very many that come once each, some are forgotten on the way."""
        counts: Counter[str] = Counter()
        for first in range(low, end, _COUNTED):
            span = first, min(first + _COUNTED, end)
            rows = await self._database.view(partial(_rows_of, _MODELS, span))
            counts.update({str(name): int(count) for name, count in rows})
            counts = Counter(dict(counts.most_common(_REMEMBERED)))
        return [name for name, _ in counts.most_common(MOST_MODELS)]

    async def newest(self, model: str, count: int) -> ModelSums:
        """The newest trajectories of one model, whenever they came."""
        rows = await self._database.view(lambda tx: tx.rows(_OF_MODEL, (model, count)))
        found = self._database.bad_rows.read_each(STAGE, "scored", rows, _scored)
        sums = ModelSums()
        for row in found:
            sums.add(row)
        seqs = [row.seq for row in found]
        for at in range(0, len(seqs), _NAMED):
            part = seqs[at : at + _NAMED]
            marks = f"c.trajectory_seq IN ({', '.join('?' * len(part))})"
            for _, _, score in await self._lint_scores(marks, tuple(part)):
                sums.lint.add(score)
        return sums

    async def _first_seq(self, since: datetime) -> int:
        return await self._database.view(lambda tx: first_seq_since(tx, to_microseconds(since)))

    async def _add_step(
        self,
        first: int,
        end: int,
        place_of: Callable[[int, str], tuple[str, str]],
        sums: dict[tuple[str, str], ModelSums],
    ) -> None:
        rows = await self._database.view(lambda tx: tx.rows(_ROWS, (first, end) * 3))
        counted = set()
        for row in self._database.bad_rows.read_each(STAGE, "scored", rows, _scored):
            counted.add(row.seq)
            sums.setdefault(place_of(row.seq, row.model), ModelSums()).add(row)
        within = "c.trajectory_seq >= ? AND c.trajectory_seq < ?"
        for seq, model, score in await self._lint_scores(within, (first, end)):
            if seq in counted:
                sums[place_of(seq, model)].lint.add(score)

    async def _lint_scores(
        self, where: str, params: tuple[int, ...]
    ) -> list[tuple[int, str, float | None]]:
        """What linters said of the code of these, 0 to 1."""

        def lint_in_transaction(tx: Tx) -> list[tuple[int, str, float | None]]:
            rows = tx.rows(f"{_LINTED} AND {where}", params)
            return tx.bad_rows.read_each(STAGE, "rewards", rows, _lint_score)

        return await self._database.view(lint_in_transaction)


def _rows_of(sql: str, params: tuple[int, ...], tx: Tx) -> list[Row]:
    return tx.rows(sql, params)


def day_name(start: datetime) -> str:
    """The date that most of a day has which begins then.

    >>> day_name(datetime(2026, 11, 16, 23, 30)), day_name(datetime(2026, 11, 16, 8))
    ('2026-11-17', '2026-11-16')
    """
    return f"{start + _HALF_DAY:%Y-%m-%d}"


def _days(start: datetime, end: datetime) -> list[datetime]:
    days = []
    while start < end:
        days.append(start)
        start += timedelta(days=1)
    return days


def _scored(row: Row) -> ScoredTrajectory:
    return check_row_types(ScoredTrajectory(*row))


def _lint_score(row: Row) -> tuple[int, str, float | None]:
    reward = _REWARD.decode(bytes_of_column(row[2]))
    return int(row[0]), str(row[1]), reward.reward_components.code_quality.raw_data.parts.linter
