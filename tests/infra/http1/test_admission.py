"""Too many, too much, too slow: who is kept out, and does anybody else notice? At both ports."""

import asyncio
import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import on_both_loops
from tests.infra.http1.ports import (
    CHAT,
    KEY,
    KINDS,
    OTHER,
    asked,
    connected,
    ended,
    head,
    health,
    opened,
    response,
    status,
    whole,
)
from tests.support import until

pytestmark = pytest.mark.live
both = pytest.mark.parametrize("kind", KINDS)
MB = 1024 * 1024


# ── the key comes before the body ────────────────────────────────────────────────────────────────


@both
@pytest.mark.parametrize("key", [None, "sk-wrong"])
@on_both_loops
async def test_without_a_key_the_answer_comes_before_the_body(kind, key):
    async with opened(kind) as door, connected(door) as (reader, writer):
        writer.write(head(door, key=key, size=30 * MB))
        got, headers, _ = await response(reader)
        assert (got, headers["connection"], headers["www-authenticate"]) == (401, "close", "Bearer")
        assert door.port.uploads.reserved == 0
        assert await ended(reader)


@both
async def test_a_short_body_without_a_key_is_read_past_and_the_connection_goes_on(kind):
    async with opened(kind) as door, connected(door) as (reader, writer):
        writer.write(whole(door, key="sk-wrong") + whole(door))
        assert [await status(reader), await status(reader)] == [401, 200]


@both
async def test_keyless_connections_that_declare_much_leave_room_for_the_others(kind):
    async with opened(kind) as door, contextlib.AsyncExitStack() as stack:
        for _ in range(18):
            _, writer = await stack.enter_async_context(connected(door))
            writer.write(head(door, key="sk-wrong", size=32 * MB) + b"x" * 65_536)
        assert await asked(door, whole(door)) == [200]
        assert door.port.uploads.reserved == 0


@both
async def test_declared_bytes_are_reserved_before_they_come(kind):
    async with opened(kind, uploads_bytes=200_000, body_bytes=90_000) as door:
        async with connected(door) as (_, slow):
            slow.write(head(door, size=80_000))
            await until(lambda: door.port.uploads.reserved == 80_000, 60)
            async with connected(door) as (reader, writer):
                writer.write(whole(door, body=CHAT + b" " * 30_000))
                got, headers, _ = await response(reader)
                assert (got, headers["retry-after"]) == (429, "1")
                writer.write(whole(door))
                assert await status(reader) == 200
        await until(lambda: door.port.uploads.reserved == 0, 60)
        assert await asked(door, whole(door, body=CHAT + b" " * 30_000)) == [200]


@both
@pytest.mark.parametrize("sizes", [[600_000] * 8, [60_000] * 40, [600_000] * 8 + [60_000] * 40])
async def test_one_key_that_declares_all_it_may_leaves_room_for_another(kind, sizes):
    async with (
        opened(kind, uploads_bytes=4_000_000, body_bytes=700_000) as door,
        contextlib.AsyncExitStack() as stack,
    ):
        for size in sizes:
            reader, writer = await stack.enter_async_context(connected(door))
            writer.write(head(door, "Expect: 100-continue", size=size))
            assert (await asyncio.wait_for(reader.readline(), 300)).split()[1] in {b"100", b"429"}
        assert door.port.uploads.reserved > 1_000_000
        large = CHAT + b" " * 600_000
        assert await asked(door, whole(door, key=OTHER), whole(door, body=large, key=OTHER)) == [
            200,
            200,
        ]


@both
async def test_a_body_in_chunks_is_reserved_as_it_comes_and_bounded(kind):
    async with opened(kind, body_bytes=5000) as door, connected(door) as (reader, writer):
        start = head(door, "Transfer-Encoding: chunked")
        writer.write(start + b"3e8\r\n" + b" " * 1000 + b"\r\n")
        await until(lambda: door.port.uploads.reserved == 1000, 60)
        writer.write(b"".join(b"3e8\r\n" + b" " * 1000 + b"\r\n" for _ in range(5)) + b"0\r\n\r\n")
        assert await status(reader) == 413
        await until(lambda: door.port.uploads.reserved == 0, 60)
        many = b"".join(b"1\r\n%c\r\n" % each for each in CHAT)
        writer.write(start + many + b"0\r\n\r\n")
        assert await status(reader) == 200


