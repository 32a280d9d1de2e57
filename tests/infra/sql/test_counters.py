"""What triggers keep is what counting says, whatever is done to the rows in whatever order."""

import random
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace as changed

from tests.support import raw, trajectory
from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.contracts import DeadLetter, Feedback, Reward
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.typed import from_tree
from upswing.infra.sql.counter_tables import COARSE, COUNTED, FINE
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import to_microseconds
from upswing.infra.sql.users import Users
from upswing.records import NewReward, ScoredFacts
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REDACTOR = Redactor()
USERS = ("ann", "bob", "eve")


def admitted(user, model, **metadata):
    document = trajectory(metadata={"user_id": user, "model": model, **metadata})
    return admit(raw(document), REDACTOR, AdmissionLimits()).admitted


def reward_of(row, raw_total, revision=0):
    tree = EXAMPLES[Reward] | {
        "reward_id": str(uuid.uuid4()),
        "trajectory_id": row.trajectory_id,
        "total_reward": raw_total,
        "metadata": EXAMPLES[Reward]["metadata"]
        | {
            "revision": revision,
            "raw_total": raw_total,
            "model": row.model,
            "window_id": row.window_id,
            "scenario_id": row.scenario_id,
        },
    }
    return from_tree(tree, Reward)


def scored(seq, row, raw_total, *, infra_error=False):
    return NewReward(
        trajectory_seq=seq,
        reward=reward_of(row, raw_total),
        raw={},
        facts=ScoredFacts(row.domain, row.complexity, row.turns, None, None),
        episode_id=None,
        agent_id=row.agent_id,
        principal=row.user_id or "",
        pnl=None,
        balance=None,
        infra_error=infra_error,
        gateway=raw_total > 0.5,
    )


class Store:
    """What a store goes through."""

    def __init__(self, store, chance):
        self.store, self.chance = store, chance
        self.rewards, self.users = Rewards(store.database), Users(store.database)
        self.scored = {}

    async def take(self, now):
        user, model = self.chance.choice(USERS), self.chance.choice(("a", "b"))
        row = admitted(user, model, **self.chance.choice(({}, {}, {"is_evaluation": True})))
        row = replace(row, model=model, practice=self.chance.random() < 0.2)
        await self.store.take(row, door="http", now=now, stream_seq=None, announce=True)
        stored = await self.store.trajectory(row.trajectory_id)
        await self.store.take(row, door="http", now=now, stream_seq=None, announce=True)
        if self.chance.random() < 0.8:
            raw_total = self.chance.choice((0.0, 0.25, 0.75, 1.0, 1e12))
            new = scored(stored.seq, row, raw_total, infra_error=self.chance.random() < 0.1)
            await self.rewards.publish([new], cursor=stored.seq, now=now)
            await self.rewards.publish([new], cursor=stored.seq, now=now)
            self.scored[row.trajectory_id] = (row, 0)

    async def revise(self, now):
        if self.scored:
            row, revision = self.scored[self.chance.choice(list(self.scored))]
            new = reward_of(row, self.chance.choice((0.1, 0.9)), revision + 1)
            await self.rewards.revise(new, judge_score=None, now=now)
            self.scored[row.trajectory_id] = (row, revision + 1)

    async def feed_back(self, now):
        tree = EXAMPLES[Feedback] | {"feedback_id": str(uuid.uuid4()), "user_id": "ann"}
        said = replace(admit_feedback(raw(tree), REDACTOR, AdmissionLimits())[0], trusted=True)
        await self.store.take_feedback(said, now=now, announce=True)

    async def fail(self, now):
        tree = EXAMPLES[DeadLetter] | {"dead_id": str(uuid.uuid4())}
        letter = changed(from_tree(tree, DeadLetter), timestamp=now)
        await self.store.add_dead_letter(letter, stage="collect", user_id="bob")

    async def erase(self, now):
        user = self.chance.choice(USERS)
        await self.users.erase(user, now)
        self.scored = {key: it for key, it in self.scored.items() if it[0].user_id != user}

    async def opt_out_and_in(self, now):
        await self.users.opt_out(self.chance.choice(USERS), now)
        await self.users.opt_in(self.chance.choice(USERS))

    async def send(self, now):
        waiting = await self.store.outbox(limit=3)
        await self.store.discard([each.seq for each in waiting] or [0])


@pytest.mark.parametrize("seed", range(3))
async def test_what_triggers_count_is_what_there_is(store, seed):
    chance = random.Random(seed)
    life = Store(store, chance)
    acts = [life.take] * 6 + [
        life.revise,
        life.revise,
        life.feed_back,
        life.fail,
        life.erase,
        life.opt_out_and_in,
        life.send,
    ]
    now = NOW
    for _ in range(40):
        now += timedelta(seconds=chance.choice((1, 7, 500, 4000)))
        await chance.choice(acts)(now)
    assert await store.counts() == await counted(store)
    assert await store.database.view(kept_buckets) == pytest.approx(
        await store.database.view(real_buckets)
    )


async def counted(store):
    return {
        name: (await store.database.read(lambda tx, t=name: tx.row(f"SELECT COUNT(*) FROM {t}")))[0]
        for name in COUNTED
    }


def kept_buckets(tx):
    sql = (
        "SELECT width_s, start_us, model, n, served, total, squares FROM reward_buckets WHERE n > 0"
    )
    return {
        (*row[:3], name): float(value)
        for row in tx.rows(sql)
        for name, value in zip(("n", "served", "total", "squares"), row[3:], strict=True)
    }


def real_buckets(tx):
    sql = (
        "SELECT t.stored_us, s.model, s.gateway, s.raw_total FROM scored s "
        "JOIN trajectories t ON t.seq = s.trajectory_seq "
        "WHERE s.infra_error = 0 AND t.evaluation = 0 AND t.practice = 0 AND s.raw_total < 1e6"
    )
    found = {}
    for at, model, gateway, value in tx.rows(sql):
        for width in (FINE, COARSE):
            us = width * 1_000_000
            parts = {"n": 1, "served": gateway, "total": value, "squares": value * value}
            for name, part in parts.items():
                key = (width, at // us * us, model, name)
                found[key] = found.get(key, 0.0) + part
    return found


async def test_a_count_that_somebody_spoilt_is_counted_again(store):
    life = Store(store, random.Random(1))
    await life.take(NOW)
    sql = "DELETE FROM counts WHERE name = 'trajectories'"
    await store.database.write(lambda tx: tx.execute(sql))
    assert (await store.counts())["trajectories"] == 1


async def test_moments_of_arrival_are_found_by_their_index(store):
    """A plan that reads the large rows costs more with every trajectory."""
    sql = "SELECT COUNT(*) FROM trajectories WHERE stored_us >= ?"
    explain = "EXPLAIN QUERY PLAN " if not store.database._postgres else "EXPLAIN "
    rows = await store.database.view(lambda tx: tx.rows(explain + sql, (to_microseconds(NOW),)))
    if not store.database._postgres:
        assert "COVERING INDEX trajectories_by_arrival" in str(rows)
