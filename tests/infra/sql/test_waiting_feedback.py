"""Feedback on work that nobody has told of yet: whose gives way when too much of it waits?"""

import random
import uuid
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support import raw
from upswing.collect.core.admit import AdmissionLimits, admit_feedback
from upswing.contracts import Feedback
from upswing.contracts.examples import EXAMPLES
from upswing.infra.sql.rewards import Rewards
from upswing.principals import fair_newest
from upswing.redact import Redactor

NOW = datetime(2026, 3, 1, tzinfo=UTC)
MOST = 40


async def speak(store, principal, user=None, *, many=False):
    said = EXAMPLES[Feedback] | {
        "feedback_id": str(uuid.uuid4()),
        "trajectory_id": str(uuid.uuid4()),
        "user_id": user or "u",
    }
    word, _ = admit_feedback(raw(said), Redactor(), AdmissionLimits())
    word = replace(word, principal=principal, many=many)
    await store.take_feedback(word, now=NOW, announce=False)


async def waiting(store):
    sql = "SELECT principal, user_id, COUNT(*) FROM feedback GROUP BY principal, user_id"
    return {(row[0], row[1]): row[2] for row in await store.database.read(lambda tx: tx.rows(sql))}


@pytest.mark.parametrize("seed", range(4))
async def test_whoever_has_most_waiting_gives_way_first(store, seed):
    rng = random.Random(seed)
    speakers = [("troll", "u", False), ("ann", "u", False), ("bob", "u", False)]
    speakers += [("gateway", f"u{number}", True) for number in range(5)]
    said = rng.choices(speakers, [60, 3, 3, 1, 1, 1, 1, 1], k=100)
    for principal, user, many in said:
        await speak(store, principal, user, many=many)
    before = Counter((principal, user) for principal, user, _ in said)
    rewards = Rewards(store.database)
    while await rewards.give_up_waiting(NOW - timedelta(days=30), MOST, now=NOW):
        pass
    left = await waiting(store)
    assert sum(left.values()) <= MOST
    cut = {name for name in before if left.get(name, 0) < before[name]}
    assert cut
    least = min(left.get(name, 0) for name in cut)
    assert all(before[name] <= least + 1 for name in before.keys() - cut)
    lost = await store.list_dead_letters(limit=1000)
    assert len(lost) == len(said) - sum(left.values()), "what was acknowledged is a letter, each"


@pytest.mark.parametrize("seed", range(20))
def test_the_fair_newest_are_the_last_ones_of_each(seed):
    rng = random.Random(seed)
    items = [(place, rng.choice("aaaaaabbc")) for place in range(rng.randrange(0, 60))]
    most = rng.randrange(0, 50)
    kept = fair_newest(items, lambda item: item[1], most)
    assert kept == sorted(kept)
    assert min(most, len(items)) - 2 <= len(kept) <= most
    for name in "abc":
        mine = [item for item in items if item[1] == name]
        held = [item for item in kept if item[1] == name]
        assert held == mine[len(mine) - len(held) :]
    counts = Counter(name for _, name in kept)
    for name, other in ((a, b) for a in "abc" for b in "abc"):
        if counts[name] < sum(item[1] == name for item in items):
            assert counts[other] <= counts[name] + 1, "nobody gives way to somebody busier"
