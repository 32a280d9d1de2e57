"""A judge is away: is its group asked about again, for a week, at the price that it really has?"""

import logging
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry
from tests.poison.test_stages import NOW, admitted, rewarder, rounds
from tests.reward.groups.judge_doubles import Reading, Said, answer
from tests.support import trajectory

from upswing.errors import Transient
from upswing.infra.sql.rewards import Rewards
from upswing.reward.group_judge import GroupJudge
from upswing.reward.judge import Judge, JudgePolicy
from upswing.reward.metrics import RewardMetrics
from upswing.reward.outcome_repository import OutcomeRepository

WINDOW = "2026-01-01T01:00"


class JudgedStore:
    """A group judge whose model is away until it is said to be there, at a time that is moved by hand."""

    def __init__(self, store):
        self.now, self.away, self.asked = NOW, True, 0
        self.outcomes, self.registry = OutcomeRepository(store.database), CollectorRegistry()
        self.reply = self.score
        self.group_judge = GroupJudge(
            store,
            Rewards(store.database),
            self.outcomes,
            rewarder(store, None),
            Judge(self.ask, JudgePolicy("double", tries=1), sleep=self.sleep),
            RewardMetrics(self.registry),
            clock=lambda: self.now,
            window_hours=1,
            min_agents=2,
        )

    async def ask(self, messages, _=None):
        return await self.reply(messages)

    async def score(self, messages):
        self.asked += 1
        if self.away:
            raise Transient("The judge is away.")
        labels = Reading(messages).labels
        return Said(answer({label: 0.5 + 0.1 * place for place, label in enumerate(labels)}))

    async def sleep(self, _):
        return None

    async def after(self, **passed):
        """How many groups are dealt with once this time has passed."""
        self.now += timedelta(**passed)
        return await self.group_judge.judge_ended_windows()

    def counted(self, state):
        return self.registry.get_sample_value("upswing_judge_groups", {"state": state})


@pytest.fixture
async def judge(store):
    for number in range(4):
        made = trajectory(metadata={"window_id": WINDOW}, agent_id=f"agent-{number}")
        await store.take(admitted(made), door="nats", now=NOW, stream_seq=None, announce=False)
    await rounds(rewarder(store, None))
    return JudgedStore(store)


async def test_a_group_is_asked_about_again_with_a_back_off_until_it_is_judged(judge):
    assert [await judge.after(minutes=m) for m in (0, 4, 1, 9, 1, 19)] == [1, 0, 1, 0, 1, 0]
    assert (judge.counted("waiting"), judge.counted("judged")) == (1, 0)
    judge.away = False
    assert await judge.after(minutes=1) == 1
    (told,) = await judge.outcomes.verdicts()
    assert (told.judged, told.tries, told.again) == (True, 4, None)
    assert (judge.counted("waiting"), judge.counted("judged")) == (0, 1)
    assert await judge.after(days=1) == 0


async def test_after_a_week_it_is_given_up_until_a_person_wants_it(judge):
    tries = [await judge.after(hours=6) for _ in range(7 * 4 + 20)]
    assert 20 < sum(tries) < 30
    assert tries[-15:] == [0] * 15
    assert (judge.counted("waiting"), judge.counted("given_up")) == (0, 1)
    judge.away = False
    assert await judge.outcomes.retry_unjudged(judge.now) == 1
    assert await judge.after() == 1
    assert (judge.counted("judged"), judge.counted("given_up")) == (1, 0)
    assert await judge.outcomes.retry_unjudged(judge.now) == 0


async def test_an_hour_of_waiting_is_one_alert(judge, caplog):
    def alerts():
        return [each for each in caplog.records if getattr(each, "action", "") == "alert"]

    with caplog.at_level(logging.ERROR):
        for minutes in (0, 10, 20):
            await judge.after(minutes=minutes)
        assert alerts() == []
        for minutes in (35, 40, 90):
            await judge.after(minutes=minutes)
        assert ["upswing judge retry" in each.getMessage() for each in alerts()] == [True]


async def test_each_asking_counts_on_its_own_day(judge):
    judge.away = False

    async def prose(messages):
        await judge.score(messages)
        return Said("They were all rather good.", 700, 70)

    judge.reply = prose
    await judge.after()
    first = await judge.outcomes.spent_since(judge.now - timedelta(days=1))
    judge.reply = judge.score
    assert await judge.after(days=2) == 1
    assert await judge.outcomes.spent_since(judge.now - timedelta(days=1)) == (1000, 100, 0.0)
    whole = await judge.outcomes.spent_since(judge.now - timedelta(days=7))
    assert whole[0] == first[0] + 1000 > 1000
    (told,) = await judge.outcomes.verdicts()
    assert (told.judged, told.prompt_tokens) == (True, whole[0])
