"""What users' turns show on its way through the stage: stored, spoken over, read by a judge, never a complaint."""

import json
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry
from tests.poison.test_stages import NOW, admitted, rewarder, rounds
from tests.reward.groups.judge_doubles import Said
from tests.support import trajectory

from upswing.errors import Transient
from upswing.infra.sql.rewards import Rewards
from upswing.reward.group_judge import GroupJudge
from upswing.reward.judge import Judge, JudgeBudget, JudgePolicy
from upswing.reward.metrics import RewardMetrics
from upswing.reward.outcome_repository import OutcomeRepository


def talk(*says, **metadata):
    """A conversation in which the user asks for a table and then says this."""
    made = trajectory(metadata=metadata)
    made["metadata"].pop("outcome", None)
    made["turns"] = [
        {
            "turn_id": number,
            "timestamp": f"2025-12-08T13:00:0{number}Z",
            "observation": {"type": "user_message", "content": text},
            "action": {"type": "response", "raw_response": "Here it is."},
            "result": {"success": True, "output": "Here it is."},
        }
        for number, text in enumerate(("Make a table of the totals", *says), 1)
    ]
    return made


async def take(store, made):
    await store.take(admitted(made), door="nats", now=NOW, stream_seq=None, announce=False)
    return made["trajectory_id"]


async def opinion_of(store, name):
    reward = await Rewards(store.database).newest(name)
    return reward, reward.reward_components["user_feedback"]


class TurnReader:
    """A group judge whose model says what it is told to say; None: it is away."""

    def __init__(self, store, stage, says=None, **budget):
        self.now, self.says, self.asked = NOW, says, []
        self.outcomes = OutcomeRepository(store.database)
        policy = JudgePolicy("a-judge", tries=1)
        self.group_judge = GroupJudge(
            store,
            Rewards(store.database),
            self.outcomes,
            stage,
            Judge(self.ask, policy, JudgeBudget(**budget), sleep=self.sleep),
            RewardMetrics(CollectorRegistry()),
            clock=lambda: self.now,
            window_hours=1,
            min_agents=2,
        )

    async def ask(self, messages, _=None):
        self.asked.append(messages)
        if self.says is None:
            raise Transient("The judge is away.")
        return Said(self.says)

    async def sleep(self, _):
        return None

    async def after(self, **passed):
        self.now += timedelta(**passed)
        return await self.group_judge.read_unclear_turns()


async def test_a_correction_is_in_one_component_and_says_so(store):
    plain, wrong = [await take(store, talk(says)) for says in ("Now a chart", "That is wrong.")]
    await rounds(rewarder(store, None))
    (before, _), (after, said) = [await opinion_of(store, name) for name in (plain, wrong)]
    assert said.score == pytest.approx(0.23)
    assert "corrects the answer in turn 2" in said.reasoning
    assert said.raw_data["implicit"]["counted"] is True
    assert after.metadata["evaluation_method"] == "automated"
    for name, one in before.reward_components.items():
        if name != "user_feedback":
            assert after.reward_components[name].score == one.score, name


async def test_it_is_no_word_that_training_or_a_canary_takes_for_a_users(store):
    await take(store, talk("That is wrong."))
    await rounds(rewarder(store, None))
    (row,) = await store.database.read(lambda tx: tx.rows("SELECT feedback FROM scored"))
    assert row[0] is None
    assert (await store.database.read(lambda tx: tx.row("SELECT COUNT(*) FROM feedback")))[0] == 0


VERDICTS = [
    ('{"signal": "correction", "confidence": 0.8}', 0.26),
    ('Well: {"signal": "thanks", "confidence": 1}', 0.725),
    ('{"signal": "neither", "confidence": 0.7}', 0.5),
]


@pytest.mark.parametrize(("says", "score"), VERDICTS)
async def test_a_judge_reads_the_turn_that_no_rule_can(store, says, score):
    name = await take(store, talk("Great, thanks for nothing."))
    stage = rewarder(store, None)
    await rounds(stage)
    reward, before = await opinion_of(store, name)
    assert (before.score, "not clear" in before.reasoning) == (0.5, True)
    judge = TurnReader(store, stage, says)
    assert [await judge.after(minutes=0), await judge.after(days=1)] == [1, 0]
    reward, said = await opinion_of(store, name)
    assert said.score == pytest.approx(score)
    assert len(judge.asked) == 1
    quoted = json.loads(judge.asked[0][1]["content"])
    assert quoted == {"answer": "Here it is.", "user": "Great, thanks for nothing."}
    if score != 0.5:
        assert "as a-judge reads it" in said.reasoning
        assert reward.metadata["revision"] == 2


async def test_a_judge_that_is_away_or_babbles_is_asked_again_and_paid(store):
    name = await take(store, talk("Great, thanks for nothing."))
    stage = rewarder(store, None)
    await rounds(stage)
    judge = TurnReader(store, stage)
    assert [await judge.after(minutes=m) for m in (0, 1, 5)] == [1, 0, 1]
    judge.says = "I cannot say."
    assert await judge.after(minutes=10) == 1
    assert (await opinion_of(store, name))[1].score == 0.5
    (told,) = await judge.outcomes.verdicts()
    assert (told.judged, told.tries) == (False, 3)
    again = TurnReader(store, rewarder(store, None), VERDICTS[0][0])  # as after a restart
    again.now = judge.now
    assert await again.after(hours=1) == 1
    assert (await opinion_of(store, name))[1].score == pytest.approx(0.26)
    assert (await judge.outcomes.verdicts())[0].judged is True


async def test_a_spent_budget_asks_nobody(store):
    await take(store, talk("Great, thanks for nothing."))
    stage = rewarder(store, None)
    await rounds(stage)
    judge = TurnReader(store, stage, VERDICTS[0][0], max_tokens=1)
    assert await judge.after(minutes=0) == 1
    assert judge.asked == []


async def test_what_is_erased_is_not_asked_about(store):
    made = talk("Great, thanks for nothing.")
    await take(store, made)
    stage = rewarder(store, None)
    await rounds(stage)
    judge = TurnReader(store, stage)
    await judge.after(minutes=0)
    asked = len(judge.asked)
    await store.database.write(lambda tx: tx.execute("DELETE FROM trajectories"))
    judge.says = VERDICTS[0][0]
    await judge.after(hours=1)
    assert len(judge.asked) == asked
