"""Whoever dies, of what and when: is everything taken once, every killer found, and nobody else buried?

A life is a stream consumer on the real store and intake, fed by a stream in memory. A death stops it at any
step that touches the world, as `kill -9` does: nothing that it had begun goes on. Messages kill their
taker before or after they are stored, or kill only the worker that looks at them.
"""

import asyncio
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from tests.support import raw, small

from upswing.collect.consumer import BusIntake
from upswing.collect.core.admit import AdmissionLimits
from upswing.collect.core.evaluate import evaluate
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.worker import VERDICTS, encode_frame
from upswing.config import Settings
from upswing.contracts import canonical
from upswing.contracts.topics import TRAJECTORIES, TRAJECTORY
from upswing.errors import Died, Transient
from upswing.infra.child_workers import WorkerPool
from upswing.infra.nats.consumer import StreamConsumer
from upswing.infra.nats.crash_suspects import CRASHES_TO_POISON, CrashSuspects
from upswing.infra.sql.store import open_in_memory_store
from upswing.infra.sql.users import Users
from upswing.records import StreamMessage
from upswing.redact import Redactor

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REDACTOR = Redactor()
TEXTS = {
    "plain": "ok",
    "same bytes": "canonical",
    "private": "mail bob@example.org",
    "busy": "comes when the store is away",
    "kills before": "deadly nightshade",
    "kills after": "slow arsenic",
    "kills worker": "worker's bane",
}
DEATHS_OF_ONE = CRASHES_TO_POISON + 1
"""Without a mark, among others, and three times alone."""


def spelled(kind, document):
    """What of these is stored byte for byte is known when it comes again."""
    if kind == "bad":
        return b"{bad " + raw(document)
    return canonical(document) if kind in {"same bytes", "kills after"} else raw(document)


class Life:
    """One life of the process: it ends at a step, and then nothing of it goes on."""

    def __init__(self, steps):
        self.left, self.over = steps, asyncio.Event()

    async def step(self):
        self.left -= 1
        if self.left == 0:
            self.over.set()
        if self.over.is_set():
            await asyncio.Event().wait()

    async def die(self):
        self.over.set()
        await self.step()


class Mortal:
    """The real thing, in the hands of somebody who may die before and after each call."""

    def __init__(self, real, life):
        self._real, self._life = real, life

    def __getattr__(self, name):
        async def call(*args, **more):
            await self._life.step()
            answer = await getattr(self._real, name)(*args, **more)
            await self._life.step()
            return answer

        return call


@dataclass
class Stream:
    """A stream of the bus, and its consumer."""

    payloads: list
    published: int
    waiting: list = field(default_factory=list)
    acked: Counter = field(default_factory=Counter)
    erased: set = field(default_factory=set)
    counts: Counter = field(default_factory=Counter)
    copies: bool = False
    """Whether whatever was delivered comes once more, because its acknowledgement was too slow."""
    late: list = field(default_factory=list)

    def __post_init__(self):
        self.waiting = list(range(1, self.published + 1))

    async def last_seq(self):
        return self.published

    def publish(self, most):
        until = min(len(self.payloads), self.published + most)
        self.waiting += range(self.published + 1, until + 1)
        self.published = until

    def fetch(self, most, life):
        first, self.waiting = self.waiting[:most], self.waiting[most:]
        batch, self.late = [*self.late, *first], list(first) if self.copies else []
        self.counts.update(batch)
        return [Hand(self, seq, self.counts[seq], life) for seq in batch]

    def redeliver(self, *, forgets):
        """Its consumer died: all that it did not acknowledge comes again."""
        gone = self.acked.keys() | self.erased
        self.waiting = [seq for seq in range(1, self.published + 1) if seq not in gone]
        self.late = []
        if forgets:
            self.counts.clear()

    async def erase_messages(self, _stream, seqs):
        self.erased.update(seqs)

    @property
    def settled(self):
        return self.published == len(self.payloads) and not (self.waiting or self.late)


@dataclass
class Hand:
    """A delivery."""

    stream: Stream
    seq: int
    count: int
    life: Life

    @property
    def message(self):
        payload = self.stream.payloads[self.seq - 1]
        return StreamMessage(TRAJECTORIES, TRAJECTORY, self.seq, self.count, payload)

    async def ack(self):
        await self.life.step()
        self.stream.acked[self.seq] += 1

    async def redeliver_later(self, _seconds):
        await self.life.step()
        self.stream.waiting.append(self.seq)


