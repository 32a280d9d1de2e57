"""The desk: what becomes a job, what is refused, and what is told."""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upswing.collect.core.evaluate import refusal
from upswing.config import Defaults
from upswing.contracts import TrainingRequest, TrainingStatus, canonical, decode, encode
from upswing.contracts.examples import EXAMPLES
from upswing.contracts.topics import TRAINING, TRAINING_REQUEST
from upswing.errors import Conflict, Misuse, Reason, Rejected, Transient
from upswing.infra.nats.consumer import StreamConsumer
from upswing.infra.nats.crash_suspects import CRASHES_TO_POISON
from upswing.infra.sql.store import open_in_memory_store
from upswing.records import Decision, StreamMessage, Taken
from upswing.redact import Redactor
from upswing.train.core.recipe import Recipe
from upswing.train.jobs.consumer import TrainingRequests
from upswing.train.jobs.repository import JobRepository
from upswing.train.jobs.submission import JobSubmission, SubmissionSettings
from upswing.worlds.known import locate_world

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REDACTOR = Redactor()
QUICKREF = {
    "training_job_id": "manual-1b4e28ba-2fa1-4d2b-883f-0016d3cca427",
    "timestamp": "2025-12-08T13:00:00Z",
    "requester": "admin-manual",
    "trigger_reason": "manual",
    "training_config": {
        "algorithm": "ppo",
        "base_model": "qwen2.5-32b-instruct",
        "dataset": {
            "source": "nats_stream",
            "stream_name": "RL_TRAJECTORIES",
            "sample_size": 5000,
        },
        "hyperparameters": {"learning_rate": 1e-5, "batch_size": 32, "epochs": 3},
    },
}


async def only_tiny(name):
    if name != "tiny":
        raise Misuse(f"The base model {name!r} is not on this machine.")


class FailingJobs(JobRepository):
    """Jobs whose next submissions fail with `error`, while it is set."""

    error = None

    async def submit(self, *arguments, **options):
        if self.error is not None:
            raise self.error
        return await super().submit(*arguments, **options)


class Bench:
    """A submission service on a store."""

    def __init__(self, store, *, train_here=True, base="tiny", recipe=None, worlds=()):
        self.store, self.jobs = store, FailingJobs(store.database)
        self.ended = []
        self.changes = 0
        self.desk = JobSubmission(
            self.jobs,
            REDACTOR,
            SubmissionSettings(Defaults("ppo", base, 10_000), recipe or {}, train_here),
            check_base=only_tiny,
            check_world=partial(locate_world, registered=dict(worlds)),
            clock=lambda: NOW,
            new_id=uuid.uuid4,
            on_change=self._changed,
            on_finished=lambda *told: self.ended.append(told),
        )

    def _changed(self):
        self.changes += 1

    async def job(self, job_id=QUICKREF["training_job_id"]):
        return await self.jobs.get(job_id)


@pytest.fixture
def bench(store):
    return Bench(store)


@pytest.fixture
async def quick():
    """A store that is enough where the database does not matter."""
    made = open_in_memory_store()
    await made.prepare()
    yield made
    made.close()


def raw(tree):
    return json.dumps(tree).encode()


def asking(base="tiny", **changes):
    return (
        QUICKREF | {"training_config": QUICKREF["training_config"] | {"base_model": base}} | changes
    )


# ── by HTTP ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_whole_request_becomes_a_job(bench):
    placed = await bench.desk.submit_http(raw(asking()), "key operator")
    assert (placed.taken, placed.status) == (Taken.STORED, "queued")
    job = await bench.job()
    assert (job.state, job.request.requester, job.priority) == ("queued", "admin-manual", 2)
    assert msgspec.json.decode(job.recipe, type=Recipe).learning_rate == 1e-5
    assert bench.changes == 1


async def test_only_a_config_gets_an_id_a_time_and_a_requester(bench):
    placed = await bench.desk.submit_http(raw(asking()["training_config"]), "key operator")
    job = await bench.job(placed.job_id)
    assert placed.job_id.startswith("manual-")
    assert (job.request.requester, job.reason, job.request.timestamp) == (
        "key operator",
        "manual",
        NOW,
    )
    assert job.request.priority == "high", "a person waits"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"training_config": {}}'])
async def test_nothing_at_all_asks_for_the_usual(quick, body):
    bench = Bench(quick)
    config = (
        await bench.job((await bench.desk.submit_http(body, "k")).job_id)
    ).request.training_config
    assert (config.algorithm, config.base_model, config.dataset.sample_size) == (
        "ppo",
        "tiny",
        10_000,
    )


async def test_without_a_usual_base_one_has_to_be_named(quick):
    with pytest.raises(Rejected, match="RL_BASE_MODEL"):
        await Bench(quick, base=None).desk.submit_http(b"{}", "k")


