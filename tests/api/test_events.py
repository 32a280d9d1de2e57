"""Live events, over a socket, from a real loop."""

import asyncio
import contextlib
import json

import pytest
import pytest_asyncio
from tests.conftest import running_loop
from tests.support import Client, trajectory, until

from upswing.api.events import MOST_OF_KEY, MOST_STREAMS, MOST_WAITING, Subscription, encode_frame

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]


class Stream:
    """One reader of events."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self.status, self.headers, self.comments = 0, {}, 0

    @classmethod
    @contextlib.asynccontextmanager
    async def of(cls, loop, query="", *, key=None, last=None, version="1.1", method="GET"):
        host, _, port = loop.running.http_url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = [f"{method} /v1/events{query} HTTP/{version}", f"Host: {host}"]
        head.append(f"Authorization: Bearer {key or loop.running.key}")
        if last:
            head.append(f"Last-Event-ID: {last}")
        writer.write("\r\n".join([*head, "", ""]).encode())
        made = cls(reader, writer)
        try:
            top = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            made.status = int(top[0].split()[1])
            lines = (line.partition(":") for line in top[1:] if line)
            made.headers = {name.lower(): value.strip() for name, _, value in lines}
            yield made
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _line(self):
        """Of the stream, whatever its framing."""
        while True:
            line = (await self._reader.readuntil(b"\n")).rstrip(b"\r\n")
            chunk = "chunked" in self.headers.get("transfer-encoding", "")
            if not (chunk and line and all(c in b"0123456789abcdef" for c in line)):
                return line.decode()

    async def next(self, *kinds):
        """The next event, of these kinds if any are named: (kind, data, id)."""
        found = {}
        while True:
            line = await self._line()
            if line.startswith(":"):
                self.comments += 1
            elif not line and "event" in found:
                kind, data = found["event"], json.loads(found["data"])
                if not kinds or kind in kinds:
                    return kind, data, found.get("id")
                found = {}
            else:
                name, _, value = line.partition(": ")
                found[name] = value

    async def until(self, kind, fact):
        while True:
            _, data, event_id = await self.next(kind)
            if fact(data):
                return data, event_id


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    """One loop for all of them; what one does the others see."""
    async with running_loop(tmp_path_factory.mktemp("events") / "data") as loop:
        yield loop


@pytest_asyncio.fixture(loop_scope="module")
async def asking(shared):
    async with Client(shared.running.http_url, shared.running.key) as client:
        yield client


async def test_what_comes_in_is_counted_before_the_readers_eyes(shared, asking):
    async with Stream.of(shared, "?topics=counts,reward") as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        kind, hello, _ = await stream.next()
        assert (kind, hello["resumed"]) == ("hello", False)
        assert set(hello["topics"]) == {"counts", "reward"}
        _, first, _ = await stream.next("counts")
        before = first["counts"]["trajectories"]
        for _ in range(3):
            assert (await asking.send(trajectory()))[0] == 202
        await stream.until("counts", lambda d: d["counts"]["trajectories"] == before + 3)
        await stream.until("reward", lambda d: d["count"] >= 1)


async def test_an_operators_action_is_told_and_a_reader_who_comes_back_misses_nothing(
    shared, asking
):
    async def act(name):
        status, made = await asking("POST", "/v1/keys", {"name": name, "scope": "agent"})
        assert status == 201
        return made["key_id"]

    async with Stream.of(shared, "?topics=audit") as stream:
        await stream.next("hello")
        key = await act("first")
        data, last = await stream.until("audit", lambda d: d["about"] == key)
        assert (data["what"], data["after"]["name"]) == ("add-key", "first")
    missed = [await act("second"), await act("third")]
    async with Stream.of(shared, "?topics=audit", last=last) as stream:
        _, hello, _ = await stream.next("hello")
        assert hello["resumed"] is True
        told = [(await stream.next("audit"))[1]["about"] for _ in missed]
    assert told == missed


async def test_a_decision_is_told_with_its_sentence(shared, asking):
    async with Stream.of(shared, "?topics=decision") as stream:
        await stream.next("hello")
        status, triggered = await asking("POST", "/api/admin/training/trigger", {})
        assert (status, triggered["triggered"]) == (200, False)
        data, event_id = await stream.until(
            "decision", lambda d: d["decision_id"] == triggered["decisionId"]
        )
        assert data["sentence"] == triggered["reason"]
        assert event_id.split(".")[0] == str(data["seq"])


async def test_what_another_part_publishes_reaches_who_wants_it(shared):
    async with (
        Stream.of(shared, "?topics=alert") as wants,
        Stream.of(shared, "?topics=counts") as does_not,
    ):
        await wants.next("hello")
        await does_not.next("counts")
        shared.events.publish("alert", {"name": "DiskNearlyFull", "state": "firing"})
        _, data, _ = await wants.next("alert")
        assert data["name"] == "DiskNearlyFull"


@pytest.mark.parametrize(
    ("query", "word"),
    [("?topics=jobs", "known: counts, decision"), ("?topic=job", "known: topics")],
)
async def test_what_is_no_topic_is_refused_with_those_that_are(shared, asking, query, word):
    status, answer = await asking("GET", f"/v1/events{query}")
    assert status == 422
    assert word in answer["detail"]


async def test_an_agents_key_sees_nothing(shared, asking):
    _, made = await asking("POST", "/v1/keys", {"name": "agent", "scope": "agent"})
    status, _ = await asking("GET", "/v1/events", key=made["key"])
    assert status == 403
    assert (await asking("GET", "/v1/events", key=None))[0] == 401


async def test_a_reader_whose_key_is_revoked_is_told_nothing_more(shared, asking):
    _, made = await asking("POST", "/v1/keys", {"name": "spy", "scope": "reader"})
    async with Stream.of(shared, "?topics=audit", key=made["key"]) as stream:
        await stream.next("hello")
        assert (await asking("DELETE", f"/v1/keys/{made['key_id']}"))[0] == 204
        await asking("POST", "/v1/keys", {"name": "later", "scope": "reader"})
        end = b"\r\n0\r\n\r\n"  # of an answer in chunks
        rest = await asyncio.wait_for(stream._reader.readuntil(end), 5 * 30)
    assert (stream.status, b"revoke-key" in rest, b"later" in rest) == (200, False, False)


async def test_streams_are_few_and_their_places_are_given_back(shared, asking):
    await until(lambda: shared.events.streams == 0)
    async with contextlib.AsyncExitStack() as held:
        for _ in range(MOST_OF_KEY):
            stream = await held.enter_async_context(Stream.of(shared))
            assert stream.status == 200
        status, answer = await asking("GET", "/v1/events")
        assert (status, answer["error"]) == (503, "unavailable")
        assert shared.events.streams == MOST_OF_KEY <= MOST_STREAMS
    await until(lambda: shared.events.streams == 0)


@pytest.mark.parametrize(("version", "method"), [("1.0", "GET"), ("1.1", "HEAD")])
async def test_old_clients_and_those_who_only_ask_for_the_head(shared, version, method):
    async with Stream.of(shared, version=version, method=method) as stream:
        assert stream.status == 200
        if method == "GET":
            assert (await stream.next())[0] == "hello"
    await until(lambda: shared.events.streams == 0)


async def test_a_loop_that_stops_waits_for_no_stream(tmp_path):
    async with running_loop(tmp_path / "data") as loop, Stream.of(loop) as stream:
        await stream.next("hello")
        async with asyncio.timeout(60):
            await loop.stop()


async def test_a_reader_who_takes_nothing_loses_events_and_is_told(shared):
    slow = Subscription(frozenset({"counts"}), "k")
    for number in range(MOST_WAITING + 5):
        slow.offer(encode_frame("counts", {"n": number}))
    frames = (await slow.take(60)).decode()
    assert json.loads(frames.split("data: ")[1].split("\n")[0]) == {"dropped": MOST_WAITING + 1}
    assert frames.count("event: counts") == 4
    assert await slow.take(0.0) == b": ping\n\n"
