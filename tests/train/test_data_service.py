"""A job's data from the store, the archive and the stream: the right ones, clean, and the same again."""

import gzip
import json
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import msgspec
import pytest
from tests.conftest import running_loop
from tests.dataset.data_cases import NOW, grouped, put, request
from tests.support import on_bus, raw, small, until

from upswing.app.archive import Archive
from upswing.collect.core.admit import AdmissionLimits, admit_feedback
from upswing.contracts.training import DATASET_SIZE, NEW
from upswing.errors import Misuse, Rejected, Transient
from upswing.infra.sql.datasets import DataSets
from upswing.infra.sql.store import open_in_memory_store
from upswing.infra.sql.users import Users
from upswing.redact import Redactor
from upswing.train.core.recipe import Recipe, build_recipe
from upswing.train.jobs.data import NoData, TrainingData, selection_spec

AGENTS = "abcdef"
TOKEN = "planted-77ad1"


@pytest.fixture
async def memory():
    made = open_in_memory_store()
    await made.prepare()
    yield made
    made.close()


async def filled(store, scenarios=10, **changes):
    """Scenarios in which six agents acted, with what only the judge may know in each."""
    return [
        await put(
            store,
            grouped(
                place, agent, metadata={"ground_truth": {"answer": f"{TOKEN}-{place}"}, **changes}
            ),
            total=(place + ord(agent)) % 7 / 7,
        )
        for place in range(scenarios)
        for agent in AGENTS
    ]


async def gathered(store, asked=None, *, archive=None, bus=None, ancestors=(), drop=(), **knobs):
    asked = asked or request()
    recipe = msgspec.structs.replace(build_recipe(asked, {}), **knobs)
    data = TrainingData(DataSets(store.database), archive=archive, bus=bus)
    return await data.gather(asked, recipe, ancestor_jobs=ancestors, excluded_ids=drop, now=NOW)


def names(made):
    return {sample.trajectory_id for sample in made.samples}


# ── from the store ───────────────────────────────────────────────────────────────────────────────


async def test_samples_and_snapshot_tell_the_same_story(store):
    rows = await filled(store)
    made = await gathered(store)
    assert names(made) == {row.trajectory_id for row in rows}
    assert [(s.trajectory_id, s.revision, s.held_out) for s in made.samples] == [
        (e.trajectory_id, e.revision, e.held_out) for e in made.snapshot.entries
    ]
    assert made.snapshot.source == "local"
    assert len(made.snapshot.groups) == made.snapshot.tasks == 10
    assert made.snapshot.held_out_tasks == 1
    held, trained = (
        {s.task_id for s in made.samples if s.held_out is side} for side in (True, False)
    )
    assert len(held) == 1
    assert not held & trained


async def test_what_is_learned_from_is_the_outcome_and_not_the_total(memory):
    await put(memory, grouped(1, "a"), total=0.25, judge=0.75)
    await put(memory, grouped(1, "b"), total=0.5)
    made = await gathered(memory, request("ppo"))
    told = {s.agent_id: (s.reward, s.raw_total, s.revision) for s in made.samples}
    assert told == {"agent-a": (1.0, 0.125, 2), "agent-b": (0.0, 0.25, 1)}
    assert made.snapshot.sources == {"verified": 2}


async def test_what_somebody_showed_to_be_right_is_imitated_instead_of_what_was_done(memory):
    rows = [await put(memory, grouped(1, agent)) for agent in "abcd"]
    word = {
        "feedback_id": "f",
        "timestamp": NOW.isoformat(),
        "trajectory_id": rows[0].trajectory_id,
        "user_id": "user-a",
        "type": "demonstration",
        "comment": "Close the file first.",
    }
    said, _ = admit_feedback(raw(word), Redactor(), AdmissionLimits())
    await memory.take_feedback(said, now=NOW, announce=False)
    broken = replace(
        said, feedback_id="g", body=b"{", trajectory_id=rows[1].trajectory_id, user_id="user-b"
    )
    await memory.take_feedback(broken, now=NOW, announce=False)
    made = await gathered(memory, request("sft"))
    shown = {s.agent_id: s.turns[-1].action.get("raw_response") for s in made.samples}
    assert shown["agent-a"] == "Close the file first."
    assert made.snapshot.sources["demonstration"] == 1
    (sample,) = [s for s in made.samples if s.agent_id == "agent-a"]
    assert [turn.context_only for turn in sample.turns] == [True] * (len(sample.turns) - 1) + [
        False
    ]
    assert not sample.on_policy


