"""Our gateway as it is run: keys, a canary, a bus that syncs, a keeper that redacts and publishes.

    python upswing_gateway.py STUB KEY

A line on stdin is answered with its address and its counts, as JSON; `"plan"` first writes another
traffic plan and says how long it took until the gateway followed it.
"""

import asyncio
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import uvloop

from upswing.contracts.topics import ROLES
from upswing.contracts.traffic import Candidate, Model, Plan, write_plan
from upswing.gateway.limits import GatewayLimits
from upswing.gateway.options import GatewayAuth, GatewayOptions
from upswing.gateway.wiring import GatewayProcess
from upswing.infra.nats.bus import Bus
from upswing.infra.nats.permissions import OPERATOR
from upswing.infra.nats.server import EmbeddedServer
from upswing.infra.nats.traffic import PLAN, TRAFFIC, ensure_bucket

IDLE_SECONDS = 1.0
"""Conversations without a next turn end soon, so that recording goes on during the load."""


def plan(stub, version):
    """A canary whose share is another one in every version."""
    candidate = Candidate(Model("new", stub, "other"), 0.1 + version % 2 / 10)
    return Plan(1, "bench", "salt", Model("base", stub, "stub"), (candidate,), version=version)


async def followed(gateway, traffic, made):
    """Milliseconds from the write, and from its acknowledgement, until the gateway follows it."""
    begin = time.perf_counter()
    await traffic.put(PLAN, write_plan(made))
    stored = time.perf_counter()
    while gateway.traffic.plan.version < made.version:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(0.0005)
    now = time.perf_counter()
    return (now - begin) * 1000, (now - stored) * 1000


async def main(stub, key, folder):
    server = EmbeddedServer(folder / "nats", dict.fromkeys((OPERATOR, *ROLES), "bench"))
    await server.start()
    bus = await Bus.connect(server.url(OPERATOR))
    await bus.prepare()
    traffic = await ensure_bucket(bus, TRAFFIC)
    version = 1
    process = GatewayProcess(
        nats_url=server.url(OPERATOR),
        instance="bench",
        clock=lambda: datetime.now(UTC),
        new_id=uuid4,
        spool=folder / "spool",
        options=GatewayOptions(
            plan=plan(stub, version),
            limits=GatewayLimits(episode_seconds=IDLE_SECONDS),
            auth=GatewayAuth(client_keys={key: "bench"}),
        ),
    )
    url = await process.start(port=0)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    recorder = process.gateway.recorder
    while line := await reader.readline():
        ms = (0.0, 0.0)
        if json.loads(line) == "plan":
            version += 1
            ms = await followed(process.gateway, traffic, plan(stub, version))
        counts = recorder.counts
        told = {
            "url": f"{url}/v1",
            "recorded": counts.recorded,
            "open": len(recorder.episode_table),
            "waiting": recorder.backlog_bytes,
            "gaps": recorder.episode_table.gaps,
            "plan_ms": ms,
            "lost": counts.lost + counts.refused,
        }
        print(json.dumps(told), flush=True)
    await process.stop()
    await server.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="upswing-gateway-", ignore_cleanup_errors=True) as name:
        uvloop.run(main(sys.argv[1], sys.argv[2], Path(name)))
