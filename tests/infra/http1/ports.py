"""Both ports, each with one path that wants a key and one that does not; `python ports.py loop 256` is one as a process, with so many files."""

import asyncio
import contextlib
import json
import resource
import sys
from types import SimpleNamespace
from urllib.parse import urlsplit

from tests.gateway.conftest import model, plan, started
from tests.gateway.scripted import Scripted
from upswing.api.router import JSON, Route, answer
from upswing.api.server import HttpServer
from upswing.gateway.limits import GatewayLimits
from upswing.infra.http1.limits import PortLimits

KEY, OTHER = "sk-doors-0123456789abcdef", "sk-doors-fedcba9876543210"
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
KINDS = ("loop", "gateway")


class Keys:
    """Knows two keys."""

    def find(self, key):
        known = SimpleNamespace(key_id=key, scope="agent", revoked=None, many=False)
        return known if key in {KEY, OTHER} else None


@contextlib.asynccontextmanager
async def opened(kind, *, before=None, **limits):
    """A `Port`, with how to reach it; the loop's waits for `before` with each answer."""
    async with _loop(limits, before) if kind == "loop" else _gateway(limits) as (url, path, port):
        where = urlsplit(url)
        yield SimpleNamespace(
            kind=kind, host=where.hostname, number=where.port, url=url, path=path, port=port
        )


@contextlib.asynccontextmanager
async def _loop(limits, before):
    async def echo(request):
        if before is not None:
            await before.wait()
        return answer(200, {"bytes": len(request.body)})

    async def health(_):
        return answer(200, {"status": "ok"})

    made = PortLimits(**limits)
    routes = [
        Route(
            "POST",
            "/v1/echo",
            "Says how long it is.",
            echo,
            frozenset({"agent"}),
            takes={JSON: {}},
            max_body=made.body_bytes,
        ),
        Route("GET", "/health", "Is it well?", health, frozenset()),
    ]
    front = HttpServer(routes, Keys(), "127.0.0.1", 0, made)
    running = asyncio.create_task(front.run())
    try:
        yield front.url, "/v1/echo", front.port
    finally:
        await front.close()
        await running


@contextlib.asynccontextmanager
async def _gateway(limits):
    made = GatewayLimits(**limits)
    async with (
        Scripted() as server,
        started(
            plan(model("base", server.url)), limits=made, client_keys={KEY: "ann", OTHER: "bob"}
        ) as handle,
    ):
        yield handle.url, "/v1/chat/completions", handle.gateway.port


def head(door, *more, method="POST", path=None, key=KEY, size=None):
    lines = [f"{method} {path or door.path} HTTP/1.1", "Host: here"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    lines += [f"Content-Length: {size}"] if size is not None else []
    return "\r\n".join([*lines, *more, "", ""]).encode("latin-1")


def whole(door, *more, body=CHAT, **options):
    return head(door, *more, size=len(body), **options) + body


def health(*more, method="GET"):
    return "\r\n".join([f"{method} /health HTTP/1.1", "Host: here", *more, "", ""]).encode()


@contextlib.asynccontextmanager
async def connected(door, **options):
    reader, writer = await asyncio.open_connection(door.host, door.number, **options)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def response(reader, *, bodiless=False):
    """(status, headers, body) of the next whole answer, `None` when there is none."""
    try:
        told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 300)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = told.decode("latin-1").strip().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    status = int(first.split()[1])
    size = 0 if bodiless or status in {100, 204} else int(headers["content-length"])
    return status, headers, await asyncio.wait_for(reader.readexactly(size), 300)


async def status(reader):
    told = await response(reader)
    return told and told[0]


async def ended(reader):
    """Nothing more comes."""
    try:
        return await asyncio.wait_for(reader.read(), 300) == b""
    except ConnectionError:
        return True


async def asked(door, *messages):
    """The statuses of these, each on a connection of its own."""
    told = []
    for message in messages:
        async with connected(door) as (reader, writer):
            writer.write(message)
            told.append(await status(reader))
    return told


async def main(kind, files):
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
    async with opened(kind) as door:
        print(door.url, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
