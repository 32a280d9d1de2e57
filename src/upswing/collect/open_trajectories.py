"""What is stored of a trajectory that is still going on? Its start, and its steps so far."""

from __future__ import annotations

from datetime import datetime

from upswing.infra.sql.database import Database, Tx, bytes_of_column
from upswing.infra.sql.store import to_microseconds
from upswing.records import OpenStep, OpenTrajectory, Taken


class OpenTrajectories:
    """Open trajectories and their steps. Every write is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, trajectory_id: str, head: bytes, user_id: str | None, now: datetime
    ) -> Taken:
        """Open it; the same start again is known, another start with this id is a conflict."""

        def begin_in_transaction(tx: Tx) -> Taken:
            new = tx.execute(
                "INSERT INTO open_trajectories (trajectory_id, head, user_id, updated_us) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (trajectory_id, head, user_id, to_microseconds(now)),
            )
            if new:
                return Taken.STORED
            row = tx.row(
                "SELECT head FROM open_trajectories WHERE trajectory_id = ?", (trajectory_id,)
            )
            return Taken.KNOWN if row and bytes_of_column(row[0]) == head else Taken.CONFLICT

        return await self._database.write(begin_in_transaction)

    async def find(self, trajectory_id: str, *, last: int | None = None) -> OpenTrajectory | None:
        """What is known of it; `last` asks for the newest steps only."""

        def find_in_transaction(tx: Tx) -> OpenTrajectory | None:
            head = tx.row(
                "SELECT head, user_id FROM open_trajectories WHERE trajectory_id = ?",
                (trajectory_id,),
            )
            if head is None:
                return None
            sql = "SELECT step, body, raw_hash FROM open_steps WHERE trajectory_id = ? ORDER BY step DESC"
            rows = tx.rows(sql if last is None else f"{sql} LIMIT {int(last)}", (trajectory_id,))
            steps = tuple(
                OpenStep(row[0], bytes_of_column(row[1]), bytes_of_column(row[2]))
                for row in reversed(rows)
            )
            return OpenTrajectory(bytes_of_column(head[0]), steps, head[1])

        return await self._database.write(find_in_transaction)

    async def add(
        self, trajectory_id: str, step: OpenStep, rewritten: tuple[OpenStep, ...], now: datetime
    ) -> Taken:
        """Add a step; `rewritten` replaces earlier ones that turned out to hold part of a secret."""

        def add_in_transaction(tx: Tx) -> Taken:
            row = tx.row(
                "SELECT raw_hash FROM open_steps WHERE trajectory_id = ? AND step = ?",
                (trajectory_id, step.step),
            )
            if row:
                return Taken.KNOWN if bytes_of_column(row[0]) == step.raw_hash else Taken.CONFLICT
            tx.execute(
                "INSERT INTO open_steps (trajectory_id, step, body, raw_hash) VALUES (?, ?, ?, ?)",
                (trajectory_id, step.step, step.body, step.raw_hash),
            )
            for earlier in rewritten:
                tx.execute(
                    "UPDATE open_steps SET body = ? WHERE trajectory_id = ? AND step = ?",
                    (earlier.body, trajectory_id, earlier.step),
                )
            tx.execute(
                "UPDATE open_trajectories SET updated_us = ? WHERE trajectory_id = ?",
                (to_microseconds(now), trajectory_id),
            )
            return Taken.STORED

        taken = await self._database.write(add_in_transaction)
        if rewritten:
            await self._database.scrub()
        return taken

    async def drop(self, trajectory_id: str, head: bytes) -> None:
        """Forget what was stored so far; `head` says what became of it."""

        def drop_in_transaction(tx: Tx) -> None:
            tx.execute("DELETE FROM open_steps WHERE trajectory_id = ?", (trajectory_id,))
            sql = "UPDATE open_trajectories SET head = ? WHERE trajectory_id = ?"
            tx.execute(sql, (head, trajectory_id))

        await self._database.write(drop_in_transaction)
        await self._database.scrub()

    async def close(self, trajectory_id: str) -> None:
        """Forget the steps: the trajectory itself is stored now."""

        def close_in_transaction(tx: Tx) -> None:
            for table in ("open_steps", "open_trajectories"):
                tx.execute(f"DELETE FROM {table} WHERE trajectory_id = ?", (trajectory_id,))

        await self._database.write(close_in_transaction)

    async def stale(self, before: datetime, limit: int = 100) -> list[str]:
        """Trajectories nobody has added to since `before`."""
        sql = "SELECT trajectory_id FROM open_trajectories WHERE updated_us < ? LIMIT ?"
        rows = await self._database.read(lambda tx: tx.rows(sql, (to_microseconds(before), limit)))
        return [row[0] for row in rows]
