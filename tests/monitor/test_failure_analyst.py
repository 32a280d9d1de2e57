"""After a rollback, by itself: from the store's rows to the journal, on every store."""

import random
import tracemalloc
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest

from tests.deploy.scoring import NOW, REDACTOR, reward_of
from tests.support import raw, trajectory
from upswing.app.analysis import make_analyst
from upswing.collect.core.admit import AdmissionLimits, admit
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import to_microseconds
from upswing.monitor.failure_analyst import AnalystTimes, FailureAnalyst

ROLLOUT, NEW, OLD = "r-1", "new-v2", "old-v1"


class Clock:
    def __init__(self):
        self.now = NOW + timedelta(hours=1)

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def ids():
    chance = random.Random(1)
    return lambda: UUID(int=chance.getrandbits(128))


def analyst(store, clock):
    return FailureAnalyst(
        store.database, clock=clock, new_id=ids(), times=AnalystTimes(0.01, timedelta(minutes=10))
    )


async def episodes(store, count, seed=0, *, model=NEW, long_fails=True):
    """Episodes of the gateway: those with long prompts ran out of memory, where the model is the new one."""
    chance = random.Random(f"{seed} {model}")
    rows = []
    for _ in range(count):
        size = chance.choice((800, 900, 1000, 1100, 30_000))
        fails = long_fails and model == NEW and size > 10_000
        errors = [{"model": model, "kind": "out_of_memory", "prompt_bytes": size}] if fails else []
        gateway = {"rollout": ROLLOUT, "named": False, "prompt_bytes": size, "errors": errors}
        about = {"model": model, "gateway": gateway, **({"infra_error": True} if fails else {})}
        rows.append(admit(raw(trajectory(metadata=about)), REDACTOR, AdmissionLimits()).admitted)
    rewards = []
    for each in rows:
        await store.take(each, door="gateway", now=NOW, stream_seq=None, announce=False)
        stored = await store.trajectory(each.trajectory_id)
        rewards.append(reward_of(stored, model, chance.gauss(0.6, 0.1)))
    await Rewards(store.database).publish(rewards, cursor=rewards[-1].trajectory_seq, now=NOW)
    return [each.trajectory_id for each in rows]


async def rolled_back(store, reason="high_error_rate", *, rollout=ROLLOUT, happened=NOW):
    """The rows that a rollback leaves."""
    ended = datetime(2027, 1, 1, tzinfo=UTC)
    body = msgspec.json.encode(
        {"began": NOW, "ended": ended, "reason": reason, "state": "rolled_back"}
    )

    def write(tx):
        tx.execute(
            "INSERT INTO rollouts (rollout_id, model_id, baseline_id, state, share, body, changed_us) "
            "VALUES (?, ?, ?, 'rolled_back', 0, ?, ?) ON CONFLICT DO NOTHING",
            (ROLLOUT, NEW, OLD, body, to_microseconds(NOW)),
        )
        tx.execute(
            "INSERT INTO incidents (incident_id, rollout_id, model_id, reason, sentence, metrics, happened_us) "
            "VALUES (?, ?, ?, ?, 'It failed.', ?, ?)",
            (f"i-{reason}", rollout, NEW, reason, b"{}", to_microseconds(happened)),
        )

    await store.database.write(write)


async def test_a_rollback_is_looked_into_once_and_the_journal_names_prompt_length(store, clock):
    looking = analyst(store, clock)
    assert await looking.run_once() == 0
    failed = await episodes(store, 60)
    await episodes(store, 60, model=OLD)
    await rolled_back(store, happened=clock.now)
    assert await looking.run_once() == 1
    assert await looking.run_once() == 0
    (decision,) = await Decisions(store.database).list("monitor")
    assert (decision.kind, "out of memory at prompt length ≥" in decision.sentence) == (
        "failure_analysis",
        True,
    )
    inputs = msgspec.json.decode(decision.inputs)
    assert (inputs["incident_id"], inputs["reason"]) == ("i-high_error_rate", "high_error_rate")
    (analysis,) = await looking.stored(NEW)
    assert (analysis.label, analysis.about, analysis.rollout_id) == (
        "error",
        "i-high_error_rate",
        ROLLOUT,
    )
    first = analysis.findings[0]
    assert (first.feature, first.baseline_there.failed) == ("prompt length", 0)
    assert set(first.examples) <= set(failed)
    assert "gradient checkpointing" in analysis.remedies[0].text
    assert len(decision.outcome) < 20_000
    assert await looking.stored("another") == []


