"""Too much, too slow, too strange: is it refused clearly, and does it cost anybody else?"""

import asyncio
import json

import pytest

from tests.gateway.conftest import model, on_both_loops, plan, started, user
from tests.gateway.scripted import Misbehaving, Scripted
from tests.gateway.talking import connect, raw, request, streamed
from tests.support import until
from upswing.gateway.limits import GatewayLimits

pytestmark = pytest.mark.live
CHAT = {"model": "m", "messages": [user("hi")]}


def error(whole):
    head, _, body = whole.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]


@on_both_loops
async def test_a_prompt_of_50_mb_is_answered_with_413_and_the_connection_goes_on():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        status, answer = await gateway.chat(user("x" * 50_000_000))
        assert status == 413
        assert "33554432 bytes" in answer["error"]["message"]
        assert (await gateway.chat(user("hi")))[0] == 200
        assert len(server.requests) == 1


async def test_a_prompt_of_20_mb_goes_through():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        assert (await gateway.chat(user("x" * 20_000_000)))[0] == 200
        assert len(server.requests[0]["body"]["messages"][0]["content"]) == 20_000_000


async def test_a_body_without_a_declared_size_is_bounded_too():
    async with Scripted() as server:
        made = plan(model("base", server.url))
        async with started(made, limits=GatewayLimits(body_bytes=2000)) as gateway:
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            whole = await raw(
                gateway,
                head + b"400\r\n" + b"x" * 1024 + b"\r\n400\r\n" + b"x" * 1024 + b"\r\n0\r\n\r\n",
            )
            assert error(whole)[0] == 413


async def test_beyond_the_requests_it_takes_a_client_is_told_to_come_back():
    async with Misbehaving("silent") as server:
        made = plan(model("base", server.url))
        async with started(made, limits=GatewayLimits(requests=2)) as gateway:
            waiting = [asyncio.create_task(raw(gateway, request(CHAT))) for _ in range(2)]
            await until(lambda: len(server.requests) == 2, 60)
            whole = await raw(gateway, request(CHAT))
            assert error(whole)[0] == 429
            assert b"retry-after: 1\r\n" in whole
            for each in waiting:
                each.cancel()


async def test_beyond_a_servers_connections_requests_wait_and_then_are_refused():
    async with Misbehaving("silent") as server:
        limits = GatewayLimits(backend_connections=1, backend_waiting=1)
        async with started(plan(model("base", server.url)), limits=limits) as gateway:
            waiting = [asyncio.create_task(raw(gateway, request(CHAT))) for _ in range(2)]
            await until(lambda: gateway.gateway.health()["under_way"] == 2, 60)
            status, told = error(await raw(gateway, request(CHAT)))
            assert (status, told["code"]) == (429, "busy")
            server.how = "well"
            waiting[0].cancel()
            waiting[1].cancel()


async def test_that_too_many_wait_for_a_server_is_evidence_against_nobody():
    async with Misbehaving("silent") as server:
        limits = GatewayLimits(backend_connections=1, backend_waiting=1)
        async with started(plan(model("base", server.url)), limits=limits) as gateway:
            waiting = [asyncio.create_task(raw(gateway, request(CHAT))) for _ in range(2)]
            await until(lambda: gateway.gateway.health()["under_way"] == 2, 60)
            for _ in range(20):
                assert error(await raw(gateway, request(CHAT)))[1]["code"] == "busy"
            counters = gateway.gateway.counters
            assert (counters.encode(), counters.faults) == (b"{}", {("base", "busy"): 20})
            for each in waiting:
                each.cancel()


async def test_too_many_uploads_at_once_are_refused():
    async with Scripted() as server:
        made = plan(model("base", server.url))
        async with started(made, limits=GatewayLimits(uploads_bytes=6000)) as gateway:
            _, slow = await connect(gateway)
            whole = request({**CHAT, "pad": "x" * 2000})
            slow.write(whole[:-5])
            await until(lambda: gateway.gateway.port.uploads.reserved > 1500, 60)
            status, answer = await gateway.chat(user("x" * 2000))
            assert (status, answer["error"]["type"]) == (429, "rate_limit_error")
            slow.close()
            await until(lambda: gateway.gateway.port.uploads.reserved == 0, 60)
            assert (await gateway.chat(user("x" * 2000)))[0] == 200