# ── headers ──────────────────────────────────────────────────────────────────────────────────────


@both
def test_headers_are_taken_within_their_limits_and_refused_beyond(kind):
    limits = {"header_bytes": 4000, "header_count": 20, "line_bytes": 500}

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.integers(0, 600), max_size=40),
        st.integers(0, 1500),
        st.sampled_from([1, 7, 9999]),
    )
    def holds(sizes, longer, step):
        more = [f"X-{number:02}: " + "v" * size for number, size in enumerate(sizes)]
        sent = whole(door, *more, path=door.path + "?" + "q" * longer)
        lines = sent.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        bytes_of = sum(len(line) - 2 for line in lines)
        address = len(door.path) + 1 + longer
        good = bytes_of <= 4000 and len(lines) <= 20 and address <= 500
        got = runner.run(in_steps(door, sent, step))
        assert got == 200 if good else got in {414, 431}, (bytes_of, len(lines), address)

    async def in_steps(door, sent, step):
        async with connected(door) as (reader, writer):
            with contextlib.suppress(ConnectionError):
                for place in range(0, min(len(sent), 40 * step), step):
                    writer.write(sent[place : place + step])
                    await asyncio.sleep(0)
                writer.write(sent[40 * step :])
            return await status(reader)

    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        door = runner.run(stack.enter_async_context(opened(kind, **limits)))
        try:
            holds()
        finally:
            runner.run(stack.aclose())


ENDLESS = {
    "one header": (b"GET /health HTTP/1.1\r\nHost: x\r\nX: ", b"y" * 4096),
    "many headers": (b"GET /health HTTP/1.1\r\nHost: x\r\n", b"X-Y: z\r\n" * 500),
    "one address": (b"GET /", b"y" * 4096),
    "a name": (b"GET /health HTTP/1.1\r\nHost: x\r\n", b"y" * 4096),
    "empty lines": (b"", b"\r\n" * 2048),
}


@both
@pytest.mark.parametrize("what", ENDLESS)
@on_both_loops
async def test_endless_headers_end(kind, what):
    first, again = ENDLESS[what]
    async with opened(kind, unread_bytes=MB) as door, connected(door) as (reader, writer):
        writer.write(first)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 64 * MB and not reader.at_eof() and reader.exception() is None:
                writer.write(again)
                sent += len(again)
                await writer.drain()
                await asyncio.sleep(0)
        assert sent < 16 * MB, "it was read on and on"
        await until(lambda: len(door.port.connections) == 0, 60)


@both
async def test_endless_trailers_end_and_decide_nothing(kind):
    async with opened(kind) as door:
        start = head(door, "Transfer-Encoding: chunked", key="sk-wrong")
        body = b"%x\r\n%s\r\n0\r\n" % (len(CHAT), CHAT)
        trailer = b"Authorization: Bearer " + KEY.encode() + b"\r\n\r\n"
        assert await asked(door, start + body + trailer) == [401]
        good = head(door, "Transfer-Encoding: chunked", "Trailer: X-Sum")
        assert await asked(door, good + body + b"X-Sum: 1\r\nAuthorization: x\r\n\r\n") == [200]
        assert await asked(door, good + body + b"X: " + b"y" * 1_000_000) == [431]


# ── slow ─────────────────────────────────────────────────────────────────────────────────────────


async def dribble(writer, data):
    with contextlib.suppress(ConnectionError):
        for place in range(len(data)):
            writer.write(data[place : place + 1])
            await asyncio.sleep(0.02)


@both
@pytest.mark.parametrize("part", ["head", "body", "chunks"])
@on_both_loops
async def test_a_request_that_comes_drop_by_drop_is_ended_however_much_it_moves(kind, part):
    limits = {"head_seconds": 0.3, "body_seconds": 0.3, "body_rate": 1_000_000}
    async with opened(kind, **limits) as door, connected(door) as (reader, writer):
        if part == "head":
            slowly = head(door, size=5) + b"x" * 10_000
        elif part == "body":
            writer.write(head(door, size=10_000))
            slowly = b"x" * 10_000
        else:
            writer.write(head(door, "Transfer-Encoding: chunked"))
            slowly = b"1\r\nx\r\n" * 10_000
        dribbling = asyncio.create_task(dribble(writer, slowly))
        got, headers, _ = await response(reader)
        assert (got, headers["connection"]) == (408, "close")
        dribbling.cancel()
        assert door.port.uploads.reserved == 0


