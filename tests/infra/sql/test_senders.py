"""What a key has told is its own: trajectories that are open, words on them, and users of the same name."""

import itertools
import uuid
from datetime import timedelta
from types import SimpleNamespace

import pytest
from prometheus_client import CollectorRegistry

from tests.deploy.scoring import NOW, REDACTOR, scored
from tests.support import raw, trajectory
from upswing.api.auditing import Auditor
from upswing.api.dead_letters import DeadLetterRoutes
from upswing.collect.consumer import BusIntake
from upswing.collect.core.admit import AdmissionLimits, admit, admit_feedback
from upswing.collect.core.evaluate import evaluate
from upswing.collect.intake import Intake
from upswing.collect.metrics import CollectMetrics
from upswing.collect.open_trajectories import OpenTrajectories
from upswing.contracts import canonical
from upswing.contracts.topics import FEEDBACK, GATEWAY_TRAJECTORY, TRAJECTORY
from upswing.deploy.core.key_weights import VoiceCounts
from upswing.deploy.repository import RolloutRepository
from upswing.errors import Reason
from upswing.infra.sql.audit import AuditTrail
from upswing.infra.sql.rewards import _FACTS, Rewards
from upswing.principals import BEGUN_BY, BUS, Sender
from upswing.records import RejectedMessage, StreamMessage, Taken

NUMBERS = itertools.count()


def admitted(**changes):
    from dataclasses import replace

    told = {name: changes.pop(name) for name in ("key_id", "many") if name in changes}
    return replace(admit(raw(trajectory(**changes)), REDACTOR, AdmissionLimits()).admitted, **told)


def word(key, *, many=False, trusted=False, kind="thumbs_down", **target):
    from dataclasses import replace

    said = {
        "feedback_id": f"f{next(NUMBERS)}",
        "timestamp": NOW.isoformat(),
        "type": kind,
        **target,
    }
    return replace(
        admit_feedback(raw(said), REDACTOR, AdmissionLimits())[0],
        principal=key,
        many=many,
        trusted=trusted,
    )


async def take(store, row, door="http", **options):
    return await store.take(row, door=door, now=NOW, stream_seq=None, announce=False, **options)


@pytest.mark.parametrize("door", ["http", "nats", "gateway", "sdk"])
async def test_what_one_key_has_begun_no_other_ends_by_telling_it_whole(store, door):
    notes = OpenTrajectories(store.database)
    row = admitted(key_id="other", many=True)
    await notes.begin(row.trajectory_id, canonical({BEGUN_BY: "mine"}), None, NOW)
    assert await take(store, row, door) is Taken.NOT_YOURS
    assert await store.trajectory(row.trajectory_id) is None
    assert await notes.find(row.trajectory_id) is not None
    assert await take(store, row, door, overrides=True) is Taken.STORED, "an operator may"
    assert (await store.trajectory(row.trajectory_id)).admitted.key_id == "other"


async def test_a_trajectory_that_is_open_and_nobodys_is_taken_as_before(store):
    notes, row = OpenTrajectories(store.database), admitted(key_id="k")
    await notes.begin(row.trajectory_id, b'{"agent_id": "a"}', None, NOW)
    assert await take(store, row) is Taken.STORED


SPEAKERS = [
    # key, many, trusted, says of whom → is it taken, and as whose word
    ("k1", False, False, "ann", "ann"),
    ("k1", False, False, None, "ann"),
    ("k1", False, False, "eve", "refused"),
    ("k2", False, False, "ann", "refused"),
    ("k2", False, False, None, "refused"),
    (BUS, False, False, "ann", "refused"),
    ("k3", True, False, "ann", "ann"),
    ("k3", True, False, None, "ann"),
    ("k3", True, False, "eve", "refused"),
    ("op", True, True, "eve", "eve"),
    ("op", True, True, None, None),
]


