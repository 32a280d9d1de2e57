"""What have the newest trajectories in common with a validation? Their sampling, tasks and checks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from upswing.adapters.sql.database import Database, Row, Tx, blob_of
from upswing.contracts.trajectory import Trajectory
from upswing.contracts.typed import json_decoder
from upswing.contracts.validation import Recorded

MOST = 2000
"""Trajectories that are read, the newest."""
_BYTES = 64 * 1024 * 1024
"""Of bodies at most: a trajectory may have 8 MB."""
_AT_ONCE = 100
_SQL = (
    "SELECT seq, model, task_id, body, content_hash, practice FROM trajectories "
    "WHERE evaluation = 0 AND infra_error = 0 AND seq < ? ORDER BY seq DESC LIMIT ?"
)

_LEARNED = (
    "SELECT DISTINCT s.task_id FROM scored s WHERE s.task_id IN ({marks}) AND EXISTS "
    "(SELECT 1 FROM trained_on x JOIN models m ON m.job_id = x.job_id "
    "WHERE x.trajectory_id = s.trajectory_id)"
)


class _Metadata(Struct):
    temperature: Any = None
    top_p: Any = None
    max_tokens: Any = None
    explored: Any = None
    check: Any = None
    ground_truth: Any = None


class _Body(Struct):
    metadata: _Metadata


_DECODER, _WHOLE = json_decoder(_Body), json_decoder(Trajectory)


class Production:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self, most: int = MOST) -> list[Recorded]:
        """The newest first; evaluations, and what the infrastructure spoiled, do not count."""
        found: list[Recorded] = []
        before, size = 2**62, 0
        while len(found) < most and size < _BYTES:
            params = (before, min(_AT_ONCE, most - len(found)))
            rows = await self._database.read(lambda tx, params=params: tx.rows(_SQL, params))  # type: ignore[misc]
            if not rows:
                break
            sound = self._database.aside.sound("validate", "trajectories", rows, _recorded)
            before, size = rows[-1][0], size + sum(len(each.body) for each in sound)
            found += sound
        learned = await self._learned({each.task_id for each in found if each.body})
        return [replace(each, learned=True) if each.task_id in learned else each for each in found]

    async def _learned(self, tasks: Collection[str]) -> set[str]:
        """Those of the tasks that a model was trained on, whatever share its job held out."""
        names = sorted(tasks)

        def unit(tx: Tx) -> set[str]:
            learned: set[str] = set()
            for start in range(0, len(names), _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                sql = _LEARNED.format(marks=", ".join("?" * len(some)))
                learned |= {row[0] for row in tx.rows(sql, tuple(some))}
            return learned

        return await self._database.read(unit)


def trajectory_of(recorded: Recorded) -> Trajectory | None:
    """The whole of it; None when it is none that this version can read."""
    try:
        return _WHOLE.decode(recorded.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _recorded(row: Row) -> Recorded:
    _, model, task_id, raw, content_hash, practice = row
    body = blob_of(raw, content_hash)
    try:
        told = _DECODER.decode(body).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Recorded(model, task_id, practice=bool(practice))
    checkable = told.check is not None or told.ground_truth is not None
    return Recorded(
        model, task_id, _within(told.temperature, 2), _within(told.top_p, 1),
        _count(told.max_tokens), body if checkable else b"",
        practice=bool(practice) or told.explored is True,
    )  # fmt: skip


def _count(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if fits else None


def _within(value: Any, most: float) -> float | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
    return float(value) if fits else None
