"""The collector, delivery by delivery, on the store's twin."""

import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry
from tests.faulty import Faulty
from tests.support import raw, trajectory

from upswing.collect.consumer import BusIntake
from upswing.collect.core.admit import AdmissionLimits
from upswing.collect.core.evaluate import evaluate
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.contracts.topics import TRAJECTORIES, TRAJECTORY
from upswing.errors import Transient
from upswing.infra.nats.consumer import StreamConsumer
from upswing.infra.nats.crash_suspects import CRASHES_TO_POISON
from upswing.infra.sql.users import Users
from upswing.records import StreamMessage
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REDACTOR = Redactor()


@dataclass
class Delivery:
    """A message in hand that notes what was done with it, in order."""

    message: StreamMessage
    notes: list = field(default_factory=list)

    async def ack(self):
        self.notes.append("ack")

    async def redeliver_later(self, seconds):
        self.notes.append(f"later {seconds:g}")


@dataclass
class Stream:
    """What is erased, noted on the same list as the acks."""

    deliveries: dict = field(default_factory=dict)

    async def erase_messages(self, stream, seqs):
        for seq in seqs:
            self.deliveries[seq].notes.append("erase")


class Bench:
    """A collector on a store, and hands to feed it."""

    def __init__(self, store, dead_letters=None):
        self.store = store = Faulty(store)
        self.users = Users(store.database)
        self.registry = CollectorRegistry()
        self.intake = Intake(
            store,
            self.users,
            self._evaluate,
            CollectMetrics(self.registry),
            clock=lambda: NOW,
            new_id=uuid.uuid4,
        )
        self.stream = Stream()
        handler = BusIntake(self.intake, store, REDACTOR).trajectory_handler()
        self.processor = handler.process
        self.evaluator = lambda kind, message: evaluate(kind, message, REDACTOR, AdmissionLimits())
        self.collector = StreamConsumer(
            None,
            self.stream,
            store,
            replace(handler, process=self._process),
            dead_letters=dead_letters,
        )

    async def _process(self, message):
        return await self.processor(message)

    async def _evaluate(self, kind, message):
        return self.evaluator(kind, message)

    def delivery(self, payload, *, seq=1, deliveries=1, headers=()):
        made = Delivery(
            StreamMessage(TRAJECTORIES, TRAJECTORY, seq, deliveries, payload, dict(headers))
        )
        self.stream.deliveries[seq] = made
        return made

    async def feed(self, *deliveries):
        await self.collector.handle(deliveries)
        return [delivery.notes for delivery in deliveries]

    def metric(self, name, **labels):
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def bench(store):
    return Bench(store)


async def test_a_good_message_is_stored_then_acked(bench):
    assert await bench.feed(bench.delivery(raw(trajectory()))) == [["ack"]]
    assert (await bench.store.counts())["trajectories"] == 1
    assert (
        bench.metric(
            "agent_rl_trajectories_collected_total", agent_type="developer", task_domain="coding"
        )
        == 1
    )


async def test_a_message_with_something_private_is_stored_clean_erased_and_only_then_acked(bench):
    document = trajectory(metadata={"note": "mail bob@example.org"})
    assert await bench.feed(bench.delivery(raw(document))) == [["erase", "ack"]]
    found = await bench.store.trajectory(document["trajectory_id"])
    assert b"bob@" not in found.admitted.body
    (announced,) = await bench.store.outbox()
    assert announced.payload == found.admitted.body


@pytest.mark.parametrize(
    ("headers", "notes"),
    [
        ({"Nats-Msg-Id": str(uuid.uuid4())}, ["ack"]),
        ({"Nats-Msg-Id": "outbox 7", "X-Trace": "4bf92f3577b34da6"}, ["ack"]),
        ({"Nats-Msg-Id": "bob@example.org"}, ["erase", "ack"]),
        ({"X-Note": "gh" + "p_" + "a1B2" * 9}, ["erase", "ack"]),
        ({"gh" + "p_" + "a1B2" * 9: "x"}, ["erase", "ack"]),
        ({"X-Long": "x" * 1001}, ["erase", "ack"]),
    ],
)
async def test_a_message_with_something_private_in_its_headers_is_erased(bench, headers, notes):
    """The stream keeps a message's headers, which nobody reads."""
    delivery = bench.delivery(raw(trajectory()), headers=headers)
    assert await bench.feed(delivery) == [notes]
    assert (await bench.store.counts())["trajectories"] == 1