@pytest.mark.parametrize("first", ["trajectory", "word"])
@pytest.mark.parametrize("by", ["trajectory_id", "episode_id"])
async def test_a_word_counts_for_the_user_whose_key_says_it(store, first, by):
    """Whether it comes before its trajectory or after it."""
    rewards = Rewards(store.database)
    for key, many, trusted, user, whose in SPEAKERS:
        episode = f"e{next(NUMBERS)}"
        row = admitted(key_id="k1", many=False, metadata={"user_id": "ann", "episode_id": episode})
        target = {by: episode if by == "episode_id" else row.trajectory_id}
        said = word(
            key, many=many, trusted=trusted, **target, **({"user_id": user} if user else {})
        )
        if first == "trajectory":
            await take(store, row)
        taken = await store.take_feedback(said, now=NOW, announce=False)
        if first == "trajectory":
            assert taken is (Taken.NOT_YOURS if whose == "refused" else Taken.STORED), (key, user)
        else:
            assert taken is Taken.STORED, "nobody knows yet whose it is"
            await take(store, row)
        heard = await rewards.feedback_for([(row.trajectory_id, episode, "ann")])
        told = [each.user_id for each in heard[row.trajectory_id]]
        assert told == ([] if whose == "refused" else [whose] if whose else told)
        assert len(told) == (whose != "refused"), (key, user)


async def test_complaints_of_other_keys_and_of_the_bus_are_no_evidence(store):
    rollouts = RolloutRepository(store.database)
    about = {"gateway": {"key": "k1"}, "user_id": "ann"}
    names = [await scored(store, episode=f"e{n}", **about) for n in range(4)]
    for key, name in zip(("k2", BUS, "k1"), names, strict=False):
        await store.take_feedback(word(key, trajectory_id=name), now=NOW, announce=False)
    (complaint,) = (await rollouts.complaints_after(0, ["m-1"])).rows
    assert complaint.key == "k1"


async def test_two_keys_may_each_have_a_user_of_the_same_name(store):
    for key in ("k1", "k2", "k1", "k2"):
        await scored(store, gateway={"unit": "user", "key": key, "many": True}, user_id="ann")
    rows = (await RolloutRepository(store.database).rewards_after(0, ["m-1"])).rows
    assert len(rows) == 2


async def test_evidence_names_the_key_only_where_it_may_not_speak_for_many(store):
    for about in ({"key": "k1"}, {"key": "k2", "many": True}, {"step": "0.5"}):
        await scored(store, gateway=about, user_id="ann")
    seen = await RolloutRepository(store.database).rewards_after(0, ["m-1"])
    assert [row.key for row in seen.rows] == ["k1", "", ""]
    assert len({row.user for row in seen.rows}) == 3, "each key's ann is another"
    assert all("ann" not in row.user for row in seen.rows)


def bus_intake(store):
    """The bus's way into the intake, on this store."""

    async def look_at(kind, body):
        return evaluate(kind, body, REDACTOR, AdmissionLimits())

    nobody = SimpleNamespace(opted_out=lambda _: False)
    metrics = CollectMetrics(CollectorRegistry())
    intake = Intake(store, nobody, look_at, metrics, clock=lambda: NOW, new_id=uuid.uuid4)
    return BusIntake(intake, store, REDACTOR)


async def test_an_id_that_is_open_is_refused_on_the_bus_with_a_dead_letter(store):
    whole = trajectory()
    notes = OpenTrajectories(store.database)
    await notes.begin(whole["trajectory_id"], canonical({BEGUN_BY: "mine"}), None, NOW)
    outcome = await bus_intake(store).take_trajectory(
        StreamMessage("S", TRAJECTORY, 1, 1, raw(whole))
    )
    assert outcome.rejected.reason is Reason.NOT_YOURS
    (letter,) = await store.list_dead_letters()
    assert letter.letter.reason == "not_yours"
    assert letter.letter.detail.endswith("that key alone goes on with it.")


@pytest.mark.parametrize(
    ("subject", "key", "many"),
    [(TRAJECTORY, BUS, False), (GATEWAY_TRAJECTORY, "k1", True)],
)
async def test_what_a_message_says_of_its_own_key_is_believed_of_gateways_alone(
    store, subject, key, many
):
    whole = trajectory(metadata={"gateway": {"key": "k1", "many": True}, "user_id": "ann"})
    taking = bus_intake(store)
    await taking.take_trajectory(StreamMessage("S", subject, 1, 1, raw(whole)))
    stored = (await store.trajectory(whole["trajectory_id"])).admitted
    assert (stored.key_id, stored.many) == (key, many)
    said = {
        "feedback_id": "f-forged",
        "timestamp": NOW.isoformat(),
        "type": "thumbs_up",
        "user_id": "ann",
        "trajectory_id": whole["trajectory_id"],
        "metadata": {"gateway": {"key": "k1", "many": True}},
    }
    outcome = await taking.take_feedback(StreamMessage("F", FEEDBACK, 2, 1, raw(said)))
    assert (outcome.rejected is None) == (key == BUS), "the bus does not speak for a gateway's key"


