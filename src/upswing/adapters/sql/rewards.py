"""What was everything worth? Rewards with their revisions, and the past that they are measured by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

from msgspec import UNSET
from msgspec.structs import replace

from upswing.adapters.sql.database import Database, Row, Tx, blob, blob_of, checked, is_sane
from upswing.adapters.sql.practice_tables import EVIDENCE
from upswing.adapters.sql.rereading import STEP, reread
from upswing.adapters.sql.settling import settle
from upswing.adapters.sql.store import bury, micros, post
from upswing.aside import Aside, bytes_of
from upswing.contracts import DeadLetter, Feedback, Reward, decode, encode
from upswing.contracts.dead import PAYLOAD_LIMIT
from upswing.contracts.topics import FEEDBACK, REWARD
from upswing.dataset.groups import group_key
from upswing.errors import Reason
from upswing.labels import OTHER
from upswing.ports import NewReward, ScoredFacts, ScoredMember, SpokenWord
from upswing.senders import Speaker, Voice, may_speak

STAGE, COLLECT = "reward", "collect"
_GIVEN_UP = 1000
"""Words in one step."""
_FACTS = (
    "trajectory_seq", "trajectory_id", "episode_id", "agent_id", "principal", "model", "window_id",
    "scenario_id", "domain", "complexity", "turns", "seconds", "tokens", "pnl", "balance",
    "infra_error", "revision", "total", "raw_total", "verified", "reported", "feedback",
    "task_id", "continuous", "answers", "key_id",
)  # fmt: skip
_INSERT = (
    f"INSERT INTO scored ({', '.join(_FACTS)}) VALUES ({', '.join('?' * len(_FACTS))}) "
    "ON CONFLICT DO NOTHING"
)
MEMBER = (
    "SELECT window_id, scenario_id, trajectory_id, agent_id, total, raw_total, pnl, balance, "
    "infra_error, trajectory_seq, verified, judge_score, reported, feedback, task_id, model, "
    "continuous, answers, domain FROM scored"
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

        def unit(tx: Tx) -> None:
            for new in batch:
                if _insert(tx, new.reward, now):
                    _remember(tx, new)
            _move(tx, "reward", cursor)

        await self._database.write(unit)

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

        def unit(tx: Tx) -> bool:
            if not _insert(tx, reward, now):
                return False
            tx.execute(
                "UPDATE scored SET revision = ?, total = ?, raw_total = ?, "
                "judge_score = COALESCE(?, judge_score), feedback = COALESCE(?, feedback) "
                "WHERE trajectory_id = ?",
                (about["revision"], reward.total_reward, about["raw_total"], judge_score, feedback, str(reward.trajectory_id)),
            )  # fmt: skip
            return True

        return await self._database.write(unit)

    async def newest(self, trajectory_id: str) -> Reward | None:
        """The reward that counts."""
        sql = "SELECT body FROM rewards WHERE trajectory_id = ? ORDER BY revision DESC LIMIT 1"
        row = await self._database.read(lambda tx: tx.row(sql, (trajectory_id,)))
        found = [] if row is None else self._database.aside.sound(
            STAGE, "rewards", [row], _reward, key=lambda _: trajectory_id
        )  # fmt: skip
        return found[0] if found else None

    async def settle(self, late: frozenset[str], after: timedelta, *, now: datetime) -> int:
        """Count the `late` components of trajectories that are so old, as they stood then; how many."""
        return await self._database.write(lambda tx: settle(tx, late, after, now))

    async def reread(self, step: int = STEP) -> int:
        """Read what old rows say of their outcome, some at a time; how many there were."""
        return await self._database.write(lambda tx: reread(tx, step))

    # ── the past ─────────────────────────────────────────────────────────────────────────────

    async def scores_before(self, seq: int, size: int) -> dict[str, list[float]]:
        """The last raw scores of each component before this trajectory, oldest first."""

        def unit(tx: Tx) -> dict[str, list[float]]:
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

        return await self._database.read(unit)

    async def facts_before(self, seq: int, size: int) -> list[ScoredFacts]:
        """What the last trajectories of each kind took, oldest first."""
        sql = (
            "SELECT domain, complexity, turns, seconds, tokens FROM scored "
            "WHERE domain = ? AND complexity > ? AND complexity <= ? AND trajectory_seq <= ? "
            "AND infra_error = 0 ORDER BY trajectory_seq DESC LIMIT ?"
        )

        def unit(tx: Tx) -> list[ScoredFacts]:
            found: list[ScoredFacts] = []
            for (domain,) in tx.rows("SELECT DISTINCT domain FROM scored"):
                for low, high in ((-1.0, 0.33), (0.33, 0.66), (0.66, 1.0)):
                    rows = tx.rows(sql, (domain, low, high, seq, size))
                    found += tx.aside.sound(STAGE, "scored", reversed(rows), _facts)
            return found

        return await self._database.read(unit)

    # ── what users said ──────────────────────────────────────────────────────────────────────

    async def words_for(
        self, targets: Sequence[tuple[str, str | None, str | None]]
    ) -> dict[str, list[Feedback]]:
        """What users said of these (trajectory, episode, owner), as far as they may."""

        def unit(tx: Tx) -> dict[str, list[Feedback]]:
            return {
                trajectory_id: _words(tx, trajectory_id, episode_id, owner)
                for trajectory_id, episode_id, owner in targets
            }

        return await self._database.read(unit)

    async def words_after(self, seq: int, limit: int = 500) -> list[SpokenWord]:
        """New words in order, with the trajectory each speaks of and whether that is scored."""
        sql = (
            "SELECT f.seq, t.trajectory_id, t.episode_id, t.user_id, s.trajectory_id FROM feedback f "
            "LEFT JOIN trajectories t ON t.trajectory_id = f.trajectory_id "
            "OR (f.trajectory_id IS NULL AND t.episode_id = f.episode_id) "
            "LEFT JOIN scored s ON s.trajectory_id = t.trajectory_id "
            "WHERE f.seq > ? ORDER BY f.seq LIMIT ?"
        )
        rows = await self._database.read(lambda tx: tx.rows(sql, (seq, limit)))
        return [SpokenWord(row[0], row[1], row[2], row[3], row[4] is not None) for row in rows]

    async def give_up_waiting(self, before: datetime, most: int, *, now: datetime) -> int:
        """Words whose work never came, the old ones and all beyond `most`, become dead letters."""
        nowhere = (
            "FROM feedback f WHERE NOT EXISTS (SELECT 1 FROM trajectories t "
            "WHERE t.trajectory_id = f.trajectory_id) AND NOT EXISTS (SELECT 1 FROM scored s "
            "WHERE s.episode_id = f.episode_id)"
        )
        columns = "SELECT f.seq, f.feedback_id, f.body, f.user_id, f.stored_us"

        def unit(tx: Tx) -> int:
            sql = f"{columns} {nowhere} AND f.stored_us < ? ORDER BY f.seq LIMIT {_GIVEN_UP}"
            old = tx.rows(sql, (micros(before),))
            sql = f"{columns} {nowhere} ORDER BY f.seq DESC LIMIT {_GIVEN_UP} OFFSET {int(most)}"
            given_up = {row[0]: row for row in (*old, *tx.rows(sql))}
            for row in given_up.values():
                _bury_word(tx, row, now)
            return len(given_up)

        return await self._database.write(unit)

    # ── comparing ────────────────────────────────────────────────────────────────────────────

    async def members(self, since: str = "") -> list[ScoredMember]:
        """Everything scored in windows from `since` on."""
        sql = f"{MEMBER} WHERE window_id >= ? ORDER BY trajectory_seq"
        rows = await self._database.read(lambda tx: tx.rows(sql, (since,)))
        return members_of(rows, self._database.aside)

    async def group(self, window_id: str, scenario_id: str) -> list[ScoredMember]:
        sql = f"{MEMBER} WHERE window_id = ? AND scenario_id = ? ORDER BY trajectory_seq"
        rows = await self._database.read(lambda tx: tx.rows(sql, (window_id, scenario_id)))
        return members_of(rows, self._database.aside)

    async def model_totals(self, known: Sequence[str] = (), most: int = 1000) -> list[ModelTotals]:
        """The newest raw totals of each model; faults, evaluations and practice are left out.

        Models are those of the registry, the newest of them, and `known` ones. A trajectory may name any
        other: all those are one model.
        """
        sql = (
            f"SELECT principal, raw_total, key_id FROM scored WHERE model = ? AND {EVIDENCE} "
            "ORDER BY trajectory_seq DESC LIMIT ?"
        )

        def unit(tx: Tx) -> list[ModelTotals]:
            registered = [
                row for asked in (_NEWEST_MODELS, _LAST_DEPLOYED) for row in tx.rows(asked)
            ]
            names = dict.fromkeys((*known, *(name for row in registered for name in row)))
            names.pop(OTHER, None)
            totals = {name: earned_of(tx.rows(sql, (name, most))) for name in names}
            newest = tx.rows(_NEWEST)
            totals[OTHER] = earned_of([row[:3] for row in newest if row[3] not in names][:most])
            return [ModelTotals(name, values) for name, values in totals.items() if values]

        return await self._database.read(unit)


def earned_of(rows: Iterable[Row]) -> tuple[tuple[Speaker, float], ...]:
    """(principal, raw reward) of rows that hold such; others are no evidence of anything."""
    sane = (row for row in rows if isinstance(row[0], str) and is_sane(row[1]))
    return tuple((Voice(row[0], str(row[2])) if row[2] else row[0], row[1]) for row in sane)


def _insert(tx: Tx, reward: Reward, now: datetime) -> bool:
    body, key, revision = encode(reward), str(reward.trajectory_id), reward.metadata["revision"]
    new = tx.execute(
        "INSERT INTO rewards (trajectory_id, revision, body, created_us) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (key, revision, body, micros(now)),
    )
    if new:
        post(tx, REWARD, str(reward.reward_id), ref=key, payload=body)
    return bool(new)


def _remember(tx: Tx, new: NewReward) -> None:
    facts, about = new.facts, new.reward.metadata
    tx.execute(
        _INSERT,
        (
            new.trajectory_seq, str(new.reward.trajectory_id), new.episode_id, new.agent_id,
            new.principal, about["model"], about["window_id"], about["scenario_id"], facts.domain,
            facts.complexity, facts.turns, facts.seconds, facts.tokens, new.pnl, new.balance,
            int(new.infra_error), about["revision"], new.reward.total_reward, about["raw_total"],
            new.verified, new.reported, new.feedback, new.task_id, int(new.continuous), new.answers,
            new.key_id,
        ),
    )  # fmt: skip
    if new.infra_error:
        return
    for name, score in new.raw.items():
        tx.execute(
            "INSERT INTO component_scores (name, trajectory_seq, score) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (name, new.trajectory_seq, score),
        )


def _bury_word(tx: Tx, row: Row, now: datetime) -> None:
    """A dead letter in the place of a word; tried again, it waits again."""
    seq, feedback_id, body, user_id, stored_us = row
    payload = bytes_of(body)
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
    bury(tx, letter, stage=COLLECT, user_id=user_id)
    tx.execute("DELETE FROM feedback WHERE seq = ?", (seq,))


def _move(tx: Tx, name: str, seq: int) -> None:
    tx.execute(
        "INSERT INTO cursors (name, seq) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET seq = excluded.seq",
        (name, seq),
    )


def _words(tx: Tx, trajectory_id: str, episode_id: str | None, owner: str | None) -> list[Feedback]:
    columns = (
        "SELECT body, user_id, trusted, feedback_id, content_hash, principal, many FROM feedback"
    )
    sql = f"{columns} WHERE trajectory_id = ?"
    rows = tx.rows(sql, (trajectory_id,))
    if episode_id is not None:
        sql = f"{columns} WHERE episode_id = ?"
        rows += tx.rows(sql, (episode_id,))
    if not rows:
        return []
    key = recorded_by(tx, trajectory_id)
    may = [row for row in rows if _may_speak(row, owner, key)]

    def word(row: Row) -> Feedback:
        said = decode(Feedback, blob_of(row[0], row[4]))
        nobody = said.user_id is UNSET and owner is not None and not row[2]
        return (
            replace(said, user_id=owner) if nobody else said
        )  # it is the user's own key that speaks

    return tx.aside.sound(STAGE, "feedback", may, word, key=lambda row: row[3], raw=bytes_of)


def _may_speak(word: Row, owner: str | None, recorded_by: str) -> bool:
    _, user, trusted, _, _, key, many = word
    return may_speak(
        user, owner, trusted=bool(trusted), key=key, recorded_by=recorded_by, many=bool(many)
    )


def recorded_by(tx: Tx, trajectory_id: str) -> str:
    """The key that a trajectory came with; empty where nobody knows."""
    row = tx.row("SELECT key_id FROM trajectories WHERE trajectory_id = ?", (trajectory_id,))
    return str(row[0]) if row and row[0] else ""


def _reward(row: Row) -> Reward:
    reward = decode(Reward, blob(row[0]))
    if not is_sane(reward.metadata["raw_total"]):
        raise ValueError("its raw total is no number")
    return reward


def _facts(row: Row) -> ScoredFacts:
    return checked(ScoredFacts(*row))


def members_of(rows: Iterable[Row], aside: Aside) -> list[ScoredMember]:
    return aside.sound(STAGE, "scored", rows, _scored, key=lambda row: row[2])


def _scored(row: Row) -> ScoredMember:
    return checked(_member(*row))


def _member(
    window_id: str, scenario_id: str, trajectory_id: str, agent_id: str, total: float, raw_total: float,
    pnl: float | None, balance: float | None, broke: int, seq: int, verified: float | None,
    judged: float | None, reported: float | None, feedback: float | None, task_id: str, model: str,
    continuous: int, answers: str, domain: str,
) -> ScoredMember:  # fmt: skip
    return ScoredMember(
        window_id, scenario_id, trajectory_id, agent_id, total, raw_total, pnl, balance, bool(broke),
        seq, verified, judged, reported, feedback, task_id, model, bool(continuous), answers,
        group_key(
            task_id or trajectory_id, model, window_id, scenario_id, continuous=bool(continuous)
        ),
        domain,
    )  # fmt: skip
