"""A row that cannot be read ends no stage: the others go on, and it is buried once."""

import random
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from tests.collect.test_collector import Bench as Collecting
from tests.dataset.data_cases import grouped, put
from tests.dataset.data_cases import request as training
from tests.poison.kinds import COLUMNS, GARBAGE, between, poisons
from tests.support import raw, trajectory
from tests.trigger.test_trigger import Bench as Triggering
from upswing.app.archive import Archive, archive_finished_hours
from upswing.app.outbox import Relay
from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.collect.core.evaluate import refusal
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.contracts import Feedback, TrainingRequest, Trajectory, decode
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.topics import REWARD, TRAJECTORY
from upswing.deploy.repository import RolloutRepository
from upswing.errors import Rejected, Transient
from upswing.infra.dead_letters import DeadLetterWriter
from upswing.infra.nats.bus import Bus
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.decisions import Decisions
from upswing.infra.sql.keys import Keys
from upswing.infra.sql.models import Models
from upswing.infra.sql.rewards import Rewards
from upswing.infra.sql.store import to_microseconds
from upswing.records import Receipt
from upswing.redact import Redactor
from upswing.reward.core.assess import RewardRules
from upswing.reward.core.weights import component_weights
from upswing.reward.group_judge import GroupJudge
from upswing.reward.judge import Judge
from upswing.reward.metrics import RewardMetrics
from upswing.reward.outcome_repository import OutcomeRepository
from upswing.reward.rewarder import Rewarder
from upswing.train.core.job_states import queued_status
from upswing.train.core.recipe import build_recipe
from upswing.train.jobs.data import TrainingData
from upswing.validate.production import ProductionReader
from upswing.validate.repository import Validations

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
REDACTOR = Redactor()


def wrong(kind):
    def is_wrong(body):
        try:
            decode(kind, body)
        except Rejected:
            return True
        return False

    return is_wrong


BODIES = poisons(Trajectory, wrong(Trajectory))
WORDS = poisons(Feedback, wrong(Feedback))
REQUESTS = poisons(TrainingRequest, wrong(TrainingRequest))


def admitted(document=None):
    return admit(raw(document or trajectory()), REDACTOR, AdmissionLimits()).admitted


def hashed(body):
    """So that the hash fits: it is the content that a stage stumbles over."""
    return sha256(body).digest()


async def fill(store, sound=12, bodies=BODIES, now=NOW):
    """Sound trajectories among poisoned ones; the ids of the sound ones."""
    good = [admitted() for _ in range(sound)]
    bad = [replace(admitted(), body=body, content_hash=hashed(body)) for body in bodies]
    for each in between(good, bad):
        await store.take(each, door="nats", now=now, stream_seq=None, announce=False)
    return [each.trajectory_id for each in good]


async def letters(store, *stages):
    sql = "SELECT stage FROM dead"
    rows = await store.database.read(lambda tx: tx.rows(sql))
    return sum(row[0] in stages for row in rows)


async def execute(store, sql, *params):
    return await store.database.write(lambda tx: tx.execute(sql, params))


def rewarder(store, dead_letters, rewards=None):
    return Rewarder(
        store,
        rewards or Rewards(store.database),
        RewardRules(component_weights({})),
        RewardMetrics(CollectorRegistry()),
        clock=lambda: NOW,
        dead_letters=dead_letters,
    )


async def rounds(stage):
    while await stage.run_once():
        pass


def test_there_are_about_three_hundred_kinds_of_poison():
    assert [len(BODIES) >= 300, len(REQUESTS) >= 150, len(WORDS) >= 100] == [True] * 3


# ── reward ───────────────────────────────────────────────────────────────────────────────────────


async def test_every_sound_trajectory_is_scored_among_poisoned_ones(store, dead_letters):
    sound = await fill(store)
    await rounds(rewarder(store, dead_letters))
    rewards = Rewards(store.database)
    assert all([await rewards.newest(key) for key in sound])
    assert await letters(store, "reward") == len(BODIES)
    announced = [entry for entry in await store.outbox(1000) if entry.subject == REWARD]
    assert len(announced) == len(sound)
    await rounds(rewarder(store, dead_letters))
    assert await letters(store, "reward") == len(BODIES), "each is buried once"