async def test_what_the_judge_knows_is_in_no_sample_and_in_no_snapshot(memory):
    await filled(memory)
    made = await gathered(memory)
    assert len(made.samples) == 60
    assert TOKEN.encode() not in msgspec.json.encode(made.samples)
    assert TOKEN.encode() not in msgspec.json.encode(made.snapshot)


async def test_the_forbidden_are_counted_and_never_there(memory):
    await filled(memory, scenarios=2)
    bad = {
        "infra_error": await put(memory, grouped(0, "u", metadata={"infra_error": True})),
        "evaluation": await put(
            memory, grouped(0, "v", metadata={"row": {"is_training_data": False}})
        ),
        "opted_out": await put(memory, grouped(0, "w")),
        "no_reward": await put(memory, grouped(0, "x"), score=False),
        "erased": await put(memory, grouped(0, "y")),
        "found_bad": await put(memory, grouped(0, "z")),
    }
    users = Users(memory.database)
    await users.opt_out("user-w", NOW)
    await users.erase("user-y", NOW)
    made = await gathered(memory, drop=[bad["found_bad"].trajectory_id])
    assert not names(made) & {row.trajectory_id for row in bad.values()}
    assert made.snapshot.left_out == {
        "infra_error": 1,
        "evaluation": 1,
        "opted_out": 1,
        "no_reward": 1,
        "found_bad": 1,
    }


async def test_the_filters_of_the_contract(memory):
    await filled(memory, scenarios=3)
    late = grouped(7, "a", end_timestamp="2025-12-09T00:00:00Z")
    await put(memory, late)
    await put(memory, grouped(8, "a", task_context={"domain": "writing"}))
    await put(memory, grouped(9, "a", subordinate_profile="hacker"))
    told = {
        "date_range": {"end": "2025-12-08T23:59:59Z"},
        "task_domains": ["coding"],
        "exclude_subordinate_profiles": ["hacker"],
        "max_trajectory_length": 1,
        "min_reward": 0.9,
    }
    made = await gathered(memory, request("ppo", filter=told))
    assert len(made.samples) == 18
    assert made.snapshot.left_out == {
        "date_range": 1,
        "task_domains": 1,
        "exclude_subordinate_profiles": 1,
    }
    assert made.snapshot.filter == told
    assert min(sample.reward for sample in made.samples) < 0.9
    assert any("`min_reward` was ignored: ppo" in note for note in made.snapshot.notes)


async def test_shares_of_domains_are_asked_for_in_the_metadata(memory):
    for place in range(12):
        domain = ("coding", "research", "general")[place % 3]
        for agent in AGENTS:
            await put(memory, grouped(place, agent, task_context={"domain": domain}))
    shares = {"coding": 0.5, "research": 0.25, "general": 0.25}
    made = await gathered(
        memory, request(sample_size=24, metadata={"domain_shares": shares}), holdout=0.0
    )
    assert made.snapshot.domains == {"coding": 12, "general": 6, "research": 6}
    assert made.snapshot.balance == {"domain_shares": shares}


async def test_the_same_store_request_and_seed_give_the_same_data_set(memory):
    rows = await filled(memory)
    other = open_in_memory_store()
    await other.prepare()
    for row in reversed(rows):
        reward = await DataSets(memory.database).records_of_removed([row.trajectory_id])
        await put(other, row, total=reward.scored[row.trajectory_id].reward)
    one, again, moved = [
        await gathered(where, request(sample_size=30)) for where in (memory, memory, other)
    ]
    other.close()
    assert one == again
    assert one.samples == moved.samples
    assert one.snapshot.sha256 == moved.snapshot.sha256
    assert (await gathered(memory, request(sample_size=30), seed=1)).snapshot.sha256 != (
        one.snapshot.sha256
    )


async def test_what_the_lineage_was_trained_on_comes_last_and_is_reported(memory):
    await filled(memory)
    data = TrainingData(DataSets(memory.database))
    first = await gathered(memory, request(sample_size=30), holdout=0.0)
    await data.record_trained("job-1", first.snapshot)
    second = await gathered(memory, request(sample_size=30), ancestors=["job-1"], holdout=0.0)
    assert not names(first) & names(second)
    assert (first.snapshot.reused, second.snapshot.reused) == (0.0, 0.0)
    third = await gathered(memory, request(sample_size=48), ancestors=["job-1"], holdout=0.0)
    assert third.snapshot.reused == 18 / 48
    assert "18 of 48 were trained on before." in third.snapshot.notes


