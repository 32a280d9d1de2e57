"""The loop itself: run it, reach it, count it, see it work."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import os
import sys
from collections.abc import Coroutine
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.running import Running

T = TypeVar("T")
CONNECT = """Agents answer through the gateway at {url}:

    from openai import OpenAI
    client = OpenAI(base_url="{url}/v1", api_key="{key}")
    client.chat.completions.create(model="upswing", messages=[{{"role": "user", "content": "hello"}}])
"""


HIDDEN = "hidden: `upswing info --show-secrets`"
_SECRETS = ("key", "gateway_key", "nats_url", "nats_urls")


def may_show(running: Running) -> bool:
    """Keys are for a person at this machine: a log or a pipe may be read by others."""
    from upswing.gateway.setup import is_loopback

    urls = filter(None, (running.http_url, running.gateway_url))
    return sys.stdout.isatty() and all(is_loopback(urlsplit(url).hostname or "") for url in urls)


def connecting(running: Running) -> str:
    """How an agent asks the gateway."""
    key = running.gateway_key if may_show(running) else "…"
    text = CONNECT.format(url=running.gateway_url, key=key)
    return text if key != "…" else f"{text}\n`upswing info --show-secrets` shows the key."


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """On the faster event loop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def up(arguments: argparse.Namespace) -> int:
    """Run until a signal comes."""
    from upswing.config import read_settings, read_surroundings
    from upswing.logs import set_up_logging
    from upswing.runtime import Address, Loop

    loop = Loop(
        arguments.data,
        read_settings(arguments.data, os.environ),
        read_surroundings(os.environ),
        Address(
            arguments.host, arguments.port,
            None if arguments.no_gateway else arguments.gateway_port, arguments.nats_port,
        ),
    )  # fmt: skip
    set_up_logging(loop.redactor)
    faulthandler.enable()  # a fault in native code says where it was

    def started(running: Running) -> None:
        print(f"Upswing is up at {running.http_url}, data in {running.data}.", flush=True)
        if running.gateway_url:
            print(connecting(running), flush=True)
        print("`upswing info` says how to reach it; Ctrl-C stops it.", flush=True)

    return run_async(loop.run_until_signalled(started))


def info(arguments: argparse.Namespace) -> int:
    """How to reach the running loop."""
    from upswing.running import read_running

    running = read_running(arguments.data)
    if running is None:
        raise Misuse(
            f"No loop is running in {arguments.data}: start it with `upswing up --data {arguments.data}`."
        )
    told = asdict(running)
    if not arguments.show_secrets and not may_show(running):
        told |= {name: HIDDEN for name in _SECRETS if told[name]}
    if arguments.json:
        print(json.dumps(told, indent=2))
        return 0
    for name in ("http_url", "gateway_url", "gateway_key", "nats_url", "key", "data", "pid"):
        print(f"{name:12} {told[name] or 'none: started with --no-gateway'}")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Counts, read from the store, whether the loop runs or not."""
    from upswing.adapters.sql.store import read_only
    from upswing.config import read_surroundings
    from upswing.running import read_running

    async def run() -> dict[str, int]:
        store = read_only(arguments.data, read_surroundings(os.environ).database_url)
        try:
            return await store.counts()
        finally:
            store.close()

    counts: dict[str, Any] = asyncio.run(run())
    running = read_running(arguments.data) is not None
    if arguments.json:
        print(json.dumps({**counts, "running": running}))
        return 0
    print(f"{'running' if running else 'stopped'}: {arguments.data}")
    for name, count in counts.items():
        print(f"{name:14}{count:>10}")
    return 0