async def test_twice_is_once_and_another_body_is_a_conflict(bench):
    await bench.desk.submit_http(raw(asking()), "k")
    again = await bench.desk.submit_http(raw(asking()), "k")
    assert (again.taken, again.status) == (Taken.KNOWN, "queued")
    with pytest.raises(Conflict):
        await bench.desk.submit_http(raw(asking(requester="x")), "k")


async def test_a_base_that_is_not_here_is_refused_at_once(quick):
    bench = Bench(quick)
    with pytest.raises(Rejected, match=r"qwen2\.5-32b-instruct") as refused:
        await bench.desk.submit_http(raw(QUICKREF), "k")
    assert refused.value.reason is Reason.SCHEMA
    assert await bench.job() is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", Reason.MALFORMED),
        (b"\xff", Reason.MALFORMED),
        (b'{"training_config": {"hyperparameters": {"learning_rate": NaN}}}', Reason.NOT_A_NUMBER),
        (b"[]", Reason.SCHEMA),
        (b'"x"', Reason.SCHEMA),
        (b'{"training_config": []}', Reason.SCHEMA),
        (b'{"algorithm": "guess"}', Reason.SCHEMA),
        (b'{"surprise": 1}', Reason.SCHEMA),
        (b'{"hyperparameters": {"learning_rate": 0}}', Reason.SCHEMA),
        (b'{"training_config": {}, "training_job_id": "../../etc"}', Reason.SCHEMA),
        (b'{"training_config": {}, "metadata": {"recipe": {"surprise": 1}}}', Reason.SCHEMA),
        (b'{"training_config": {}, "metadata": {"recipe": 7}}', Reason.SCHEMA),
        (
            b'{"training_config": {}, "metadata": {"x": ' + b"[" * 70 + b"]" * 70 + b"}}",
            Reason.TOO_DEEP,
        ),
        (b'{"training_config": {}, "metadata": {"x": ' + b"[" * 100_000, Reason.TOO_DEEP),
        (b'{"training_config": {}, "requester": "' + b"x" * 300_000 + b'"}', Reason.TOO_LARGE),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_reason(quick, body, reason):
    with pytest.raises(Rejected) as refused:
        await Bench(quick).desk.submit_http(body, "k")
    assert refused.value.reason is reason
    assert (await quick.counts())["jobs"] == 0


async def test_the_configs_knobs_come_before_the_requests(quick):
    bench = Bench(quick, recipe={"learning_rate": 0.5, "entropy": 0.25, "seed": 3})
    tree = asking(metadata={"recipe": {"seed": 4}})
    job = await bench.job((await bench.desk.submit_http(raw(tree), "k")).job_id)
    recipe = msgspec.json.decode(job.recipe, type=Recipe)
    assert (recipe.learning_rate, recipe.entropy, recipe.seed) == (1e-5, 0.25, 4)


@pytest.mark.parametrize(
    ("world", "refused"),
    [
        ("crafting", None),
        ("mine", None),
        ("shop.worlds:Shop", None),
        ("http://127.0.0.1:8200", None),
        ("os:abort", "is code"),
        ("crafing", "There is no world"),
        ("", "There is no world"),
    ],
)
async def test_fresh_rollouts_play_a_world_that_is_known_and_a_request_brings_no_code(
    quick, world, refused
):
    bench = Bench(quick, worlds={"mine": "shop.worlds:Shop"})
    tree = asking(metadata={"recipe": {"rollouts": {"world": world}}})
    if refused is None:
        assert (await bench.desk.submit_http(raw(tree), "k")).status == "queued"
        return
    with pytest.raises(Rejected, match=refused):
        await bench.desk.submit_http(raw(tree), "k")
    assert await bench.jobs.list() == []
    elsewhere = Bench(quick, train_here=False)
    assert (await elsewhere.desk.submit_http(raw(tree), "k")).status == "queued"


# ── what is private ──────────────────────────────────────────────────────────────────────────────


async def test_what_people_wrote_is_redacted_before_it_is_stored(bench):
    tree = asking(
        requester="bob@example.org",
        metadata={
            "notes": "ask bob@example.org",
            "recipe": {"seed": 4},
            "deep": [{"x": "eve@example.org"}],
        },
        evaluation={"benchmark_tasks": ["mail eve@example.org"]},
    )
    placed = await bench.desk.submit_message(raw(tree))
    assert placed.redacted
    job = await bench.job()
    told = encode(job.request)
    assert b"example.org" not in told
    assert job.request.metadata["recipe"] == {"seed": 4}
    announced = await bench.store.outbox()
    assert not any(b"example.org" in entry.payload for entry in announced)
    assert announced[0].subject == TRAINING_REQUEST


