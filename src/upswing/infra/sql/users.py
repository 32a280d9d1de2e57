"""Who does not want to be recorded, and how is a user's data forgotten?

Erasure is two steps, so that a bus or an archive that is away just now delays it and does not
undo it: one transaction removes the rows and marks every copy elsewhere as doomed; a sweep erases
the doomed copies and unmarks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from upswing.infra.sql.audit import append_audit, log_audit
from upswing.infra.sql.database import Database, Tx, check_row_types
from upswing.infra.sql.datasets import JOBS_THAT_SEE, MODELS_THAT_SAW
from upswing.infra.sql.store import from_microseconds, to_microseconds
from upswing.records import AuditEntry

_MINE = "SELECT trajectory_id FROM trajectories WHERE user_id = ?"
_FEEDBACK = f"SELECT feedback_id FROM feedback WHERE user_id = ? OR trajectory_id IN ({_MINE})"

_DEAD = "SELECT dead_id FROM dead WHERE user_id = ?"
_OPEN = "SELECT trajectory_id FROM open_trajectories WHERE user_id = ?"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much an erasure removed from the store."""

    trajectories: int
    feedback: int
    dead_letters: int
    models_that_saw: tuple[str, ...] = ()
    """Models that were trained on some of it, and those that began as one of them."""
    jobs_that_see: tuple[str, ...] = ()
    """Jobs that are not over and have some of it in their data."""


@dataclass(frozen=True, slots=True)
class ArchivedCopy:
    """An erased trajectory whose copy may lie in the archive of that hour."""

    trajectory_id: str
    stored: datetime


