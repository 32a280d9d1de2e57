"""Do the doors keep their word? 202 means durable, clean and once, whatever happens around it."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from datetime import UTC, datetime, timedelta

import msgspec
import nats
import pytest
from nats.js.api import StreamConfig
from tests.conftest import running_loop
from tests.support import (
    Client,
    alive,
    files_with,
    freeze,
    on_bus,
    raw,
    rows,
    samples,
    small,
    trajectory,
    until,
)

from upswing.config import CollectConfig, Settings, Surroundings
from upswing.contracts import canonical
from upswing.contracts.topics import FEEDBACK, FEEDBACKS, TRAJECTORIES, TRAJECTORY
from upswing.infra.nats.server import find_server_binary

pytestmark = pytest.mark.live
LINES = "application/x-ndjson"
MAIL = "ann" + "@" + "example.org"


# ── durable ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_what_was_answered_with_202_is_there_after_kill_9(start, data):
    process = await asyncio.to_thread(start)
    answered = []
    async with Client(process.info["http_url"], process.info["key"]) as client:
        for number in range(20):
            made = small(f"number {number}")
            assert (await client.send(made))[0] == 202
            answered.append(made)
        opened = await client(
            "POST", "/v1/trajectories/start", {"agentId": "a", "trajectoryId": "t-1"}
        )
        step = {"stepNumber": 1, "action": {"actionType": "wait", "success": True}}
        stepped = await client("POST", f"/v1/trajectories/{opened[1]['id']}/steps", step)
        word = {
            "feedback_id": "f",
            "timestamp": "2025-12-08T13:00:00Z",
            "type": "thumbs_up",
            "trajectory_id": answered[0]["trajectory_id"],
        }
        assert (await client("POST", "/v1/feedback", word))[0] == 202
        assert (opened[0], stepped[0]) == (202, 202)
        process.kill_group()
    assert [
        json.loads(row[0]) for row in rows(data, "SELECT body FROM trajectories ORDER BY seq")
    ] == answered
    process = await asyncio.to_thread(start)
    async with Client(process.info["http_url"], process.info["key"]) as client:
        for made in answered:
            assert await client("GET", f"/v1/trajectories/{made['trajectory_id']}") == (200, made)
        assert (await client("POST", "/v1/feedback", word))[1]["result"] == "known"
        again = await client("POST", f"/v1/trajectories/{opened[1]['id']}/steps", step)
        assert again[1]["result"] == "known"
        assert (await client("POST", f"/v1/trajectories/{opened[1]['id']}/end", {}))[1][
            "result"
        ] == "stored"

        async def announced():
            return (await client("GET", "/v1/status"))[1]["outbox"] == 0

        await until(announced, what="the outbox did not reach the bus after the restart")


async def test_the_same_again_changes_nothing_and_other_content_is_a_conflict(client):
    made = trajectory()
    assert [(await client.send(made))[1]["result"] for _ in range(3)] == [
        "stored",
        "known",
        "known",
    ]
    shuffled = dict(reversed(made.items()))
    assert (await client.send(shuffled))[1]["result"] == "known", "the order of keys says nothing"
    status, answer = await client.send({**made, "agent_id": "another"})
    assert (status, answer["error"]) == (409, "conflict")
    _, stored = await client("GET", f"/v1/trajectories/{made['trajectory_id']}")
    assert stored["agent_id"] == made["agent_id"]


# ── JSON lines ───────────────────────────────────────────────────────────────────────────────────


async def test_every_line_gets_its_own_answer(client):
    first, second, third = small(), small(), small()
    assert (await client.send(first))[0] == 202  # lines are looked at side by side
    body = b"\r\n".join(
        [
            raw(first),
            b"",
            b'{"broken',
            raw(second),
            b"   ",
            raw({**first, "agent_id": "x"}),
            raw({"trajectory_id": 5}),
            raw(first),
            raw(third),
        ]
    )
    status, answers = await client("POST", "/v1/trajectories", body, kind=LINES)
    assert status == 207
    assert [(a["line"], a["status"], a["result"]) for a in answers] == [
        (1, 202, "known"),
        (3, 400, "malformed"),
        (4, 202, "stored"),
        (6, 409, "conflict"),
        (7, 422, "schema"),
        (8, 202, "known"),
        (9, 202, "stored"),
    ]
    assert [a.get("trajectory_id") for a in answers if a["status"] == 202] == [
        first["trajectory_id"],
        second["trajectory_id"],
        first["trajectory_id"],
        third["trajectory_id"],
    ]
    assert all(a["detail"] for a in answers if a["status"] != 202)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n"])
async def test_lines_may_end_as_they_like(client, end):
    body = raw(small()) + b"\n" + raw(small()) + end
    status, answers = await client("POST", "/v1/trajectories", body, kind=f"{LINES}; charset=utf-8")
    assert (status, [a["line"] for a in answers]) == (202, [1, 2])


async def test_no_lines_are_no_error(client):
    assert await client("POST", "/v1/trajectories", b"\n\n", kind=LINES) == (202, [])


async def test_a_thousand_lines_are_a_thousand_rows(client):
    made = [small(f"line {n}") for n in range(1000)]
    status, answers = await client(
        "POST", "/v1/trajectories", b"\n".join(map(raw, made)), kind=LINES
    )
    assert (status, len(answers)) == (202, 1000)
    assert (await client("GET", "/v1/status"))[1]["trajectories"] == 1000


# ── in steps ─────────────────────────────────────────────────────────────────────────────────────


def step(number, text="", **more):
    return {
        "stepNumber": number,
        "timestamp": 1765198800000 + number,
        "environmentState": {"agentBalance": 100.0},
        "llmCalls": [
            {"model": "m", "userPrompt": "what now?", "response": text or f"step {number}"}
        ],
        "action": {
            "actionType": "HOLD",
            "parameters": {},
            "success": True,
            "result": {"note": text},
        },
        "reward": 0.5,
        **more,
    }


async def test_another_language_tells_a_trajectory_in_its_own_style(client, loop):
    status, opened = await client(
        "POST",
        "/v1/trajectories/start",
        {"agentId": "trader-1", "scenarioId": "2025-12-08T13:00", "windowId": "2025-12-08T13:00"},
    )
    assert (status, opened["result"]) == (202, "stored")
    path = f"/v1/trajectories/{opened['trajectory_id']}"

    for number in (1, 2):
        status, answer = await client("POST", f"{path}/steps", step(number))
        assert (status, answer["result"]) == (202, "stored")
    assert (await client("POST", f"{path}/steps", step(1)))[1]["result"] == "known"
    status, answer = await client("POST", f"{path}/steps", step(1, "something else"))
    assert (status, answer["error"]) == (409, "conflict")
    assert (await client("GET", path))[0] == 404, "not before its end"

    status, answer = await client(
        "POST", f"{path}/end", {"finalStatus": "completed", "finalBalance": 120.5}
    )
    assert (status, answer["result"]) == (202, "stored")
    assert (await client("POST", f"{path}/end", {"finalStatus": "completed"}))[1][
        "result"
    ] == "known"
    status, whole = await client("GET", path)
    assert status == 200
    assert whole["agent_id"] == "trader-1"
    assert len(whole["turns"]) == 2
    assert whole["metadata"]["window_id"] == "2025-12-08T13:00"
    assert (await loop.store.trajectory(opened["trajectory_id"])).door == "steps"


async def test_steps_of_a_trajectory_that_nobody_opened_are_not_found(client):
    for what, body in (("steps", step(1)), ("end", {})):
        status, answer = await client("POST", f"/v1/trajectories/{uuid.uuid4()}/{what}", body)
        assert (status, answer["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"agent_id": 5}', 422),
        (b"\xff", 400),
        (b'{"agentId": "a", "x": ' + b"[" * 3000 + b"]" * 3000 + b"}", 400),
    ],
    ids=["nothing", "array", "no agent", "number", "bytes", "deep"],
)
async def test_a_bad_start_is_refused(client, body, status):
    assert (await client("POST", "/v1/trajectories/start", body))[0] == status


@pytest.mark.parametrize(
    "number",
    [-1, 1.5, "one", True, 2**63, 10**30, [1]],
    ids=["minus", "half", "text", "true", "2^63", "10^30", "list"],
)
async def test_a_bad_step_number_is_refused(client, number):
    _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
    path = f"/v1/trajectories/{opened['id']}"
    status, answer = await client("POST", f"{path}/steps", {**step(1), "stepNumber": number})
    assert (status, answer["error"]) == (422, "schema")
    assert (await client("POST", f"{path}/steps", step(1)))[0] == 202, "the next one is taken"


async def test_a_step_that_is_nested_too_deeply_is_refused(client):
    _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
    path = f"/v1/trajectories/{opened['id']}"
    deep = {}
    for _ in range(70):
        deep = {"a": deep}
    status, answer = await client("POST", f"{path}/steps", step(1, more=deep))
    if status == 202:  # then it has to be refused, or taken, at the end, and not to break anything
        status, answer = await client("POST", f"{path}/end", {})
    assert (status, answer["error"]) == (400, "too_deep")


async def test_a_secret_cut_by_the_border_of_two_steps_is_gone_from_the_disk(client, loop, data):
    """The first half lay in the notebook until the second came; then it is rewritten and scrubbed."""
    first, second = "sk-proj-Zq8vK2mX4nB7", "tR1yU9wE3iO5pA6sD0fG2hJ4kL8zC"
    _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
    path = f"/v1/trajectories/{opened['id']}"
    assert (await client("POST", f"{path}/steps", step(1, f"the key is {first}")))[0] == 202
    assert (await client("POST", f"{path}/steps", step(2, f"{second} is its end")))[0] == 202
    assert files_with(data, first, second, first[8:], second[:20]) == []
    assert (await client("POST", f"{path}/end", {}))[0] == 202
    assert files_with(data, first, second, first[8:], second[:20]) == []
    _, whole = await client("GET", path)
    assert "is its end" in json.dumps(whole)


# ── people ───────────────────────────────────────────────────────────────────────────────────────


async def counted(client, door):
    series = samples((await client("GET", "/metrics"))[1])
    return series.get(("upswing_messages_total", (("door", door), ("outcome", "opted_out"))), 0)


async def test_a_user_who_opted_out_by_address_is_not_recorded_at_any_door(client, loop, data):
    status, answer = await client("PUT", f"/v1/optouts/{MAIL}")
    assert (status, answer["opted_out"]) == (200, True)
    assert answer["user"].startswith("user-"), "known by a pseudonym"
    unwanted = small("hush hush", user_id=MAIL)
    status, answer = await client.send(unwanted)
    assert (status, answer["result"]) == (202, "opted_out")
    _, (line,) = await client("POST", "/v1/trajectories", raw(unwanted), kind=LINES)
    assert line["result"] == "opted_out"
    _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a", "userId": MAIL})
    assert opened["result"] == "opted_out"
    for what in ("steps", "end"):
        _, answer = await client(
            "POST", f"/v1/trajectories/{opened['id']}/{what}", step(1, "hush hush")
        )
        assert answer["result"] == "opted_out"
    word = {
        "feedback_id": "f",
        "timestamp": "2025-12-08T13:00:00Z",
        "type": "comment",
        "comment": "hush hush",
        "user_id": MAIL,
        "episode_id": "e",
    }
    assert (await client("POST", "/v1/feedback", word))[1]["result"] == "opted_out"
    async with on_bus(loop.running.nats_urls["agent"]) as agent:
        await agent.publish(TRAJECTORY, raw(unwanted))

        async def dropped():
            return await counted(client, "nats") == 1

        await until(dropped)
    assert await counted(client, "http") >= 2
    _, counts = await client("GET", "/v1/status")
    assert (counts["trajectories"], counts["feedback"], counts["dead"], counts["outbox"]) == (
        0,
        0,
        0,
        0,
    )
    await until(lambda: not files_with(data, "hush hush", MAIL), 60, "some of it is on the disk")

    assert (await client("DELETE", f"/v1/optouts/{MAIL}"))[1]["opted_out"] is False
    assert (await client.send(unwanted))[1]["result"] == "stored"


async def stream_state(loop, stream):
    return (await loop.bus.js.stream_info(stream)).state


async def test_erasure_leaves_nothing_behind(data, tmp_path):
    """Store, both streams, dead letters and the archive; and a late copy does not bring it back."""
    clock = [datetime(2025, 12, 8, 12, 10, tzinfo=UTC)]
    place = tmp_path / "archive"
    surroundings = Surroundings(storage_path=str(place))
    token = "uniqueTokenOfAnn"
    async with (
        running_loop(data, surroundings=surroundings, clock=lambda: clock[0]) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
        on_bus(loop.running.nats_urls["agent"]) as agent,
    ):
        mine = [small(f"{token} {n}", user_id="ann-7") for n in range(3)]
        others = small("not hers", user_id="bob-8")
        assert (await client.send(mine[0]))[0] == 202
        assert (await client.send(others))[0] == 202
        await agent.jetstream().publish(TRAJECTORY, raw(mine[1]))
        await agent.jetstream().publish(TRAJECTORY, canonical(mine[2]))
        words = [
            {
                "feedback_id": f"f{n}",
                "timestamp": "2025-12-08T13:00:00Z",
                "type": "comment",
                "comment": f"{token} says",
                "user_id": "ann-7",
                "episode_id": "e",
            }
            for n in range(2)
        ]
        assert (await client("POST", "/v1/feedback", words[0]))[0] == 202
        await agent.jetstream().publish(FEEDBACK, raw(words[1]))
        assert (await client.send({**mine[0], "agent_id": "conflict"}))[0] == 409

        async def all_there():
            counts = await loop.store.counts()
            pending = [
                (await loop.bus.js.consumer_info(stream, "collector"))
                for stream in (TRAJECTORIES, FEEDBACKS)
            ]
            return (
                counts["trajectories"],
                counts["feedback"],
                counts["dead"],
                counts["outbox"],
            ) == (4, 2, 1, 0) and not any(
                info.num_pending or info.num_ack_pending for info in pending
            )

        await until(all_there)
        clock[0] += timedelta(hours=2)
        await loop.maintenance.run_once()
        assert len(list(place.rglob("*.gz"))) == 1
        assert files_with(data, token), "the test would see it if it were there"

        status, gone = await client("DELETE", "/v1/users/ann-7/data")
        assert status == 200
        assert (gone["trajectories"], gone["feedback"], gone["dead_letters"]) == (3, 2, 1)
        assert (gone["pending_stream_messages"], gone["pending_archive_copies"]) == (0, 0)
        assert files_with(data, token) == []
        archived = archived_text(place)
        assert token.encode() not in archived
        assert others["trajectory_id"].encode() in archived

        assert (await client.send(mine[0]))[1]["result"] == "erased"
        before = (await stream_state(loop, TRAJECTORIES)).last_seq
        await agent.jetstream().publish(TRAJECTORY, raw(mine[1]))

        async def erased_again():
            state = await stream_state(loop, TRAJECTORIES)
            info = await loop.bus.js.consumer_info(TRAJECTORIES, "collector")
            return state.last_seq > before and not info.num_pending and not info.num_ack_pending

        await until(erased_again)
        assert (await loop.store.counts())["trajectories"] == 1
        assert files_with(data, token) == []


def archived_text(place):
    import gzip

    return b"".join(gzip.decompress(path.read_bytes()) for path in place.rglob("*.gz"))


async def test_what_curl_sends_without_a_type_is_read_as_json(client):
    kind = "application/x-www-form-urlencoded"
    assert (await client("POST", "/v1/trajectories", raw(small()), kind=kind))[0] == 202
    status, answer = await client("POST", "/v1/trajectories", b"a=1&b=2", kind=kind)
    assert (status, answer["error"]) == (400, "malformed")


# ── what the door does not take ──────────────────────────────────────────────────────────────────


async def test_the_door_says_what_it_does_not_take(client):
    good = raw(small())
    for expected, method, path, body, kind in (
        (415, "POST", "/v1/trajectories", good, "text/plain"),
        (415, "POST", "/v1/feedback", good, LINES),
        (405, "DELETE", "/v1/trajectories", b"", "application/json"),
        (405, "DELETE", "/health", b"", "application/json"),
        (405, "PUT", "/v1/trajectories/some-id", b"", "application/json"),
        (404, "GET", "/v1/nothing", b"", "application/json"),
        (404, "GET", "/", b"", "application/json"),
        (404, "GET", "/v1/trajectories/a/b/c", b"", "application/json"),
        (404, "GET", "/v1/trajectories/%2e%2e%2fkeys", b"", "application/json"),
    ):
        status, answer = await client(method, path, body, kind=kind)
        assert status == expected, (method, path, answer)
        assert answer["detail"]
    for known in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
        assert (await client("POST", "/v1/trajectories", good, kind=known))[0] == 202


async def test_what_is_too_large_is_refused_with_413(data):
    settings = Settings(collect=CollectConfig(max_bytes=4096))
    async with (
        running_loop(data, settings=settings) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
    ):
        long = small("long " * 2000)
        assert (await client.send(long))[0] == 413
        _, answers = await client(
            "POST", "/v1/trajectories", raw(small()) + b"\n" + raw(long), kind=LINES
        )
        assert [a["status"] for a in answers] == [202, 413]
        start = {"agentId": "a", "x": "long " * 2000}
        assert (await client("POST", "/v1/trajectories/start", start))[0] == 413
        _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
        path = f"/v1/trajectories/{opened['id']}/steps"
        assert (await client("POST", path, step(1, "long " * 2000)))[0] == 413
        assert (await client("POST", "/v1/keys", b"x" * (1 << 20) + b"x"))[0] == 413
        assert (await client.send(small()))[0] == 202, "it goes on"


# ── the bus ──────────────────────────────────────────────────────────────────────────────────────


async def test_the_http_door_goes_on_without_the_bus_and_the_outbox_catches_up(client, loop):
    bus = loop.server.pid
    freeze(bus)
    try:
        sent = [small(f"number {n}") for n in range(50)]
        for each in sent:
            status, _ = await asyncio.wait_for(client.send(each), 300)
            assert status == 202
        _, counts = await client("GET", "/v1/status")
        assert counts["trajectories"] == 50
        assert counts["outbox"] >= 50  # the trajectories, and by and by their rewards
    finally:
        os.kill(bus, signal.SIGCONT)
    await until(lambda: caught_up(loop, 50), 60, "the outbox was not delivered")


async def test_a_bus_that_dies_is_started_again_and_misses_nothing(client, loop):
    first = loop.server.pid
    os.kill(first, signal.SIGKILL)
    sent = [small(f"number {n}") for n in range(50)]
    for each in sent:
        assert (await client.send(each))[0] == 202
    await until(lambda: caught_up(loop, 50), 60, "the outbox was not delivered")
    assert loop.server.pid != first
    assert not alive(first)
    assert (await client("GET", "/health"))[1]["status"] == "ok"


async def caught_up(loop, many):
    with contextlib.suppress(nats.errors.Error, TimeoutError):
        held = (await stream_state(loop, TRAJECTORIES)).messages
        return held == many and (await loop.store.counts())["outbox"] == 0
    return False


# ── other people's servers ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", ["plain", "null \x00 byte"])
async def test_postgres_holds_the_loop_as_sqlite_does(data, postgres, text):
    surroundings = Surroundings(database_url=postgres)
    async with (
        running_loop(data, surroundings=surroundings) as loop,
        Client(loop.running.http_url, loop.running.key) as client,
        on_bus(loop.running.nats_urls["agent"]) as agent,
    ):
        by_http, by_nats = small(text, user_id=MAIL), small(text)
        odd = {**small(text), "session_id": text, "agent_id": text}
        assert (await client.send(by_http))[1]["result"] == "stored"
        assert (await client.send(odd))[0] in {202, 422}
        await agent.jetstream().publish(TRAJECTORY, raw(by_nats))
        await until(lambda: loop.store.trajectory(by_nats["trajectory_id"]))
        assert (await client.send(by_nats))[1]["result"] == "known"
        assert (await client.send({**by_nats, "agent_id": "x"}))[0] == 409
        assert (await client("POST", "/v1/trajectories", b'{"broken'))[0] == 400
        _, opened = await client("POST", "/v1/trajectories/start", {"agentId": "a"})
        path = f"/v1/trajectories/{opened['id']}"
        assert (await client("POST", f"{path}/steps", step(1, text)))[0] == 202
        assert (await client("POST", f"{path}/end", {}))[0] == 202
        status, gone = await client("DELETE", f"/v1/users/{MAIL}/data")
        assert (status, gone["trajectories"]) == (200, 1)
        assert (await client.send(by_http))[1]["result"] == "erased"
        _, dead = await client("GET", "/v1/dead")
        assert {info["letter"]["reason"] for info in dead["dead"]} >= {"conflict", "malformed"}
        assert not (data / "upswing.db").exists()
        assert not loop.failed.is_set()


def nats_server(folder):
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [
                find_server_binary(),
                "-a",
                "127.0.0.1",
                "-p",
                "-1",
                "-js",
                "-sd",
                folder / "js",
                "--ports_file_dir",
                folder,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
async def foreign(tmp_path):
    """Somebody else's nats-server with JetStream; its URL."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    server = nats_server(folder)
    ports = folder / f"nats-server_{server.pid}.ports"

    def ready():
        with contextlib.suppress(OSError, ValueError):
            return json.loads(ports.read_text())["nats"][0]
        return None

    try:
        yield await until(ready, what="the foreign server did not start")
    finally:
        server.kill()
        server.wait(300)


