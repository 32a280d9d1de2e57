"""Is a reward compared with what people really say? An hour after, and not with their silence."""

import doctest
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from tests.poison.test_stages import NOW, admitted, rounds
from tests.support import raw

from upswing.collect.core.admit import AdmissionLimits, admit_feedback
from upswing.infra.sql.rewards import Rewards
from upswing.redact import Redactor
from upswing.reward.core.assess import RewardRules
from upswing.reward.core.weights import component_weights
from upswing.reward.metrics import RewardMetrics
from upswing.reward.rewarder import Rewarder

PAGE = Path(__file__).parents[3] / "docs" / "rewards.md"
STARS = [5] * 40 + [4] * 40 + [3] * 20
REDACTOR = Redactor()


class Clocked:
    """A rewarder whose time stands still until it is moved."""

    def __init__(self, store):
        self.now, self.store, self.rewards = NOW, store, Rewards(store.database)
        self.rewarder = Rewarder(
            store,
            self.rewards,
            RewardRules(component_weights({})),
            RewardMetrics(CollectorRegistry()),
            clock=lambda: self.now,
        )

    async def recorded(self):
        row = admitted()
        await self.store.take(row, door="nats", now=self.now, stream_seq=None, announce=False)
        await rounds(self.rewarder)
        return row.trajectory_id

    async def rated(self, trajectory_id, stars, name="f"):
        word = {
            "feedback_id": f"{name}-{trajectory_id}",
            "timestamp": self.now.isoformat(),
            "type": "rating",
            "trajectory_id": trajectory_id,
            "rating": stars,
            "user_id": "user-4",
        }
        said, _ = admit_feedback(raw(word), REDACTOR, AdmissionLimits())
        await self.store.take_feedback(said, now=self.now, announce=False)
        await rounds(self.rewarder)
        return (await self.rewards.newest(trajectory_id)).reward_components["user_feedback"]


def test_the_worked_examples_of_the_page_hold():
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (done.failed, done.attempted > 10) == (0, True)


async def test_four_stars_are_measured_by_stars_and_not_by_silence(store):
    """The example that `docs/rewards.md` works out by hand."""
    clocked = Clocked(store)
    for stars in STARS:
        await clocked.rated(await clocked.recorded(), stars)
    early = await clocked.rated(await clocked.recorded(), 4)
    assert early.raw_data["normalisation"]["method"] == "none", "nobody is a measure yet"
    assert early.raw_data["normalised"] == 0.75
    clocked.now += timedelta(hours=2)
    await clocked.rewarder.maintain()
    late = await clocked.rated(await clocked.recorded(), 4)
    told = late.raw_data["normalisation"]
    expected = [(s - 1) / 4 for s in STARS] + [0.75]
    mean = sum(expected) / len(expected)
    assert told["mean"] == pytest.approx(mean)
    assert late.raw_data["normalised"] == pytest.approx(0.433, abs=0.005)
    memory = clocked.rewarder._history
    await clocked.rewarder._load_history()
    assert clocked.rewarder._history.windows == memory.windows, "a restart remembers the same"


async def test_the_newest_revision_of_the_first_hour_counts_and_no_later_one(store):
    clocked = Clocked(store)
    name = await clocked.recorded()
    await clocked.rated(name, 1)
    clocked.now += timedelta(minutes=59)
    await clocked.rated(name, 2, "g")
    await clocked.rewarder.maintain()
    assert await scores(clocked, "user_feedback") == [], "its first hour is not over"
    clocked.now += timedelta(minutes=10)
    await clocked.rated(name, 5, "h")
    await clocked.rewarder.maintain()
    assert await scores(clocked, "user_feedback") == [0.25]
    raw_total = (await scores(clocked, "raw_total"))[0]
    clocked.now += timedelta(days=3)
    await clocked.rated(name, 3, "i")
    await clocked.rewarder.maintain()
    assert await scores(clocked, "user_feedback") == [0.25]
    assert await scores(clocked, "raw_total") == [raw_total]


async def scores(clocked, name):
    return (await clocked.rewards.scores_before(10**9, 1000)).get(name, [])