async def test_held_out_ones_are_not_noted_as_trained_on(memory):
    await filled(memory)
    made = await gathered(memory, holdout=0.3)
    await TrainingData(DataSets(memory.database)).record_trained("job-1", made.snapshot)
    seen = {
        c.trajectory_id for c in await DataSets(memory.database).candidates(["job-1"]) if c.seen
    }
    assert seen == {s.trajectory_id for s in made.samples if not s.held_out}
    assert len(seen) < len(made.samples)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (request(), "the source holds no trajectory"),
        (request("ppo", filter={"task_domains": ["writing"]}), "6 of other domains"),
        (request(sample_size=5), "The smallest group has 6 trajectories: it does not fit into 5"),
        (request(), "6 with too few others to compare"),
    ],
)
async def test_nothing_to_train_on_is_said_in_a_sentence(memory, asked, sentence):
    if "no trajectory" not in sentence:
        await filled(memory, scenarios=1)
    agents = 7 if "too few" in sentence else 5
    with pytest.raises(NoData, match=sentence):
        await gathered(memory, asked, min_agents=agents)


async def test_what_is_erased_while_data_is_gathered_is_left_out(memory):
    await filled(memory, scenarios=2)

    class Late(DataSets):
        async def candidates(self, ancestors=()):
            found = await super().candidates(ancestors)
            await Users(memory.database).erase("user-a", NOW)
            return found

    made = await TrainingData(Late(memory.database)).gather(
        request(), build_recipe(request(), {}), ancestor_jobs=[], excluded_ids=[], now=NOW
    )
    assert {sample.agent_id for sample in made.samples} == {f"agent-{a}" for a in "bcdef"}
    assert made.snapshot.left_out == {"erased": 2}
    assert len(made.snapshot.entries) == 10


async def test_a_body_that_cannot_be_read_is_left_out_and_counted(memory):
    rows = await filled(memory, scenarios=1)
    sql = "UPDATE trajectories SET body = ? WHERE trajectory_id = ?"
    await memory.database.write(lambda tx: tx.execute(sql, (b"{]", rows[0].trajectory_id)))
    made = await gathered(memory)
    assert len(made.samples) == 5
    assert made.snapshot.left_out == {"unreadable": 1}


def test_a_selection_takes_over_what_was_requested():
    asked = request(sample_size=7, filter={"date_range": {"start": "2025-12-08T14:00:00+02:00"}})
    recipe = Recipe(windows_per_iteration=3, iterations=4, min_agents=2, seed=9, holdout=0.25)
    spec = selection_spec(asked, recipe, ["x"], NOW)
    assert spec.start == datetime(2025, 12, 8, 12, tzinfo=UTC)
    assert spec.end is None
    assert (spec.sample_size, spec.max_groups, spec.min_agents) == (7, 12, 2)
    assert (spec.seed, spec.holdout, spec.excluded_ids) == (9, 0.25, {"x"})


@pytest.mark.parametrize(
    ("changes", "capped"),
    [
        ({}, True),
        ({"filter": {"date_range": {"end": "2026-01-01T00:00:00Z"}}}, True),
        ({"filter": {"date_range": {"start": "2025-01-01T00:00:00Z"}}}, False),
        (
            {
                "filter": {"date_range": {"start": "2025-01-01T00:00:00Z"}},
                "metadata": {DATASET_SIZE: NEW},
            },
            True,
        ),
    ],
    ids=["no dates", "only an end", "dates of one's own", "the trigger's dates"],
)
def test_what_earlier_versions_did_lapses_unless_the_request_names_its_dates(changes, capped):
    spec = selection_spec(request(**changes), Recipe(max_days=10), (), NOW)
    assert spec.stale_before == (NOW - timedelta(days=10) if capped else None)


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        (request(source="clickhouse"), Rejected, "ClickHouse"),
        (request(source="s3"), Misuse, "No archive is configured"),
        (request(source="nats_stream"), Misuse, "no bus"),
        (
            request(
                filter={
                    "date_range": {"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
                }
            ),
            Rejected,
            "ends before it starts",
        ),
        (request(metadata={"balance": "odd"}), Rejected, "balance"),
    ],
)
async def test_a_request_that_cannot_be_met_is_refused_with_a_sentence(
    memory, asked, error, sentence
):
    await filled(memory, scenarios=1)
    with pytest.raises(error, match=sentence):
        await gathered(memory, asked)


# ── from the archive ─────────────────────────────────────────────────────────────────────────────


async def archived(store, archive, rows):
    """Write these rows of the store as one file of the archive."""
    found = [await store.trajectory(row.trajectory_id) for row in rows]
    return await archive.write(found)


async def pruned(store, rows):
    """The store forgets the text, and remembers the reward."""
    sql = "DELETE FROM trajectories WHERE trajectory_id = ?"
    for row in rows:
        await store.database.write(lambda tx, key=row.trajectory_id: tx.execute(sql, (key,)))


