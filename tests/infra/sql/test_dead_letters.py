"""How many dead letters can one key leave, and what waits behind them?"""

import random
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from upswing.contracts import DeadLetter
from upswing.infra.sql.dead_tables import PER_HOUR, PER_KEY
from upswing.infra.sql.store import insert_outbox_message, open_in_memory_store
from upswing.principals import NOBODY, Sender

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LOUD, QUIET = Sender("loud", many=False), Sender("quiet", many=False)
REASONS = ("schema", "malformed", "conflict")


def letter(reason="schema", at=NOW):
    return DeadLetter(
        dead_id=uuid.uuid4(),
        timestamp=at,
        subject="/v1/trajectories",
        reason=reason,
        detail="no",
        deliveries=1,
        sha256="0" * 64,
    )


@pytest.fixture
async def store():
    made = open_in_memory_store()
    await made.prepare()
    yield made
    made.close()


@pytest.mark.parametrize("seed", range(5))
async def test_each_refusal_is_a_letter_or_counted_with_one_of_its_key_and_reason(store, seed):
    rng = random.Random(seed)
    sent = Counter()
    for number in range(PER_HOUR * 2):
        sender = rng.choices((LOUD, QUIET, NOBODY), (10, 1, 1))[0]
        reason = rng.choice(REASONS)
        sent[sender.key_id, reason] += 1
        await store.add_dead_letter(
            letter(reason, NOW + timedelta(seconds=number)), stage="collect", sender=sender
        )
    kept = await store.list_dead_letters(limit=100_000)
    told = Counter()
    for each in kept:
        told[each.sender.key_id, each.letter.reason] += 1 + each.more
    assert told == sent
    letters = Counter(each.sender.key_id for each in kept)
    assert letters["loud"] <= PER_HOUR + len(REASONS)
    assert letters["quiet"] + letters[""] == sum(n for (key, _), n in sent.items() if key != "loud")


async def test_another_hour_has_letters_of_its_own(store):
    for hour in range(2):
        for _ in range(PER_HOUR + 5):
            await store.add_dead_letter(
                letter(at=NOW + timedelta(hours=2 * hour)), stage="collect", sender=LOUD
            )
    assert len(await store.list_dead_letters(limit=10_000)) == 2 * PER_HOUR


async def test_letters_wait_behind_everything_else(store):
    for _ in range(300):
        await store.add_dead_letter(letter(), stage="collect")
    await store.database.write(
        lambda tx: insert_outbox_message(tx, "agent.rl.reward.v1", "r1", payload=b"{}")
    )
    first = await store.outbox(256)
    assert first[0].msg_id == "r1"
    assert len(first) == 256


async def test_old_letters_and_those_beyond_a_keys_share_are_deleted(store):
    row = (
        "INSERT INTO dead (dead_id, stage, reason, body, created_us, key_id) "
        "VALUES (?, 'collect', 'schema', ?, ?, ?)"
    )
    us = int(NOW.timestamp() * 1e6)

    def fill(tx):
        for number in range(PER_KEY + 7):
            tx.execute(row, (f"loud-{number}", b"{}", us, "loud"))
        for number in range(3):
            tx.execute(row, (f"quiet-{number}", b"{}", us, "quiet"))
            tx.execute(row, (f"old-{number}", b"{}", us - 10, ""))

    await store.database.write(fill)
    assert await store.prune_dead(NOW) == 7 + 3
    left = await store.database.read(
        lambda tx: dict(tx.rows("SELECT key_id, COUNT(*) FROM dead GROUP BY key_id"))
    )
    assert left == {"loud": PER_KEY, "quiet": 3}
    assert await store.prune_dead(NOW) == 0
