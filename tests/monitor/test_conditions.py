"""The loop's conditions: read from the store, the disk and whoever is asked, and where each becomes trouble."""

import shutil
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from tests.deploy.scoring import NOW as STORED
from tests.deploy.scoring import scored
from tests.support import samples
from tests.train.test_jobs import LEASE, NOW, submit
from upswing.errors import Transient
from upswing.infra.sql import store_mark
from upswing.infra.sql.models import DEPLOYED, Models
from upswing.monitor.baseline_history import BaselineHistory, DriftRules
from upswing.monitor.condition_metrics import ConditionCollector
from upswing.monitor.conditions import ConditionReader, ConditionSources
from upswing.monitor.core.conditions import (
    ERRORS,
    FAILURES,
    LEAST_FREE_BYTES,
    DiskSpace,
    LoopConditions,
    RewardDrift,
    failures_in_a_row,
)
from upswing.monitor.training_history import TrainingHistory
from upswing.records import JudgeUse
from upswing.reward.core.decline import reward_drop
from upswing.train.core.job_states import with_state
from upswing.train.jobs.repository import JobRepository

RULES = DriftRules(sample=40, least_sample=20, least_drop=0.1)
ENDS = ("completed", "failed", "cancelled")


# ── what the figures mean ────────────────────────────────────────────────────────────────────────


@given(st.lists(st.sampled_from(ENDS)))
def test_failures_count_since_the_last_success_and_cancelled_jobs_never(ended):
    since = ended[: ended.index("completed")] if "completed" in ended else ended
    assert failures_in_a_row(ended) == since.count("failed")


@given(st.integers(1, 10**14), st.floats(0, 1))
def test_a_disk_is_nearly_full_below_a_tenth_but_never_for_ten_gigabytes_nor_without_64_megabytes(
    size, share
):
    disk = DiskSpace("data", int(size * share), size)
    if disk.free_bytes >= 10 * 1000**3:
        assert not disk.nearly_full
    elif disk.free_bytes < 64 * 1024**2:
        assert disk.nearly_full
    else:
        assert disk.nearly_full == (disk.free_bytes < max(64 * 1024**2, 0.1 * size))


def test_what_a_disk_needs_at_least_is_what_the_store_needs():
    assert LEAST_FREE_BYTES == store_mark.LEAST_FREE_BYTES


@pytest.mark.parametrize(
    ("mean", "error", "fallen"),
    [
        (0.6, 0.0, True),
        (0.61, 0.0, False),
        (0.5, 0.2 / ERRORS, True),
        (0.5, 0.21 / ERRORS, False),
        (0.9, 0.0, False),
        (float("nan"), 0.0, False),
        (0.1, float("inf"), False),
    ],
)
def test_a_fall_counts_when_it_matters_and_is_not_chance(mean, error, fallen):
    assert RewardDrift("m", mean, 0.7, error, 0.1).significant is fallen


# ── what the store says ──────────────────────────────────────────────────────────────────────────


async def end_job(jobs, number, state):
    """A job that is claimed and ends, `number` seconds from now."""
    at, name = NOW + timedelta(seconds=number), f"job-{number}"
    await submit(jobs, name, now=at)
    job = await jobs.claim("w", at, LEASE)
    await jobs.finish(name, state, with_state(job.status, state, at), b"[]", at, worker="w")


async def test_training_is_failing_after_three_failures_in_a_row(store):
    jobs, history = JobRepository(store.database), TrainingHistory(store.database)
    assert await history.failed_in_a_row() == 0
    seen = []
    for number, state in enumerate(
        ("failed", "completed", "failed", "cancelled", "failed", "failed", "completed")
    ):
        await end_job(jobs, number, state)
        count = await history.failed_in_a_row()
        seen.append((count, LoopConditions(failed_jobs_in_a_row=count).training_fails))
    assert [count for count, _ in seen] == [1, 0, 1, 1, 2, 3, 0]
    assert [fails for _, fails in seen] == [count >= FAILURES for count, _ in seen]


async def test_jobs_that_have_not_ended_are_counted_by_state(store):
    jobs, history = JobRepository(store.database), TrainingHistory(store.database)
    assert await history.active() == {"queued": 0, "running": 0}
    for number in range(3):
        await submit(jobs, f"job-{number}")
    await jobs.claim("w", NOW, LEASE)
    assert await history.active() == {"queued": 2, "running": 1}


def history_of(store, base="tiny", rules=RULES):
    return BaselineHistory(store.database, base, rules, compare=reward_drop)


async def score(store, count, total, **about):
    """Rewards that scatter a little around `total`."""
    for number in range(count):
        await scored(store, total=total + 0.02 * (number % 3 - 1), **about)
    await store.database.write(
        lambda tx: tx.execute(
            "UPDATE scored SET gateway = 1 WHERE trajectory_seq IN "
            "(SELECT seq FROM trajectories WHERE door = 'gateway')"
        )
    )


