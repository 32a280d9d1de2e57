"""A part in which something breaks that nobody foresaw goes on, and says so."""

import asyncio
import logging
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from tests.deploy.controlling import BASE, Ground
from tests.poison.kinds import GARBAGE, between
from tests.poison.test_stages import REQUESTS, letters
from tests.support import raw, trajectory
from tests.train.test_submission import Bench as Training
from tests.train.test_submission import Delivery, asking, request_consumer
from upswing.app.maintenance import Maintenance, TrajectoryStores
from upswing.cli import main
from upswing.contracts import decode_trajectory
from upswing.contracts.topics import TRAINING, TRAINING_REQUEST
from upswing.errors import Damaged, Transient
from upswing.gateway.core.episode_table import EpisodeTable
from upswing.gateway.core.frames import RecordOutcome
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.recorder.publisher import Publisher
from upswing.gateway.recorder.recorder import EpisodeRecorder, PendingEpisode
from upswing.infra.backoff import Backoff
from upswing.infra.dead_letters import BadRowMetrics
from upswing.infra.spool_log import SpoolEntry, SpoolEntryKind
from upswing.infra.sql.store import open_store, open_store_read_only
from upswing.infra.tasks import run_with_backoff
from upswing.records import Receipt, StreamMessage
from upswing.train.jobs.queue import TrainingWorker
from upswing.validate.core.harvest import harvest_tasks
from upswing.validate.core.task import Exact, ValidationTask
from upswing.validate.sample_score_store import FilePinStore

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


# ── parts that run for ever ──────────────────────────────────────────────────────────────────────


async def test_a_part_that_breaks_begins_again_and_is_counted(caplog):
    tries, registry = [], CollectorRegistry()
    metrics = BadRowMetrics(registry)

    async def work():
        tries.append(1)
        if len(tries) < 3:
            raise KeyError("nobody foresaw this")

    with caplog.at_level(logging.ERROR):
        await run_with_backoff(
            "reward", work, on_failure=metrics.count_round, backoff=Backoff(0.001, 0.01)
        )
    assert len(tries) == 3
    assert registry.get_sample_value("upswing_rounds_failed_total", {"part": "reward"}) == 2
    assert "nobody foresaw this" in caplog.text
    assert {record.action for record in caplog.records} == {"alert"}


async def test_a_damaged_store_ends_it():
    async def work():
        raise Damaged("The store's file is damaged.")

    with pytest.raises(Damaged):
        await run_with_backoff(
            "reward",
            work,
            on_failure=lambda _: None,
            fatal=(Damaged,),
            backoff=Backoff(0.001, 0.01),
        )


async def test_a_part_that_cannot_begin_again_ends():
    async def work():
        raise OSError("the port is taken")

    with pytest.raises(OSError, match="taken"):
        await run_with_backoff("http", work, on_failure=lambda _: None, restart=False)


class Away:
    """Every method of it breaks."""

    def __getattr__(self, name):
        async def broken(*_, **__):
            raise RuntimeError(f"{name} broke")

        return broken


@pytest.mark.parametrize(
    "error", [RuntimeError("broke"), Transient("away"), KeyError("x"), OSError("x")]
)
async def test_a_chore_that_fails_keeps_no_other_from_its_turn(error):
    done, failed = [], []

    async def fails():
        raise error

    async def works():
        done.append(1)

    away = Away()
    maintenance = Maintenance(
        TrajectoryStores(away, away, away, None, away),
        away,
        clock=lambda: NOW,
        stage_chores=[fails, works, fails, works],
        failed=failed.append,
    )
    await maintenance.run_once()
    assert len(done) == 2
    assert set(failed) == {"upkeep"}


# ── the controller ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("body", GARBAGE[:20], ids=range(20))
async def test_a_canary_whose_evidence_is_spoilt_is_looked_at_from_now_on(body):
    ground = Ground()
    controller = await ground.started()
    name = ground.trained(1)
    await controller.admit()
    await controller.tick()
    assert ground.shares[name] > 0
    rollout = ground.rollout(name).rollout_id
    await ground.pass_time(controller, timedelta(minutes=10))
    ground.store.records[rollout] = replace(ground.store.records[rollout], body=body)
    ground.reward[name] = 0.1
    await ground.pass_time(controller, timedelta(minutes=60), per_look=300)
    assert ground.shares == {BASE: 100}
    assert ground.state(name) == "rolled_back"