@pytest.mark.parametrize("many", [False, True])
async def test_an_episode_that_another_key_has_named_first_is_still_ones_own(store, many):
    for n in range(3):
        await scored(store, episode="order-1", user_id="ann", gateway={"key": f"evil{n}"})
    mine = await scored(
        store, episode="order-1", user_id="ann", gateway={"key": "k1", "many": many}
    )
    for key, taken in (("k1", Taken.STORED), ("k2", Taken.NOT_YOURS)):
        said = word(key, episode_id="order-1", user_id="ann", many=many and key == "k1")
        assert await store.take_feedback(said, now=NOW, announce=False) is taken
    heard = await Rewards(store.database).feedback_for([(mine, "order-1", "ann")])
    assert len(heard[mine]) == 1
    (complaint,) = (await RolloutRepository(store.database).complaints_after(0, ["m-1"])).rows
    assert complaint.key == ("" if many else "k1")


async def test_whoever_names_anothers_episode_speaks_of_its_own_alone(store):
    mine = await scored(store, episode="order-1", gateway={"key": "k1"})
    await scored(store, episode="order-1", gateway={"key": "evil"})
    await store.take_feedback(word("evil", episode_id="order-1"), now=NOW, announce=False)
    assert (await Rewards(store.database).feedback_for([(mine, "order-1", None)]))[mine] == []
    (complaint,) = (await RolloutRepository(store.database).complaints_after(0, ["m-1"])).rows
    assert complaint.key == "evil"


async def copies(store, name, count):
    """As if one key had told that many more."""
    told = ", ".join(_FACTS[2:])
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    sql = (
        f"INSERT INTO scored (trajectory_seq, trajectory_id, {told}) {numbers} "
        f"SELECT 100000 + i, 'copy-' || i, {told} FROM scored, n WHERE trajectory_id = ?"
    )
    await store.database.write(lambda tx: tx.execute(sql, (count, name)))


async def test_however_much_one_key_tells_the_others_have_spoken(store):
    await scored(store, gateway={"key": "honest", "many": True}, user_id="ann")
    name = await scored(store, gateway={"key": "evil"})
    await copies(store, name, 2100)
    assert (await RolloutRepository(store.database).rewards_after(0, ["m-1"])).several


@pytest.mark.parametrize(("days", "several"), [(0, True), (2, True), (4, False)])
async def test_a_key_that_has_spoken_lately_is_one_of_several(store, days, several):
    row = admitted(key_id="honest", many=True)
    early = {"now": NOW - timedelta(days=days), "stream_seq": None, "announce": False}
    await store.take(row, door="gateway", **early)
    await scored(store, gateway={"key": "k1"})
    assert (await RolloutRepository(store.database).rewards_after(0, ["m-1"])).several is several


@pytest.mark.parametrize("door", ["http", "nats", "sdk"])
@pytest.mark.parametrize("many", [False, True])
async def test_what_comes_by_another_door_silences_no_key_of_a_gateway(store, door, many):
    for _ in range(3):
        await take(store, admitted(key_id="other", many=many), door=door)
        await scored(store, gateway={"key": "k1"})
    seen = await RolloutRepository(store.database).rewards_after(0, ["m-1"])
    voices = VoiceCounts()
    assert all(voices.count_if_fair(row.key, row.user, several=seen.several) for row in seen.rows)
    assert (len(seen.rows), voices.left_out) == (3, 0)