async def test_a_clean_request_comes_back_and_is_known(bench):
    """What the loop announces on the stream is delivered to the loop as well."""
    await bench.desk.submit_message(raw(asking(requester="bob@example.org")))
    announced = (await bench.store.outbox())[0].payload
    again = await bench.desk.submit_message(announced)
    assert (again.taken, again.redacted) == (Taken.KNOWN, False)


SECRET = "AKIA" + "Q3EGU7ZL5JH2WXYB"


@pytest.mark.parametrize(
    "changes",
    [
        {"training_job_id": f"job-{SECRET}"},
        {"training_config": asking(f"/models/{SECRET}")["training_config"]},
        {
            "training_config": asking()["training_config"]
            | {"checkpointing": {"storage_path": f"s3://{SECRET}@bucket/x"}}
        },
        {"metadata": {"recipe": {"lora": {"targets": [SECRET]}}}},
    ],
    ids=["id", "base", "path", "targets"],
)
async def test_a_name_that_holds_a_secret_is_refused(quick, changes):
    with pytest.raises(Rejected, match="private"):
        await Bench(quick, train_here=False).desk.submit_message(raw(asking(**changes)))
    assert (await quick.counts())["jobs"] == 0


@pytest.mark.parametrize(
    "job_id",
    [
        QUICKREF["training_job_id"],
        str(uuid.UUID(int=2**127 + 12345)),
        "threshold-reached-0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11",
        "nightly.2025-12-08_02",
    ],
)
async def test_ordinary_names_hold_no_secret(quick, job_id):
    placed = await Bench(quick).desk.submit_message(raw(asking(training_job_id=job_id)))
    assert not placed.redacted


@given(st.uuids())
def test_no_id_that_we_make_looks_like_a_secret(made):
    for prefix in ("manual-", "scheduled-", "performance-degradation-"):
        assert not REDACTOR.text(f"{prefix}{made}").changed


# ── by NATS ──────────────────────────────────────────────────────────────────────────────────────


async def test_the_quick_reference_is_taken_word_for_word(bench):
    """Its base is not on this machine: the asker hears so from the job's status."""
    placed = await bench.desk.submit_message(raw(QUICKREF))
    assert (placed.taken, placed.status) == (Taken.STORED, "failed")
    job = await bench.job()
    assert (job.state, job.ended, job.status.error.code) == ("failed", NOW, "INFRA")
    assert "qwen2.5-32b-instruct" in job.status.error.message
    assert bench.ended == [("failed", 0.0, 0)]
    (event,) = await bench.store.outbox()
    assert decode(TrainingStatus, event.payload) == job.status


async def test_a_machine_that_does_not_train_queues_it_for_one_that_does(bench):
    bench = Bench(bench.store, train_here=False)
    placed = await bench.desk.submit_message(raw(QUICKREF))
    assert (placed.status, "TRAIN_RL_LOCAL" in placed.sentence) == ("queued", True)
    assert "another worker" in (await bench.job()).status.metadata["note"]


async def test_the_contracts_own_example_is_taken(quick):
    bench = Bench(quick, train_here=False)
    assert (
        await bench.desk.submit_message(canonical(EXAMPLES[TrainingRequest]))
    ).taken is Taken.STORED


# ── the trigger's ────────────────────────────────────────────────────────────────────────────────


async def test_the_trigger_is_told_when_another_was_quicker(bench):
    async def ask(job_id):
        request = decode(TrainingRequest, raw(asking(training_job_id=job_id)))
        decision = Decision(f"d-{job_id}", "trigger", "manual", "Why.", b"{}", b"{}", NOW)
        return await bench.desk.submit_triggered(request, decision, covers_seq=5)

    assert await ask("a")
    assert not await ask("b")
    assert (await bench.job("a")).covers_seq == 5


# ── asking and ending ────────────────────────────────────────────────────────────────────────────


async def test_an_enquiry_is_answered_with_the_newest_status(bench):
    await bench.desk.submit_message(raw(asking()))
    reply = await bench.desk.answer_enquiry(raw({"job_id": QUICKREF["training_job_id"]}))
    assert decode(TrainingStatus, reply) == (await bench.job()).status


@pytest.mark.parametrize(
    ("raw_", "error"),
    [
        (b'{"job_id": "no such"}', "not_found"),
        (b'{"job_id": 7}', "malformed"),
        (b"{}", "malformed"),
        (b"", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 100_000, "malformed"),
        (b"null", "malformed"),
    ],
)
async def test_garbage_gets_a_sentence(quick, raw_, error):
    reply = json.loads(await Bench(quick).desk.answer_enquiry(raw_))
    assert reply["error"] == error
    assert reply["detail"].endswith(".")