async def test_a_stream_made_with_a_wildcard_is_repaired_and_loses_nothing(data, foreign):
    async with on_bus(foreign) as operator:
        js = operator.jetstream()
        await js.add_stream(
            StreamConfig(name="RL_TRAINING", subjects=["agent.rl.training.>"], max_msgs=1000)
        )
        for number in range(20):
            await js.publish("agent.rl.training.status.v1", f"word {number}".encode())
        await js.publish("agent.rl.training.status.request", b"an enquiry that was swallowed")
        async with (
            running_loop(data, surroundings=Surroundings(nats_url=foreign)) as loop,
            Client(loop.running.http_url, loop.running.key) as client,
        ):
            info = await js.stream_info("RL_TRAINING")
            assert sorted(info.config.subjects) == [
                "agent.rl.training.request.v1",
                "agent.rl.training.status.v1",
            ]
            assert info.state.messages == 21
            assert info.config.max_msgs == 10_000
            assert (await js.get_msg("RL_TRAINING", 20)).data == b"word 19"

            await operator.publish("agent.rl.training.status.request", b"{}")
            heard = await operator.request("agent.rl.training.status.request", b"{}", timeout=60)
            assert b'"stream"' not in heard.data, "the stream answered instead of the service"
            assert (await js.stream_info("RL_TRAINING")).state.messages == 21

            made = small()
            assert (await client.send(made))[0] == 202
            await js.publish(TRAJECTORY, raw(by_nats := small()))
            await until(lambda: loop.store.trajectory(by_nats["trajectory_id"]))
            await until(lambda: caught_up(loop, 2))
        assert not (data / "nats").exists(), "no server of our own was needed"