async def test_a_rollout_that_cannot_be_read_keeps_no_other_from_going_out():
    ground = Ground()
    controller = await ground.started()
    name = ground.trained(1)
    await controller.admit()
    row = next(iter(ground.store.rollouts.values()))
    for place, body in enumerate(GARBAGE):
        spoilt = replace(row, rollout_id=f"bad-{place}", model_id="nobody", body=body)
        ground.store.rollouts[f"bad-{place}"] = spoilt
    await ground.pass_time(controller, timedelta(hours=30))
    assert ground.state(name) == "deployed"
    await controller.rollouts()
    assert controller.executor.env.dead_letters.bad_rows.pending()


# ── validation ───────────────────────────────────────────────────────────────────────────────────


async def test_pins_are_read_though_one_is_spoilt(tmp_path):
    pins = FilePinStore(tmp_path, ValidationTask)
    task = ValidationTask(
        task_id="pin-a-1",
        messages=({"role": "user", "content": "1+1?"},),
        check=Exact(any_of=("2",)),
    )
    await pins.add(task)
    for place, body in enumerate(GARBAGE):
        (tmp_path / "pins" / f"pin-{place}-1.json").write_bytes(body)
    assert [each.task_id for each in await pins.pinned()] == ["pin-a-1"]


BAD = [
    None,
    "",
    "\0",
    1e308,
    2**63,
    [],
    [[]],
    {},
    {"kind": []},
    {"kind": "number", "value": 10**400},
    {"kind": "exact", "any_of": [1]},
    {"answer": {}},
    ["x", 1],
    {"kind": "pinned"},
]


async def test_tasks_are_harvested_whatever_others_say_is_right():
    found = []
    for place, told in enumerate(BAD):
        for key in ("check", "ground_truth", "tools", "window_id"):
            made = trajectory(metadata={key: told})
            made["turns"][-1]["action"] = {"type": "response", "raw_response": "x"}
            found.append((f"bad-{place}-{key}", decode_trajectory(raw(made))))
    good = trajectory(metadata={"ground_truth": "Paris"})
    good["turns"][-1]["observation"]["content"] = "Which city? The same request counts once."
    good["turns"][-1]["action"] = {"type": "response", "raw_response": "x"}
    found.append(("good", decode_trajectory(raw(good))))
    tasks = harvest_tasks(found, lambda _: True)
    assert any(task.check == Exact(any_of=("Paris",)) for task in tasks)


# ── training ─────────────────────────────────────────────────────────────────────────────────────


async def test_sound_requests_become_jobs_among_poison_on_their_topic(store, dead_letters):
    bench = Training(store)
    sound = [raw(asking(training_job_id=f"job-{n}")) for n in range(6)]
    for seq, payload in enumerate(between(sound, REQUESTS), 1):
        made = Delivery(StreamMessage(TRAINING, TRAINING_REQUEST, seq, 1, payload))
        await request_consumer(store, bench.desk, made, dead_letters).handle([made])
        assert made.notes[-1] == "ack"
    assert {job.job_id for job in await bench.jobs.list()} == {f"job-{n}" for n in range(6)}
    assert await letters(store, "train") == len(REQUESTS)


async def test_a_request_over_which_the_desk_breaks_is_buried(store, dead_letters):
    class Broken:
        async def submit_message(self, _):
            raise ZeroDivisionError("nobody foresaw this")

    made = Delivery(StreamMessage(TRAINING, TRAINING_REQUEST, 1, 1, b"{}"))
    await request_consumer(store, Broken(), made, dead_letters).handle([made])
    assert made.notes == ["erase", "ack"]
    assert await letters(store, "train") == 1