@on_both_loops
async def test_a_client_that_does_not_read_holds_no_memory_and_is_disconnected():
    async with Misbehaving("flood") as server:
        limits = GatewayLimits(client_seconds=1.0)
        async with started(plan(model("base", server.url)), limits=limits) as gateway:
            _, writer = await connect(gateway, limit=1024)
            writer.write(request({**CHAT, "stream": True}))
            await until(lambda: gateway.gateway.health()["under_way"] == 1, 60)
            await asyncio.wait_for(server.gone.wait(), 300)
            assert server.sent < 40_000_000, "the gateway took what its client did not"
            assert gateway.gateway.counters.outcomes == {"cancelled": 1}
            writer.close()


@on_both_loops
async def test_a_large_stream_reaches_a_client_that_reads_at_its_own_pace():
    async with Misbehaving("flood") as server, started(plan(model("base", server.url))) as gateway:
        reader, writer = await connect(gateway, limit=64 * 1024)
        writer.write(request({**CHAT, "stream": True}))
        size, tail = 0, b""
        while piece := await reader.read(256 * 1024):
            size += len(piece)
            tail = (tail + piece)[-100:]
            if size % 7 == 0:
                await asyncio.sleep(0)
        writer.close()
        assert size > 2000 * 60_000
        assert tail.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


async def test_a_client_that_never_finishes_its_request_is_disconnected():
    async with Scripted() as server:
        made = plan(model("base", server.url))
        async with started(made, limits=GatewayLimits(head_seconds=0.2)) as gateway:
            reader, writer = await connect(gateway)
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Le")
            assert error(await asyncio.wait_for(reader.read(), 300))[0] == 408
            writer.close()


@pytest.mark.parametrize(
    "message",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_no_http_is_refused_and_hung_up_on(message):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        assert error(await raw(gateway, message))[0] == 400
        assert not server.requests
        counted = await gateway.metrics()
        assert counted["upswing_gateway_refused_total", (("reason", "bad_http"),)] == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"model": "m"}', 400),
        (b'{"messages": "hi"}', 400),
        (b'{"messages": [], "model": 7}', 400),
        (b'{"messages": [], "stream": "yes"}', 400),
        (b'{"messages": [1, 2]}', 400),
        (b'{"messages": [{"role": "user", "content": "\xff"}]}', 400),
        (b'{"messages": [{"role": "user"}], "episode_id": "a\\r\\nset-cookie: x=y"}', 400),
        (b'{"messages": [{"role": "user"}], "episode_id": ""}', 200),
        (b'{"messages":' + b"[" * 100_000, 400),
    ],
)
async def test_a_body_that_is_no_request_is_a_clear_error(body, status):
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        got, answer = await gateway.client("POST", "/v1/chat/completions", body)
        assert got == status, answer
        if status != 200:
            assert answer["error"]["type"] == "invalid_request_error"
            assert not server.requests


async def test_headers_cannot_be_injected_through_ids():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        for name in ("a\tb", "é", "x" * 300):
            whole = await raw(gateway, request(CHAT, f"X-Episode-Id: {name}"))
            assert error(whole)[0] == 400
        _, headers, _ = await streamed(gateway, {**CHAT, "user": "x\r\nx-evil: 1"})
        assert "x-evil" not in headers
        assert "x-evil" not in server.requests[0]["headers"]


async def test_expect_100_continue_is_honoured():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        reader, writer = await connect(gateway)
        head, _, body = request(CHAT, "Expect: 100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_client_of_http_1_0_gets_a_stream_that_ends_with_the_connection():
    async with Scripted() as server, started(plan(model("base", server.url))) as gateway:
        message = request({**CHAT, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        whole = await raw(gateway, message)
        assert b"chunked" not in whole
        assert whole.endswith(b"data: [DONE]\n\n")