async def test_poisoned_words_leave_the_reward_to_the_others(store, dead_letters):
    row = admitted()
    await store.take(row, door="nats", now=NOW, stream_seq=None, announce=False)
    said = EXAMPLES[Feedback] | {"trajectory_id": row.trajectory_id}
    word, _ = admit_feedback(raw(said), REDACTOR, AdmissionLimits())
    word = replace(word, trusted=True)
    stage = rewarder(store, dead_letters)
    await rounds(stage)
    for body in between([word.body] * 3, WORDS):
        key = str(uuid.uuid4())
        each = replace(word, feedback_id=key, body=body, content_hash=hashed(body))
        await store.take_feedback(each, now=NOW, announce=False)
    await rounds(stage)
    reward = await Rewards(store.database).newest(row.trajectory_id)
    assert reward.reward_components["user_feedback"].score > 0.5
    await dead_letters.flush()
    assert await letters(store, "reward") == len(WORDS)


@pytest.mark.parametrize("seed", range(12))
async def test_no_word_waits_behind_a_trajectory_that_was_set_aside(store, dead_letters, seed):
    """Whatever order trajectories, words and rounds come in: every word on sound work counts."""
    rng = random.Random(seed)
    stage, rewards = rewarder(store, dead_letters), Rewards(store.database)
    events = ["sound"] * 4 + ["bad"] * 3 + ["round"] * 4
    rng.shuffle(events)
    taken, spoken = [], set()

    async def speak_of(row):
        said = EXAMPLES[Feedback] | {
            "trajectory_id": row.trajectory_id,
            "feedback_id": str(uuid.uuid4()),
        }
        word, _ = admit_feedback(raw(said), REDACTOR, AdmissionLimits())
        await store.take_feedback(replace(word, trusted=True), now=NOW, announce=False)
        spoken.add(row.trajectory_id)

    for event in events:
        if event == "round":
            await rounds(stage)
        else:
            row, broken = admitted(), rng.choice(BODIES)
            if event == "bad":
                row = replace(row, body=broken, content_hash=hashed(broken))
            await store.take(row, door="nats", now=NOW, stream_seq=None, announce=False)
            taken.append((event, row))
        if taken and rng.random() < 0.6:
            await speak_of(rng.choice(taken)[1])
    for _, row in rng.sample(taken, len(taken)):
        await speak_of(row)
    await rounds(stage)
    for event, row in taken:
        reward = await rewards.newest(row.trajectory_id)
        assert (reward is None) == (event == "bad")
        assert reward is None or reward.reward_components["user_feedback"].score > 0.5
    last = await store.database.read(lambda tx: tx.row("SELECT MAX(seq) FROM feedback"))
    assert await store.cursor("feedback") == last[0]


SCORED = (
    "complexity",
    "turns",
    "seconds",
    "tokens",
    "pnl",
    "balance",
    "total",
    "raw_total",
    "verified",
    "reported",
    "feedback",
    "judge_score",
    "domain",
    "principal",
    "task_id",
    "answers",
    "agent_id",
)


async def spoil(store, table, columns, key, keys):
    """A row for each column and each kind of content that does not belong there."""
    spoils = [(column, value) for column in columns for value in COLUMNS]
    for (column, value), name in zip(spoils, keys, strict=False):
        await execute(store, f"UPDATE {table} SET {column} = ? WHERE {key} = ?", value, name)
    return min(len(spoils), len(keys))


async def test_the_past_is_remembered_though_columns_of_it_are_spoilt(store, dead_letters):
    sound = await fill(store, sound=150, bodies=())
    await rounds(rewarder(store, dead_letters))
    await spoil(store, "scored", SCORED, "trajectory_id", sound[:140])
    await execute(store, "UPDATE component_scores SET score = 'x' WHERE trajectory_seq % 3 = 0")
    new = await fill(store, sound=2, bodies=BODIES[:5])
    stage = rewarder(store, dead_letters)
    await rounds(stage)
    await stage.maintain()
    rewards = Rewards(store.database)
    assert all([await rewards.newest(key) for key in new])
    assert len(await rewards.members()) >= 12


async def test_a_reward_that_the_store_cannot_keep_holds_up_nobody(store, dead_letters):
    sound = await fill(store, bodies=())

    class Picky(Rewards):
        async def publish(self, batch, **options):
            if any(str(new.reward.trajectory_id) == sound[5] for new in batch):
                raise OverflowError("Python int too large to convert to SQLite INTEGER")
            await super().publish(batch, **options)

    stage = rewarder(store, dead_letters, Picky(store.database))
    await rounds(stage)
    rewards = Rewards(store.database)
    found = [await rewards.newest(key) is not None for key in sound]
    assert found == [place != 5 for place in range(len(sound))]
    assert await letters(store, "reward") == 1
    (dead,) = await store.list_dead_letters()
    assert "OverflowError" in dead.letter.detail
    assert "Traceback" in dead.letter.detail


