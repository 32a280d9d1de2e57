"""The trigger on a store: what it sees, what it asks for, and what it writes down."""

import random
import uuid
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from tests.faulty import Faulty

from upswing.app.loop import ListenAddress, Loop
from upswing.config import ServeConfig, Settings, Surroundings, TrainConfig, TriggerConfig
from upswing.contracts import TrainingRequest, decode
from upswing.contracts.topics import TRAINING_REQUEST, TRAINING_STATUS
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.models import DEPLOYED, Models
from upswing.infra.sql.store import to_microseconds
from upswing.redact import Redactor
from upswing.reward.core.decline import reward_drop
from upswing.reward.core.influence import fair_mean
from upswing.train.core.job_states import with_state
from upswing.train.jobs.repository import JobRepository
from upswing.train.jobs.submission import JobSubmission, SubmissionSettings
from upswing.trigger.core.decide import TrainNow, Wait, WaitReason, decide_training
from upswing.trigger.core.inputs import ManualRequest, TriggerInputs
from upswing.trigger.core.policy import trigger_policy_of
from upswing.trigger.signals import SignalReader
from upswing.trigger.trigger import Trigger, replay

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
REDACTOR = Redactor()
SMALL = Settings(
    trigger=TriggerConfig(threshold=10, min_sample=4, recent=50),
    train=TrainConfig(min_trajectories=3, min_agents=2, min_attempts=2, min_groups=1),
)


async def any_base(_):
    """Every base can be had."""


class Bench:
    """A trigger on a store, and a hand on its clock."""

    def __init__(self, store, settings=SMALL, surroundings=None):
        self.store, self.now, self.seq = store, NOON, 0
        self.jobs, self.models = JobRepository(store.database), Models(store.database)
        self.journal, self.signals = Decisions(store.database), Faulty(SignalReader(store.database))
        self.policy = trigger_policy_of(settings, surroundings or Surroundings())
        self.restart()

    def restart(self, *, deploys=False):
        ways = SubmissionSettings(self.policy.defaults, {}, self.policy.train_here)
        desk = JobSubmission(
            self.jobs,
            REDACTOR,
            ways,
            check_base=any_base,
            clock=lambda: self.now,
            new_id=uuid.uuid4,
        )
        self.trigger = Trigger(
            self.signals,
            self.journal,
            desk,
            self.policy,
            mean=fair_mean,
            compare=reward_drop,
            clock=lambda: self.now,
            new_id=uuid.uuid4,
            deploys=deploys,
        )

    async def score(
        self, count=1, *, model="m", raw=0.5, window="w", evaluation=0, ended=None, **columns
    ):
        """Rows as collect and reward leave them, without the trouble of making them."""
        row = {
            "agent_id": "a",
            "principal": "p",
            "model": model,
            "window_id": window,
            "scenario_id": window,
            "domain": "coding",
            "complexity": 0.5,
            "turns": 1,
            "infra_error": 0,
            "revision": 1,
            "total": raw,
            "raw_total": raw,
        } | columns

        def unit(tx):
            for _ in range(count):
                self.seq += 1
                key = f"t-{self.seq}"
                tx.execute(
                    "INSERT INTO trajectories (trajectory_id, content_hash, body, agent_id, session_id, "
                    "agent_type, domain, complexity, window_id, scenario_id, model, started_us, ended_us, "
                    "turns, infra_error, door, stored_us, evaluation) "
                    "VALUES (?, ?, ?, 'a', 's', 'x', 'coding', 0.5, 'w', 'w', ?, 0, ?, 1, 0, 'http', ?, ?)",
                    (
                        key,
                        key.encode(),
                        b"{}",
                        model,
                        to_microseconds(ended or self.now),
                        to_microseconds(self.now),
                        evaluation,
                    ),
                )
                told = {"verified": float(self.seq % 2), "task_id": f"task of {row['window_id']}"}
                named = told | row | {"trajectory_seq": self.seq, "trajectory_id": key}
                tx.execute(
                    f"INSERT INTO scored ({', '.join(named)}) VALUES ({', '.join('?' * len(named))})",
                    tuple(named.values()),
                )

        await self.store.database.write(unit)

    async def end(self, state="completed"):
        """Let a worker take the next job and end it."""
        job = await self.jobs.claim("w", self.now, HOUR)
        await self.jobs.finish(
            job.job_id, state, with_state(job.status, state, self.now), b"[]", self.now
        )
        if state == "completed":
            return await self.models.register(
                job_id=job.job_id,
                base_model="tiny",
                parent=None,
                snapshot="s",
                path="p",
                card="c",
                samples=1,
                final_reward=None,
                now=self.now,
            )
        return None

    async def deploy(self, model_id, baseline):
        sql = "UPDATE models SET state = ?, deployed_us = ?, baseline_reward = ? WHERE model_id = ?"
        params = (DEPLOYED, to_microseconds(self.now), baseline, model_id)
        await self.store.database.write(lambda tx: tx.execute(sql, params))

    async def reasons(self):
        return [job.reason for job in reversed(await self.jobs.list())]

    async def kinds(self):
        return [decision.kind for decision in reversed(await self.journal.list())]


