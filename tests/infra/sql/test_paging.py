"""Every list gives every row once, however small its pages and its span are, while rows come in and go."""

import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from upswing.infra.sql.decisions import Decisions, insert_decision
from upswing.infra.sql.paging import PageWanted, TableList
from upswing.infra.sql.store import to_microseconds
from upswing.records import Decision

NOW = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)


class Journal:
    def __init__(self, store, seed):
        self.store, self.chance, self.now = store, random.Random(seed), NOW
        self.rows = []

    async def add(self, count):
        for _ in range(count):
            self.now += timedelta(seconds=self.chance.randint(0, 2))
            made = Decision(
                str(uuid.uuid4()),
                self.chance.choice(("trigger", "deploy")),
                self.chance.choice(("hold", "wait")),
                "So it is.",
                b"{}",
                b"{}",
                self.now,
            )
            await self.store.database.write(lambda tx, d=made: insert_decision(tx, d))
            self.rows.append(made)

    async def lose(self, count):
        """As a repair may leave it."""
        sql = "DELETE FROM decisions WHERE decision_id = ?"
        for _ in range(count):
            gone = self.rows.pop(self.chance.randrange(len(self.rows)))
            await self.store.database.write(lambda tx, g=gone: tx.execute(sql, (g.decision_id,)))


@pytest.mark.parametrize("seed", range(3))
async def test_every_row_is_given_once(store, seed):
    journal = Journal(store, seed)
    await journal.add(40)
    await journal.lose(15)
    for _ in range(15):
        chance = journal.chance
        listing = TableList(
            "decisions",
            "decision_id",
            "decided_us",
            indexed=("stage",),
            span=chance.choice((1, 4, 1000)),
        )
        equal = {
            "stage": chance.choice((None, "trigger", "deploy", "train")),
            "kind": chance.choice((None, "hold")),
        }
        since, until = (
            chance.choice((None, chance.choice(journal.rows).decided)) for _ in range(2)
        )
        expected = [
            row.decision_id
            for row in reversed(journal.rows)
            if all(value in {None, getattr(row, name)} for name, value in equal.items())
            and (since is None or row.decided >= since)
            and (until is None or row.decided < until)
        ]
        found, before = [], None
        while True:
            wanted = PageWanted(chance.choice((1, 3, 50)), before, since, until, equal)
            page = await store.database.view(lambda tx, w=wanted, li=listing: li.read(tx, w))
            found += [row[1] for row in page.rows]
            if (before := page.position) is None:
                break
            if len(journal.rows) < 60:
                await journal.add(1)
        assert found == expected, (equal, since, until)


async def test_the_journal_is_read_by_pages(store):
    journal = Journal(store, 9)
    await journal.add(7)
    found, position = await Decisions(store.database).page(PageWanted(5))
    assert [each.decision_id for each in found] == [
        each.decision_id for each in reversed(journal.rows[2:])
    ]
    rest, end = await Decisions(store.database).page(PageWanted(5, position))
    assert (len(rest), end) == (2, None)
    assert to_microseconds(found[0].decided) == to_microseconds(journal.rows[-1].decided)