async def test_a_trajectory_that_was_set_aside_is_scored_once_its_row_is_mended(
    store, dead_letters
):
    sound = await fill(store, sound=3, bodies=())
    key = sound[1]
    (body,) = [(await store.trajectory(key)).admitted.body]
    change = "UPDATE trajectories SET body = ?, content_hash = ? WHERE trajectory_id = ?"
    await execute(store, change, b"\xff", hashed(b"\xff"), key)
    stage = rewarder(store, dead_letters)
    await rounds(stage)
    rewards = Rewards(store.database)
    assert await rewards.newest(key) is None
    with pytest.raises(Rejected):
        await stage.score_again(key)
    await execute(store, change, body, hashed(body), key)
    assert await stage.score_again(key)
    assert await rewards.newest(key) is not None
    assert not await stage.score_again("nobody")


async def test_groups_are_judged_though_one_breaks_the_judge(store, dead_letters):
    for window in ("2026-01-01T01:00", "2026-01-01T02:00", "2026-01-01T03:00"):
        for _ in range(4):
            made = trajectory(metadata={"window_id": window}, agent_id=str(uuid.uuid4()))
            await store.take(admitted(made), door="nats", now=NOW, stream_seq=None, announce=False)
    for body in GARBAGE:
        await execute(
            store,
            "INSERT INTO outcomes VALUES ('2026-01-01T01:00', '', ?, ?, 0)",
            str(uuid.uuid4()),
            body,
        )
    await rounds(rewarder(store, dead_letters))
    asked = []

    async def ask(messages):
        asked.append(messages)
        raise KeyError("a judge of somebody's own")

    outcomes = OutcomeRepository(store.database)
    judging = GroupJudge(
        store,
        Rewards(store.database),
        outcomes,
        rewarder(store, dead_letters),
        Judge(ask, policy=object()),
        RewardMetrics(CollectorRegistry()),
        clock=lambda: NOW,
        window_hours=1,
        min_agents=2,
        dead_letters=dead_letters,
    )
    assert await judging.judge_ended_windows() == 3
    assert await judging.judge_ended_windows() == 0, "each is dealt with once"
    assert await letters(store, "reward") >= 3


# ── archive, data sets, trigger, validation ──────────────────────────────────────────────────────


async def test_the_archive_holds_every_sound_line_and_can_be_erased_from(
    store, dead_letters, tmp_path
):
    sound = await fill(store, now=NOW - timedelta(hours=3))
    await execute(store, "UPDATE trajectories SET stored_us = ? WHERE seq = 20", "x")
    await execute(
        store, "UPDATE trajectories SET stored_us = ? WHERE seq = 30", to_microseconds(NOW) * 40
    )
    archive = Archive(str(tmp_path))
    await archive_finished_hours(store, archive, NOW, dead_letters)
    lines = [line async for _, some in archive.read() for line in some]
    names = {msgspec.json.decode(line)["trajectory_id"] for line in lines}
    assert set(sound) <= names | {None}
    assert await archive.remove(NOW - timedelta(hours=3), set(sound[:2])) == 2


async def test_a_data_set_is_gathered_among_poison(store, dead_letters):
    good = [
        await put(store, grouped(place, agent), total=(place + ord(agent)) % 7 / 7)
        for place in range(10)
        for agent in "abcdef"
    ]
    bad = [await put(store, grouped(place % 10, "x"), total=0.5) for place in range(200)]
    for row, body in zip(bad, BODIES, strict=False):
        await execute(
            store,
            "UPDATE trajectories SET body = ?, content_hash = ? WHERE trajectory_id = ?",
            body,
            hashed(body),
            row.trajectory_id,
        )
    odd = [await put(store, grouped(place % 10, "y"), total=0.5) for place in range(60)]
    names = [row.trajectory_id for row in odd]
    await spoil(
        store,
        "trajectories",
        ("ended_us", "turns", "domain", "task_id", "model"),
        "trajectory_id",
        names,
    )
    for body in WORDS[:50]:
        await execute(
            store,
            "INSERT INTO feedback (feedback_id, content_hash, body, trajectory_id, principal, "
            "stored_us) VALUES (?, ?, ?, ?, '', 0)",
            str(uuid.uuid4()),
            hashed(body),
            body,
            good[0].trajectory_id,
        )
    asked = training()
    data = TrainingData(DataSets(store.database), dead_letters=dead_letters)
    made = await data.gather(
        asked, build_recipe(asked, {}), ancestor_jobs=(), excluded_ids=(), now=NOW
    )
    assert {row.trajectory_id for row in good} <= {each.trajectory_id for each in made.samples}
    await data._store.demonstrations()
    await dead_letters.flush()
    assert await letters(store, "train") > 15  # words that show nothing are not read here


