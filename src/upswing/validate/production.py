"""What have the newest trajectories in common with a validation? Their sampling, tasks and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from upswing.contracts.trajectory import Trajectory
from upswing.contracts.typed import json_decoder
from upswing.contracts.validation import RecordedTask
from upswing.infra.sql.database import Database, Row, Tx, verified_bytes_of_column
from upswing.principals import GATEWAY, fair_newest
from upswing.worlds.recording import SOURCE

MAX_TRAJECTORIES = 2000
"""Trajectories that are read: the newest of each key, those of gateways and of trusted keys first."""
_CONSIDERED = 20_000
"""Trajectories of which key and door are looked at."""
_BYTES = 64 * 1024 * 1024
"""Of bodies at most: a trajectory may have 8 MB."""
_ROWS_PER_QUERY = 100
_SOURCES = (
    "SELECT seq, CASE WHEN many = 1 THEN '' ELSE key_id END FROM trajectories "
    "WHERE evaluation = 0 AND infra_error = 0 AND {which} (door = 'gateway' OR many = 1) "
    "ORDER BY seq DESC LIMIT ?"
)
_SQL = (
    "SELECT seq, model, task_id, body, content_hash, practice, "
    "CASE WHEN many = 1 THEN '' ELSE key_id END, door, request FROM trajectories WHERE seq IN ({marks})"
)

_LEARNED = (
    "SELECT DISTINCT s.task_id FROM scored s WHERE s.task_id IN ({marks}) AND EXISTS "
    "(SELECT 1 FROM trained_on x JOIN models m ON m.job_id = x.job_id "
    "WHERE x.trajectory_id = s.trajectory_id)"
)
_ASKED = (
    "SELECT DISTINCT t.request FROM trajectories t JOIN trained_on x ON x.trajectory_id = t.trajectory_id "
    "JOIN models m ON m.job_id = x.job_id WHERE t.request <> '' AND t.request IN ({marks})"
)


class _Metadata(Struct):
    temperature: Any = None
    top_p: Any = None
    max_tokens: Any = None
    explored: Any = None
    check: Any = None
    ground_truth: Any = None
    outcome: Any = None


class _Body(Struct):
    metadata: _Metadata


_DECODER, _WHOLE = json_decoder(_Body), json_decoder(Trajectory)


class ProductionReader:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self, limit: int = MAX_TRAJECTORIES) -> list[RecordedTask]:
        """The newest first; evaluations, and what the infrastructure spoiled, do not count.

        However many one key has sent, the newest of others are among them.
        """
        chosen = await self._database.read(lambda tx: _chosen(tx, limit))
        rows_found: list[tuple[int, RecordedTask]] = []
        size = 0
        for start in range(0, len(chosen), _ROWS_PER_QUERY):
            if size >= _BYTES:
                break
            some = tuple(chosen[start : start + _ROWS_PER_QUERY])
            sql = _SQL.format(marks=", ".join("?" * len(some)))
            rows = await self._database.read(lambda tx, sql=sql, some=some: tx.rows(sql, some))  # type: ignore[misc]
            sound = self._database.bad_rows.read_each("validate", "trajectories", rows, _decode_row)
            size += sum(len(each.body) for _, each in sound)
            rows_found += sound
        found = [each for _, each in sorted(rows_found, key=lambda row: -row[0])]
        checkable = [each for each in found if each.body]
        names = await self._trained_tasks(_LEARNED, {each.task_id for each in checkable})
        asked = await self._trained_tasks(_ASKED, {each.request for each in checkable} - {""})
        return [
            replace(each, learned=True) if each.task_id in names or each.request in asked else each
            for each in found
        ]

    async def _trained_tasks(self, query: str, wanted: Collection[str]) -> set[str]:
        """Those of the tasks or requests that a model was trained on, whatever share its job held out."""
        names = sorted(wanted)

        def trained_tasks_in_transaction(tx: Tx) -> set[str]:
            learned: set[str] = set()
            for start in range(0, len(names), _ROWS_PER_QUERY):
                some = names[start : start + _ROWS_PER_QUERY]
                sql = query.format(marks=", ".join("?" * len(some)))
                learned |= {row[0] for row in tx.rows(sql, tuple(some))}
            return learned

        return await self._database.read(trained_tasks_in_transaction)


def _chosen(tx: Tx, most: int) -> list[int]:
    """Which to read, in the order of reading: in turns of their keys, so that long ones of one take no other's place."""
    chosen: list[int] = []
    for which in ("", "NOT"):
        rows = tx.rows(_SOURCES.format(which=which), (_CONSIDERED,))
        fair = fair_newest(rows[::-1], lambda row: row[1], most - len(chosen))[::-1]
        turn: Counter[str] = Counter()
        order = []
        for seq, key in fair:
            order.append((turn[key], -seq))
            turn[key] += 1
        chosen += [-negative for _, negative in sorted(order)]
    return chosen


def decode_trajectory(recorded: RecordedTask) -> Trajectory | None:
    """The whole of it; None when it is none that this version can read."""
    try:
        return _WHOLE.decode(recorded.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _decode_row(row: Row) -> tuple[int, RecordedTask]:
    seq, model, task_id, raw, content_hash, practice, key_id, door, request = row
    source = {"key_id": str(key_id), "gateway": door == GATEWAY, "request": str(request)}
    body = verified_bytes_of_column(raw, content_hash)
    try:
        metadata = _DECODER.decode(body).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return seq, RecordedTask(model, task_id, practice=bool(practice), **source)
    checkable = metadata.check is not None or metadata.ground_truth is not None
    return seq, RecordedTask(
        model,
        task_id,
        _number_within(metadata.temperature, 2),
        _number_within(metadata.top_p, 1),
        _positive_count(metadata.max_tokens),
        body if checkable else b"",
        practice=bool(practice) or metadata.explored is True,
        from_world=isinstance(metadata.outcome, dict) and metadata.outcome.get("source") == SOURCE,
        **source,
    )


def _positive_count(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if fits else None


def _number_within(value: Any, maximum: float) -> float | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= maximum
    return float(value) if fits else None
