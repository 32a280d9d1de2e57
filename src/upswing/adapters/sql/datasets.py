"""What is there to train on, who has been trained on it, and which models have seen it?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import UnsetType

from upswing.adapters.sql.database import Database, Row, Tx, blob_of, checked
from upswing.adapters.sql.store import moment
from upswing.contracts import Feedback, decode
from upswing.dataset.sift import Candidate, Remains, Scored
from upswing.senders import may_speak

STAGE = "train"
T = TypeVar("T")
CHUNK = 200
"""Ids of one statement, and bodies that are in memory at once."""

_CANDIDATES = (
    "SELECT t.trajectory_id, t.agent_id, t.agent_type, t.domain, t.task_id, t.window_id, "
    "t.scenario_id, t.ended_us, t.turns, t.infra_error, s.infra_error, t.evaluation, o.user_id, "
    "{seen}, s.revision, s.total, s.raw_total, t.model, t.continuous, s.verified, s.pnl, "
    "s.judge_score, s.reported, s.feedback, t.answers FROM trajectories t "
    "LEFT JOIN scored s ON s.trajectory_seq = t.seq LEFT JOIN optouts o ON o.user_id = t.user_id"
)
_SEEN = (
    "EXISTS (SELECT 1 FROM trained_on x WHERE x.trajectory_id = t.trajectory_id "
    "AND x.job_id IN ({jobs}))"
)
_SCORED = (
    "SELECT trajectory_id, agent_id, domain, window_id, scenario_id, turns, infra_error, revision, "
    "total, raw_total, verified, pnl, judge_score, reported, feedback FROM scored "
    "WHERE trajectory_id IN ({ids})"
)
_BODIES = (
    "SELECT trajectory_id, body, content_hash FROM trajectories WHERE trajectory_id IN ({ids})"
)
SHOWING = frozenset({"demonstration", "correction"})
"""Words of users whose comment is what would have been right."""
_SHOWN = (
    "SELECT t.trajectory_id, f.body, f.user_id, t.user_id, f.trusted, f.content_hash, f.principal, f.many, "
    "t.key_id FROM feedback f "
    "JOIN trajectories t ON t.trajectory_id = f.trajectory_id "
    "OR (f.trajectory_id IS NULL AND t.episode_id = f.episode_id) ORDER BY f.seq"
)
MODELS_THAT_SAW = (
    "WITH RECURSIVE saw (model_id) AS (SELECT m.model_id FROM models m "
    "JOIN trained_on x ON x.job_id = m.job_id WHERE x.trajectory_id IN ({ids}) "
    "UNION SELECT m.model_id FROM models m JOIN saw ON m.parent = saw.model_id) "
    "SELECT model_id FROM saw ORDER BY model_id"
)
"""A model has seen what it was trained on, and what the model was that it began as."""
JOBS_THAT_SEE = (
    "SELECT DISTINCT j.job_id FROM jobs j JOIN trained_on x ON x.job_id = j.job_id "
    "WHERE j.ended_us IS NULL AND x.trajectory_id IN ({ids}) ORDER BY j.job_id"
)
"""Jobs that are not over and have it in their data."""


class DataSets:
    """The store's side of data sets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(self, ancestors: Sequence[str] = ()) -> list[Candidate]:
        """Everything that is stored, with whether one of these jobs was trained on it."""
        seen = _SEEN.format(jobs=_marks(ancestors)) if ancestors else "FALSE"
        sql = _CANDIDATES.format(seen=seen)
        return await self._database.read(
            lambda tx: tx.aside.sound(
                STAGE, "trajectories", tx.rows(sql, tuple(ancestors)), _candidate
            )
        )

    async def bodies(self, trajectory_ids: Sequence[str]) -> AsyncIterator[list[tuple[str, bytes]]]:
        """(id, body) of those that are stored, some at a time; no body: it is not what was stored."""
        for ids in _chunks(trajectory_ids):
            asking = _asking(_BODIES.format(ids=_marks(ids)), tuple(ids))
            rows = await self._database.read(asking)
            found = self._database.aside.sound(STAGE, "trajectories", rows, _body)
            spoilt = {row[0] for row in rows} - {name for name, _ in found}
            yield found + [(name, b"") for name in spoilt]

    async def demonstrations(self) -> dict[str, str]:
        """Trajectory → what somebody who may say so showed to be right; the newest word counts."""
        rows = await self._database.read(lambda tx: tx.rows(_SHOWN))
        found: dict[str, str] = {}
        words = self._database.aside.sound(STAGE, "feedback", rows, _word)
        for (trajectory_id, _, speaker, owner, trusted, _, key, many, recorded_by), word in words:
            if word.type not in SHOWING or isinstance(word.comment, UnsetType):
                continue
            if word.comment.strip() and may_speak(
                speaker, owner, trusted=bool(trusted), key=key, recorded_by=recorded_by,
                many=bool(many),
            ):  # fmt: skip
                found[trajectory_id] = word.comment
        return found

    async def remains(
        self, trajectory_ids: Sequence[str], ancestors: Sequence[str] = ()
    ) -> Remains:
        """What is known of trajectories that the store holds no more, or never held."""

        def unit(tx: Tx) -> Remains:
            erased: set[str] = set()
            scored: dict[str, Scored] = {}
            for ids in _chunks(trajectory_ids):
                marks, values = _marks(ids), tuple(ids)
                sql = f"SELECT ref FROM erased WHERE ref IN ({marks})"
                erased |= {row[0] for row in tx.rows(sql, values)}
                rows = tx.rows(_SCORED.format(ids=marks), values)
                scored |= dict(
                    tx.aside.sound(STAGE, "scored", rows, lambda row: (row[0], _scored(row)))
                )
            jobs = _marks(ancestors)
            sql = f"SELECT DISTINCT trajectory_id FROM trained_on WHERE job_id IN ({jobs})"
            seen = {row[0] for row in tx.rows(sql, tuple(ancestors))} if ancestors else set()
            optouts = {row[0] for row in tx.rows("SELECT user_id FROM optouts")}
            return Remains(frozenset(erased), scored, frozenset(seen), frozenset(optouts))

        return await self._database.read(unit)

    async def carried(self, stream: str, first: int) -> dict[int, str]:
        """Which messages of a stream, from this one on, are known to carry which trajectory."""
        sql = "SELECT stream_seq, ref FROM carried WHERE stream = ? AND stream_seq >= ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (stream, first)))
        return {row[0]: row[1] for row in rows}

    async def note_trained(self, job_id: str, trained: Sequence[tuple[str, int]]) -> None:
        """A job is trained on these (trajectory, revision), beside what it was trained on before."""

        def unit(tx: Tx) -> None:
            for some in _chunks(trained):
                rows = ", ".join(["(?, ?, ?)"] * len(some))
                values = [value for each, revision in some for value in (each, job_id, revision)]
                tx.execute(
                    f"INSERT INTO trained_on (trajectory_id, job_id, revision) VALUES {rows} "
                    "ON CONFLICT (trajectory_id, job_id) DO UPDATE SET revision = excluded.revision",
                    tuple(values),
                )

        await self._database.write(unit)

    async def models_that_saw(self, trajectory_ids: Sequence[str]) -> list[str]:
        """The models that these are in, by their own training or by that of an ancestor."""

        def unit(tx: Tx) -> list[str]:
            found: set[str] = set()
            for ids in _chunks(trajectory_ids):
                sql = MODELS_THAT_SAW.format(ids=_marks(ids))
                found |= {row[0] for row in tx.rows(sql, tuple(ids))}
            return sorted(found)

        return await self._database.read(unit)


