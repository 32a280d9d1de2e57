"""Which messages were in hand when their taker died? Marks, committed before and removed after.

| count | the mark was left by                                                     |
|-------|--------------------------------------------------------------------------|
| 0     | the taker of a batch: one of them may have killed it, or none            |
| n     | n takers that had this message alone in hand (and maybe one of a batch)  |
"""

from __future__ import annotations

from collections.abc import Sequence

from upswing.infra.sql.database import Database, Tx


class Attempts:
    """Deliveries that began and have not ended."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def begun_attempts(self, stream: str, seqs: Sequence[int]) -> dict[int, int]:
        """Marks that were left of these messages: number and count."""
        sql = f"SELECT stream_seq, count FROM attempts WHERE stream = ? AND {_sequence_condition(seqs)}"
        found = await self.database.read(lambda tx: tx.rows(sql, (stream, *seqs)))
        return {int(seq): int(count) for seq, count in found}

    async def begin_together(self, stream: str, seqs: Sequence[int]) -> None:
        """Mark a batch in one commit; a count that is there stays."""
        sql = (
            "INSERT INTO attempts (stream, stream_seq, count) VALUES (?, ?, 0) "
            "ON CONFLICT (stream, stream_seq) DO NOTHING"
        )

        def begin_together_in_transaction(tx: Tx) -> None:
            for seq in seqs:
                tx.execute(sql, (stream, seq))

        await self.database.write(begin_together_in_transaction)

    async def begin_attempt(self, stream: str, seq: int) -> int:
        """Mark a message that is taken alone; how many began so before and never ended."""

        def begin_attempt_in_transaction(tx: Tx) -> int:
            tx.execute(
                "INSERT INTO attempts (stream, stream_seq, count) VALUES (?, ?, 1) "
                "ON CONFLICT (stream, stream_seq) DO UPDATE SET count = attempts.count + 1",
                (stream, seq),
            )
            row = tx.row(
                "SELECT count FROM attempts WHERE stream = ? AND stream_seq = ?", (stream, seq)
            )
            return int(row[0]) - 1 if row else 0

        return await self.database.write(begin_attempt_in_transaction)

    async def spare_attempt(self, stream: str, seq: int) -> None:
        """The one that began last was survived: it counts no more, those before it do."""
        sql = "UPDATE attempts SET count = count - 1 WHERE stream = ? AND stream_seq = ? AND count > 0"
        await self.database.write(lambda tx: tx.execute(sql, (stream, seq)))

    async def end_attempts(self, stream: str, seqs: Sequence[int]) -> None:
        """Remove the marks of these messages in one commit."""
        sql = f"DELETE FROM attempts WHERE stream = ? AND {_sequence_condition(seqs)}"
        await self.database.write(lambda tx: tx.execute(sql, (stream, *seqs)))

    async def end_attempt(self, stream: str, seq: int) -> None:
        await self.end_attempts(stream, [seq])


def _sequence_condition(seqs: Sequence[int]) -> str:
    return f"stream_seq IN ({', '.join('?' * len(seqs))})"