@both
async def test_a_large_body_that_comes_steadily_is_waited_for(kind):
    limits = {"body_seconds": 0.2, "body_rate": 1000}
    async with opened(kind, **limits) as door, connected(door) as (reader, writer):
        writer.write(head(door, size=20_000 + len(CHAT)))
        for _ in range(20):
            writer.write(b" " * 1000)
            await asyncio.sleep(0.03)
        writer.write(CHAT)
        assert await status(reader) == 200


@both
@on_both_loops
async def test_who_asks_nothing_is_let_go_and_who_has_a_key_later(kind):
    limits = {"keyless_seconds": 0.3, "idle_seconds": 60}
    async with opened(kind, **limits) as door:
        async with (
            connected(door) as (silent, _),
            connected(door) as (known, writer),
            connected(door) as (checked, checker),
        ):
            writer.write(whole(door))
            checker.write(health())
            assert [await status(known), await status(checked)] == [200, 200]
            assert await ended(silent)
            assert await ended(checked)
            writer.write(whole(door))
            assert await status(known) == 200


# ── many ─────────────────────────────────────────────────────────────────────────────────────────


@both
@pytest.mark.parametrize(
    "limits", [{"peer_keyless": 8}, {"peer_connections": 9}, {"connections": 9}], ids=str
)
@on_both_loops
async def test_those_without_a_key_go_first(kind, limits):
    async with opened(kind, **limits) as door, contextlib.AsyncExitStack() as stack:
        known, writer = await stack.enter_async_context(connected(door))
        writer.write(whole(door))
        assert await status(known) == 200
        idle = [(await stack.enter_async_context(connected(door)))[0] for _ in range(30)]
        for reader in idle[:20]:
            assert await ended(reader)
        assert await asked(door, whole(door), health()) == [200, 200]
        writer.write(whole(door))
        assert await status(known) == 200
        assert len(door.port.connections) <= 9


@both
async def test_where_all_have_keys_the_longest_unused_goes(kind):
    async with opened(kind, connections=4) as door, contextlib.AsyncExitStack() as stack:
        known = []
        for _ in range(6):
            reader, writer = await stack.enter_async_context(connected(door))
            writer.write(whole(door))
            assert await status(reader) == 200
            known.append(reader)
        assert await ended(known[0])
        assert await ended(known[1])
        assert not any(reader.at_eof() for reader in known[2:])


async def test_who_waits_for_an_answer_is_not_idle_and_does_not_go():
    go = asyncio.Event()
    limits = {"connections": 2, "idle_seconds": 0.2, "keyless_seconds": 0.2}
    async with opened("loop", before=go, **limits) as door:
        async with connected(door) as (reader, writer), contextlib.AsyncExitStack() as stack:
            writer.write(whole(door) + b"GET /hea")
            await until(lambda: len(door.port.service._answers) == 1, 60)
            late = [(await stack.enter_async_context(connected(door)))[0] for _ in range(5)]
            for each in late:
                assert await ended(each)
            go.set()
            assert await status(reader) == 200


@both
async def test_one_connection_without_a_key_brings_only_so_much(kind):
    async with opened(kind, keyless_bytes=2000) as door, connected(door) as (reader, writer):
        told = 0
        while told < 200:
            told += 1
            writer.write(health("X: " + "y" * 60))
            got, headers, _ = await response(reader)
            assert got == 200
            if headers.get("connection") == "close":
                break
        assert 10 < told < 40
        assert await ended(reader)


@both
async def test_requests_that_are_sent_ahead_are_answered_in_order_and_not_without_end(kind):
    async with opened(kind, ahead=5) as door, connected(door) as (reader, writer):
        writer.write(whole(door) * 3)
        assert [await status(reader) for _ in range(3)] == [200] * 3
        writer.write(health() * 5000)
        told = 0
        while await status(reader) == 200:
            told += 1
        assert 1 <= told < 5000
        await until(lambda: len(door.port.connections) == 0, 60)