async def test_a_queued_job_is_cancelled_and_counted(bench):
    await bench.desk.submit_message(raw(asking()))
    assert (await bench.desk.cancel(QUICKREF["training_job_id"])).state == "cancelled"
    assert bench.ended == [("cancelled", 0.0, 0)]
    with pytest.raises(Conflict, match="cancelled already"):
        await bench.desk.cancel(QUICKREF["training_job_id"])
    with pytest.raises(Misuse):
        await bench.desk.cancel("no such")


# ── deliveries ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class Delivery:
    """A message in hand that notes what was done with it, in order."""

    message: StreamMessage
    notes: list = field(default_factory=list)

    async def ack(self):
        self.notes.append("ack")

    async def redeliver_later(self, seconds):
        self.notes.append(f"later {seconds:g}")

    async def erase_messages(self, stream, seqs):
        self.notes.append("erase")


def request_consumer(store, submission, delivery, dead_letters=None):
    """The consumer of training requests; what it erases is noted by the delivery."""
    requests = TrainingRequests(
        store,
        submission,
        clock=lambda: NOW,
        new_id=uuid.uuid4,
        redact_rejected=lambda raw, error: refusal(raw, error, REDACTOR),
    )
    return StreamConsumer(None, delivery, store, requests.handler(), dead_letters=dead_letters)


class Line:
    """Requests on a desk, and hands to feed them."""

    def __init__(self, store):
        self.bench = Bench(store)
        self.store = store

    async def feed(self, payload, *, seq=1, deliveries=1):
        made = Delivery(StreamMessage(TRAINING, TRAINING_REQUEST, seq, deliveries, payload))
        await request_consumer(self.store, self.bench.desk, made).handle([made])
        return made.notes


@pytest.fixture
def line(store):
    return Line(store)


async def test_a_request_is_stored_then_acked(line):
    assert await line.feed(raw(asking())) == ["ack"]
    assert (await line.bench.job()).state == "queued"


async def test_redelivery_changes_nothing(line):
    await line.feed(raw(asking()))
    before = await line.bench.job()
    for seq in (1, 1, 2):
        assert await line.feed(raw(asking()), seq=seq, deliveries=5) == ["ack"]
    assert await line.bench.job() == before


async def test_a_private_request_is_erased_before_it_is_acked(line):
    assert await line.feed(raw(asking(requester="bob@example.org"))) == ["erase", "ack"]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"{bad", "malformed"),
        (b"{}", "schema"),
        (raw(asking(priority="now")), "schema"),
        (raw(asking(metadata={"recipe": {"epochs": 0}})), "schema"),
        (b"x" * 300_000, "too_large"),
    ],
    ids=["broken", "empty", "priority", "recipe", "large"],
)
async def test_a_bad_request_is_buried_at_its_first_delivery(line, payload, reason):
    assert await line.feed(payload) == ["erase", "ack"]
    (buried,) = await line.store.list_dead_letters()
    assert (buried.stage, buried.letter.reason, buried.letter.subject) == (
        "train",
        reason,
        TRAINING_REQUEST,
    )
    assert [entry.subject for entry in await line.store.outbox()] == ["agent.rl.dead.train"]


async def test_a_conflict_is_buried_and_the_first_stays(line):
    await line.feed(raw(asking()))
    assert await line.feed(raw(asking(requester="x")), seq=2) == ["erase", "ack"]
    assert (await line.store.list_dead_letters())[0].letter.reason == "conflict"
    assert (await line.bench.job()).request.requester == "admin-manual"


async def test_a_dead_letter_holds_nothing_private(line):
    await line.feed(raw(asking(requester="bob@example.org", priority="now")))
    (buried,) = await line.store.list_dead_letters()
    assert "bob@" not in buried.letter.payload
    assert "<email-1>" in buried.letter.payload


async def test_a_store_that_is_away_means_later_and_nobody_died(line):
    line.bench.jobs.error = Transient("The store is unavailable.")
    for deliveries in (1, 3, 40):
        notes = await line.feed(raw(asking()), deliveries=deliveries)
        assert notes == [f"later {min(30, 0.5 * 2 ** min(deliveries, 6)):g}"]
    line.bench.jobs.error = None
    assert await line.feed(raw(asking()), deliveries=41) == ["ack"]
    assert await line.store.list_dead_letters() == []


async def test_a_request_whose_taker_died_four_times_is_poison(line):
    # stands for the end of the process: nothing after it runs
    line.bench.jobs.error = KeyboardInterrupt()
    for delivery in range(1, CRASHES_TO_POISON + 1):
        with pytest.raises(KeyboardInterrupt):
            await line.feed(raw(asking()), deliveries=delivery)
    assert await line.feed(raw(asking()), deliveries=5) == ["erase", "ack"]
    (buried,) = await line.store.list_dead_letters()
    assert (buried.letter.reason, buried.letter.payload) == ("poison", msgspec.UNSET)
