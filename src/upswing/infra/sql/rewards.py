"""What was everything worth? Rewards with their revisions, and the past that they are measured by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

from msgspec import UNSET
from msgspec.structs import replace

from upswing.contracts import DeadLetter, Feedback, Reward, decode, encode
from upswing.contracts.dead import PAYLOAD_LIMIT
from upswing.contracts.topics import FEEDBACK, REWARD
from upswing.dataset.groups import group_key
from upswing.errors import Reason
from upswing.infra.dead_letters import BadRows, row_bytes
from upswing.infra.metric_labels import OTHER
from upswing.infra.sql.database import (
    Database,
    Row,
    Tx,
    bytes_of_column,
    check_row_types,
    is_sane,
    verified_bytes_of_column,
)
from upswing.infra.sql.feedback_targets import feedback_targets, has_own_episode
from upswing.infra.sql.moments import first_seq_since
from upswing.infra.sql.practice_tables import EVIDENCE
from upswing.infra.sql.rereading import STEP, reread_outcomes
from upswing.infra.sql.settling import settle_late_components
from upswing.infra.sql.store import insert_dead_letter, insert_outbox_message, to_microseconds
from upswing.principals import Sender, Speaker, Voice, may_speak, most_of_each
from upswing.records import FeedbackRow, NewReward, ScoredFacts, ScoredMember

STAGE, COLLECT = "reward", "collect"
_ALL = 2**31 - 1
_GIVEN_UP = 1000
"""Words in one step."""
_FACTS = (
    "trajectory_seq",
    "trajectory_id",
    "episode_id",
    "agent_id",
    "principal",
    "model",
    "window_id",
    "scenario_id",
    "domain",
    "complexity",
    "turns",
    "seconds",
    "tokens",
    "pnl",
    "balance",
    "infra_error",
    "revision",
    "total",
    "raw_total",
    "verified",
    "reported",
    "feedback",
    "task_id",
    "continuous",
    "answers",
    "key_id",
    "gateway",
)
_INSERT = (
    f"INSERT INTO scored ({', '.join(_FACTS)}) VALUES ({', '.join('?' * len(_FACTS))}) "
    "ON CONFLICT DO NOTHING"
)
MEMBER = (
    "SELECT window_id, scenario_id, trajectory_id, agent_id, total, raw_total, pnl, balance, "
    "infra_error, trajectory_seq, verified, judge_score, reported, feedback, task_id, model, "
    "continuous, answers, domain, key_id FROM scored"
)

_NEWEST_MODELS = "SELECT model_id, base_model FROM models ORDER BY version DESC LIMIT 25"
_LAST_DEPLOYED = (
    "SELECT model_id, base_model FROM models WHERE deployed_us IS NOT NULL "
    "ORDER BY deployed_us DESC LIMIT 20"
)
_NEWEST = (
    f"SELECT principal, raw_total, key_id, model FROM scored WHERE {EVIDENCE} "
    "ORDER BY trajectory_seq DESC LIMIT 10000"
)


@dataclass(frozen=True, slots=True)
class ModelTotals:
    """Raw totals of one model's newest trajectories, with whose they are."""

    model: str
    values: tuple[tuple[Speaker, float], ...]