JOB = (
    "request",
    "status",
    "recipe",
    "failures",
    "created_us",
    "not_before_us",
    "started_us",
    "ended_us",
    "lease_us",
    "covers_seq",
    "attempt",
)


async def test_sound_jobs_are_claimed_and_the_trigger_looks_on_among_spoilt_jobs(store):
    bench = Triggering(store)
    jobs = bench.jobs
    count = len(JOB) * len(COLUMNS)
    for place in range(count + 20):
        name = f"job-{place}"
        asked = msgspec.structs.replace(
            decode(TrainingRequest, raw(EXAMPLES[TrainingRequest])), training_job_id=name
        )
        await jobs.submit(asked, b"{}", queued_status(name, NOW, "waits"), now=NOW)
    await spoil(store, "jobs", JOB, "job_id", [f"job-{place}" for place in range(count)])
    await bench.trigger.run_once()
    await jobs.list(limit=1000)
    claimed = set()
    while (job := await jobs.claim("w", NOW, timedelta(hours=1))) is not None:
        claimed.add(job.job_id)
    assert {f"job-{place}" for place in range(count, count + 20)} <= claimed


async def test_the_trigger_looks_on_over_spoilt_rewards_models_and_decisions(store, dead_letters):
    bench = Triggering(store)
    sound = await fill(store, sound=150, bodies=())
    await rounds(rewarder(store, dead_letters))
    await spoil(store, "scored", SCORED, "trajectory_id", sound[:140])
    await spoil_models(store)
    for column in ("decided_us", "inputs", "outcome", "sentence", "kind"):
        for value in COLUMNS:
            await execute(
                store,
                "INSERT INTO decisions (decision_id, stage, kind, sentence, inputs, outcome, "
                "decided_us) VALUES (?, 'trigger', 'k', 's', ?, ?, 1)",
                str(uuid.uuid4()),
                b"{}",
                b"{}",
            )
            await execute(
                store,
                f"UPDATE decisions SET {column} = ? WHERE seq = (SELECT MAX(seq) FROM decisions)",
                value,
            )
    await execute(store, "INSERT INTO cursors VALUES ('trigger slot', 'x')")
    await bench.trigger.run_once()
    await bench.trigger.learnable()
    assert (await Decisions(store.database).latest_time()) is not None
    assert await Decisions(store.database).list(limit=1000)


async def spoil_models(store):
    models = Models(store.database)
    columns = (
        "created_us",
        "deployed_us",
        "samples",
        "state",
        "final_reward",
        "baseline_reward",
        "parent",
    )
    spoils = [(column, value) for column in columns for value in COLUMNS]
    for place in range(len(spoils) + 3):
        name = await models.register(
            job_id=f"job-{place}",
            base_model="b",
            parent=None,
            snapshot="",
            path="p",
            card="",
            samples=1,
            final_reward=0.5,
            now=NOW,
        )
        if place < len(spoils):
            column, value = spoils[place]
            await execute(
                store,
                "UPDATE models SET state = 'deployed', deployed_us = 5 WHERE model_id = ?",
                name,
            )
            await execute(store, f"UPDATE models SET {column} = ? WHERE model_id = ?", value, name)
    return models


async def test_models_validations_and_the_newest_trajectories_are_read_among_spoilt_ones(store):
    models = await spoil_models(store)
    assert len(await models.list()) >= 3
    await models.serving()
    await fill(store)
    assert len(await ProductionReader(store.database).newest()) >= 12
    validations = Validations(store.database)
    for place, body in enumerate([*GARBAGE, b'["s"]']):
        await validations.begin(f"run-{place}", "a", "b", ["s"], NOW)
        await execute(
            store, "UPDATE validations SET suites = ? WHERE run_id = ?", body, f"run-{place}"
        )
        await execute(
            store,
            "UPDATE validations SET report = ?, state = 'running' WHERE run_id = ?",
            body if place % 2 else None,
            f"run-{place}",
        )
    assert f"run-{len(GARBAGE)}" in [row.run_id for row in await validations.unfinished()]