async def test_a_key_that_fell_silent_caps_what_was_said_beside_it_and_nothing_after(store):
    def heard(voices, seen):
        return sum(
            voices.count_if_fair(row.key, row.user, several=seen.several) for row in seen.rows
        )

    voices = VoiceCounts()
    for key in ("silent", "k1", "k1", "k1"):
        await scored(store, gateway={"key": key})
    beside = await RolloutRepository(store.database).rewards_after(0, ["m-1"])
    assert heard(voices, beside) < 4
    await store.database.write(
        lambda tx: tx.execute(
            "UPDATE trajectories SET stored_us = stored_us - ?", (4 * 86400 * 10**6,)
        )
    )
    for _ in range(5):
        await scored(store, gateway={"key": "k1"})
    after = await RolloutRepository(store.database).rewards_after(beside.upto, ["m-1"])
    assert heard(voices, after) == 5
    assert (await RolloutRepository(store.database).rewards_after(0, ["m-1"])).several, (
        "seen from then"
    )


async def test_practice_and_evaluations_are_nobodys_voice(store):
    await scored(store, gateway={"key": "other"}, is_evaluation=True)
    await scored(store, gateway={"key": "k1"})
    assert not (await RolloutRepository(store.database).rewards_after(0, ["m-1"])).several


async def test_a_trusted_key_that_names_no_user_speaks_for_each_of_its_episodes(store):
    for key, many in [("backend", True)] * 20 + [("liar", False)] * 60:
        await scored(store, gateway={"key": key, "many": many}, user_id=None)
    seen = await RolloutRepository(store.database).rewards_after(0, ["m-1"])
    voices = VoiceCounts()
    for row in seen.rows:
        voices.count_if_fair(row.key, row.user, several=seen.several)
    assert (len(voices.users), voices.keys) == (20, {"liar": 2})


@pytest.mark.parametrize(
    ("sender", "whose"),
    [
        (Sender("k1", many=False), ("k1", False)),
        (Sender("k2", many=True), ("k2", True)),
        (Sender(), ("", False)),
    ],
)
async def test_a_dead_letter_keeps_the_key_that_it_came_with(store, sender, whose):
    intake = bus_intake(store)._intake
    bad = raw(trajectory() | {"steps": "none"})
    assert not (await intake.trajectory(bad, door="http", sender=sender)).taken
    said = raw({"feedback_id": "f", "type": "gibberish"})
    told = {"principal": sender.key_id, "many": sender.many}
    assert not (await intake.feedback(said, door="http", **told)).taken
    letters = await store.list_dead_letters()
    assert [(each.sender.key_id, each.sender.many) for each in letters] == [whose] * 2
    assert (await store.dead_letter(str(letters[0].letter.dead_id))).sender == letters[0].sender


@pytest.mark.parametrize(
    ("sender", "whose"),
    [
        (Sender("k1", many=False), ("k1", False)),
        (Sender("k2"), ("k2", True)),
        (Sender(), ("replay", False)),
    ],
)
async def test_what_is_replayed_is_still_its_keys(store, sender, whose):
    intake = bus_intake(store)._intake
    routes = DeadLetterRoutes(
        store, intake, Auditor(AuditTrail(store.database), lambda: NOW), clock=lambda: NOW
    )
    body = trajectory()
    refused = RejectedMessage(Reason.POISON, "It killed its reader.", "0" * 64, raw(body).decode())
    await intake.dead_letter(refused, door="http", subject="/v1/trajectories", sender=sender)
    (letter,) = await store.list_dead_letters()
    asked = SimpleNamespace(params={"dead_id": str(letter.letter.dead_id)}, principal=None)
    assert (await routes.replay(asked)).status < 300
    stored = (await store.trajectory(body["trajectory_id"])).admitted
    assert (stored.key_id, stored.many) == whose


@pytest.mark.parametrize("order", list(itertools.permutations(["ann", "bob", "cid"])))
async def test_feedback_ids_are_each_keys_own(store, order):
    """Whoever comes first, each key's word is stored once, comes again unharmed, and holds against another of its own."""

    async def take(key, kind):
        said = word(key, kind=kind, episode_id=f"of-{key}", feedback_id="fb-1")
        return await store.take_feedback(said, now=NOW, announce=True, stream_seq=None)

    for _ in range(2):
        taken = {await take(key, "thumbs_down") for key in order}
        assert len(taken) == 1
    assert taken == {Taken.KNOWN}
    assert {await take(key, "thumbs_up") for key in order} == {Taken.CONFLICT}
    assert (await store.counts())["feedback"] == 3
