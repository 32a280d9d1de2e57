"""What does the store know of one trajectory? Its rewards, what was said of it, who judged it, who learned from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from upswing.contracts.typed import from_json
from upswing.infra.sql.database import Database, Row, Tx, bytes_of_column
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.store import from_microseconds
from upswing.infra.sql.trajectory_search import FoundTrajectory, find_trajectory

MOST = 100
"""Revisions, words and jobs of one trajectory that are shown; more are nobody's to read."""
_STAGE = "store"
_WORD = "feedback_id, trajectory_id, episode_id, stored_us, user_id, principal, body"
_WORDS = TableList("feedback", _WORD, "stored_us", indexed=("trajectory_id",))
_FEEDBACK = f"SELECT seq, {_WORD} FROM feedback"


@dataclass(frozen=True, slots=True)
class RewardRevision:
    """A reward as it was published."""

    revision: int
    created: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class TrajectoryFeedback:
    """What somebody said of a trajectory."""

    seq: int
    feedback_id: str
    trajectory_id: str | None
    episode_id: str | None
    stored: datetime
    user_id: str | None
    principal: str
    body: dict[str, Any]
    """feedback.v1."""


@dataclass(frozen=True, slots=True)
class GroupJudgement:
    """What the judge made of a trajectory's group."""

    window_id: str
    scenario_id: str
    judge: str
    judged: bool
    reason: str
    tries: int
    usd: float


@dataclass(frozen=True, slots=True)
class TrainedWith:
    """A job that has a trajectory in its data, and the model that came of it."""

    job_id: str
    revision: int
    """Of the reward that it was trained with."""
    created: datetime | None
    model_id: str | None
    model_state: str | None


@dataclass(frozen=True, slots=True)
class TrajectoryStory:
    """All of it."""

    body: bytes
    rewards: list[RewardRevision] = field(default_factory=list)
    feedback: list[TrajectoryFeedback] = field(default_factory=list)
    judgement: GroupJudgement | None = None
    used_in: list[TrainedWith] = field(default_factory=list)


class TrajectoryReader:
    """Reads; never writes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def story(self, trajectory_id: str) -> tuple[FoundTrajectory, TrajectoryStory] | None:
        """What a list says of it, and all else that is known; None: there is no such trajectory."""

        def story_in_transaction(tx: Tx) -> tuple[FoundTrajectory, TrajectoryStory] | None:
            summary, story = find_trajectory(tx, trajectory_id), _story(tx, trajectory_id)
            return (summary, story) if summary and story else None

        return await self._database.view(story_in_transaction)

    async def feedback(self, wanted: PageWanted) -> tuple[list[TrajectoryFeedback], int | None]:
        """The newest words first, and the row before which the next page begins."""
        page = await self._database.view(lambda tx: _WORDS.read(tx, wanted))
        found = self._database.bad_rows.read_each(_STAGE, "feedback", page.rows, _feedback_from_row)
        return found, page.position


def _story(tx: Tx, trajectory_id: str) -> TrajectoryStory | None:
    row = tx.row(
        "SELECT body, episode_id, window_id, scenario_id FROM trajectories WHERE trajectory_id = ?",
        (trajectory_id,),
    )
    if row is None:
        return None
    body, episode_id, window_id, scenario_id = row
    revisions = tx.rows(
        "SELECT revision, created_us, body FROM rewards WHERE trajectory_id = ? "
        "ORDER BY revision DESC LIMIT ?",
        (trajectory_id, MOST),
    )
    jobs = tx.rows(
        "SELECT o.job_id, o.revision, j.created_us, m.model_id, m.state FROM trained_on o "
        "LEFT JOIN jobs j ON j.job_id = o.job_id LEFT JOIN models m ON m.job_id = o.job_id "
        "WHERE o.trajectory_id = ? ORDER BY j.created_us DESC, o.job_id LIMIT ?",
        (trajectory_id, MOST),
    )
    read_each = tx.bad_rows.read_each
    return TrajectoryStory(
        bytes_of_column(body),
        read_each(_STAGE, "rewards", reversed(revisions), _revision_from_row),
        read_each(
            _STAGE, "feedback", _feedback_rows(tx, trajectory_id, episode_id), _feedback_from_row
        ),
        _judgement(tx, window_id, scenario_id),
        read_each(_STAGE, "trained_on", jobs, _job_from_row),
    )


def _feedback_rows(tx: Tx, trajectory_id: str, episode_id: str | None) -> list[Row]:
    """Those that name the trajectory, and those that name its episode; the oldest first."""
    newest = "ORDER BY seq DESC LIMIT ?"
    rows = tx.rows(f"{_FEEDBACK} WHERE trajectory_id = ? {newest}", (trajectory_id, MOST))
    if episode_id is not None:
        rows += tx.rows(f"{_FEEDBACK} WHERE episode_id = ? {newest}", (episode_id, MOST))
    return sorted(rows, key=lambda row: int(row[0]))[-MOST:]


def _judgement(tx: Tx, window_id: str, scenario_id: str) -> GroupJudgement | None:
    row = tx.row(
        "SELECT window_id, scenario_id, judge, judged, reason, tries, usd FROM judged "
        "WHERE window_id = ? AND scenario_id = ?",
        (window_id, scenario_id),
    )
    if row is None:
        return None
    return GroupJudgement(*(*row[:3], bool(row[3]), *row[4:]))


def _revision_from_row(row: Row) -> RewardRevision:
    return RewardRevision(int(row[0]), from_microseconds(row[1]), bytes_of_column(row[2]))


def _feedback_from_row(row: Row) -> TrajectoryFeedback:
    *about, body = row
    seq, name, trajectory_id, episode_id, stored, user_id, principal = about
    said = from_json(bytes_of_column(body), dict[str, Any])
    return TrajectoryFeedback(
        int(seq),
        name,
        trajectory_id,
        episode_id,
        from_microseconds(stored),
        user_id,
        principal,
        said,
    )


def _job_from_row(row: Row) -> TrainedWith:
    job_id, revision, created, model_id, state = row
    at = from_microseconds(created) if created is not None else None
    return TrainedWith(job_id, int(revision), at, model_id, state)
