"""What do ten open pages cost the loop? Its p99 latency of ingest with them, beside that without.

The loop and the page's own process run as `upswing up` starts them, with a full store. The load is open: the next
trajectory leaves when it is due. A page is opened as a browser opens it, with a login, a session and a socket, and is
an overview, the busiest of all; nothing is drawn, for that is the work of another machine. Both sides alternate, and
the median of the ratios counts.

python -m bench dashboard --trajectories 2000 --rounds 3 --seconds 6
                            the same in small: one line of JSON
"""

import argparse
import ast
import asyncio
import contextlib
import json
import re
import statistics
import sys
import time
import urllib.parse
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Self
from urllib.parse import urlsplit

import httpx
from bench.corpus import trajectory_bytes
from bench.harness import PeerError, Row, Service, median_ratio, upswing_up, versions
from simple_websocket import AioClient, ConnectionClosed

PAGES = 10
PAYLOAD_BYTES = 4_000
BATCH = 100
TARGET = 1.25
_QUERY = re.compile(r"query: (\{[^}]*\})")
_WARM_SECONDS = 3.0


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    trajectories: int = 100_000
    """In the store before the first measurement."""
    rounds: int = 5
    seconds: float = 20.0
    """Of one measurement."""
    rate: float = 40.0
    """Trajectories a second."""


def rows(sizes: Sizes = Sizes()) -> list[Row]:  # noqa: B008 - a frozen value
    taken = asyncio.run(measure(sizes))
    value = median_ratio(taken, "pages", "alone")
    name = f"p99 of ingest beside {PAGES} open pages, {sizes.trajectories:,} trajectories"
    return [
        Row(
            name=name,
            value=value,
            target=TARGET,
            better="lower",
            peer="the same loop without a page open",
            versions=versions(nicegui=version("nicegui")),
        )
    ]


async def measure(sizes: Sizes) -> list[dict[str, float]]:
    taken = []
    with upswing_up(page=True) as service:
        await fill(service, sizes.trajectories)
        async with open_pages(service, 1):  # so that everything is loaded once
            await p99_ms(service, sizes.rate, _WARM_SECONDS)
        for _ in range(sizes.rounds):
            alone = await p99_ms(service, sizes.rate, sizes.seconds)
            async with open_pages(service, PAGES) as pages:
                beside = await p99_ms(service, sizes.rate, sizes.seconds)
                heard = min(page.heard for page in pages)
            print(
                f"p99 {alone:.1f} ms alone, {beside:.1f} ms beside {PAGES} pages, each heard {heard} messages or more",
                file=sys.stderr,
            )
            if not heard:
                raise PeerError("A page was told nothing: it is not live, and costs nothing.")
            taken.append({"alone": alone, "pages": beside})
    return taken


# --- the load ------------------------------------------------------------------------------------


async def fill(service: Service, count: int) -> None:
    """So many trajectories are stored and scored."""
    lines = [trajectory_bytes(seed=seed, size=PAYLOAD_BYTES) for seed in range(BATCH)]
    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/x-ndjson"}
    async with httpx.AsyncClient(timeout=120, headers=headers, trust_env=False) as client:
        for _ in range(0, count, BATCH):
            body = b"\n".join(_fresh(line) for line in lines)
            answer = await client.post(f"{service.http_url}/v1/trajectories", content=body)
            if answer.status_code != 202:
                raise PeerError(f"The loop refused trajectories: {answer.text[:300]}")
        while True:
            counts = (await client.get(f"{service.http_url}/v1/status")).json()
            if counts["rewards"] >= counts["trajectories"]:
                return
            await asyncio.sleep(0.5)


def _fresh(line: bytes) -> bytes:
    known = json.loads(line)["trajectory_id"].encode()
    return line.replace(known, str(uuid.uuid4()).encode(), 1)


async def p99_ms(service: Service, rate: float, seconds: float) -> float:
    """Milliseconds from when a trajectory is due until it is durable."""
    lines = [trajectory_bytes(seed=seed, size=PAYLOAD_BYTES) for seed in range(64)]
    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
    took: list[float] = []
    async with httpx.AsyncClient(
        timeout=60, headers=headers, limits=limits, trust_env=False
    ) as client:

        async def send(due: float, body: bytes) -> None:
            answer = await client.post(f"{service.http_url}/v1/trajectories", content=body)
            if answer.status_code != 202:
                raise PeerError(f"The loop refused a trajectory: {answer.text[:300]}")
            took.append((time.perf_counter() - due) * 1000)

        began, sent = time.perf_counter(), []
        for number in range(round(rate * seconds)):
            due, body = began + number / rate, _fresh(lines[number % len(lines)])
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent.append(asyncio.create_task(send(due, body)))
        await asyncio.gather(*sent)
    return statistics.quantiles(took, n=100)[98]


# --- the pages -----------------------------------------------------------------------------------


class OpenPage:
    """A browser that draws nothing: it logs in, loads a page, keeps its socket open and answers it."""

    def __init__(self, service: Service) -> None:
        self._url, self._key = service.dashboard_url, service.key
        self.heard = 0

    async def __aenter__(self) -> Self:
        host = urlsplit(self._url).netloc
        headers = {"Origin": self._url, "Accept": "text/html"}
        async with httpx.AsyncClient(
            base_url=self._url, headers=headers, trust_env=False, timeout=60
        ) as client:
            answer = await client.post("/login", data={"key": self._key, "next": "/"})
            if answer.status_code != 303:
                raise PeerError(f"The page refused the login: {answer.status_code}.")
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
            html = (await client.get("/")).text
        found = _QUERY.search(html)
        if found is None:
            raise PeerError("The page has no socket's address in it.")
        ids = {name: str(uuid.uuid4()) for name in ("document_id", "tab_id")}
        query = {**ast.literal_eval(found[1]), **ids, "EIO": "4", "transport": "websocket"}
        query = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in query.items()
        }
        path = f"ws://{host}/_nicegui_ws/socket.io/?{urllib.parse.urlencode(query)}"
        origin = f"http://{urlsplit(self._url).hostname}"  # as its `Host`, which has no port
        self._socket = await AioClient.connect(
            path, headers=[("Origin", origin), ("Cookie", cookie)]
        )
        self._task = asyncio.create_task(self._answer())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionClosed):
            await self._task
        with contextlib.suppress(ConnectionClosed):
            await self._socket.close()

    async def _answer(self) -> None:
        """Engine.IO: `40` connects, `2` is answered by `3`, `42` is a message."""
        await self._socket.send("40")
        while True:
            said = await self._socket.receive()
            if said == "2":
                await self._socket.send("3")
            elif said.startswith("42"):
                self.heard += 1


@contextlib.asynccontextmanager
async def open_pages(service: Service, count: int) -> AsyncIterator[list[OpenPage]]:
    async with contextlib.AsyncExitStack() as stack:
        yield [await stack.enter_async_context(OpenPage(service)) for _ in range(count)]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench dashboard")
    plain = Sizes()
    parser.add_argument("--trajectories", type=int, default=plain.trajectories)
    parser.add_argument("--rounds", type=int, default=plain.rounds)
    parser.add_argument("--seconds", type=float, default=plain.seconds)
    parser.add_argument("--rate", type=float, default=plain.rate)
    chosen = Sizes(**vars(parser.parse_args(argv)))
    taken = asyncio.run(measure(chosen))
    print(json.dumps({"ratio": median_ratio(taken, "pages", "alone"), "rounds": taken}))
    return 0