class World:
    """A store and a stream that outlive whoever works on them."""

    def __init__(self, store, case):
        self.store, self.case = store, case
        self.documents = [small(f"{TEXTS.get(kind, '')} {n}") for n, kind in enumerate(case.kinds)]
        payloads = [*map(spelled, case.kinds, self.documents)]
        self.stream = Stream(payloads, int(case.backlog * len(payloads)), copies=case.copies)
        self.away = Counter()
        self.deaths = 0

    async def live(self, life):
        """Work until all is settled."""
        store = Mortal(self.store, life)
        intake = Intake(
            store,
            Users(self.store.database),
            self._evaluate(life),
            CollectMetrics(CollectorRegistry()),
            clock=lambda: NOW,
            new_id=uuid.uuid4,
        )
        handler = BusIntake(intake, store, REDACTOR).trajectory_handler()

        async def take(message):
            erase = await handler.process(message)
            if TEXTS["kills after"].encode() in message.payload:
                await life.die()
            return erase

        bus = Mortal(self.stream, life)
        collector = StreamConsumer(
            self.stream,
            bus,
            store,
            replace(handler, process=take, in_order=self.case.in_order),
            suspects=CrashSuspects(self.case.few),
        )
        await collector.learn_backlog()
        rounds = 0
        while not self.stream.settled:
            rounds += 1
            assert rounds < 100 * len(self.case.kinds), "it goes round and round"
            size = self.case.sizes[rounds % len(self.case.sizes)]
            self.stream.publish(size)
            if batch := self.stream.fetch(size, life):
                await collector.handle(batch)

    def _evaluate(self, life):
        async def deadly_evaluate(kind, message):
            if TEXTS["kills before"].encode() in message:
                await life.die()
            if TEXTS["kills worker"].encode() in message:
                raise Died("The worker died while it looked at this message.")
            if TEXTS["busy"].encode() in message and self.away[message] < 3:
                self.away[message] += 1
                raise Transient("Not just now.")
            await asyncio.sleep(0)
            return evaluate(kind, message, REDACTOR, AdmissionLimits())

        return deadly_evaluate

    async def run(self):
        """Life after life, until one of them settles everything."""
        kills = list(self.case.kills)
        killers = sum(kind.startswith("kills") for kind in self.case.kinds)
        while True:
            life = Life(kills.pop() if kills else 0)
            work, over = asyncio.create_task(self.live(life)), asyncio.create_task(life.over.wait())
            await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
            if not life.over.is_set():
                over.cancel()
                return await work
            await end_everything()
            await self.store.database.write(lambda _: None)  # what was on its way has arrived
            self.stream.redeliver(forgets=self.case.forgets)
            self.deaths += 1
            assert self.deaths <= DEATHS_OF_ONE * killers + len(self.case.kills), "it goes on dying"

    async def check(self):
        kinds = dict(enumerate(self.case.kinds, 1))
        poison = {n for n, kind in kinds.items() if kind in {"kills before", "kills worker"}}
        bad = {n for n, kind in kinds.items() if kind == "bad"}
        stored = await self.store.trajectories_after(0, 1000)
        wanted = {self.documents[n - 1]["trajectory_id"] for n in kinds if n not in poison | bad}
        assert Counter(row.admitted.trajectory_id for row in stored) == Counter(wanted)
        letters = [
            buried.letter.reason for buried in await self.store.list_dead_letters(limit=1000)
        ]
        assert Counter(letters) == Counter(poison=len(poison), malformed=len(bad))
        assert self.stream.acked.keys() | self.stream.erased == set(kinds)
        private = {n for n, kind in kinds.items() if kind == "private"}
        assert private | poison | bad <= self.stream.erased
        marked = (await self.store.begun_attempts(TRAJECTORIES, list(kinds))).keys()
        if not (self.case.copies and self.deaths):  # a copy of what is acknowledged was in hand
            assert marked <= poison


async def end_everything():
    """All that a dead process had begun ends with it."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@dataclass(frozen=True)
class Case:
    kinds: list
    backlog: float
    few: int
    sizes: list
    kills: list
    forgets: bool
    in_order: bool = False
    copies: bool = False


HARMLESS = ["plain"] * 6 + ["private", "busy", "bad"]
CASES = st.builds(
    Case,
    kinds=st.lists(st.sampled_from([*HARMLESS, *TEXTS]), min_size=1, max_size=40),
    backlog=st.floats(0, 1),
    few=st.sampled_from([0, 3, 32]),
    sizes=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    kills=st.lists(st.integers(1, 400), max_size=CRASHES_TO_POISON - 2),
    forgets=st.booleans(),
    in_order=st.booleans(),
    copies=st.booleans(),
)


async def tried(case):
    store = open_in_memory_store()
    try:
        await store.prepare()
        world = World(store, case)
        await world.run()
        await world.check()
    finally:
        store.close()
    return world


@given(CASES)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_is_lost_or_doubled_and_only_killers_are_buried(case):
    asyncio.run(tried(case))


async def test_a_killer_in_a_crowd_costs_its_neighbours_nothing_and_ends_after_few_deaths():
    kinds = ["plain"] * 150 + ["kills before"] + ["plain"] * 149
    world = await tried(Case(kinds, 1.0, 0, [256], [], forgets=True))
    assert world.deaths == CRASHES_TO_POISON  # once among others, three times alone


async def test_a_copy_of_a_killer_that_is_under_way_when_it_is_buried_kills_nobody():
    case = Case(["plain", "kills before", "plain"], 0.0, 0, [1], [], forgets=False, copies=True)
    assert (await tried(case)).deaths == DEATHS_OF_ONE


class Asking(World):
    """Its messages are looked at by real workers, which die of one of them."""

    def __init__(self, store, case, children):
        super().__init__(store, case)
        self._children = children

    def _evaluate(self, life):
        async def ask(kind, message):
            return VERDICTS.decode(await self._children.request(encode_frame(kind, message)))

        return ask


@pytest.mark.live
async def test_a_message_that_kills_the_workers_is_buried_and_those_behind_it_are_not():
    children = WorkerPool(
        2, "tests.collect.deadly", encode_frame("s", msgspec.msgpack.encode(Settings()))
    )
    store = open_in_memory_store()
    try:
        await asyncio.gather(store.prepare(), children.start())
        kinds = ["plain"] * 60 + ["kills before"] + ["private"] * 40
        world = Asking(store, Case(kinds, 0.0, 32, [64], [], forgets=False), children)
        await world.run()
        await world.check()
    finally:
        await children.stop()
        store.close()
    assert world.deaths == 0, "the loop has nothing to do with it"
    assert sum(child.deaths for child in children._children) == CRASHES_TO_POISON


async def test_a_crowd_pays_for_two_marks_not_for_two_each():
    store = open_in_memory_store()
    try:
        await store.prepare()
        world = World(store, Case(["plain"] * 256, 1.0, 0, [256], [], forgets=False))
        before = store.database.units
        await world.run()
        assert store.database.units - before < 256 + 10
        await world.check()
    finally:
        store.close()