# ── poison ───────────────────────────────────────────────────────────────────────────────────────

RUNNER = """
    import asyncio, os, sys
    from pathlib import Path
    from upswing.config import Settings, Surroundings
    from upswing.redact import Redactor, default_rules
    from upswing.app.loop import ListenAddress, Loop


    class DeadlyDouble(Redactor):
        '''A double: a redactor whose process dies of one token, as of a bug in native code.'''

        def tree(self, value, *rest, **more):
            if "deadly nightshade" in str(value):
                os._exit(9)
            return super().tree(value, *rest, **more)


    async def main():
        redactor = DeadlyDouble(rules=default_rules())
        loop = Loop(Path(sys.argv[1]), Settings(), Surroundings(), ListenAddress(port=0, gateway_port=None), redactor=redactor,
            ack_wait_seconds=1.0)  # so that a message whose taker died comes again soon
        return await loop.run_until_signalled(lambda running: None)


    sys.exit(asyncio.run(main()))
"""


@pytest.mark.long
async def test_a_message_that_kills_its_taker_is_buried_at_its_fifth_delivery(tmp_path, data):
    script = tmp_path / "runner.py"
    script.write_text(textwrap.dedent(RUNNER))
    innocent = [small(f"innocent {n}") for n in range(30)]
    deadly = small("deadly nightshade")
    deaths, process = 0, begin(script, data)
    try:
        url = (await until(lambda: running(data, process)))["nats_urls"]["agent"]
        async with on_bus(url) as agent:
            for message in (*innocent[:15], deadly, *innocent[15:]):
                await agent.publish(TRAJECTORY, raw(message))
            await agent.flush()
        while await ended(process, data):
            assert process.returncode == 9
            deaths += 1
            assert deaths <= 4, "it goes on killing"
            process = begin(script, data)
        assert deaths == 4
        state = "SELECT (SELECT count(*) FROM trajectories), (SELECT count(*) FROM attempts)"
        await until(lambda: rows(data, state) == [(30, 0)], 60, "a neighbour is missing or marked")
    finally:
        process.terminate()
        process.wait(300)
    stored = {row[0] for row in rows(data, "SELECT trajectory_id FROM trajectories")}
    assert stored == {each["trajectory_id"] for each in innocent}
    (letter,) = dead(data)
    assert letter["reason"] == "poison"
    assert letter["deliveries"] >= 5  # more when the machine is too slow for so short an ack wait
    assert letter["detail"] == "Its consumer crashed on it, 4 times."