@pytest.fixture
def bench(store):
    return Bench(store)


# ── the threshold ────────────────────────────────────────────────────────────────────────────────


async def test_enough_new_trajectories_ask_for_one_job(bench):
    await bench.score(9)
    assert isinstance(await bench.trigger.run_once(), Wait)
    await bench.score(1)
    for _ in range(3):
        await bench.trigger.run_once()
    (job,) = await bench.jobs.list()
    assert (job.reason, job.state, job.covers_seq) == ("threshold_reached", "queued", 10)


async def test_the_job_its_request_and_its_reason_are_published_and_journalled_together(bench):
    await bench.score(10)
    await bench.trigger.run_once()
    (job,) = await bench.jobs.list()
    subjects = [entry.subject for entry in await bench.store.outbox()]
    assert subjects == [TRAINING_REQUEST, TRAINING_STATUS]
    assert decode(TrainingRequest, (await bench.store.outbox())[0].payload) == job.request
    (decision,) = await bench.journal.list()
    assert (decision.kind, decision.sentence) == (
        "threshold_reached",
        "10 new trajectories since the last training, 10 are enough; grpo, because 1 group of attempts has a difference in it.",
    )


async def test_what_a_job_covers_is_not_asked_for_again(bench):
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.score(9)
    await bench.trigger.run_once()
    await bench.end()
    await bench.trigger.run_once()
    assert await bench.reasons() == ["threshold_reached"]
    await bench.score(1)
    await bench.trigger.run_once()
    assert await bench.reasons() == ["threshold_reached"] * 2


async def test_after_a_failure_it_asks_again_but_not_at_once(bench):
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.end("failed")
    assert (await bench.trigger.run_once()).kind is WaitReason.PAUSE
    bench.now += HOUR
    assert isinstance(await bench.trigger.run_once(), TrainNow)


async def test_what_a_person_has_cancelled_stays_cancelled(bench):
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.jobs.cancel((await bench.jobs.list())[0].job_id, bench.now)
    bench.now += 10 * HOUR
    assert isinstance(await bench.trigger.run_once(), Wait)


async def test_faults_evaluations_and_opted_out_users_do_not_count(bench):
    await bench.score(9)
    await bench.score(20, infra_error=1)
    await bench.score(20, evaluation=1)
    await bench.score(20, principal="gone")
    await bench.store.database.write(
        lambda tx: tx.execute("INSERT INTO optouts (user_id, since_us) VALUES ('gone', 0)")
    )
    assert (await bench.signals.signals(10, 100)).new == 9
    assert (await bench.signals.learnable()).trajectories == 9


async def test_what_a_model_was_trained_on_does_not_count_even_if_it_came_late(bench):
    """A job gathers its data when it runs, and may take what came after it was asked for."""
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.score(10)
    model = await bench.models.get(await bench.end())
    await bench.store.database.write(
        lambda tx: tx.execute(
            "INSERT INTO trained_on (trajectory_id, job_id, revision) VALUES ('t-11', ?, 1)",
            (model.job_id,),
        )
    )
    assert (await bench.signals.signals(10, 100)).new == 9


# ── degradation ──────────────────────────────────────────────────────────────────────────────────


async def a_deployed_model(bench, baseline=0.7):
    await bench.score(10)
    await bench.trigger.run_once()
    model_id = await bench.end()
    await bench.deploy(model_id, baseline)
    return model_id