@pytest.mark.parametrize("column", ["recipe", "failures"])
async def test_a_job_that_nobody_can_begin_fails_and_the_next_is_claimed(
    store, dead_letters, column, tmp_path
):
    bench = Training(store)
    for n, body in enumerate(GARBAGE):
        await bench.desk.submit_message(raw(asking(training_job_id=f"job-{n}")))
        sql = f"UPDATE jobs SET {column} = ? WHERE job_id = ?"
        await store.database.write(lambda tx, b=body, n=n, q=sql: tx.execute(q, (b, f"job-{n}")))

    class Parts:
        jobs, clock, folder = bench.jobs, staticmethod(lambda: NOW), tmp_path

        class limits:  # noqa: N801
            lease = timedelta(minutes=1)

        @staticmethod
        def on_change():
            pass

    Parts.dead_letters = dead_letters
    worker = TrainingWorker("w", Parts)
    while await worker.run_next_job():
        pass
    states = {job.state for job in await bench.jobs.list()}
    assert states <= {"failed"}


# ── the gateway ──────────────────────────────────────────────────────────────────────────────────


async def test_a_recorder_that_breaks_over_an_episode_loses_no_other():
    class Picky:
        def __init__(self):
            self.kept = []

        async def record_episodes(self, frames):
            if b"bad" in frames:
                raise ValueError("nobody foresaw this")
            self.kept += frames
            return [RecordOutcome("t", "published") for _ in frames]

        async def record_dead_letter(self, rejected):
            return RecordOutcome(rejected.trajectory_id, "published")

    process = Picky()
    recorder = EpisodeRecorder(process, GatewayLimits(), now=lambda: 0.0, wall_clock=lambda: 0.0)
    for frame in (b"one", b"bad", b"two"):
        recorder._backlog.append(PendingEpisode(frame.decode(), frame.decode(), frame))
    for _ in range(12):
        try:
            if not recorder._backlog:
                break
            await recorder._send_batch()
        except ValueError:
            continue
    assert sorted(process.kept) == [b"one", b"two"]
    assert recorder.counts.refused == 1


async def test_an_answer_that_cannot_be_entered_loses_no_other():
    entered = []
    episodes = {name: SimpleNamespace(has_gap=False) for name in ("one", "bad", "two")}

    class Picky(EpisodeTable):
        def add(self, episode, record):
            if record.name == "bad":
                raise KeyError("nobody foresaw this")
            entered.append(record.name)

    recorder = EpisodeRecorder(
        None,
        GatewayLimits(),
        now=lambda: 0.0,
        wall_clock=lambda: 0.0,
        episode_table=Picky(max_episodes=10, max_bytes=1000, idle_seconds=1.0),
    )
    for name, episode in episodes.items():
        recorder.add_exchange(episode, SimpleNamespace(name=name, held_bytes=1))
    recorder.process_inbox()
    assert entered == ["one", "two"]
    gaps = [name for name, episode in episodes.items() if episode.has_gap]
    assert gaps == ["bad"], "it is counted as lost when it ends"


async def test_a_spool_is_emptied_though_some_of_it_is_spoilt(tmp_path):
    class Bus:
        connected, sent, max_message_bytes = True, [], 1 << 20

        async def publish(self, entries):
            self.sent += [entry.payload for entry in entries]
            return [Receipt(entry.seq, "s", 1) for entry in entries]

    publisher = Publisher("nats://127.0.0.1:1", str(tmp_path), 1 << 20, Bus())
    sound = [raw({"trajectory_id": f"t-{n}"}) for n in range(5)]
    lines = [body for body in GARBAGE if b"\n" not in body]
    for body in between(sound, lines):
        publisher._spool.append(SpoolEntry(SpoolEntryKind.TRAJECTORY, body))
    for _ in lines:
        await publisher._drain()
    assert [body for body in Bus.sent if body in sound] == sound
    assert len(publisher._spool) == 0