async def test_our_own_announcement_comes_back_and_is_just_acked(bench):
    document = raw(trajectory(metadata={"note": "mail bob@example.org"}))
    await bench.feed(bench.delivery(document))
    (announced,) = await bench.store.outbox()
    echo = bench.delivery(announced.payload, seq=2)
    assert await bench.feed(echo) == [["ack"]]
    assert await bench.users.messages_to_erase() == []
    await bench.users.opt_out("user-4", NOW)
    await bench.users.erase("user-4", NOW)
    assert await bench.users.messages_to_erase() == [(TRAJECTORIES, 2)]


async def test_the_same_message_ten_times_is_one_row(bench):
    document = raw(trajectory())
    notes = await bench.feed(*(bench.delivery(document, seq=n) for n in range(1, 11)))
    assert notes == [["ack"]] * 10
    assert (await bench.store.counts())["trajectories"] == 1


async def test_what_can_never_be_taken_is_buried_at_its_first_delivery(bench):
    assert await bench.feed(bench.delivery(b"{bad")) == [["erase", "ack"]]
    (buried,) = await bench.store.list_dead_letters()
    assert (buried.letter.reason, buried.letter.subject) == ("malformed", TRAJECTORY)
    assert bench.metric("upswing_refused_total", door="nats", reason="malformed") == 1


async def test_a_conflict_keeps_the_first_and_buries_the_second(bench):
    document = trajectory()
    await bench.feed(bench.delivery(raw(document)))
    await bench.feed(bench.delivery(raw(document | {"agent_id": "other"}), seq=2))
    (buried,) = await bench.store.list_dead_letters()
    assert buried.letter.reason == "conflict"
    assert (
        await bench.store.trajectory(document["trajectory_id"])
    ).admitted.agent_id == "agent-zero"


async def test_a_user_who_opted_out_is_dropped_counted_and_erased(bench):
    await bench.users.opt_out("user-4", NOW)
    assert await bench.feed(bench.delivery(raw(trajectory()))) == [["erase", "ack"]]
    assert (await bench.store.counts())["trajectories"] == 0
    assert bench.metric("upswing_messages_total", door="nats", outcome="opted_out") == 1


async def test_a_store_that_is_away_means_later_and_later(bench):
    async def away(*_, **__):
        raise Transient("The store is away.")

    bench.store.instead.update(take=away, begin_attempt=away)
    deliveries = [bench.delivery(raw(trajectory()), seq=n, deliveries=n) for n in (1, 3, 40)]
    assert await bench.feed(*deliveries) == [["later 1"], ["later 4"], ["later 30"]]
    assert await bench.store.list_dead_letters() == []
    assert bench.metric("upswing_messages_total", door="nats", outcome="unavailable") > 0


async def test_a_message_whose_taker_died_four_times_is_poison_at_the_fifth_delivery(bench):
    document = raw(trajectory())

    async def die(_):
        raise KeyboardInterrupt  # stands for the end of the process: nothing after it runs

    bench.processor = die
    for delivery in range(2, CRASHES_TO_POISON + 1):
        with pytest.raises(KeyboardInterrupt):
            await bench.feed(bench.delivery(document, deliveries=delivery))
    assert await bench.feed(bench.delivery(document, deliveries=5)) == [["erase", "ack"]]
    (buried,) = await bench.store.list_dead_letters()
    assert (buried.letter.reason, buried.letter.deliveries) == ("poison", 5)


async def test_a_message_that_merely_came_again_is_taken_however_often(bench):
    document = raw(trajectory())
    assert await bench.feed(bench.delivery(document, deliveries=9)) == [["ack"]]
    assert await bench.feed(bench.delivery(document, seq=2, deliveries=9)) == [["ack"]]
    assert await bench.store.list_dead_letters() == []


async def test_a_taker_that_dies_between_the_dead_letter_and_the_ack_leaves_one_letter(bench):
    for delivery in (1, 2):  # no ack was heard of the first
        await bench.feed(bench.delivery(b"{bad", deliveries=delivery))
    await bench.feed(bench.delivery(b"{bad", seq=2))  # the same again, sent by somebody
    assert len(await bench.store.list_dead_letters()) == 2


async def test_a_store_that_goes_away_under_a_suspect_counts_no_death(bench):
    async def away(*_, **__):
        raise Transient("The store is away.")

    bench.store.instead.update(take=away, spare_attempt=away)
    for delivery in range(2, 9):
        await bench.feed(bench.delivery(raw(trajectory()), deliveries=delivery))
    del bench.store.instead["spare_attempt"]
    for delivery in range(9, 14):
        await bench.feed(bench.delivery(raw(trajectory()), deliveries=delivery))
    bench.store.instead.clear()
    assert await bench.feed(bench.delivery(raw(trajectory()), deliveries=14)) == [["ack"]]
    assert await bench.store.list_dead_letters() == []