async def test_rollouts_and_their_evidence_are_read_among_spoilt_ones(store, dead_letters):
    rollouts = RolloutRepository(store.database)
    await rollouts.take_over("one", NOW)
    for place, body in enumerate([*GARBAGE, *COLUMNS]):
        await execute(
            store,
            "INSERT INTO rollouts (rollout_id, model_id, baseline_id, state, share, body, changed_us) "
            "VALUES (?, 'm', 'b', 'ramping', 0.1, ?, 0)",
            f"r-{place}",
            body,
        )
        await execute(store, "INSERT INTO evidence VALUES (?, 0, 0, ?, 0)", f"r-{place}", body)
    await spoil_models(store)
    standing = await rollouts.deployment_rows()
    assert standing.models
    sound = await fill(store)
    await rounds(rewarder(store, dead_letters))
    await execute(store, "UPDATE rewards SET body = ? WHERE seq % 2 = 0", b"\xff")
    seen = await rollouts.rewards_after(0, [EXAMPLES[Trajectory]["metadata"]["model"]])
    assert seen is not None
    assert len(sound) == 12
    for body in [*WORDS[:60], *GARBAGE]:
        await execute(
            store,
            "INSERT INTO feedback (feedback_id, content_hash, body, trajectory_id, principal, "
            "stored_us) VALUES (?, ?, ?, ?, '', 0)",
            str(uuid.uuid4()),
            hashed(body),
            body,
            sound[0],
        )
    await rollouts.complaints_after(0, ["m"])


# ── doors, relay, keys, dead letters ─────────────────────────────────────────────────────────────


async def test_the_collector_takes_every_sound_message_among_poison(store):
    bench = Collecting(store)
    documents = [raw(trajectory()) for _ in range(12)]
    payloads = between(documents, BODIES)
    notes = await bench.feed(
        *(bench.delivery(payload, seq=place) for place, payload in enumerate(payloads, 1))
    )
    assert all(each[-1] == "ack" for each in notes)
    assert (await store.counts())["trajectories"] == len(documents)
    assert await letters(store, "collect") == len(BODIES)


async def test_a_message_over_which_taking_breaks_is_buried_and_acknowledged(store, dead_letters):
    bench = Collecting(store, dead_letters)
    evaluator = bench.evaluator

    def breaks(kind, message):
        if b"break me" in message:
            raise ZeroDivisionError("nobody foresaw this")
        return evaluator(kind, message)

    bench.evaluator = breaks
    documents = [trajectory(), trajectory(metadata={"note": "break me"}), trajectory()]
    notes = await bench.feed(
        *(bench.delivery(raw(each), seq=place) for place, each in enumerate(documents, 1))
    )
    assert notes == [["ack"], ["erase", "ack"], ["ack"]]
    assert (await store.counts())["trajectories"] == 2
    (dead,) = await store.list_dead_letters()
    assert dead.letter.reason == "unreadable"
    assert "nobody foresaw this" in dead.letter.detail


async def test_open_trajectories_that_cannot_be_ended_are_closed_and_the_others_end(
    store, dead_letters
):
    from tests.poison.test_admission import Door

    def letters_of(store):
        return DeadLetterWriter(
            store.database.bad_rows,
            store,
            lambda body, error: refusal(body, error, REDACTOR),
            clock=lambda: NOW,
        )

    door = Door(letters_of)
    await door.store.prepare()
    episodes = OpenTrajectories(door.store.database)
    sound = []
    for place, body in enumerate([*GARBAGE, *COLUMNS]):
        begun = await door.steps.start(raw({"agent_id": "a"}))
        await door.steps.step(begun.id, raw({"action": {"type": "look"}}))
        sound.append(begun.id)
        key = str(uuid.uuid4())
        for table, column in (("open_trajectories", "head"), ("open_steps", "body")):
            spoilt = key if (place % 2) == (table == "open_steps") else None
            if spoilt:
                fine = await door.steps.start(raw({"agent_id": "a"}))
                await door.steps.step(fine.id, raw({"action": {"type": "look"}}))
                await execute(
                    door.store,
                    f"UPDATE {table} SET {column} = ? WHERE trajectory_id = ?",
                    body,
                    fine.id,
                )
    await door.steps.end_stale(timedelta(seconds=-1))
    assert all([await door.store.trajectory(key) for key in sound])
    assert await episodes.stale(NOW + timedelta(days=1)) == []
    assert await letters(door.store, "collect") >= len(GARBAGE)
    door.store.close()


