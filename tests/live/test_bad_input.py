"""What becomes of bad messages among good ones? One dead letter each, with a reason; nothing else."""

import asyncio
import copy
import json
import random
import uuid
from collections import Counter

import pytest
from tests.conftest import running_loop
from tests.storms import sized
from tests.support import Client, cli, on_bus, raw, samples, small, until

from upswing.config import CollectConfig, Settings
from upswing.contracts import DeadLetter, decode
from upswing.contracts.topics import FEEDBACK, TRAJECTORIES, TRAJECTORY

pytestmark = pytest.mark.live
LIMIT = 40_000
STATUS = {
    "malformed": 400,
    "not_a_number": 400,
    "too_deep": 400,
    "too_large": 413,
    "conflict": 409,
    "schema": 422,
    "turn_order": 422,
    "time_order": 422,
}


def changed(path, value):
    """A good message with one place changed."""

    def make():
        made = small()
        *way, last = path
        place = made
        for step in way:
            place = place[step]
        place[last] = value
        return raw(made)

    return make


def without(field):
    return lambda: raw({key: value for key, value in small().items() if key != field})


def spelled(old, new):
    """A good message with its spelling changed."""

    def make():
        good = raw(small())
        assert old in good
        return good.replace(old, new, 1)

    return make


def turns(*numbers_and_seconds):
    def make():
        made = small()
        (first,) = made["turns"]
        made["turns"] = [
            copy.deepcopy(first) | {"turn_id": n, "timestamp": f"2025-12-08T13:00:{s:02}Z"}
            for n, s in numbers_and_seconds
        ]
        return raw(made)

    return make


def nested(levels):
    return spelled(b'"model": "m"', b'"model": "m", "q": ' + b"[" * levels + b"]" * levels)