async def test_a_model_that_got_worse_is_urgent_and_points_to_its_job(bench):
    model_id = await a_deployed_model(bench)
    await bench.score(4, model=model_id, raw=0.6)
    choice = await bench.trigger.run_once()
    assert (choice.reason, choice.priority) == ("performance_degradation", "urgent")
    job = (await bench.jobs.list())[0]
    model = await bench.models.get(model_id)
    assert job.request.metadata["previous_training_job"] == model.job_id
    assert job.priority == 0


@pytest.mark.parametrize(
    ("count", "raw", "baseline"), [(3, 0.1, 0.7), (4, 0.61, 0.7), (4, 0.1, None)]
)
async def test_noise_is_no_reason(bench, count, raw, baseline):
    model_id = await a_deployed_model(bench, baseline)
    await bench.score(count, model=model_id, raw=raw)
    assert isinstance(await bench.trigger.run_once(), Wait)


async def test_the_same_evidence_asks_once(bench):
    """Until another model is deployed, the old one stays as bad as it was."""
    model_id = await a_deployed_model(bench)
    await bench.score(5, model=model_id, raw=0.2)
    await bench.trigger.run_once()
    await bench.end()
    assert isinstance(await bench.trigger.run_once(), Wait)
    await bench.score(4, model=model_id, raw=0.2)
    assert (await bench.trigger.run_once()).reason == "performance_degradation"


async def test_one_voice_cannot_make_a_model_degraded(bench):
    model_id = await a_deployed_model(bench)
    for n in range(20):
        await bench.score(1, model=model_id, raw=0.7, principal=f"user-{n}")
    await bench.score(30, model=model_id, raw=0.0, principal="troll")
    assert (await bench.trigger.run_once()).reason == "threshold_reached"
    inputs = msgspec.json.decode((await bench.journal.list())[0].inputs, type=TriggerInputs)
    assert inputs.deployed.count == 50
    assert inputs.deployed.mean > 0.6, "plainly it is 0.28"


@pytest.mark.parametrize("gateway", [True, False])
async def test_one_key_cannot_fill_what_a_model_is_judged_by(bench, gateway):
    """However many newer rewards it sends; and where a gateway serves the model, none of them counts."""
    model_id = await a_deployed_model(bench)
    recent = bench.policy.recent
    for n in range(recent):
        user = {"principal": f"user-{n}", "key_id": f"k-{n % 5}", "gateway": int(gateway)}
        await bench.score(1, model=model_id, raw=0.7, **user)
    for n in range(2 * recent):
        loud = {"principal": f"made-up-{n}", "key_id": "loud"}
        await bench.score(1, model=model_id, raw=0.0, **loud)
    seen = await bench.signals.signals(recent, 10)
    keys = Counter(speaker.key for speaker, _ in seen.values)
    assert keys["loud"] == 0 if gateway else keys["loud"] <= recent / 6 + 1
    assert len(keys) == (5 if gateway else 6)
    choice = await bench.trigger.run_once()
    assert getattr(choice, "reason", "") != "performance_degradation"


async def earns(bench, model, count, chance, principal=lambda _: "p"):
    """Rewards of 0 and 1, as chance has them."""
    for n in range(count):
        who = principal(n)
        await bench.score(1, model=model, raw=float(chance.random() < 0.5), principal=who)


@pytest.mark.parametrize("seed", range(6))
async def test_a_lucky_canary_makes_no_baseline_that_the_model_falls_below(bench, seed):
    """A canary of 25 rewards ends when it looks good; then the model earns what it always earned."""
    chance = random.Random(seed)
    await bench.score(10)
    await bench.trigger.run_once()
    model_id = await bench.end()
    await bench.score(18, model=model_id, raw=1.0)
    await bench.score(7, model=model_id, raw=0.0)
    bench.now += HOUR
    await bench.deploy(model_id, 0.72)
    for _ in range(4):
        await earns(bench, model_id, 25, chance)
        await bench.trigger.run_once()
    assert "performance_degradation" not in await bench.reasons()


