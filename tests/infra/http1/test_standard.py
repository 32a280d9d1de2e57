"""Do both ports speak HTTP/1.1 as it is written down, whatever a client offers or expects?"""

import asyncio
import contextlib
import shutil
import socket
from time import monotonic
from types import SimpleNamespace
from urllib.parse import urlsplit, urlunsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.conftest import model, on_both_loops, plan, started
from tests.gateway.scripted import Scripted
from tests.infra.http1.ports import (
    CHAT,
    KEY,
    KINDS,
    Keys,
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
from upswing.api.router import Response, Route
from upswing.api.server import HttpServer
from upswing.infra.http1.limits import PortLimits
from upswing.infra.http1.reader import origin_form_of_target

pytestmark = pytest.mark.live
both = pytest.mark.parametrize("kind", KINDS)
H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
WEBSOCKET = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@both
async def test_head_is_get_without_its_body(kind):
    async with opened(kind) as door, connected(door) as (reader, writer):
        writer.write(health())
        got, headers, body = await response(reader)
        writer.write(health(method="HEAD"))
        assert await response(reader, bodiless=True) == (got, headers, b"")
        assert int(headers["content-length"]) == len(body)
        writer.write(health())
        assert await status(reader) == 200


@both
async def test_options_says_what_a_path_takes(kind):
    async with opened(kind) as door, connected(door) as (reader, writer):
        for path, allowed in ((door.path, "OPTIONS, POST"), ("/health", "GET, HEAD, OPTIONS")):
            writer.write(head(door, method="OPTIONS", path=path, key=None))
            got, headers, _ = await response(reader)
            assert (got, headers["allow"]) == (204, allowed)
            writer.write(head(door, method="DELETE", path=path, key=None))
            got, headers, _ = await response(reader)
            assert (got, headers["allow"]) == (405, allowed)
        writer.write(head(door, method="OPTIONS", path="*", key=None))
        got, headers, _ = await response(reader)
        assert got == 204
        assert {"GET", "HEAD", "POST"} <= set(headers["allow"].split(", "))


@both
@pytest.mark.parametrize("offer", [H2C, WEBSOCKET], ids=["h2c", "websocket"])
@on_both_loops
async def test_an_offer_of_another_protocol_is_not_followed_and_the_request_is_answered(
    kind, offer
):
    async with opened(kind) as door, connected(door) as (reader, writer):
        writer.write(health(*offer) + health())
        assert [await status(reader), await status(reader)] == [200, 200]
        chunks = head(door, *offer, "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (
            len(CHAT),
            CHAT,
        )
        for sent in (whole(door, *offer), chunks):
            body = sent.index(b"\r\n\r\n") + 4
            for cut in (len(sent), body, body + 1, body - 1, 20):
                writer.write(sent[:cut])
                await asyncio.sleep(0.01)
                writer.write(sent[cut:])
                assert await status(reader) == 200
        writer.write(whole(door, "Connection: close, Upgrade", "Upgrade: h2c"))
        got, headers, _ = await response(reader)
        assert (got, headers["connection"]) == (200, "close")
        assert await ended(reader)


BAD = {
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "http/2": (b"GET /health HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    "http/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "http/0.9": (b"GET /health\r\n\r\n", 505),
    "connect": (b"CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\n", 501),
    "gzip": (b"POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "two lengths": (
        b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        400,
    ),
    "length and chunks": (
        b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    ),
    "two codings": (
        b"GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        501,
    ),
    "signed length": (b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400),
    "folded": (b"GET /health HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", 400),
    "space before the colon": (b"GET /health HTTP/1.1\r\nHost : a\r\n\r\n", 400),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "expects more": (b"GET /health HTTP/1.1\r\nHost: a\r\nExpect: coffee\r\n\r\n", 417),
}


@both
async def test_what_is_not_in_the_standard_is_refused_in_its_words(kind):
    async with opened(kind) as door:
        for what, (message, expected) in BAD.items():
            assert await asked(door, message) == [expected], what
        assert await asked(door, b"GET /health HTTP/1.0\r\n\r\n") == [200]
        absolute = b"GET http://here:1/health?x HTTP/1.1\r\nHost: here\r\n\r\n"
        assert await asked(door, absolute) == [200]


@both
async def test_expect_is_answered_by_who_may_ask_and_in_turn(kind):
    async with opened(kind, body_bytes=5000) as door, connected(door) as (reader, writer):
        writer.write(head(door, "Expect: 100-continue", size=len(CHAT)))
        assert await status(reader) == 100
        writer.write(CHAT + whole(door) + head(door, "Expect: 100-continue", size=len(CHAT)))
        assert [await status(reader) for _ in range(3)] == [200, 200, 100]
        writer.write(CHAT)
        assert await status(reader) == 200
        for options, expected in (({"key": "no", "size": 9}, 401), ({"size": 6000}, 413)):
            assert await asked(door, head(door, "Expect: 100-continue", **options)) == [expected]


class _Held(Scripted):
    """Answers when it is let."""

    def __init__(self):
        super().__init__()
        self.go = asyncio.Event()

    async def answer(self, request, reader, writer):
        await self.go.wait()
        return await super().answer(request, reader, writer)


async def test_the_time_for_an_expected_body_begins_when_it_is_asked_for():
    async with _Held() as server, started(plan(model("base", server.url))) as gateway:
        port, where = gateway.gateway.port, urlsplit(gateway.url)
        door = SimpleNamespace(path="/v1/chat/completions", host=where.hostname, number=where.port)
        async with connected(door) as (reader, writer):
            writer.write(whole(door) + head(door, "Expect: 100-continue", size=len(CHAT)))
            await until(lambda: server.requests, 60)
            port.now = lambda: monotonic() + 1000.0
            server.go.set()
            assert [await status(reader), await status(reader)] == [200, 100]
            port.close_overdue()
            port.now = monotonic
            writer.write(CHAT)
            assert await status(reader) == 200


@both
@on_both_loops
async def test_what_comes_after_the_last_request_does_not_harm_its_answer(kind):
    async with opened(kind) as door:
        for rest in (whole(door), b"\x00nonsense", b"x" * 100_000):
            async with connected(door) as (reader, writer):
                writer.write(whole(door, "Connection: close") + rest)
                assert await status(reader) == 200
                assert await ended(reader)
        async with connected(door) as (reader, writer):
            writer.write(whole(door) + b"nonsense\r\n\r\n")
            assert [await status(reader), await status(reader)] == [200, 400]


@both
def test_it_does_not_matter_how_the_network_cuts_requests(kind):
    kinds = st.lists(
        st.sampled_from(["good", "chunks", "keyless", "health", "h2c", "missing"]),
        min_size=1,
        max_size=6,
    )

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(kinds, st.lists(st.integers(1, 400), min_size=1, max_size=8))
    def holds(sequence, cuts):
        made = {
            "good": (whole(door), 200),
            "chunks": (
                head(door, "Transfer-Encoding: chunked")
                + b"%x\r\n%s\r\n0\r\nA: b\r\n\r\n" % (len(CHAT), CHAT),
                200,
            ),
            "keyless": (whole(door, key=None), 401),
            "health": (health(), 200),
            "h2c": (whole(door, *H2C), 200),
            "missing": (head(door, method="GET", path="/none"), 404),
        }
        sent = b"".join(made[each][0] for each in sequence)
        got = runner.run(in_pieces(door, sent, cuts, len(sequence)))
        assert got == [made[each][1] for each in sequence]
        assert door.port.uploads.reserved == 0

    async def in_pieces(door, sent, cuts, count):
        async with connected(door) as (reader, writer):
            for cut in cuts:
                writer.write(sent[:cut])
                sent = sent[cut:]
                await asyncio.sleep(0)
            writer.write(sent)
            return [await status(reader) for _ in range(count)]

    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        door = runner.run(stack.enter_async_context(opened(kind)))
        try:
            holds()
        finally:
            runner.run(stack.aclose())


JAVA = """
import java.net.URI;
import java.net.http.*;

public class Asks {
    public static void main(String[] a) throws Exception {
        var client = HttpClient.newHttpClient();
        for (int i = 0; i < 3; i++) {
            var request = HttpRequest.newBuilder(URI.create(a[0] + a[1]))
                .header("Authorization", "Bearer " + a[2]).header("Content-Type", "application/json")
                .POST(i == 1 ? HttpRequest.BodyPublishers.ofInputStream(() -> new java.io.ByteArrayInputStream(a[3].getBytes()))
                             : HttpRequest.BodyPublishers.ofString(a[3])).build();
            System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
        }
        var health = HttpRequest.newBuilder(URI.create(a[0] + "/health")).build();
        System.out.println(HttpClient.newHttpClient().send(health, HttpResponse.BodyHandlers.ofString()).statusCode());
        var expects = HttpRequest.newBuilder(URI.create(a[0] + a[1])).expectContinue(true)
            .header("Authorization", "Bearer " + a[2]).POST(HttpRequest.BodyPublishers.ofString(a[3])).build();
        System.out.println(HttpClient.newHttpClient().send(expects, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
"""


@both
async def test_javas_own_client_is_answered(kind, tmp_path):
    """It offers `h2c` with its first request."""
    if not shutil.which("java"):
        pytest.skip("no java here")
    source = tmp_path / "Asks.java"
    source.write_text(JAVA)
    async with opened(kind) as door:
        process = await asyncio.create_subprocess_exec(
            "java",
            "-XX:TieredStopAtLevel=1",
            str(source),
            door.url,
            door.path,
            KEY,
            CHAT.decode(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 300)
    assert out.split() == [b"200"] * 5, err.decode()


# ── a client that sends no more and still reads ──────────────────────────────────────────────────


@both
@pytest.mark.parametrize("count", [1, 3])
@on_both_loops
async def test_whoever_closes_its_side_after_asking_still_gets_its_short_answers(kind, count):
    async with opened(kind) as door, connected(door) as (reader, writer):
        writer.write(health() * count)
        writer.write_eof()
        assert [await status(reader) for _ in range(count)] == [200] * count
        assert await ended(reader)
        await until(lambda: len(door.port.connections) == 0, 60)


@both
@pytest.mark.parametrize("sent", [b"", b"POST /v1/x HT", None])
@on_both_loops
async def test_whoever_closes_its_side_within_a_request_is_closed(kind, sent):
    async with opened(kind) as door, connected(door) as (reader, writer):
        writer.write(whole(door)[:-3] if sent is None else sent)
        writer.write_eof()
        assert await ended(reader)
        await until(lambda: len(door.port.connections) == 0, 60)
        assert door.port.uploads.reserved == 0


@on_both_loops
async def test_who_closes_its_side_and_reads_nothing_stands_in_a_line_that_ends():
    """Answers of many sizes: some are longer than what the system holds, and shorter than what would pause them."""

    async def large(request):
        served.append(int(request.query["size"]))
        return Response(200, b"x" * served[-1])

    served, sizes = [], range(100_000, 4_000_000, 150_000)
    route = Route("GET", "/large", "Much.", large, frozenset(), query={"size": {"type": "string"}})
    front = HttpServer([route], Keys(), "127.0.0.1", 0, PortLimits(client_seconds=0.5))
    running = asyncio.create_task(front.run())
    where = urlsplit(front.url)
    try:
        with contextlib.ExitStack() as stack:
            for size in sizes:
                line = stack.enter_context(socket.socket())
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.connect((where.hostname, where.port))
                line.sendall(b"GET /large?size=%d HTTP/1.1\r\nHost: here\r\n\r\n" % size)
                line.shutdown(socket.SHUT_WR)
            await until(lambda: len(served) == len(sizes), 60)
            await until(lambda: len(front.port.connections) == 0, 60, "some stay for ever")
    finally:
        await front.close()
        await running


@given(
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["x", "x:80", "u:p@x", ""]),
    st.text("/ab", max_size=6).map(lambda path: path and f"/{path.lstrip('/')}"),
    st.text("/?:ab=", max_size=8),
)
def test_a_whole_address_has_the_path_that_the_standard_reads_in_it(scheme, host, path, query):
    target = f"{scheme}://{host}{path}" + (f"?{query}" if query else "")
    parts = urlsplit(target)
    assert (
        origin_form_of_target(target.encode())
        == urlunsplit(("", "", parts.path or "/", parts.query, "")).encode()
    )
