"""How fast is a backlog taken that waits on the bus after `kill -9`?

20,000 messages are published while the loop's main process is stopped; then it is killed, and its bus
with it. The next start has to take them as messages that may have been in hand at a death. What the bus
had handed to the dead process comes again only after its wait for an acknowledgement, so the rate is
that of 98 %; that the rest comes too, once each, is checked.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import PeerError, Row, versions
from tests.support import Process, on_bus, raw, small, until
from tests.support import rows as ask

from upswing.contracts.topics import TRAJECTORY

MESSAGES, SHARE = 20_000, 0.98
TARGET = 1_000.0
PATIENCE_S = 900.0
_STORED = "SELECT count(*) FROM trajectories"
_EXACT = (
    "SELECT count(*), count(DISTINCT trajectory_id), (SELECT count(*) FROM dead), "
    "(SELECT count(*) FROM attempts) FROM trajectories"
)


def rows() -> list[Row]:
    home = Path(tempfile.mkdtemp(prefix="upswing-catchup-"))
    try:
        rate, last = asyncio.run(_measured(home / "data"))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return [
        Row(
            name=f"backlog of {MESSAGES:,} after kill -9, taken from the bus",
            value=rate,
            target=TARGET,
            unit="/s",
            peer=f"the last one after {last:.1f} s",
            versions=versions(),
        )
    ]


async def _measured(data: Path) -> tuple[float, float]:
    """(messages per second, seconds until the last one)"""
    process = await asyncio.to_thread(_started, data)
    try:
        os.kill(process.popen.pid, signal.SIGSTOP)
        await _publish(process.info["nats_urls"]["agent"])
        process.kill_group()
        process = await asyncio.to_thread(_started, data)
        return await _watched(data)
    finally:
        process.destroy()


def _started(data: Path) -> Process:
    process = Process.start(data)
    process.until_ready()
    return process


async def _publish(url: str) -> None:
    began = time.monotonic()
    async with on_bus(url) as agent:
        js = agent.jetstream(timeout=60)
        for number in range(MESSAGES):
            await agent.publish(TRAJECTORY, raw(small(f"number {number}")))
            if number % 1000 == 999:
                await agent.flush(60)
        await js.publish(TRAJECTORY, raw(small("the last one: those before it are there")))
    print(f"  published in {time.monotonic() - began:.1f} s", file=sys.stderr)


async def _watched(data: Path) -> tuple[float, float]:
    before, began = ask(data, _STORED)[0][0], time.monotonic()
    most = int(SHARE * (MESSAGES + 1))
    await until(lambda: ask(data, _STORED)[0][0] >= most, PATIENCE_S, "the backlog was not taken")
    rate = (most - before) / (time.monotonic() - began)
    print(f"  {before} were stored before the clock ran; {rate:,.0f}/s", file=sys.stderr)
    wanted = [(MESSAGES + 1, MESSAGES + 1, 0, 0)]
    await until(lambda: ask(data, _EXACT) == wanted, PATIENCE_S, "some are lost, doubled or marked")
    if ask(data, _EXACT) != wanted:
        raise PeerError(f"the store holds {ask(data, _EXACT)}, not {wanted}")
    return rate, time.monotonic() - began