async def test_a_model_is_compared_with_itself_by_the_same_mean(bench):
    """Most of the traffic is one user's, whose tasks are easy: that is no fall of the others."""
    await bench.score(10)
    await bench.trigger.run_once()
    model_id = await bench.end()

    async def a_day():
        await bench.score(40, model=model_id, raw=0.9, principal="easy")
        for n in range(10):
            await bench.score(1, model=model_id, raw=0.1, principal=f"hard-{n}")

    await a_day()
    bench.now += HOUR
    await bench.deploy(model_id, 0.74)
    await a_day()
    await bench.trigger.run_once()
    assert "performance_degradation" not in await bench.reasons()
    inputs = msgspec.json.decode((await bench.journal.list())[0].inputs, type=TriggerInputs)
    assert inputs.deployed.mean == pytest.approx(inputs.deployed.baseline)


async def test_a_real_fall_is_still_seen(bench):
    chance = random.Random(1)
    await bench.score(10)
    await bench.trigger.run_once()
    model_id = await bench.end()
    await earns(bench, model_id, 50, chance)
    bench.now += HOUR
    await bench.deploy(model_id, None)
    await bench.score(50, model=model_id, raw=0.0)
    assert (await bench.trigger.run_once()).reason == "performance_degradation"


# ── the schedule ─────────────────────────────────────────────────────────────────────────────────


async def test_a_missed_night_is_made_up_for_once(bench):
    await bench.trigger.run_once()
    await bench.score(5)
    bench.now += 5 * 24 * HOUR
    bench.restart()
    for _ in range(3):
        await bench.trigger.run_once()
    assert await bench.reasons() == ["scheduled"]
    await bench.end()
    await bench.trigger.run_once()
    assert await bench.reasons() == ["scheduled"]


async def test_a_new_loop_owes_no_night(bench):
    await bench.score(5)
    for _ in range(2):
        assert isinstance(await bench.trigger.run_once(), Wait)


async def test_a_night_without_enough_is_passed_over_and_said_so(bench):
    await bench.trigger.run_once()
    await bench.score(2)
    bench.now += 24 * HOUR
    choice = await bench.trigger.run_once()
    assert (choice.kind, "2 of 3 trajectories" in choice.sentence) == (WaitReason.READY, True)
    await bench.score(5)
    assert (await bench.trigger.run_once()).kind is WaitReason.DATA, "the next night will do"


async def test_the_schedule_can_be_off(store):
    bench = Bench(store, surroundings=Surroundings(schedule="off"))
    await bench.trigger.run_once()
    await bench.score(5)
    bench.now += 48 * HOUR
    assert isinstance(await bench.trigger.run_once(), Wait)


# ── by hand ──────────────────────────────────────────────────────────────────────────────────────


async def test_who_asks_too_early_is_told_why_and_it_is_written_down(bench):
    asked = await bench.trigger.request_training(ManualRequest("ann"))
    assert (asked.job_id, asked.choice.kind) == (None, WaitReason.READY)
    assert (await bench.journal.get(asked.decision_id)).sentence == asked.choice.sentence


async def test_who_asks_in_time_gets_a_job(bench):
    await bench.score(3, agent_id="a")
    await bench.score(1, agent_id="b")
    asked = await bench.trigger.request_training(ManualRequest("ann", sample_size=7))
    job = await bench.jobs.get(asked.job_id)
    assert (job.reason, job.request.requester, job.request.priority) == ("manual", "ann", "high")
    assert job.request.training_config.dataset.sample_size == 7


async def test_force_leaves_out_the_minimums(bench):
    first, second = [
        await bench.trigger.request_training(ManualRequest("ann", force=True)) for _ in range(2)
    ]
    assert first.job_id != second.job_id
    job = await bench.jobs.get(second.job_id)
    assert job.request.metadata["recipe"] == {"min_agents": 1, "min_attempts": 2}
    assert msgspec.json.decode(job.recipe)["min_agents"] == 1


async def test_who_asks_while_something_more_urgent_holds_gets_that_too(bench):
    model_id = await a_deployed_model(bench)
    await bench.score(5, model=model_id, raw=0.2)
    asked = await bench.trigger.request_training(ManualRequest("ann", force=True))
    assert asked.choice.reason == "manual"
    assert await bench.reasons() == ["threshold_reached", "performance_degradation", "manual"]
    claimed = await bench.jobs.claim("w", bench.now, HOUR)
    assert claimed.reason == "performance_degradation"


# ── the journal ──────────────────────────────────────────────────────────────────────────────────


async def test_waiting_is_written_down_when_what_is_waited_for_changes(bench):
    for _ in range(3):
        await bench.trigger.run_once()
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.score(10)
    for _ in range(3):
        await bench.trigger.run_once()
    bench.restart()
    await bench.trigger.run_once()
    assert await bench.kinds() == ["wait_for_data", "threshold_reached", "wait_for_job"]