async def test_after_a_restart_what_was_not_looked_into_is_and_nothing_twice(store, clock):
    assert await analyst(store, clock).run_once() == 0
    await episodes(store, 40)
    await rolled_back(store, happened=clock.now)
    assert await analyst(store, clock).run_once() == 1
    assert await analyst(store, clock).run_once() == 0


async def test_failures_that_are_stored_later_are_waited_for_but_not_for_ever(store, clock):
    looking = analyst(store, clock)
    await looking.run_once()
    await episodes(store, 3)
    await rolled_back(store, happened=clock.now)
    assert await looking.run_once() == 0
    clock.now += timedelta(minutes=11)
    assert await looking.run_once() == 1
    (analysis,) = await looking.stored(NEW)
    assert analysis.findings == ()
    assert any("are needed before they are compared" in note for note in analysis.notes)


async def test_incidents_from_before_the_first_start_and_those_of_no_failure_are_passed_over(
    store, clock
):
    await rolled_back(store, "hard_failure")
    looking = analyst(store, clock)
    assert await looking.run_once() == 0
    await rolled_back(store, "emergency_override", happened=clock.now)
    await rolled_back(store, "parent_replaced", rollout=None, happened=clock.now)
    assert await looking.run_once() == 2
    assert await Decisions(store.database).list("monitor") == []


async def test_on_request_the_store_is_only_read(store, clock):
    with pytest.raises(Misuse, match="has had no rollout"):
        await analyst(store, clock).analyse(NEW)
    await episodes(store, 50)
    await rolled_back(store)
    analysis = await make_analyst(store.database, clock, ids()).analyse(NEW)
    assert (analysis.source, analysis.findings[0].feature) == ("request", "prompt length")
    assert await Decisions(store.database).list("monitor") == []


async def test_where_few_failed_as_the_reason_says_any_failure_counts(store, clock):
    await episodes(store, 50)
    await rolled_back(store, "user_dissatisfaction")
    analysis = await analyst(store, clock).analyse(NEW)
    assert (analysis.label, analysis.findings[0].feature) == ("any", "prompt length")
    assert "Too few" in analysis.notes[0]


async def test_rows_that_cannot_be_read_are_set_aside_and_the_others_compared(store, clock):
    names = await episodes(store, 60)

    def spoil(tx):
        tx.execute(
            "UPDATE trajectories SET body = ? WHERE trajectory_id = ?", (b"\xff not json", names[0])
        )

    await store.database.write(spoil)
    await rolled_back(store)
    analysis = await analyst(store, clock).analyse(NEW)
    assert (analysis.candidate.seen, analysis.findings[0].feature) == (60, "prompt length")


async def test_a_store_without_any_failure_says_so(store, clock):
    await episodes(store, 30, long_fails=False)
    await rolled_back(store)
    analysis = await analyst(store, clock).analyse(NEW)
    assert (analysis.candidate.failed, analysis.findings, analysis.remedies) == (0, (), ())


async def test_bodies_of_megabytes_are_read_and_not_kept(store, clock):
    """Two thousand episodes of each side may have eight megabytes each."""
    await episodes(store, 24)
    await rolled_back(store)
    pad = "UPDATE trajectories SET body = ? WHERE seq = ?"

    def grow(tx):
        for seq, body in tx.rows("SELECT seq, body FROM trajectories"):
            tx.execute(pad, (bytes(body) + b" " * 2_000_000, seq))

    plain = await analyst(store, clock).analyse(NEW)
    await store.database.write(grow)
    tracemalloc.start()
    try:
        large = await analyst(store, clock).analyse(NEW)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (large.summary, large.findings) == (plain.summary, plain.findings)
    assert peak < 24_000_000, "half of the bodies, of which it read all"