def _candidate(row: Row) -> Candidate:
    (
        trajectory_id, agent_id, profile, domain, task_id, window_id, scenario_id, ended_us, turns,
        broke, failed, evaluation, optout, seen, revision, reward, raw_total, model, continuous,
        verified, pnl, judged, reported, feedback, answers,
    ) = row  # fmt: skip
    return checked(Candidate(
        trajectory_id, agent_id, profile, domain, task_id, window_id, scenario_id,
        ended=moment(ended_us), turns=turns, infra_error=bool(broke or failed),
        evaluation=bool(evaluation), opted_out=optout is not None, seen=bool(seen),
        revision=revision or 0, reward=reward, raw_total=raw_total or 0.0, model=model,
        continuous=bool(continuous), verified=verified, pnl=pnl, judged=judged, reported=reported,
        feedback=feedback, answers=answers,
    ))  # fmt: skip


def _body(row: Row) -> tuple[str, bytes]:
    return row[0], blob_of(row[1], row[2])


def _word(row: Row) -> tuple[Row, Feedback]:
    return row, decode(Feedback, blob_of(row[1], row[5]))


def _scored(row: Row) -> Scored:
    _, agent_id, domain, window_id, scenario_id, turns, broke, *rest = row
    return checked(Scored(agent_id, domain, window_id, scenario_id, turns, bool(broke), *rest))


def _asking(sql: str, params: tuple[object, ...]) -> Callable[[Tx], list[Row]]:
    return lambda tx: tx.rows(sql, params)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]