async def test_a_journalled_decision_comes_out_the_same_again(bench):
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.trigger.request_training(ManualRequest("ann"))
    for decision in await bench.journal.list():
        outcome, sentence = replay(decision.inputs)
        assert (outcome, sentence) == (decision.outcome, decision.sentence)


# ── what is asked for ────────────────────────────────────────────────────────────────────────────


async def test_an_automatic_request_asks_for_the_last_month_and_leaves_the_recipe_open(store):
    bench = Bench(store, surroundings=Surroundings(algorithm="grpo", base_model="/models/q"))
    await bench.score(10)
    await bench.trigger.run_once()
    (job,) = await bench.jobs.list()
    config = job.request.training_config
    assert (config.algorithm, config.base_model) == ("grpo", "/models/q")
    assert (config.dataset.source, config.dataset.sample_size) == ("local", 512)
    assert job.request.metadata["dataset_size"] == "new"
    limits = config.dataset.filter
    assert (limits.max_trajectory_length, limits.min_reward) == (50, msgspec.UNSET)
    assert limits.date_range.end - limits.date_range.start == timedelta(days=30)
    assert msgspec.to_builtins(config.hyperparameters) == {}


async def test_a_base_whose_weights_are_elsewhere_is_never_asked_to_be_trained(tmp_path):
    hosted = Settings(serve=ServeConfig(url="https://api.example/v1"))
    said = Surroundings(base_model="org/large", threshold=1)
    policy = Loop(tmp_path, hosted, said, ListenAddress()).policy
    assert policy.rules.elsewhere
    at = datetime(2026, 1, 5, tzinfo=UTC)
    choice = decide_training(
        TriggerInputs(
            at, policy.rules, manual=(ManualRequest("ann", force=True),), new=9, last_slot=at
        )
    )
    assert (choice.kind, "upswing export --layout sft" in choice.sentence) == (
        WaitReason.BASE,
        True,
    )
    for settings, base in ((hosted, "tiny"), (Settings(), "org/large")):
        told = Surroundings(base_model=base)
        assert not Loop(tmp_path, settings, told, ListenAddress()).policy.rules.elsewhere


async def test_without_a_base_model_the_loop_waits_and_says_what_to_set(store):
    bench = Bench(store, surroundings=Surroundings(nats_url="nats://bus"))
    await bench.score(10)
    choice = await bench.trigger.run_once()
    assert (choice.kind, "RL_BASE_MODEL" in choice.sentence) == (WaitReason.BASE, True)


# ── counting ─────────────────────────────────────────────────────────────────────────────────────


async def test_in_a_continuous_world_different_agents_make_a_group(bench):
    for window, agents in (("w1", "abc"), ("w2", "aab"), ("w3", "a")):
        for agent in agents:
            await bench.score(1, window=window, agent_id=agent, continuous=1)
    found = [(await bench.signals.learnable(min_agents=n)).groups for n in (1, 2, 3, 4)]
    assert found == [3, 2, 1, 0]


async def test_at_a_task_attempts_of_one_policy_make_a_group_by_one_agent_or_many(bench):
    await bench.score(4, window="w1", agent_id="one")
    await bench.score(3, window="w2", agent_id="one")
    await bench.score(2, window="w3", model="m")
    await bench.score(2, window="w3", model="n")
    assert (await bench.signals.learnable(min_attempts=4)).groups == 1
    assert (await bench.signals.learnable(min_attempts=2)).groups == 4


async def test_what_other_versions_did_is_not_new(bench):
    """After a promotion the former model's work, and the base's, asks for no training."""
    model_id = await a_deployed_model(bench)
    await bench.score(20, model="tiny")
    await bench.score(3, model=model_id)
    await bench.score(2, model="somebody's own")
    assert (await bench.signals.signals(10, 100, "tiny")).new == 5
    assert (await bench.signals.learnable("tiny")).trajectories == 15


