"""Which episodes of a model and of the one beside it are compared? What the store has of its newest rollout.

Bounded: the newest episodes of each side, read in pages, so that nobody waits for them. Of a body, which may have
megabytes, what is compared is kept and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from msgspec import Struct

from upswing.contracts.typed import json_decoder
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column
from upswing.infra.sql.store import existing_tables, from_microseconds, to_microseconds
from upswing.monitor.core.episode_facts import EpisodeReading, StoredEpisode, read_episode

MOST_EPISODES = 2000
"""Of each side, the newest."""
MOST_BYTES = 256 * 1024 * 1024
"""Of their bodies: whatever is older than that is not read."""
_PAGE, _PAGE_BYTES = 200, 8 * 1024 * 1024
_COLUMNS = (
    "s.trajectory_seq, t.trajectory_id, t.model, t.agent_id, t.user_id, t.domain, t.started_us, t.infra_error, "
    "s.raw_total, s.feedback"
)
_BODY_OF = "SELECT body FROM trajectories WHERE seq = ?"
ReadEpisode = tuple[StoredEpisode, EpisodeReading]
"""An episode without its body, and what its body says."""


class _RolloutBody(Struct):
    began: datetime | None = None
    ended: datetime | None = None
    reason: str = ""


_BODY = json_decoder(_RolloutBody)


@dataclass(frozen=True, slots=True)
class RolloutSubject:
    """A rollout, as far as an analysis asks."""

    rollout_id: str
    model_id: str
    baseline_id: str
    reason: str
    began: datetime | None
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class AnalysedIncident:
    """Something that a person had to hear of."""

    seq: int
    incident_id: str
    rollout_id: str | None
    model_id: str
    reason: str
    happened: datetime


@dataclass(frozen=True, slots=True)
class _Page:
    found: list[ReadEpisode]
    last: int | None
    """The number before which the next page begins; None: there is none."""
    size: int
    """Bytes of bodies that were read."""


class FailureReader:
    """Reads; writes nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rollout(self, model_id: str, rollout_id: str | None = None) -> RolloutSubject | None:
        """The rollout of this id, or the model's newest."""
        which = "rollout_id = ?" if rollout_id else "model_id = ?"
        sql = f"SELECT rollout_id, model_id, baseline_id, body FROM rollouts WHERE {which} ORDER BY seq DESC LIMIT 1"

        def read(tx: Tx) -> RolloutSubject | None:
            if "rollouts" not in existing_tables(tx):  # a store that an older version left
                return None
            row = tx.row(sql, (rollout_id or model_id,))
            return tx.bad_rows.read_one("monitor", "rollouts", row, _rollout)

        return await self._database.read(read)

    async def episodes(
        self, model_id: str, until: datetime | None = None, most: int = MOST_EPISODES
    ) -> list[ReadEpisode]:
        """The newest scored episodes that gateways recorded of a model, until then."""
        found: list[ReadEpisode] = []
        before, limit, size = 2**62, to_microseconds(until) if until else 2**62, 0
        while len(found) < most and size < MOST_BYTES:
            page = await self._page(model_id, before, limit)
            found += page.found
            size += page.size
            if page.last is None:
                break
            before = page.last
        return found[:most]

    async def _page(self, model_id: str, before: int, until_us: int) -> _Page:
        sql = (
            f"SELECT {_COLUMNS} FROM scored s JOIN trajectories t ON t.seq = s.trajectory_seq "
            "WHERE s.model = ? AND s.trajectory_seq < ? AND t.started_us <= ? AND t.door = 'gateway' "
            "AND t.evaluation = 0 ORDER BY s.trajectory_seq DESC LIMIT ?"
        )

        def read(tx: Tx) -> _Page:
            rows = tx.rows(sql, (model_id, before, until_us, _PAGE))
            found: list[ReadEpisode] = []
            size, last = 0, before
            for row in rows:
                if size >= _PAGE_BYTES:
                    return _Page(found, last, size)
                body = tx.row(_BODY_OF, (row[0],)) or (b"",)
                size += len(body[0] or b"")
                found += tx.bad_rows.read_each("monitor", "trajectories", [(*row, *body)], _read)
                last = int(row[0])
            return _Page(found, last if len(rows) == _PAGE else None, size)

        return await self._database.view(read)

    async def incidents_after(self, seq: int, limit: int = 20) -> list[AnalysedIncident]:
        """The next incidents, the oldest first."""
        sql = (
            "SELECT seq, incident_id, rollout_id, model_id, reason, happened_us FROM incidents WHERE seq > ? "
            "ORDER BY seq LIMIT ?"
        )

        def read(tx: Tx) -> list[AnalysedIncident]:
            rows = tx.rows(sql, (seq, limit))
            return tx.bad_rows.read_each("monitor", "incidents", rows, _incident)

        return await self._database.read(read)

    async def newest_incident(self) -> int:
        row = await self._database.read(
            lambda tx: tx.row("SELECT COALESCE(MAX(seq), 0) FROM incidents")
        )
        return int(row[0]) if row else 0


def _rollout(row: Row) -> RolloutSubject:
    body = _BODY.decode(bytes_of_column(row[3]))
    return RolloutSubject(row[0], row[1], row[2], body.reason, body.began, body.ended)


def _read(row: Row) -> ReadEpisode:
    episode = _episode(row)
    return replace(episode, body=b""), read_episode(episode)


def _episode(row: Row) -> StoredEpisode:
    _, name, model, agent, user, domain, started, infra, total, feedback, body = row
    numbers = (total, feedback)
    if not all(each is None or isinstance(each, int | float) for each in numbers):
        raise msgspec.ValidationError("a reward is no number")
    return StoredEpisode(
        name,
        model,
        str(agent),
        user,
        str(domain),
        from_microseconds(started),
        bool(infra),
        total,
        feedback,
        bytes_of_column(body),
    )


def _incident(row: Row) -> AnalysedIncident:
    *values, happened = row
    known = (*values, from_microseconds(happened))
    return AnalysedIncident(*known)