async def test_a_base_that_earns_less_than_at_first_has_drifted(store):
    history = history_of(store)
    await score(store, 40, 0.8, model="tiny")
    assert await history.drift() is None, "nothing but the first ones"
    await score(store, 20, 0.8, model="tiny")
    assert not (await history.drift()).significant
    await score(store, 40, 0.5, model="tiny")
    found = await history.drift()
    assert found.significant
    assert (found.model_id, found.drop) == ("tiny", pytest.approx(0.3, abs=0.02))
    await score(store, 40, 0.8, model="tiny")
    assert not (await history.drift()).significant, "it is over when the reward is back"


async def test_a_promotion_begins_a_new_reference_and_others_rewards_are_no_evidence(store):
    models = Models(store.database)
    name = await models.register(
        job_id="j",
        base_model="tiny",
        parent=None,
        snapshot="s",
        path="p",
        card="c",
        samples=1,
        final_reward=None,
        now=NOW,
    )
    await score(store, 45, 0.9, model=name)
    await score(store, 25, 0.2, model=name, gateway=False, door="http")
    await store.database.write(
        lambda tx: tx.execute(
            "UPDATE models SET state = ?, deployed_us = ? WHERE model_id = ?", (DEPLOYED, 0, name)
        )
    )
    assert await history_of(store).drift() is None, "what names it by another door says nothing"
    later = int(STORED.timestamp() * 1e6) + 1
    await store.database.write(lambda tx: tx.execute("UPDATE models SET deployed_us = ?", (later,)))
    await score(store, 25, 0.4, model=name)
    assert await history_of(store).drift() is None, "before the promotion is another time"


# ── reading all of it ────────────────────────────────────────────────────────────────────────────


class Asked:
    """Somebody who is asked, and can be away."""

    def __init__(self, value):
        self.value, self.times = value, 0

    async def __call__(self):
        self.times += 1
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


async def test_what_cannot_be_read_keeps_its_last_value_and_the_rest_goes_on(store, tmp_path):
    server, sync = Asked(True), Asked(True)
    heard = []
    sources = ConditionSources(
        lambda: True,
        model_server_answers=server,
        bus_sync_always=sync,
        folders={"data": tmp_path, "models": tmp_path / "not" / "made"},
    )
    reader = ConditionReader(sources, store.database, on_read=[heard.append], slow_seconds=3600)
    first = await reader.read()
    assert (first.model_server_answers, first.bus_sync_always, first.judge) == (True, True, None)
    assert [each.size_bytes for each in first.disks] == [shutil.disk_usage(tmp_path).total] * 2
    server.value, sync.value = Transient("The server is away."), False
    second = await reader.read()
    assert second.model_server_answers is True
    assert second.bus_sync_always is True, "others are asked once a minute"
    server.value = False
    assert (await reader.read()).model_server_answers is False
    assert (server.times, sync.times) == (3, 1)
    assert [each.model_server_answers for each in heard] == [True, True, False]


def series(conditions):
    registry = CollectorRegistry()
    registry.register(ConditionCollector(lambda: conditions))
    return samples(generate_latest(registry).decode())


def test_every_condition_has_a_series_and_what_nobody_knows_has_none():
    unknown = series(LoopConditions())
    assert {name for name, _ in unknown} == {
        "upswing_bus_connected",
        "upswing_training_failures_in_a_row",
        "upswing_training_jobs_active",
    }
    known = series(
        LoopConditions(
            True,
            False,
            True,
            (DiskSpace("data", 5, 100),),
            {"running": 1},
            2,
            JudgeUse(30, 0.5, 120, 0, True),
            RewardDrift("m", 0.5, 0.7, 0.01, 0.1),
        )
    )
    assert known == pytest.approx(
        {
            ("upswing_bus_connected", ()): 1,
            ("upswing_bus_sync_always", ()): 0,
            ("upswing_model_server_answers", ()): 1,
            ("upswing_disk_free_bytes", (("disk", "data"),)): 5,
            ("upswing_disk_size_bytes", (("disk", "data"),)): 100,
            ("upswing_training_jobs_active", (("state", "queued"),)): 0,
            ("upswing_training_jobs_active", (("state", "running"),)): 1,
            ("upswing_training_failures_in_a_row", ()): 2,
            ("upswing_judge_budget_used_ratio", (("kind", "tokens"),)): 0.25,
            ("upswing_judge_budget_used_ratio", (("kind", "usd"),)): 1,
            ("upswing_judge_budget_spent", ()): 1,
            ("upswing_reward_drop", (("model_version", "m"),)): 0.2,
            ("upswing_reward_drop_limit", (("model_version", "m"),)): 0.1,
        }
    )