async def test_an_unfinished_model_is_waited_for(bench):
    await bench.score(10)
    await bench.trigger.run_once()
    await bench.end()
    await bench.score(10)
    bench.restart(deploys=True)
    assert (await bench.trigger.run_once()).kind is WaitReason.MODEL
    assert "one model at a time" in await bench.trigger.blocking_work()
    await bench.store.database.write(lambda tx: tx.execute("UPDATE models SET state = 'failed'"))
    assert await bench.trigger.blocking_work() is None
    assert isinstance(await bench.trigger.run_once(), TrainNow)
    assert "is not finished yet" in await bench.trigger.blocking_work()


async def test_what_came_since_then_is_counted_by_time(bench):
    assert await bench.signals.collected_since(NOON) == 0
    for hours in (0, 1, 2, 2, 5):
        bench.now = NOON + hours * HOUR
        await bench.score(1)
    counts = [await bench.signals.collected_since(NOON + n * HOUR) for n in (0, 1, 2, 3, 5, 6)]
    assert counts == [5, 4, 3, 1, 1, 0]


# ── the policy ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "surroundings", "sentence"),
    [
        (Settings(), Surroundings(schedule="0 25 * * *"), "RL_SCHEDULE_CRON.*hour 25"),
        (
            Settings(trigger=TriggerConfig(schedule="soon")),
            Surroundings(),
            r"\[trigger\].*five fields",
        ),
        (Settings(trigger=TriggerConfig(recent=5)), Surroundings(), "min_sample"),
    ],
)
def test_a_policy_that_makes_no_sense_is_misuse(settings, surroundings, sentence):
    with pytest.raises(Misuse, match=sentence):
        trigger_policy_of(settings, surroundings)


def test_the_environment_wins_over_the_file():
    settings = Settings(trigger=TriggerConfig(threshold=7, schedule="0 1 * * *"))
    said = Surroundings(threshold=9, schedule="0 3 * * *", train_here=False)
    policy = trigger_policy_of(settings, said)
    assert (policy.rules.threshold, policy.rules.schedule, policy.train_here) == (
        9,
        "0 3 * * *",
        False,
    )
    assert trigger_policy_of(settings, Surroundings()).rules.threshold == 7


async def test_what_a_job_would_not_take_is_not_counted(bench):
    """An import of old records, and episodes that are longer than a job takes."""
    await bench.score(20, ended=bench.now - 31 * 24 * HOUR)
    await bench.score(20, turns=51)
    choice = await bench.trigger.run_once()
    assert choice.kind is WaitReason.READY
    assert choice.sentence.startswith(
        "20 new trajectories since the last training, 10 are enough: 0 of 3"
    )
    await bench.score(4)
    assert isinstance(await bench.trigger.run_once(), TrainNow)


async def test_a_model_that_nobody_validates_holds_up_nobody(bench):
    """Two were trained at once; the newer waits for a person's word, and the older is passed over."""
    bench.restart(deploys=True)
    for _ in range(2):
        await bench.score(10)
        await bench.trigger.request_training(ManualRequest("ann", force=True))
    older, newer = await bench.end(), await bench.end()
    await bench.score(10)
    assert (await bench.trigger.run_once()).kind is WaitReason.MODEL

    def unit(tx):
        tx.execute("UPDATE models SET state = 'passed' WHERE model_id = ?", (newer,))
        tx.execute(
            "INSERT INTO rollouts (rollout_id, model_id, baseline_id, state, share, body, changed_us) "
            "VALUES ('r-1', ?, 'tiny', 'awaiting_approval', 0, ?, 0)",
            (newer, b"{}"),
        )

    await bench.store.database.write(unit)
    assert (await bench.models.get(older)).state == "trained"
    assert isinstance(await bench.trigger.run_once(), TrainNow)


async def test_another_process_that_has_another_reason_was_quicker(bench):
    """Both looked before either asked: there is still one model at a time."""
    model_id = await a_deployed_model(bench)
    await bench.score(5, model=model_id, raw=0.2)
    await bench.score(10, window="v")
    looked = await bench.signals.signals(50, 20, "tiny")
    assert (await bench.trigger.run_once()).reason == "performance_degradation"

    async def as_it_was(*_):
        return replace(looked, deployed=None)

    bench.signals.instead["signals"] = as_it_was
    choice = await bench.trigger.run_once()
    bench.signals.instead.clear()
    assert (choice.kind, choice.sentence) == (
        WaitReason.JOB,
        "Another process has just asked for it.",
    )
    assert await bench.reasons() == ["threshold_reached", "performance_degradation"]