@pytest.mark.slow
async def test_a_killer_in_a_backlog_is_found_and_its_four_hundred_neighbours_are_taken(
    tmp_path, data
):
    script = tmp_path / "runner.py"
    script.write_text(textwrap.dedent(RUNNER))
    innocent = [small(f"innocent {n}") for n in range(400)]
    deaths, process = 0, begin(script, data)
    try:
        url = (await until(lambda: running(data, process)))["nats_urls"]["agent"]
        freeze(process.pid)
        async with on_bus(url) as agent:
            js = agent.jetstream(timeout=30)
            for message in (*innocent[:200], small("deadly nightshade"), *innocent[200:-1]):
                await agent.publish(TRAJECTORY, raw(message))
            await js.publish(TRAJECTORY, raw(innocent[-1]))  # those before it are there, too
        process.kill()
        process.wait(300)
        process = begin(script, data)
        while await ended(process, data):
            assert process.returncode == 9
            deaths += 1
            assert deaths <= 5, "it goes on killing"
            process = begin(script, data)
        state = "SELECT (SELECT count(*) FROM trajectories), (SELECT count(*) FROM attempts)"
        await until(lambda: rows(data, state) == [(400, 0)], 60, "a neighbour is missing or marked")
    finally:
        process.terminate()
        process.wait(300)
    stored = {row[0] for row in rows(data, "SELECT trajectory_id FROM trajectories")}
    assert stored == {each["trajectory_id"] for each in innocent}
    assert [letter["reason"] for letter in dead(data)] == ["poison"]


def begin(script, data):
    return subprocess.Popen(
        [sys.executable, script, data],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


async def ended(process, data):
    """Did the process die, or was something buried first?"""
    await until(lambda: process.poll() is not None or dead(data), 60, "neither dead nor buried")
    return process.poll() is not None


def running(data, process):
    with contextlib.suppress(OSError, ValueError):
        info = json.loads((data / "running.json").read_text())
        return info if info["pid"] == process.pid else None


def dead(data):
    with contextlib.suppress(Exception):
        return [msgspec.json.decode(row[0]) for row in rows(data, "SELECT body FROM dead")]
    return []


async def test_a_request_of_very_many_lines_is_refused_whole(loop, client):
    body = b"{}\n" * 300_000
    status, answer = await client("POST", "/v1/trajectories", body, kind=LINES)
    assert status == 413
    assert "5000" in answer["detail"]
    assert (await loop.store.counts())["dead"] <= 1
