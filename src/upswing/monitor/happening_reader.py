"""What has happened since the monitor last looked? Incidents, ended validations, and the last promotion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from upswing.contracts.typed import json_decoder
from upswing.infra.sql.cursors import read_cursor
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column, check_row_types
from upswing.infra.sql.notice_tables import INCIDENTS_READ, VALIDATIONS_READ
from upswing.infra.sql.store import from_microseconds
from upswing.monitor.core.happenings import EndedValidation, IncidentRow

STAGE = "monitor"
_BATCH = 200
_INCIDENTS = (
    "SELECT i.seq, i.model_id, i.reason, i.sentence, COALESCE(r.state, '') FROM incidents i "
    "LEFT JOIN rollouts r ON r.rollout_id = i.rollout_id WHERE i.seq > ? ORDER BY i.seq LIMIT ?"
)
_VALIDATIONS = (
    "SELECT run_id, candidate, COALESCE(word, ''), COALESCE(sentence, ''), ended_us FROM validations "
    "WHERE ended_us > ? AND state IN ('done', 'failed') ORDER BY ended_us LIMIT ?"
)
_PROMOTED = "SELECT body FROM rollouts WHERE state = 'promoted' ORDER BY seq DESC LIMIT 1"


class _Rollout(msgspec.Struct):
    ended: datetime | None = None


_ROLLOUT = json_decoder(_Rollout)


@dataclass(frozen=True, slots=True)
class Happenings:
    """What is new, and how far that reaches."""

    incidents: tuple[IncidentRow, ...]
    validations: tuple[EndedValidation, ...]
    promoted: datetime | None
    """When the model that answers got all traffic."""
    cursors: dict[str, int]
    more: bool
    """There is more than fits into one look."""


class HappeningReader:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> Happenings:
        return await self._database.read(_read_in_transaction)


def _read_in_transaction(tx: Tx) -> Happenings:
    at = {name: read_cursor(tx, name) for name in (INCIDENTS_READ, VALIDATIONS_READ)}
    incidents = tx.rows(_INCIDENTS, (at[INCIDENTS_READ], _BATCH))
    validations = tx.rows(_VALIDATIONS, (at[VALIDATIONS_READ], _BATCH))
    cursors = dict[str, int]()
    if incidents:
        cursors[INCIDENTS_READ] = int(incidents[-1][0])
    if validations:
        cursors[VALIDATIONS_READ] = int(validations[-1][4])
    return Happenings(
        tuple(tx.bad_rows.read_each(STAGE, "incidents", incidents, _incident)),
        tuple(tx.bad_rows.read_each(STAGE, "validations", validations, _validation)),
        tx.bad_rows.read_one(STAGE, "rollouts", tx.row(_PROMOTED), _promotion),
        cursors,
        len(incidents) == _BATCH or len(validations) == _BATCH,
    )


def _incident(row: Row) -> IncidentRow:
    return check_row_types(IncidentRow(*row))


def _validation(row: Row) -> EndedValidation:
    run_id, model_id, verdict, sentence, ended_us = row
    return check_row_types(
        EndedValidation(run_id, model_id, verdict, sentence, from_microseconds(ended_us))
    )


def _promotion(row: Row) -> datetime | None:
    return _ROLLOUT.decode(bytes_of_column(row[0])).ended