class Users:
    """Opt-outs, with a copy in memory, and erasure."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._optouts: frozenset[str] = frozenset()

    async def load(self) -> None:
        """Read the opt-outs anew; another process may have changed them."""
        rows = await self._database.read(lambda tx: tx.rows("SELECT user_id FROM optouts"))
        self._optouts = frozenset(row[0] for row in rows)

    def opted_out(self, user_id: str | None) -> bool:
        return user_id is not None and user_id in self._optouts

    async def opt_out(self, user_id: str, now: datetime, audit: AuditEntry | None = None) -> None:
        sql = "INSERT INTO optouts (user_id, since_us) VALUES (?, ?) ON CONFLICT DO NOTHING"
        await self._change_optouts(sql, (user_id, to_microseconds(now)), audit)

    async def opt_in(self, user_id: str, audit: AuditEntry | None = None) -> bool:
        return await self._change_optouts(
            "DELETE FROM optouts WHERE user_id = ?", (user_id,), audit
        )

    async def _change_optouts(
        self, sql: str, params: tuple[object, ...], audit: AuditEntry | None
    ) -> bool:
        """Whether it changed anything; somebody wanted it either way."""

        def change_in_transaction(tx: Tx) -> tuple[bool, str]:
            changed = tx.execute(sql, params) > 0
            return changed, append_audit(tx, audit) if audit is not None else ""

        changed, digest = await self._database.write(change_in_transaction)
        await self.load()
        if audit is not None:
            log_audit(audit, digest)
        return changed

    async def optouts(self, after: str = "", limit: int = 100) -> list[tuple[str, datetime]]:
        """Who is not recorded, and since when, in the order of their names."""
        sql = "SELECT user_id, since_us FROM optouts WHERE user_id > ? ORDER BY user_id LIMIT ?"
        rows = await self._database.view(lambda tx: tx.rows(sql, (after, limit)))
        return self._database.bad_rows.read_each(
            "users", "optouts", rows, lambda row: (str(row[0]), from_microseconds(row[1]))
        )

    async def erase(
        self,
        user_id: str,
        now: datetime,
        audit: Callable[[Forgotten], AuditEntry] | None = None,
    ) -> Forgotten:
        """Remove everything of a user from the store; what lies elsewhere is doomed.

        Which trajectories a model was trained on stays known, by their ids alone.
        """

        def erase_in_transaction(tx: Tx) -> tuple[Forgotten, AuditEntry | None, str]:
            models = tx.rows(MODELS_THAT_SAW.format(ids=_MINE), (user_id,))
            jobs = tx.rows(JOBS_THAT_SEE.format(ids=_MINE), (user_id,))
            for refs, params in (
                (_MINE, (user_id,)),
                (_FEEDBACK, (user_id, user_id)),
                (_DEAD, (user_id,)),
            ):
                tx.execute(f"UPDATE carried SET doomed = 1 WHERE ref IN ({refs})", params)
                tx.execute(f"DELETE FROM outbox WHERE ref IN ({refs})", params)
            erased = (
                "INSERT INTO erased (ref, erased_us, stored_us, archived) "
                "SELECT {key}, ?, stored_us, {archived} FROM {table} WHERE {key} IN ({refs}) "
                "ON CONFLICT DO NOTHING"
            )
            for table, key, refs, params, archived in (
                ("trajectories", "trajectory_id", _MINE, (user_id,), 1),
                ("feedback", "feedback_id", _FEEDBACK, (user_id, user_id), 0),
            ):
                sql = erased.format(table=table, key=key, refs=refs, archived=archived)
                tx.execute(sql, (to_microseconds(now), *params))
            seqs = "SELECT seq FROM trajectories WHERE user_id = ?"
            for table, rows in (("component_scores", seqs), ("scored", seqs), ("rewards", _MINE)):
                key = "trajectory_id" if table == "rewards" else "trajectory_seq"
                tx.execute(f"DELETE FROM {table} WHERE {key} IN ({rows})", (user_id,))
            tx.execute(f"DELETE FROM judged WHERE scenario_id IN ({_MINE})", (user_id,))
            feedbacks = tx.execute(
                f"DELETE FROM feedback WHERE feedback_id IN ({_FEEDBACK})", (user_id, user_id)
            )
            dead = tx.execute("DELETE FROM dead WHERE user_id = ?", (user_id,))
            mine = tx.execute("DELETE FROM trajectories WHERE user_id = ?", (user_id,))
            tx.execute(f"DELETE FROM open_steps WHERE trajectory_id IN ({_OPEN})", (user_id,))
            begun = tx.execute("DELETE FROM open_trajectories WHERE user_id = ?", (user_id,))
            forgotten = Forgotten(
                mine + begun,
                feedbacks,
                dead,
                tuple(row[0] for row in models),
                tuple(row[0] for row in jobs),
            )
            entry = audit(forgotten) if audit is not None else None
            return forgotten, entry, append_audit(tx, entry) if entry is not None else ""

        forgotten, entry, digest = await self._database.write(erase_in_transaction)
        await self._database.scrub()
        if entry is not None:
            log_audit(entry, digest)
        return forgotten

    async def messages_to_erase(self, limit: int = 1000) -> list[tuple[str, int]]:
        """Stream messages that wait to be erased: (stream, sequence)."""
        sql = "SELECT stream, stream_seq FROM carried WHERE doomed = 1 LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return [
            (row[0], row[1]) for row in rows if isinstance(row[0], str) and isinstance(row[1], int)
        ]

    async def mark_messages_erased(self, messages: Sequence[tuple[str, int]]) -> None:
        """These messages are erased."""

        def gone_in_transaction(tx: Tx) -> None:
            for stream, seq in messages:
                tx.execute("DELETE FROM carried WHERE stream = ? AND stream_seq = ?", (stream, seq))

        await self._database.write(gone_in_transaction)

    async def archived_copies(self, limit: int = 1000) -> list[ArchivedCopy]:
        """Erased trajectories whose archive has not been cleaned yet."""
        sql = "SELECT ref, stored_us FROM erased WHERE archived = 1 LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return self._database.bad_rows.read_each(
            "upkeep",
            "erased",
            rows,
            lambda row: check_row_types(ArchivedCopy(row[0], from_microseconds(row[1]))),
        )

    async def mark_copies_erased(self, copies: Sequence[ArchivedCopy]) -> None:
        """The archive is clean of these."""

        def unarchived_in_transaction(tx: Tx) -> None:
            for copy in copies:
                tx.execute("UPDATE erased SET archived = 0 WHERE ref = ?", (copy.trajectory_id,))

        await self._database.write(unarchived_in_transaction)
