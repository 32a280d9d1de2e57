"""The audit is a chain: whatever somebody does to its rows shows."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from upswing.infra.sql.audit import (
    BEGINNING,
    AuditTrail,
    append_audit,
    audit_entry,
)
from upswing.infra.sql.paging import PageWanted

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEXTS = ("m-1", "", "a\0b", "\ud800 half", "ünï", "x" * 3000, "key op", "' OR 1=1 --")


def entries(count, seed=0):
    chance = random.Random(seed)
    states = (None, {}, {"traffic": {"m": 5}}, [1, "two"], "x")
    return [
        audit_entry(
            f"key {chance.choice(TEXTS)}",
            chance.choice(("traffic", "add-key", "pin")),
            chance.choice(TEXTS),
            NOW + timedelta(seconds=place),
            detail=chance.choice(states),
            before=chance.choice(states),
            after=chance.choice(states),
        )
        for place in range(count)
    ]


async def written(store, count=20, seed=0):
    trail = AuditTrail(store.database)
    for entry in entries(count, seed):
        await store.database.write(lambda tx, e=entry: append_audit(tx, e))
    return trail


async def verified(trail, step=3):
    """The state at the end, some rows at a time."""
    state = BEGINNING
    while not (state.done or state.broken):
        state = await trail.verify(state, limit=step)
    return state


@pytest.mark.parametrize("count", [0, 1, 3, 20])
async def test_what_nobody_touched_holds(store, count):
    trail = await written(store, count)
    state = await verified(trail)
    assert (state.broken, state.done, state.entries) == ("", True, count)
    assert (state.entries, state.hash) == await trail.head()


ATTACKS = {
    "a row is removed": "DELETE FROM audit WHERE seq = {seq}",
    "all after it are removed": "DELETE FROM audit WHERE seq >= {seq}",
    "who": "UPDATE audit SET who = 'somebody else' WHERE seq = {seq}",
    "what": "UPDATE audit SET what = 'nothing' WHERE seq = {seq}",
    "about": "UPDATE audit SET about = about || '.' WHERE seq = {seq}",
    "when": "UPDATE audit SET written_us = written_us + 1 WHERE seq = {seq}",
    "before": "UPDATE audit SET before_state = NULL, after_state = before_state WHERE seq = {seq}",
    "its hash": "UPDATE audit SET hash = 'ab' WHERE seq = {seq}",
    "its link": "UPDATE audit SET prev = 'ab' WHERE seq = {seq}",
    "two change places": "UPDATE audit SET seq = -seq WHERE seq = {seq}",
    "one is added": (
        "INSERT INTO audit (who, what, about, detail, written_us) "
        "SELECT who, what, about, detail, written_us FROM audit WHERE seq = {seq}"
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_whatever_is_done_to_a_row_shows(store, attack):
    """Of every row in turn, so of the first, one in between and the last."""
    for place in (0, 7, 19):
        await store.database.write(lambda tx: tx.execute("DELETE FROM audit"))
        await store.database.write(lambda tx: tx.execute("DELETE FROM audit_head"))
        trail = await written(store, seed=place)
        if attack == "before" and not await has_before(store, place):
            continue
        if attack == "two change places" and (place == 0 or store.database._postgres):
            continue  # the first may be anywhere before the second; PostgreSQL gives the numbers itself
        seqs = await store.database.read(lambda tx: tx.rows("SELECT seq FROM audit ORDER BY seq"))
        sql = ATTACKS[attack].format(seq=seqs[place][0])
        await store.database.write(lambda tx, sql=sql: tx.execute(sql))
        state = await verified(trail)
        assert state.broken.endswith("."), f"{attack} at {place}: {state}"


HEADS = {
    "the head is left": "DELETE FROM audit_head WHERE id = 7",
    "the head is removed": "DELETE FROM audit_head",
    "the head is no head": "UPDATE audit_head SET id = id + 1",
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "attack", ["a row is removed", "all after it are removed", "who", "one is added"]
)
async def test_it_still_shows_when_the_next_action_was_written(store, attack, head):
    """Nobody repairs a broken chain by going on, with or without its head."""
    for place in (1, 7, 19):
        for table in ("audit", "audit_head"):
            await store.database.write(lambda tx, t=table: tx.execute(f"DELETE FROM {t}"))
        trail = await written(store, seed=place)
        seqs = await store.database.read(lambda tx: tx.rows("SELECT seq FROM audit ORDER BY seq"))
        for sql in (ATTACKS[attack].format(seq=seqs[place][0]), HEADS[head]):
            await store.database.write(lambda tx, sql=sql: tx.execute(sql))
        assert (await verified(trail)).broken.endswith("."), f"{attack}, {head}, at {place}"
        for entry in entries(3):
            await store.database.write(lambda tx, e=entry: append_audit(tx, e))
        assert (await verified(trail)).broken.endswith("."), f"{attack}, {head}, at {place}, later"


async def has_before(store, place):
    rows = await store.database.read(
        lambda tx: tx.rows("SELECT before_state FROM audit ORDER BY seq")
    )
    return rows[place][0] is not None


async def test_rows_from_before_the_chain_are_sealed_by_the_first_after_them(store):
    sql = (
        "INSERT INTO audit (who, what, about, detail, written_us) VALUES (?, 'traffic', 'm', ?, 5)"
    )
    for who in ("ann", "bob"):
        await store.database.write(lambda tx, w=who: tx.execute(sql, (w, b"null")))
    trail = AuditTrail(store.database)
    assert (await verified(trail)).broken == "", "nobody has begun a chain"
    await store.database.write(lambda tx: append_audit(tx, entries(1)[0]))
    state = await verified(trail)
    assert (state.broken, state.entries) == ("", 3)
    change = "UPDATE audit SET who = 'eve' WHERE who = 'ann'"
    await store.database.write(lambda tx: tx.execute(change))
    assert (await verified(trail)).broken == "Row 1 was changed after it was written."


async def test_an_older_version_that_writes_beside_the_chain_shows(store):
    trail = await written(store, 2)
    sql = "INSERT INTO audit (who, what, about, detail, written_us) VALUES ('a', 'b', 'c', ?, 5)"
    await store.database.write(lambda tx: tx.execute(sql, (b"null",)))
    assert "no part of the chain" in (await verified(trail)).broken


async def test_a_hash_that_was_noted_is_found_again(store):
    trail = await written(store, 5)
    _, head = await trail.head()
    await store.database.write(lambda tx: append_audit(tx, entries(1)[0]))
    assert await trail.has_hash(head)
    assert not await trail.has_hash("ab")


async def test_pages_of_the_trail_miss_and_double_nothing(store):
    trail = await written(store, 20)
    seen, before = [], None
    while True:
        found, before = await trail.list(PageWanted(3, before, equal={"what": "pin"}))
        seen += [each.seq for each in found]
        await store.database.write(lambda tx: append_audit(tx, entries(1)[0]))
        if before is None:
            break
    sql = "SELECT seq FROM audit WHERE what = 'pin' AND seq <= 20 ORDER BY seq DESC"
    rows = await store.database.read(lambda tx: tx.rows(sql))
    assert seen == [row[0] for row in rows]