class Taking:
    """A bus that takes all but some."""

    def __init__(self, refuses=()):
        self.taken, self.refuses = [], set(refuses)

    async def publish(self, entries):
        taken = [entry for entry in entries if entry.payload not in self.refuses]
        self.taken += [entry.payload for entry in taken]
        return [Receipt(entry.seq, "S", entry.seq) for entry in taken]


SUBJECTS = [
    "",
    " ",
    "a b",
    "agent.rl.nobody.v1",
    "*",
    ">",
    "agent..x",
    "x" * 5000,
    "\n",
    "é",
    "a.>",
    ".",
    "\0",
]


async def test_the_relay_sends_every_sound_message_among_those_that_can_never_be_sent(
    store, dead_letters
):
    async def post(subject, msg_id, payload):
        await execute(
            store,
            "INSERT INTO outbox (subject, msg_id, payload) VALUES (?, ?, ?)",
            subject,
            msg_id,
            payload,
        )

    bad = [(subject, "id", b"bad") for subject in SUBJECTS]
    bad += [(TRAJECTORY, msg_id, b"bad") for msg_id in ("", "a\r\nb", "é", "\0")]
    bad += [(TRAJECTORY, "id", payload) for payload in ("x", 5, 1e308)]
    bad += [(b"\xff", "id", b"bad"), (TRAJECTORY, b"\xff", b"bad")]
    bad += [(TRAJECTORY, "long", b"x" * 2_000_000)]
    for each in between([(TRAJECTORY, f"m-{n}", b"sound %d" % n) for n in range(8)], bad):
        await post(*each)

    class Client:
        max_payload = 1 << 20

    bus = Taking()
    relay = Relay(store, bus, check=Bus(Client(), None).check_message, dead_letters=dead_letters)
    for _ in range(3):
        await relay.send()
    await dead_letters.flush()
    assert [each for each in bus.taken if each.startswith(b"sound")] == [
        b"sound %d" % n for n in range(8)
    ]
    assert b"bad" not in bus.taken
    assert await letters(store, "relay") == len(bad)
    assert (await store.counts())["outbox"] == 0


async def test_a_message_that_the_bus_never_takes_is_given_up_after_a_while(store, dead_letters):
    for n in range(60):
        await execute(
            store,
            "INSERT INTO outbox (subject, msg_id, payload) VALUES (?, ?, ?)",
            TRAJECTORY,
            f"{n}",
            b"%d" % n,
        )
    bus = Taking(refuses={b"0"})
    relay = Relay(store, bus, dead_letters=dead_letters)
    for n in range(30):
        await execute(
            store,
            "INSERT INTO outbox (subject, msg_id, payload) VALUES (?, 'x', ?)",
            TRAJECTORY,
            b"next %d" % n,
        )
        await relay.send()
    assert await letters(store, "relay") == 1


async def test_a_bus_that_is_away_makes_no_dead_letters(store, dead_letters):
    class Away:
        async def publish(self, _):
            return []

    await execute(
        store, "INSERT INTO outbox (subject, msg_id, payload) VALUES (?, 'x', ?)", TRAJECTORY, b"x"
    )
    relay = Relay(store, Away(), dead_letters=dead_letters)
    for _ in range(50):
        assert await relay.send()
    assert await letters(store, "relay") == 0


async def test_keys_and_dead_letters_are_listed_among_spoilt_ones(store, dead_letters):
    keys = Keys(store.database)
    await keys.add("k", "n", "operator", "secret", NOW)
    for place, value in enumerate(COLUMNS):
        await execute(
            store,
            "INSERT INTO api_keys VALUES (?, 'n', 'operator', ?, ?, NULL)",
            f"k{place}",
            b"%d" % place,
            value,
        )
    await keys.load()
    assert keys.find("secret") is not None
    for body in [*GARBAGE, *COLUMNS]:
        await execute(
            store,
            "INSERT INTO dead (dead_id, stage, reason, body, created_us) VALUES (?, 's', 'r', ?, 0)",
            str(uuid.uuid4()),
            body,
        )
    await dead_letters.flush()
    found = await store.list_dead_letters(limit=1000)
    assert {each.stage for each in found} == {"keys"}


async def test_a_store_that_is_away_buries_nobody(dead_letters):
    def read(_):
        raise Transient("not now")

    with pytest.raises(Transient):
        dead_letters.bad_rows.read_each("reward", "t", [1], read)
    assert dead_letters.bad_rows.pending() == []