OUTPUT = ("turns", 0, "result", "output")
KINDS = {
    "not JSON at all": ("malformed", lambda: b"hello, this is no JSON"),
    "nothing": ("malformed", lambda: b""),
    "only spaces": ("malformed", lambda: b"  \n "),
    "bytes that are no UTF-8": ("malformed", spelled(b'"ok"', b'"\xff\xfe"')),
    "an overlong slash": ("malformed", spelled(b'"ok"', b'"\xc0\xaf"')),
    "cut off": ("malformed", lambda: raw(small())[:-9]),
    "rubbish behind it": ("malformed", lambda: raw(small()) + b" x"),
    "two in one": ("malformed", lambda: raw(small()) + raw(small())),
    "a byte order mark": ("malformed", lambda: b"\xef\xbb\xbf" + raw(small())),
    "a raw null byte": ("malformed", spelled(b'"ok"', b'"o\x00k"')),
    "nothing but null bytes": ("malformed", lambda: b"\0" * 64),
    "half a surrogate pair": ("malformed", spelled(b'"ok"', rb'"\ud800"')),
    "the other half": ("malformed", spelled(b'"ok"', rb'"\udc00"')),
    "single quotes": ("malformed", lambda: raw(small()).replace(b'"', b"'")),
    "NaN": ("not_a_number", spelled(b'"m"', b'"m", "temperature": NaN')),
    "Infinity": ("not_a_number", spelled(b'"m"', b'"m", "temperature": Infinity')),
    "minus Infinity": ("not_a_number", spelled(b'"m"', b'"m", "x": [-Infinity]')),
    "an array": ("schema", lambda: b"[1, 2]"),
    "a text": ("schema", lambda: b'"trajectory"'),
    "a number": ("schema", lambda: b"42"),
    "null": ("schema", lambda: b"null"),
    "an empty object": ("schema", lambda: b"{}"),
    "a field of the wrong type": ("schema", changed(["session_id"], 5)),
    "success in words": ("schema", changed(["turns", 0, "result", "success"], "yes")),
    "a missing field": ("schema", without("agent_id")),
    "no metadata": ("schema", without("metadata")),
    "an unknown field": ("schema", changed(["surprise"], 1)),
    "an unknown field further in": ("schema", changed(["turns", 0, "action", "surprise"], 1)),
    "an unknown kind of action": ("schema", changed(["turns", 0, "action", "type"], "dance")),
    "a bad id": ("schema", changed(["trajectory_id"], "not-a-uuid")),
    "a bad time": ("schema", changed(["start_timestamp"], "yesterday")),
    "a time without a zone": ("schema", changed(["start_timestamp"], "2025-12-08T13:00:00")),
    "a time before the calendar": (
        "schema",
        changed(["start_timestamp"], "0001-01-01T00:00:00+23:59"),
    ),
    "a time behind the calendar": (
        "schema",
        changed(["end_timestamp"], "9999-12-31T23:59:59-23:59"),
    ),
    "a negative duration": ("schema", changed(["turns", 0, "result", "execution_time_ms"], -1)),
    "negative tokens": ("schema", changed(["metadata", "total_tokens"], -5)),
    "a temperature of 3": ("schema", changed(["metadata", "temperature"], 3)),
    "a number beyond all bounds": ("schema", spelled(b'"m"', b'"m", "x": 1e400')),
    "an integer of 5000 digits": ("schema", spelled(b'"m"', b'"m", "x": ' + b"7" * 5000)),
    "no turns": ("schema", changed(["turns"], [])),
    "turns that go back": ("turn_order", turns((2, 1), (1, 2))),
    "the same turn twice": ("turn_order", turns((1, 1), (1, 2))),
    "time that goes back": ("time_order", turns((1, 9), (2, 3))),
    "an end before the start": ("time_order", changed(["end_timestamp"], "2024-01-01T00:00:00Z")),
    "70 levels deep": ("too_deep", nested(70)),
    "5000 levels deep": ("too_deep", nested(5000)),
    "too large": ("too_large", changed(OUTPUT, "long " * (LIMIT // 4))),
}
CONFLICT = "a known id with other content"


@pytest.mark.long
@sized("bad_ones", 200, 1_000)
async def test_bad_messages_of_every_kind_cost_ten_times_as_many_good_ones_nothing(data, bad_ones):
    chance = random.Random(3)
    good = [small(f"number {number}") for number in range(10 * bad_ones)]
    twisted = [raw({**each, "agent_id": "somebody else"}) for each in good[:20]]
    expected = Counter(conflict=len(twisted))
    bad = list(twisted)
    kinds = list(KINDS.values())
    while len(bad) < bad_ones:
        reason, make = kinds[len(bad) % len(kinds)]
        bad.append(make())
        expected[reason] += 1
    settings = Settings(collect=CollectConfig(max_bytes=LIMIT))
    async with (
        running_loop(data, workers=True, settings=settings) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
        on_bus(loop.running.nats_urls["agent"]) as agent,
        on_bus(loop.running.nats_urls["reader"]) as reader,
    ):
        for each in good[:20]:  # known before somebody else comes with the same ids
            assert (await client.send(each))[0] == 202
        rest = [raw(each) for each in good[20:]] + bad
        chance.shuffle(rest)
        for place, message in enumerate(rest):
            await agent.publish(TRAJECTORY, message)
            if place % 1000 == 999:
                await agent.flush()
        await agent.flush()
        await until(lambda: settled(loop), 120, "the collector did not settle every delivery")

        counts = await loop.store.counts()
        letters = [buried.letter for buried in await loop.store.list_dead_letters(limit=2000)]
        assert (counts["trajectories"], counts["dead"]) == (len(good), bad_ones)
        assert Counter(letter.reason for letter in letters) == expected
        assert {letter.subject for letter in letters} == {TRAJECTORY}
        assert {letter.deliveries for letter in letters} == {1}
        assert all(letter.detail.endswith(".") for letter in letters)

        series = samples((await client("GET", "/metrics"))[1])
        refused = {
            dict(labels)["reason"]: value
            for (name, labels), value in series.items()
            if name == "upswing_refused_total" and dict(labels)["door"] == "nats" and value
        }
        assert refused == expected
        stored = sum(
            value
            for (name, _), value in series.items()
            if name == "agent_rl_trajectories_collected_total"
        )
        assert stored == len(good)

        assert await announced(reader) == {str(letter.dead_id): letter.reason for letter in letters}
        assert not loop.failed.is_set(), "a part of the loop broke"
        ended = {task.get_name() for task in loop._parts.tasks if task.done()}
        assert ended <= {"inspection"}, "a part of the loop ended that should not"
        after = small("afterwards")
        await agent.publish(TRAJECTORY, raw(after))
        await until(lambda: loop.store.trajectory(after["trajectory_id"]))


async def settled(loop):
    info = await loop.bus.js.consumer_info(TRAJECTORIES, "collector")
    counts = await loop.store.counts()
    return not info.num_pending and not info.num_ack_pending and not counts["outbox"]


async def announced(reader):
    """Every dead letter of RL_DEAD, as a role that only reads sees them: id → reason."""
    from nats.js.api import ConsumerConfig, DeliverPolicy

    js = reader.jetstream()
    await js.add_consumer(
        "RL_DEAD",
        ConsumerConfig(
            name="reader",
            durable_name="reader",
            filter_subject="agent.rl.dead.>",
            deliver_policy=DeliverPolicy.ALL,
        ),
    )
    pull = await js.pull_subscribe_bind("reader", "RL_DEAD")
    heard = {}
    while len(heard) < (await js.stream_info("RL_DEAD")).state.messages:
        for message in await pull.fetch(200, timeout=5):
            letter = decode(DeadLetter, message.data)
            assert message.subject == "agent.rl.dead.collect"
            heard[str(letter.dead_id)] = letter.reason
            await message.ack()
    return heard


async def test_every_kind_is_told_apart_at_both_doors(data):
    """One of each, so that a reason that changes is seen with the name of its kind."""
    settings = Settings(collect=CollectConfig(max_bytes=LIMIT))
    async with (
        running_loop(data, workers=True, settings=settings) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
        on_bus(loop.running.nats_urls["agent"]) as agent,
    ):
        known = small()
        await client.send(known)
        made = {kind: make() for kind, (_, make) in KINDS.items()}
        made[CONFLICT] = raw({**known, "agent_id": "somebody else"})
        table = {kind: reason for kind, (reason, _) in KINDS.items()} | {CONFLICT: "conflict"}

        by_http = {}
        for kind, body in made.items():
            status, answer = await client("POST", "/v1/trajectories", body)
            by_http[kind] = (status, answer["error"])
        assert by_http == {kind: (STATUS[reason], reason) for kind, reason in table.items()}

        by_nats = {}
        for number, (kind, body) in enumerate(made.items(), len(made) + 1):
            await agent.publish(TRAJECTORY, body)

            async def buried(number=number):
                return (await loop.store.counts())["dead"] >= number

            await until(buried, what=f"{kind!r} was not buried")
            by_nats[kind] = (await loop.store.list_dead_letters(limit=1))[0].letter.reason
        assert by_nats == table


FEEDBACK_KINDS = {
    "no target": ("schema", {"type": "thumbs_up"}),
    "two targets": ("schema", {"type": "thumbs_up", "episode_id": "e", "inference_id": "i"}),
    "a rating of 6": ("schema", {"type": "rating", "rating": 6, "episode_id": "e"}),
    "a comment without words": ("schema", {"type": "comment", "episode_id": "e"}),
    "an unknown kind": ("schema", {"type": "shrug", "episode_id": "e"}),
}


async def test_bad_feedback_is_buried_too(loop, client):
    async with on_bus(loop.running.nats_urls["agent"]) as agent:
        for number, (kind, (reason, change)) in enumerate(FEEDBACK_KINDS.items(), 1):
            word = {"feedback_id": str(uuid.uuid4()), "timestamp": "2025-12-08T13:00:00Z", **change}
            status, answer = await client("POST", "/v1/feedback", word)
            assert (status, answer["error"]) == (422, reason), kind
            await agent.publish(FEEDBACK, raw(word))

            async def buried(number=number):
                return (await loop.store.counts())["dead"] >= 2 * number

            await until(buried, what=f"{kind!r} was not buried")
        letters = [buried.letter for buried in await loop.store.list_dead_letters()]
        assert Counter(letter.subject for letter in letters) == {FEEDBACK: 5, "/v1/feedback": 5}


async def test_dead_letters_can_be_listed_shown_and_tried_again(start, data):
    """What is still wrong is refused again, with the same sentence."""
    process = start()
    async with Client(process.info["http_url"], process.info["key"]) as client:
        first = small(user_id="ann")
        second = {**first, "agent_id": "somebody else"}
        assert (await client.send(first))[0] == 202
        assert (await client.send(second))[0] == 409
        await client("POST", "/v1/trajectories", b'{"broken')

    def upswing(*arguments, check=True):
        return asyncio.to_thread(cli, *arguments, data=data, check=check)

    listed = json.loads((await upswing("dead", "--json")).stdout)
    assert [letter["reason"] for letter in listed] == ["malformed", "conflict"]
    only = json.loads((await upswing("dead", "list", "--json", "--reason", "conflict")).stdout)
    assert [letter["dead_id"] for letter in only] == [listed[1]["dead_id"]]
    assert "malformed" in (await upswing("dead")).stdout.decode()

    broken, conflict = listed
    shown = json.loads((await upswing("dead", "show", conflict["dead_id"], "--json")).stdout)
    assert json.loads(shown["letter"]["payload"]) == second
    assert shown["replayed"] is None
    assert "payload" in (await upswing("dead", "show", broken["dead_id"])).stdout.decode()

    again = await upswing("dead", "replay", broken["dead_id"], check=False)
    assert again.returncode == 1, "it is still broken"
    again = await upswing("dead", "replay", conflict["dead_id"], check=False)
    assert again.returncode == 1, "it still conflicts"
    assert b"known with other content" in again.stderr
    missing = await upswing("dead", "replay", str(uuid.uuid4()), check=False)
    assert missing.returncode == 1
    assert b"no dead letter" in missing.stderr


async def test_a_message_that_was_too_large_passes_when_it_is_replayed_under_a_higher_limit(data):
    large = small("long " * 500)
    tight = Settings(collect=CollectConfig(max_bytes=1024))
    async with (
        running_loop(data, settings=tight) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        assert (await client.send(large))[0] == 413
        ((letter,),) = [[buried.letter for buried in await loop.store.list_dead_letters()]]
        refused = await client("POST", f"/v1/dead/{letter.dead_id}/replay")
        assert refused[0] == 413
    async with running_loop(data) as loop:
        done = await asyncio.to_thread(
            cli, "dead", "replay", str(letter.dead_id), "--json", data=data
        )
        assert json.loads(done.stdout)["result"] == "stored"
        assert await loop.store.trajectory(large["trajectory_id"])
        assert (await loop.store.dead_letter(str(letter.dead_id))).replayed is not None
        done = await asyncio.to_thread(
            cli, "dead", "replay", str(letter.dead_id), "--json", data=data
        )
        assert json.loads(done.stdout)["result"] == "known", "once more changes nothing"