# ── a whole loop ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.live
async def test_a_loop_over_a_spoilt_store_starts_and_works(data):
    """What somebody put into every table; then the loop is started, and agents go on."""
    from tests.conftest import running_loop, served_by
    from tests.gateway.scripted import Scripted
    from tests.storms.doors import questions
    from tests.support import Client, until

    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        before = trajectory()
        assert (await client.send(before))[0] == 202
        await until(lambda: loop.rewards.newest(before["trajectory_id"]))
        await spoil_everything(loop.store)
    async with (
        Scripted() as backend,
        running_loop(data, gateway_port=0, settings=served_by(backend.url)) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        after = [trajectory() for _ in range(5)]
        for document in after:
            assert (await client.send(document))[0] == 202
        for document in after:
            await until(lambda key=document["trajectory_id"]: loop.rewards.newest(key))
        await loop.maintenance.run_once()
        await loop.trigger.run_once()
        _, document = await client("GET", "/openapi.json")
        names = [
            "0-0",
            "1-0",
            "2-3",
            "15-6",
            "1",
            before["trajectory_id"],
            after[0]["trajectory_id"],
        ]
        for path in questions(document, names):
            status, told = await client("GET", path)
            assert status in {200, 404, 409, 422}, (path, status, told)
        assert not loop.failed.is_set()
        assert (await loop.store.counts())["dead"] >= len(GARBAGE)
    reading = open_store_read_only(data)
    assert await reading.list_dead_letters(limit=1000)
    reading.close()


@pytest.mark.live
async def test_agents_that_once_ended_the_loop_are_scored_or_refused(data):
    from tests.conftest import running_loop
    from tests.support import Client, until

    sent = [
        trajectory(metadata={"contact": "ann@example.com"}, task_context={"domain": "coding"}),
        trajectory(metadata={"environment": {"pnl": 2**63}}),
        trajectory(),
    ]
    async with (
        running_loop(data) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        for document in sent:
            assert (await client.send(document))[0] == 202
        status, told = await client(
            "POST", "/v1/trajectories/start", {"agent_id": "a", "domain": ["x"]}
        )
        assert status in {200, 201, 202}
        path = f"/v1/trajectories/{told['id']}"
        assert (await client("POST", f"{path}/steps", {"action": {"type": "look"}}))[0] < 300
        assert (await client("POST", f"{path}/end", {}))[0] < 300
        early = {"agent_id": "a", "start_time": "0001-01-01T00:00:00+02:00"}
        assert (await client("POST", "/v1/trajectories/start", early))[0] == 422
        for key in (*(document["trajectory_id"] for document in sent), told["id"]):
            await until(lambda key=key: loop.rewards.newest(key))
        await loop.maintenance.run_once()
        assert not loop.failed.is_set()


@pytest.mark.parametrize(
    "command",
    [
        "status",
        "dead",
        "export",
        "export --layout table",
        "windows check",
        "learn-report",
        "jobs",
        "models",
        "decisions",
    ],
)
def test_a_person_can_read_a_spoilt_store(data, spoilt, command, capsys):
    shutil.copytree(spoilt, data)
    assert main([*command.split(), "--data", str(data)]) in {0, 1}
    assert "Traceback (most recent call last):\n  File" not in capsys.readouterr().out


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """A folder whose store has garbage in every table."""
    folder = tmp_path_factory.mktemp("spoilt")

    async def spoil():
        store = open_store(folder)
        await store.prepare()
        await spoil_everything(store)
        store.close()

    asyncio.run(spoil())
    return folder


async def spoil_everything(store):
    """A copy of every row with each column spoilt, and rows of garbage where a table is empty."""
    rows = await store.database.read(
        lambda tx: tx.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        )
    )
    for (table,) in rows:
        if table in {"migrations", "api_keys", "controller", "origin", "settings"}:
            continue
        columns = await store.database.read(lambda tx, t=table: tx.rows(f"PRAGMA table_info({t})"))
        names = [row[1] for row in columns if row[1] not in {"seq", "version"}]
        for place, body in enumerate(GARBAGE):
            values = tuple(body if n % 3 else f"{place}-{n}" for n in range(len(names)))
            sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"

            def unit(tx, sql=sql, values=values):
                try:
                    tx.execute(sql, values)
                except Exception:  # noqa: BLE001 - a table may refuse it: so much the better
                    return

            await store.database.write(unit)