class Rewards:
    """The store's side of the reward stage. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def publish(self, batch: Sequence[NewReward], *, cursor: int, now: datetime) -> None:
        """Store first revisions, announce them, and remember how far we are; all or nothing."""

        def publish_in_transaction(tx: Tx) -> None:
            for new in batch:
                if _insert_reward(tx, new.reward, now):
                    _insert_scored_trajectory(tx, new)
            _move_cursor(tx, "reward", cursor)

        await self._database.write(publish_in_transaction)

    async def revise(
        self,
        reward: Reward,
        *,
        judge_score: float | None,
        now: datetime,
        feedback: float | None = None,
    ) -> bool:
        """Store and announce the next revision; False when somebody else has.

        The judge's and the users' scores stand beside it; None leaves them as they were.
        """
        about = reward.metadata

        def revise_in_transaction(tx: Tx) -> bool:
            if not _insert_reward(tx, reward, now):
                return False
            tx.execute(
                "UPDATE scored SET revision = ?, total = ?, raw_total = ?, "
                "judge_score = COALESCE(?, judge_score), feedback = COALESCE(?, feedback) "
                "WHERE trajectory_id = ?",
                (
                    about["revision"],
                    reward.total_reward,
                    about["raw_total"],
                    judge_score,
                    feedback,
                    str(reward.trajectory_id),
                ),
            )
            return True

        return await self._database.write(revise_in_transaction)

    async def newest(self, trajectory_id: str) -> Reward | None:
        """The reward that counts."""
        sql = "SELECT body FROM rewards WHERE trajectory_id = ? ORDER BY revision DESC LIMIT 1"
        row = await self._database.read(lambda tx: tx.row(sql, (trajectory_id,)))
        found = (
            []
            if row is None
            else self._database.bad_rows.read_each(
                STAGE, "rewards", [row], _reward_from_row, key=lambda _: trajectory_id
            )
        )
        return found[0] if found else None

    async def settle(self, late: frozenset[str], after: timedelta, *, now: datetime) -> int:
        """Count the `late` components of trajectories that are so old, as they stood then; how many."""
        return await self._database.write(lambda tx: settle_late_components(tx, late, after, now))

    async def reread_outcomes(self, step: int = STEP) -> int:
        """Read what old rows say of their outcome, some at a time; how many there were."""
        return await self._database.write(lambda tx: reread_outcomes(tx, step))

    # ── the past ─────────────────────────────────────────────────────────────────────────────

    async def scores_before(self, seq: int, size: int) -> dict[str, list[float]]:
        """The last raw scores of each component before this trajectory, oldest first."""

        def scores_before_in_transaction(tx: Tx) -> dict[str, list[float]]:
            names = [row[0] for row in tx.rows("SELECT DISTINCT name FROM component_scores")]
            sql = (
                "SELECT score FROM component_scores WHERE name = ? AND trajectory_seq <= ? "
                "ORDER BY trajectory_seq DESC LIMIT ?"
            )
            return {
                name: [
                    row[0] for row in reversed(tx.rows(sql, (name, seq, size))) if is_sane(row[0])
                ]
                for name in names
                if isinstance(name, str)
            }

        return await self._database.read(scores_before_in_transaction)

    async def facts_before(self, seq: int, size: int) -> list[ScoredFacts]:
        """What the last trajectories of each kind took, oldest first."""
        sql = (
            "SELECT domain, complexity, turns, seconds, tokens FROM scored "
            "WHERE domain = ? AND complexity > ? AND complexity <= ? AND trajectory_seq <= ? "
            "AND infra_error = 0 ORDER BY trajectory_seq DESC LIMIT ?"
        )

        def facts_before_in_transaction(tx: Tx) -> list[ScoredFacts]:
            found: list[ScoredFacts] = []
            for (domain,) in tx.rows("SELECT DISTINCT domain FROM scored"):
                for low, high in ((-1.0, 0.33), (0.33, 0.66), (0.66, 1.0)):
                    rows = tx.rows(sql, (domain, low, high, seq, size))
                    found += tx.bad_rows.read_each(STAGE, "scored", reversed(rows), _facts_from_row)
            return found

        return await self._database.read(facts_before_in_transaction)

    # ── what users said ──────────────────────────────────────────────────────────────────────

    async def feedback_for(
        self, targets: Sequence[tuple[str, str | None, str | None]]
    ) -> dict[str, list[Feedback]]:
        """What users said of these (trajectory, episode, owner), as far as they may."""

        def feedback_for_in_transaction(tx: Tx) -> dict[str, list[Feedback]]:
            return {
                trajectory_id: _feedback_on(tx, trajectory_id, episode_id, owner)
                for trajectory_id, episode_id, owner in targets
            }

        return await self._database.read(feedback_for_in_transaction)

    async def feedback_after(self, seq: int, limit: int = 500) -> list[FeedbackRow]:
        """New words in order, with the trajectory each speaks of and whether that is scored."""
        sql = (
            "SELECT f.seq, f.trajectory_id, f.episode_id, f.principal, f.many, f.trusted "
            "FROM feedback f WHERE f.seq > ? ORDER BY f.seq LIMIT ?"
        )

        def feedback_after_in_transaction(tx: Tx) -> list[FeedbackRow]:
            found = []
            for number, trajectory_id, episode_id, principal, many, trusted in tx.rows(
                sql, (seq, limit)
            ):
                targets = feedback_targets(
                    tx, trajectory_id, episode_id, principal, for_others=bool(many or trusted)
                )
                found += [
                    FeedbackRow(number, row[1], row[2], row[3], _is_scored(tx, row[1]), row[0])
                    for row in reversed(targets)
                ] or [FeedbackRow(number, None, None, None, scored=False)]
            return found

        return await self._database.read(feedback_after_in_transaction)

    async def give_up_waiting(self, before: datetime, limit: int, *, now: datetime) -> int:
        """Words whose work never came, the old ones and all beyond `limit`, become dead letters.

        Beyond `limit`, whoever has most of them waiting gives way first: of others' none is lost.
        """
        nowhere = (
            "FROM feedback f WHERE NOT EXISTS (SELECT 1 FROM trajectories t "
            "WHERE t.trajectory_id = f.trajectory_id) AND NOT EXISTS (SELECT 1 FROM scored s "
            "WHERE s.episode_id = f.episode_id)"
        )
        columns = "SELECT f.seq, f.feedback_id, f.body, f.user_id, f.stored_us, f.principal, f.many"
        speaker = "CASE WHEN f.many = 1 THEN COALESCE(f.user_id, '') ELSE '' END"

        def give_up_waiting_in_transaction(tx: Tx) -> int:
            sql = f"{columns} {nowhere} AND f.stored_us < ? ORDER BY f.seq LIMIT {_GIVEN_UP}"
            old = tx.rows(sql, (to_microseconds(before),))
            given_up = {row[0]: row for row in old}
            sql = f"SELECT f.principal, {speaker} AS speaker, COUNT(*) {nowhere} GROUP BY f.principal, speaker"
            waiting = tx.rows(sql)
            share = most_of_each((row[2] for row in waiting), limit)
            sql = (
                f"{columns} {nowhere} AND f.principal = ? AND {speaker} = ? ORDER BY f.seq LIMIT ?"
            )
            for principal, name, count in waiting:
                if (beyond := min(count - share, _GIVEN_UP - len(given_up))) > 0:
                    rows = tx.rows(sql, (principal, name, beyond))
                    given_up |= {row[0]: row for row in rows}
            for row in given_up.values():
                _dead_letter_feedback(tx, row, now)
            return len(given_up)

        return await self._database.write(give_up_waiting_in_transaction)

    # ── comparing ────────────────────────────────────────────────────────────────────────────

    async def members(
        self, since: datetime | None = None, until: datetime | None = None, limit: int = _ALL
    ) -> list[ScoredMember]:
        """What was scored, of the `limit` newest, the oldest first: whole groups of which some was stored in this time."""
        sql = f"{MEMBER} ORDER BY trajectory_seq DESC LIMIT ?"

        def members_in_transaction(tx: Tx) -> list[Row]:
            rows = [*reversed(tx.rows(sql, (limit,)))]
            if since is None and until is None:
                return rows
            low = 0 if since is None else first_seq_since(tx, to_microseconds(since))
            high = 2**62 if until is None else first_seq_since(tx, to_microseconds(until))
            groups = {row[:2] for row in rows if low <= row[9] < high}
            return [row for row in rows if row[:2] in groups]

        rows = await self._database.view(members_in_transaction)
        return members_from_rows(rows, self._database.bad_rows)

    async def group(self, window_id: str, scenario_id: str) -> list[ScoredMember]:
        sql = f"{MEMBER} WHERE window_id = ? AND scenario_id = ? ORDER BY trajectory_seq"
        rows = await self._database.read(lambda tx: tx.rows(sql, (window_id, scenario_id)))
        return members_from_rows(rows, self._database.bad_rows)

    async def model_totals(self, known: Sequence[str] = (), limit: int = 1000) -> list[ModelTotals]:
        """The newest raw totals of each model; faults, evaluations and practice are left out.

        Models are those of the registry, the newest of them, and `known` ones. A trajectory may name any
        other: all those are one model.
        """
        sql = (
            f"SELECT principal, raw_total, key_id FROM scored WHERE model = ? AND {EVIDENCE} "
            "ORDER BY trajectory_seq DESC LIMIT ?"
        )

        def model_totals_in_transaction(tx: Tx) -> list[ModelTotals]:
            registered = [row for sql in (_NEWEST_MODELS, _LAST_DEPLOYED) for row in tx.rows(sql)]
            names = dict.fromkeys((*known, *(name for row in registered for name in row)))
            names.pop(OTHER, None)
            totals = {name: rewards_by_principal(tx.rows(sql, (name, limit))) for name in names}
            newest = tx.rows(_NEWEST)
            totals[OTHER] = rewards_by_principal(
                [row[:3] for row in newest if row[3] not in names][:limit]
            )
            return [ModelTotals(name, values) for name, values in totals.items() if values]

        return await self._database.read(model_totals_in_transaction)


def rewards_by_principal(rows: Iterable[Row]) -> tuple[tuple[Speaker, float], ...]:
    """(principal, raw reward) of rows that hold such; others are no evidence of anything."""
    sane = (row for row in rows if isinstance(row[0], str) and is_sane(row[1]))
    return tuple((Voice(row[0], str(row[2])) if row[2] else row[0], row[1]) for row in sane)


def _insert_reward(tx: Tx, reward: Reward, now: datetime) -> bool:
    body, key, revision = encode(reward), str(reward.trajectory_id), reward.metadata["revision"]
    new = tx.execute(
        "INSERT INTO rewards (trajectory_id, revision, body, created_us) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (key, revision, body, to_microseconds(now)),
    )
    if new:
        insert_outbox_message(tx, REWARD, str(reward.reward_id), ref=key, payload=body)
    return bool(new)


def _insert_scored_trajectory(tx: Tx, new: NewReward) -> None:
    facts, about = new.facts, new.reward.metadata
    tx.execute(
        _INSERT,
        (
            new.trajectory_seq,
            str(new.reward.trajectory_id),
            new.episode_id,
            new.agent_id,
            new.principal,
            about["model"],
            about["window_id"],
            about["scenario_id"],
            facts.domain,
            facts.complexity,
            facts.turns,
            facts.seconds,
            facts.tokens,
            new.pnl,
            new.balance,
            int(new.infra_error),
            about["revision"],
            new.reward.total_reward,
            about["raw_total"],
            new.verified,
            new.reported,
            new.feedback,
            new.task_id,
            int(new.continuous),
            new.answers,
            new.key_id,
            int(new.gateway),
        ),
    )
    if new.infra_error:
        return
    for name, score in new.raw.items():
        tx.execute(
            "INSERT INTO component_scores (name, trajectory_seq, score) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (name, new.trajectory_seq, score),
        )


def _dead_letter_feedback(tx: Tx, row: Row, now: datetime) -> None:
    """A dead letter in the place of a word; tried again, it waits again."""
    seq, feedback_id, body, user_id, stored_us, principal, many = row
    payload = row_bytes(body)
    letter = DeadLetter(
        dead_id=uuid5(NAMESPACE_URL, f"{FEEDBACK} {feedback_id} {stored_us}"),
        timestamp=now,
        subject=FEEDBACK,
        reason=Reason.UNKNOWN_TARGET.value,
        detail="Nobody told of the work that it speaks of while it waited, so it counted nowhere.",
        deliveries=1,
        payload=payload.decode(errors="replace")[:PAYLOAD_LIMIT],
        sha256=sha256(payload).hexdigest(),
    )
    sender = Sender(principal, many=bool(many))
    insert_dead_letter(tx, letter, stage=COLLECT, user_id=user_id, sender=sender, whole=True)
    tx.execute("DELETE FROM feedback WHERE seq = ?", (seq,))


def _move_cursor(tx: Tx, name: str, seq: int) -> None:
    tx.execute(
        "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq",
        (name, seq),
    )


def _feedback_on(
    tx: Tx, trajectory_id: str, episode_id: str | None, owner: str | None
) -> list[Feedback]:
    columns = "SELECT body, user_id, trusted, feedback_id, content_hash, principal, many, trajectory_id FROM feedback"
    sql = f"{columns} WHERE trajectory_id = ?"
    rows = tx.rows(sql, (trajectory_id,))
    if episode_id is not None:
        sql = f"{columns} WHERE episode_id = ?"
        rows += tx.rows(sql, (episode_id,))
    if not rows:
        return []
    key = recorded_by(tx, trajectory_id)
    may = [row for row in rows if _may_give_feedback(row, owner, key)]
    if episode_id is not None:
        meant = {
            row[5]: row[5] == key or not has_own_episode(tx, episode_id, row[5]) for row in may
        }
        may = [row for row in may if row[7] or meant[row[5]]]

    def read_feedback(row: Row) -> Feedback:
        feedback = decode(Feedback, verified_bytes_of_column(row[0], row[4]))
        nobody = feedback.user_id is UNSET and owner is not None and not row[2]
        return (
            replace(feedback, user_id=owner) if nobody else feedback
        )  # it is the user's own key that speaks

    return tx.bad_rows.read_each(
        STAGE, "feedback", may, read_feedback, key=lambda row: row[3], raw=row_bytes
    )


def _may_give_feedback(row: Row, owner: str | None, recorded_by: str) -> bool:
    _, user, trusted, _, _, key, many, _ = row
    return may_speak(
        user, owner, trusted=bool(trusted), key=key, recorded_by=recorded_by, many=bool(many)
    )


def _is_scored(tx: Tx, trajectory_id: str) -> bool:
    sql = "SELECT 1 FROM scored WHERE trajectory_id = ?"
    return tx.row(sql, (trajectory_id,)) is not None


def recorded_by(tx: Tx, trajectory_id: str) -> str:
    """The key that a trajectory came with; empty where nobody knows."""
    row = tx.row("SELECT key_id FROM trajectories WHERE trajectory_id = ?", (trajectory_id,))
    return str(row[0]) if row and row[0] else ""


def _reward_from_row(row: Row) -> Reward:
    reward = decode(Reward, bytes_of_column(row[0]))
    if not is_sane(reward.metadata["raw_total"]):
        raise ValueError("its raw total is no number")
    return reward


def _facts_from_row(row: Row) -> ScoredFacts:
    return check_row_types(ScoredFacts(*row))


def members_from_rows(rows: Iterable[Row], bad_rows: BadRows) -> list[ScoredMember]:
    return bad_rows.read_each(
        STAGE, "scored", rows, _scored_member_from_row, key=lambda row: row[2]
    )


def _scored_member_from_row(row: Row) -> ScoredMember:
    return check_row_types(_scored_member(*row))


def _scored_member(
    window_id: str,
    scenario_id: str,
    trajectory_id: str,
    agent_id: str,
    total: float,
    raw_total: float,
    pnl: float | None,
    balance: float | None,
    broke: int,
    seq: int,
    verified: float | None,
    judged: float | None,
    reported: float | None,
    feedback: float | None,
    task_id: str,
    model: str,
    continuous: int,
    answers: str,
    domain: str,
    key_id: str,
) -> ScoredMember:
    return ScoredMember(
        window_id,
        scenario_id,
        trajectory_id,
        agent_id,
        total,
        raw_total,
        pnl,
        balance,
        bool(broke),
        seq,
        verified,
        judged,
        reported,
        feedback,
        task_id,
        model,
        bool(continuous),
        answers,
        group_key(
            task_id or trajectory_id, model, window_id, scenario_id, continuous=bool(continuous)
        ),
        domain,
        key_id,
    )
