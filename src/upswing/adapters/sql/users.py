"""Who does not want to be recorded, and how is a user's data forgotten?

Erasure is two steps, so that a bus or an archive that is away just now delays it and does not
undo it: one transaction removes the rows and marks every copy elsewhere as doomed; a sweep erases
the doomed copies and unmarks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from upswing.adapters.sql.database import Database, Tx
from upswing.adapters.sql.store import micros, moment

_MINE = "SELECT trajectory_id FROM trajectories WHERE user_id = ?"
_WORDS = f"SELECT feedback_id FROM feedback WHERE user_id = ? OR trajectory_id IN ({_MINE})"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much an erasure removed from the store."""

    trajectories: int
    feedback: int
    dead_letters: int


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

    async def opt_out(self, user_id: str, now: datetime) -> None:
        sql = "INSERT INTO optouts (user_id, since_us) VALUES (?, ?) ON CONFLICT DO NOTHING"
        await self._database.write(lambda tx: tx.execute(sql, (user_id, micros(now))))
        await self.load()

    async def opt_in(self, user_id: str) -> bool:
        sql = "DELETE FROM optouts WHERE user_id = ?"
        changed = await self._database.write(lambda tx: tx.execute(sql, (user_id,)))
        await self.load()
        return changed > 0

    async def erase(self, user_id: str, now: datetime) -> Forgotten:
        """Remove everything of a user from the store; what lies elsewhere is doomed."""

        def unit(tx: Tx) -> Forgotten:
            dead = _dead_of(tx, user_id)
            for refs, params in ((_MINE, (user_id,)), (_WORDS, (user_id, user_id))):
                tx.execute(f"UPDATE carried SET doomed = 1 WHERE ref IN ({refs})", params)
                tx.execute(f"DELETE FROM outbox WHERE ref IN ({refs})", params)
            for dead_id in dead:
                tx.execute("UPDATE carried SET doomed = 1 WHERE ref = ?", (dead_id,))
                tx.execute("DELETE FROM outbox WHERE ref = ?", (dead_id,))
                tx.execute("DELETE FROM dead WHERE dead_id = ?", (dead_id,))
            tx.execute(
                "INSERT INTO erased (trajectory_id, erased_us, stored_us, archived) "
                "SELECT trajectory_id, ?, stored_us, 1 FROM trajectories WHERE user_id = ? "
                "ON CONFLICT DO NOTHING",
                (micros(now), user_id),
            )
            words = tx.execute(
                f"DELETE FROM feedback WHERE feedback_id IN ({_WORDS})", (user_id, user_id)
            )
            mine = tx.execute("DELETE FROM trajectories WHERE user_id = ?", (user_id,))
            return Forgotten(mine, words, len(dead))

        forgotten = await self._database.write(unit)
        await self._database.scrub()
        return forgotten

    async def doomed(self, limit: int = 1000) -> list[tuple[str, int]]:
        """Stream messages that wait to be erased: (stream, sequence)."""
        sql = "SELECT stream, stream_seq FROM carried WHERE doomed = 1 LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return [(row[0], row[1]) for row in rows]

    async def gone(self, messages: Sequence[tuple[str, int]]) -> None:
        """These messages are erased."""

        def unit(tx: Tx) -> None:
            for stream, seq in messages:
                tx.execute("DELETE FROM carried WHERE stream = ? AND stream_seq = ?", (stream, seq))

        await self._database.write(unit)

    async def archived_copies(self, limit: int = 1000) -> list[ArchivedCopy]:
        """Erased trajectories whose archive has not been cleaned yet."""
        sql = "SELECT trajectory_id, stored_us FROM erased WHERE archived = 1 LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (limit,)))
        return [ArchivedCopy(row[0], moment(row[1])) for row in rows]

    async def unarchived(self, copies: Sequence[ArchivedCopy]) -> None:
        """The archive is clean of these."""

        def unit(tx: Tx) -> None:
            for copy in copies:
                tx.execute(
                    "UPDATE erased SET archived = 0 WHERE trajectory_id = ?", (copy.trajectory_id,)
                )

        await self._database.write(unit)


def _dead_of(tx: Tx, user_id: str) -> list[str]:
    """Dead letters that name the user."""
    sql = (
        "SELECT dead_id FROM dead WHERE position(?::bytea in body) > 0"
        if tx.postgres
        else "SELECT dead_id FROM dead WHERE instr(body, ?) > 0"
    )
    return [row[0] for row in tx.rows(sql, (user_id.encode(),))]
