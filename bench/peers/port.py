"""One of our two ports as a process: `port.py loop` or `port.py gateway`, with one path that wants a key."""

import asyncio
import contextlib
import json
import random
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


class Keys:
    def __init__(self, key):
        self._key = key

    def find(self, key):
        return (
            SimpleNamespace(key_id="k", scope="agent", revoked=None, many=False)
            if key == self._key
            else None
        )


@contextlib.asynccontextmanager
async def loop_port(key):
    from upswing.api.router import JSON, Route, answer
    from upswing.api.server import HttpServer

    async def echo(request):
        return answer(200, {"bytes": len(request.body)})

    path = "/v1/echo"
    route = Route(
        "POST",
        path,
        "Says how long it is.",
        echo,
        frozenset({"agent"}),
        takes={JSON: {}},
        max_body=32 << 20,
    )
    front = HttpServer([route], Keys(key), "127.0.0.1", 0)
    running = asyncio.create_task(front.run())
    yield front.url, path
    await front.close()
    await running


@contextlib.asynccontextmanager
async def gateway_port(key):
    from bench.peers.chat_stub import Stub

    from upswing.contracts.traffic import Model, Plan
    from upswing.gateway.gateway import Gateway
    from upswing.gateway.options import GatewayAuth, GatewayOptions

    stub = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{stub.sockets[0].getsockname()[1]}/v1"
    plan = Plan(
        baseline=Model("base", url, "base"),
        candidates=(),
        fence=1,
        rollout="r",
        salt="s",
        version=1,
    )
    gateway = Gateway(
        clock=lambda: datetime.now(UTC),
        new_id=uuid4,
        draw=random.random,
        options=GatewayOptions(plan=plan, auth=GatewayAuth(client_keys={key: "ann"})),
    )
    yield await gateway.start(port=0), "/v1/chat/completions"
    await gateway.stop(1)


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def main(kind, key):
    reader = asyncio.StreamReader()
    made = loop_port if kind == "loop" else gateway_port
    async with made(key) as (url, path):
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while await reader.readline():
            told = {"url": url, "path": path, "mb": resident_mb()}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2]))
