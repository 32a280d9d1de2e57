"""What is there to train on, who has been trained on it, and which models have seen it?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import UnsetType

from upswing.contracts import Feedback, decode
from upswing.dataset.filtering import RewardRecord, TrajectoryCandidate, TrajectoryRecords
from upswing.infra.sql.database import Database, Row, Tx, check_row_types, verified_bytes_of_column
from upswing.infra.sql.feedback_targets import feedback_targets
from upswing.infra.sql.store import from_microseconds
from upswing.principals import may_speak

STAGE = "train"
T = TypeVar("T")
CHUNK = 200
"""Ids of one statement, and bodies that are in memory at once."""

ENDED = "CASE WHEN t.ended_us > t.stored_us THEN t.stored_us ELSE t.ended_us END"
"""When it ended; by a clock that is ahead of ours, when it was stored."""
_CANDIDATES = (
    "SELECT t.trajectory_id, t.agent_id, t.agent_type, t.domain, t.task_id, t.window_id, "
    f"t.scenario_id, {ENDED}, t.turns, t.infra_error, s.infra_error, t.evaluation, o.user_id, "
    "{seen}, s.revision, s.total, s.raw_total, t.model, t.continuous, s.verified, s.pnl, "
    "s.judge_score, s.reported, s.feedback, t.answers, "
    "CASE WHEN t.many = 1 THEN '' ELSE t.key_id END, t.request FROM trajectories t "
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
    "SELECT f.feedback_id, f.body, f.user_id, f.trusted, f.content_hash, f.principal, f.many, "
    "f.trajectory_id, f.episode_id FROM feedback f WHERE {showing} ORDER BY f.seq"
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

    def __init__(self, database: Database, *, chunk_size: int = CHUNK) -> None:
        self._database = database
        self._chunk_size = chunk_size

    async def candidates(self, ancestors: Sequence[str] = ()) -> list[TrajectoryCandidate]:
        """Everything that is stored, with whether one of these jobs was trained on it."""
        seen = _SEEN.format(jobs=_placeholders_for(ancestors)) if ancestors else "FALSE"
        sql = _CANDIDATES.format(seen=seen)
        return await self._database.read(
            lambda tx: tx.bad_rows.read_each(
                STAGE, "trajectories", tx.rows(sql, tuple(ancestors)), _candidate_from_row
            )
        )

    async def bodies(self, trajectory_ids: Sequence[str]) -> AsyncIterator[list[tuple[str, bytes]]]:
        """(id, body) of those that are stored, some at a time; no body: it is not what was stored."""
        for ids in _split_into_chunks(trajectory_ids, self._chunk_size):
            query = _rows_query(_BODIES.format(ids=_placeholders_for(ids)), tuple(ids))
            rows = await self._database.read(query)
            found = self._database.bad_rows.read_each(STAGE, "trajectories", rows, _body_from_row)
            spoilt = {row[0] for row in rows} - {name for name, _ in found}
            yield found + [(name, b"") for name in spoilt]

    async def demonstrations(self) -> dict[str, str]:
        """Trajectory → what somebody who may say so showed to be right; the newest word counts."""

        def demonstrations_in_transaction(tx: Tx) -> dict[str, str]:
            found: dict[str, str] = {}
            sql = _SHOWN.format(showing=_showing_sql(tx))
            shown = tx.bad_rows.read_each(STAGE, "feedback", tx.rows(sql), _feedback_from_row)
            for row, feedback in shown:
                if feedback.type not in SHOWING or isinstance(feedback.comment, UnsetType):
                    continue
                if feedback.comment.strip():
                    found |= dict.fromkeys(
                        _trajectories_of_demonstration(tx, row), feedback.comment
                    )
            return found

        return await self._database.read(demonstrations_in_transaction)

    async def records_of_removed(
        self, trajectory_ids: Sequence[str], ancestors: Sequence[str] = ()
    ) -> TrajectoryRecords:
        """What is known of trajectories that the store holds no more, or never held."""

        def remains_in_transaction(tx: Tx) -> TrajectoryRecords:
            erased: set[str] = set()
            scored: dict[str, RewardRecord] = {}
            for ids in _split_into_chunks(trajectory_ids, self._chunk_size):
                marks, values = _placeholders_for(ids), tuple(ids)
                sql = f"SELECT ref FROM erased WHERE ref IN ({marks})"
                erased |= {row[0] for row in tx.rows(sql, values)}
                rows = tx.rows(_SCORED.format(ids=marks), values)
                scored |= dict(
                    tx.bad_rows.read_each(
                        STAGE, "scored", rows, lambda row: (row[0], _reward_record_from_row(row))
                    )
                )
            jobs = _placeholders_for(ancestors)
            sql = f"SELECT DISTINCT trajectory_id FROM trained_on WHERE job_id IN ({jobs})"
            seen = {row[0] for row in tx.rows(sql, tuple(ancestors))} if ancestors else set()
            optouts = {row[0] for row in tx.rows("SELECT user_id FROM optouts")}
            return TrajectoryRecords(frozenset(erased), scored, frozenset(seen), frozenset(optouts))

        return await self._database.read(remains_in_transaction)

    async def carried(self, stream: str, first: int) -> dict[int, str]:
        """Which messages of a stream, from this one on, are known to carry which trajectory."""
        sql = "SELECT stream_seq, ref FROM carried WHERE stream = ? AND stream_seq >= ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (stream, first)))
        return {row[0]: row[1] for row in rows}

    async def note_trained(self, job_id: str, trained: Sequence[tuple[str, int]]) -> None:
        """A job is trained on these (trajectory, revision), beside what it was trained on before."""

        def note_trained_in_transaction(tx: Tx) -> None:
            for some in _split_into_chunks(trained, self._chunk_size):
                rows = ", ".join(["(?, ?, ?)"] * len(some))
                values = [value for each, revision in some for value in (each, job_id, revision)]
                tx.execute(
                    f"INSERT INTO trained_on (trajectory_id, job_id, revision) VALUES {rows} "
                    "ON CONFLICT (trajectory_id, job_id) DO UPDATE SET revision = excluded.revision",
                    tuple(values),
                )

        await self._database.write(note_trained_in_transaction)

    async def models_trained_on(self, trajectory_ids: Sequence[str]) -> list[str]:
        """The models that these are in, by their own training or by that of an ancestor."""

        def models_that_saw_in_transaction(tx: Tx) -> list[str]:
            found: set[str] = set()
            for ids in _split_into_chunks(trajectory_ids, self._chunk_size):
                sql = MODELS_THAT_SAW.format(ids=_placeholders_for(ids))
                found |= {row[0] for row in tx.rows(sql, tuple(ids))}
            return sorted(found)

        return await self._database.read(models_that_saw_in_transaction)


def _candidate_from_row(row: Row) -> TrajectoryCandidate:
    (
        trajectory_id,
        agent_id,
        profile,
        domain,
        task_id,
        window_id,
        scenario_id,
        ended_us,
        turns,
        broke,
        failed,
        evaluation,
        optout,
        seen,
        revision,
        reward,
        raw_total,
        model,
        continuous,
        verified,
        pnl,
        judged,
        reported,
        feedback,
        answers,
        key_id,
        request,
    ) = row
    return check_row_types(
        TrajectoryCandidate(
            trajectory_id,
            agent_id,
            profile,
            domain,
            task_id,
            window_id,
            scenario_id,
            ended=from_microseconds(ended_us),
            turns=turns,
            infra_error=bool(broke or failed),
            evaluation=bool(evaluation),
            opted_out=optout is not None,
            seen=bool(seen),
            revision=revision or 0,
            reward=reward,
            raw_total=raw_total or 0.0,
            model=model,
            continuous=bool(continuous),
            verified=verified,
            pnl=pnl,
            judged=judged,
            reported=reported,
            feedback=feedback,
            answers=answers,
            key_id=key_id,
            request=request,
        )
    )


def _body_from_row(row: Row) -> tuple[str, bytes]:
    return row[0], verified_bytes_of_column(row[1], row[2])


def _showing_sql(tx: Tx) -> str:
    """Words that may show something, without decoding all others: bodies have one spelling."""
    texts = [f'"type":"{kind}"' for kind in sorted(SHOWING)]
    if tx.postgres:
        parts = [f"POSITION('{text}'::bytea IN f.body) > 0" for text in texts]
    else:
        parts = [f"INSTR(f.body, CAST('{text}' AS BLOB)) > 0" for text in texts]
    return f"({' OR '.join(parts)})"


def _feedback_from_row(row: Row) -> tuple[Row, Feedback]:
    return row, decode(Feedback, verified_bytes_of_column(row[1], row[4]))


def _trajectories_of_demonstration(tx: Tx, row: Row) -> list[str]:
    """The trajectories of which this word may say what would have been right."""
    _, _, user, trusted, _, key, many, trajectory_id, episode_id = row
    targets = feedback_targets(tx, trajectory_id, episode_id, key, for_others=bool(many or trusted))
    return [
        name
        for _, name, _, owner, recorded_by in targets
        if may_speak(
            user, owner, trusted=bool(trusted), key=key, recorded_by=recorded_by, many=bool(many)
        )
    ]


def _reward_record_from_row(row: Row) -> RewardRecord:
    _, agent_id, domain, window_id, scenario_id, turns, broke, *rest = row
    return check_row_types(
        RewardRecord(agent_id, domain, window_id, scenario_id, turns, bool(broke), *rest)
    )


def _rows_query(sql: str, params: tuple[object, ...]) -> Callable[[Tx], list[Row]]:
    return lambda tx: tx.rows(sql, params)


def _placeholders_for(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _split_into_chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