@pytest.mark.parametrize("source", ["local", "s3"])
async def test_what_only_the_archive_still_holds_is_used_too(memory, tmp_path, source):
    archive = Archive(str(tmp_path) if source == "local" else "memory:///")
    rows = await filled(memory)
    before = await gathered(memory)
    await archived(memory, archive, rows)
    await pruned(memory, rows[::2])
    after = await gathered(memory, request(source=source), archive=archive)
    assert after.samples == before.samples
    assert after.snapshot.entries == before.snapshot.entries
    assert TOKEN.encode() not in msgspec.json.encode(after.samples)


async def test_an_archive_in_an_object_store_says_which(memory):
    archive = Archive("memory:///")
    rows = await filled(memory, scenarios=3)
    await archived(memory, archive, rows[:6])
    made = await gathered(memory, request(source="s3"), archive=archive)
    assert names(made) == {row.trajectory_id for row in rows[:6]}
    assert made.snapshot.source == "s3"
    everything = await gathered(memory, archive=archive)
    assert len(everything.samples) == 18


async def test_an_old_copy_brings_nothing_back(memory, tmp_path):
    archive = Archive(str(tmp_path))
    rows = await filled(memory, scenarios=2)
    measured = await put(memory, grouped(0, "g", metadata={"is_evaluation": True}))
    broken = await put(memory, grouped(0, "h", metadata={"infra_error": True}))
    unscored = await put(memory, grouped(0, "i"), score=False)
    await archived(memory, archive, [*rows, measured, broken, unscored])
    users = Users(memory.database)
    await users.erase("user-a", NOW)
    await users.opt_out("user-b", NOW)
    kept = [row for row in rows if row.agent_id not in {"agent-a", "agent-b"}]
    await pruned(memory, [*rows, measured, broken, unscored])
    made = await gathered(memory, archive=archive, min_agents=4)
    assert names(made) == {row.trajectory_id for row in kept}
    assert made.snapshot.left_out == {
        "erased": 2,
        "opted_out": 2,
        "evaluation": 1,
        "infra_error": 1,
        "no_reward": 1,
    }


async def test_damaged_files_and_strange_lines_are_passed_over(memory, tmp_path, caplog):
    archive = Archive(str(tmp_path))
    rows = await filled(memory, scenarios=1)
    path = await archived(memory, archive, rows)
    await pruned(memory, rows)
    hour = (tmp_path / path).parent
    strange = [b"not json", raw({"trajectory_id": str(uuid4())}), raw([1])]
    (hour / "strange.jsonl.gz").write_bytes(
        gzip.compress(b"\n".join([*strange, rows[0].body, b""]))
    )
    (hour / "broken.jsonl.gz").write_bytes(b"no gzip at all")
    (hour / "cut.jsonl.gz").write_bytes((tmp_path / path).read_bytes()[:-40])
    (hour / "notes.txt").write_text("a stranger's file")
    made = await gathered(memory, archive=archive)
    assert names(made) == {row.trajectory_id for row in rows}
    assert made.snapshot.left_out == {"unreadable": 3}
    assert {r.action for r in caplog.records if r.levelname == "WARNING"} == {"archive_damaged"}


async def test_files_that_hold_nothing_of_their_own_are_read_once(memory, tmp_path):
    class Watched(Archive):
        opened = 0

        async def _lines(self, path):
            self.opened += 1
            async for lines in super()._lines(path):
                yield lines

    archive = Watched(str(tmp_path))
    rows = await filled(memory, scenarios=2)
    await archived(memory, archive, rows[:6])
    await archived(memory, archive, rows[6:])
    await pruned(memory, rows[6:7])
    data = TrainingData(DataSets(memory.database), archive=archive)
    for opened in (3, 5):  # two files, and the one with the stray again for its text
        made = await data.gather(
            request(), build_recipe(request(), {}), ancestor_jobs=[], excluded_ids=[], now=NOW
        )
        assert names(made) == {row.trajectory_id for row in rows}
        assert archive.opened == opened


async def test_a_folder_is_no_object_store(memory, tmp_path):
    with pytest.raises(Misuse, match="ask for `local`"):
        await gathered(memory, request(source="s3"), archive=Archive(str(tmp_path)))


async def test_an_archive_that_is_away_is_asked_again_later(memory, monkeypatch):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, and nobody listens
        told = {
            "AWS_ENDPOINT": f"http://127.0.0.1:{nobody.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "us-east-1",
        }
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Transient, match="TRAJECTORY_STORAGE_PATH cannot be read just now"):
            await gathered(memory, request(source="s3"), archive=Archive("s3://away/archive"))


async def test_long_lines_and_many_lines_are_read_whole(memory, tmp_path):
    archive = Archive(str(tmp_path), chunk_bytes=100)
    rows = await filled(memory, scenarios=1)
    path = await archived(memory, archive, rows)
    lines = [line async for where, some in archive.read() for line in some if where == path]
    assert lines == [row.body for row in rows]


# ── from a stream ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.live
async def test_the_stream_says_which_and_the_store_says_what(data):
    """Some come by the bus, one of them with a secret; one waits there and is not taken yet."""
    secret = "sk-ant-api03-" + "Q" * 93 + "AA"
    async with running_loop(data) as loop:
        urls = loop.running.nats_urls
        sent = [
            small(
                f"done, with {secret}" if place == 0 else "done",
                scenario_id="s",
                outcome=_half(place),
            )
            | {"agent_id": f"a{place}"}
            for place in range(6)
        ]
        async with on_bus(urls["agent"]) as agent:
            for document in sent:
                await agent.jetstream().publish("agent.rl.trajectory.v1", raw(document))
        await _scored(loop, 6)
        await put(loop.store, grouped(1, "elsewhere"), score=False)

        waiting = small(f"nobody has taken this: {secret}", scenario_id="s")
        strange = b"not a trajectory"
        for task in loop._parts.tasks:
            if task.get_name() == "collect RL_TRAJECTORIES":
                task.cancel()
        async with on_bus(urls["agent"]) as agent:
            for payload in (raw(waiting), strange):
                await agent.jetstream().publish("agent.rl.trajectory.v1", payload)
        consumer = await loop.bus.js.consumer_info("RL_TRAJECTORIES", "collector")

        asked = request(source="nats_stream", stream_name="RL_TRAJECTORIES")
        made = await gathered(loop.store, asked, bus=loop.bus)
        assert names(made) == {document["trajectory_id"] for document in sent}
        assert made.snapshot.left_out == {"not_taken": 1, "unreadable": 1}
        assert made.snapshot.source == "nats_stream RL_TRAJECTORIES"
        assert secret.encode() not in msgspec.json.encode(made.samples)
        assert b"nobody has taken this" not in msgspec.json.encode(made.samples)
        after = await loop.bus.js.consumer_info("RL_TRAJECTORIES", "collector")
        assert (after.num_pending, after.delivered.consumer_seq) == (
            consumer.num_pending,
            consumer.delivered.consumer_seq,
        ), "collect misses nothing for it"

        with pytest.raises(Misuse, match="no stream NO_SUCH"):
            await gathered(
                loop.store, request(source="nats_stream", stream_name="NO_SUCH"), bus=loop.bus
            )
        with pytest.raises(Misuse, match="cannot be the name"):
            await gathered(
                loop.store, request(source="nats_stream", stream_name="a b"), bus=loop.bus
            )
        await loop.bus.close()
        with pytest.raises(Transient):
            await gathered(loop.store, asked, bus=loop.bus)


@pytest.mark.live
async def test_a_stream_of_somebody_elses_is_read_without_taking_its_messages(data):
    """A work queue loses what a consumer takes; asking for messages by number takes nothing."""
    from nats.js.api import RetentionPolicy, StreamConfig

    async with running_loop(data) as loop:
        sent = [
            small("done", scenario_id="s", outcome=_half(n)) | {"agent_id": f"a{n}"}
            for n in range(6)
        ]
        async with on_bus(loop.running.nats_urls["agent"]) as agent:
            for document in sent:
                await agent.jetstream().publish("agent.rl.trajectory.v1", raw(document))
        await _scored(loop, 6)
        js = loop.bus.js
        await js.add_stream(
            StreamConfig("QUEUE", subjects=["agent.rl.mine"], retention=RetentionPolicy.WORK_QUEUE)
        )
        for document in [*sent, small("never sent to us")]:
            await js.publish("agent.rl.mine", json.dumps(document).encode())
        await js.delete_msg("QUEUE", 3)
        asked = request(source="nats_stream", stream_name="QUEUE")
        made = await gathered(loop.store, asked, bus=loop.bus)
        assert len(made.samples) == 5
        assert made.snapshot.left_out == {"not_taken": 1}
        assert (await js.stream_info("QUEUE")).state.messages == 6


def _half(number):
    """Every second one succeeds."""
    return "completed" if number % 2 else "failed"


async def _scored(loop, count):
    sql = "SELECT COUNT(*) FROM scored"

    async def there():
        row = await loop.store.database.read(lambda tx: tx.row(sql))
        return row[0] >= count

    await until(there)
