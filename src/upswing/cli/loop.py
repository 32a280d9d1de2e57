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
    from upswing.cli.starting import Progress
    from upswing.config import Settings, Surroundings
    from upswing.running import Running
    from upswing.runtime import Loop

T = TypeVar("T")
CONNECT = """Agents answer through the gateway at {url}:

    from openai import OpenAI
    client = OpenAI(base_url="{url}/v1", api_key="{key}")
    client.chat.completions.create(model="upswing", messages=[{{"role": "user", "content": "answer yes or no"}}])
"""


TINY = """`tiny` is for trying the loop: it answers with one of the words that a message offers, and chats about
nothing. RL_BASE_MODEL=smollm2 is a small real language model."""
HIDDEN = "hidden: `upswing info --show-secrets`"
_SECRETS = ("key", "gateway_key", "admin_token", "nats_url", "nats_urls")


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
    """Run until a signal comes; "ready" is said when a model has answered."""
    from upswing.cli.starting import Progress

    progress = Progress(sys.stdout)
    progress.waits_for("the program to load")
    from upswing.cli.examining import check_config
    from upswing.config import read_settings, read_surroundings
    from upswing.http1.port import raise_open_files
    from upswing.logs import set_up_logging
    from upswing.running import read_running
    from upswing.runtime import Address, Loop

    settings, surroundings = (
        read_settings(arguments.data, os.environ),
        read_surroundings(os.environ),
    )
    check_config(settings, surroundings)
    if not arguments.no_gateway:
        check_can_serve(settings, surroundings)
    if read_running(arguments.data) is None:
        check_ports(arguments)
    loop = Loop(
        arguments.data, settings, surroundings,
        Address(
            arguments.host, arguments.port,
            None if arguments.no_gateway else arguments.gateway_port, arguments.nats_port,
        ),
    )  # fmt: skip
    set_up_logging(loop.redactor)
    raise_open_files()
    progress.beside_logs()
    faulthandler.enable()  # a fault in native code says where it was
    return run_async(_run(loop, progress))


def check_ports(arguments: argparse.Namespace) -> None:
    """A port that cannot be had is refused before anything is made."""
    from upswing.adapters.listening import bound

    wanted = {"--port": arguments.port}
    if not arguments.no_gateway:
        wanted["--gateway-port"] = arguments.gateway_port
    chosen = {option: port for option, port in wanted.items() if port}
    if len(set(chosen.values())) < len(chosen):
        raise Misuse(f"--port and --gateway-port are both {arguments.port}: give them two.")
    for option, port in chosen.items():
        bound(arguments.host, port, option).close()


def check_can_serve(settings: Settings, surroundings: Surroundings) -> None:
    """A base model that can never be served here is refused before anything starts."""
    from upswing.adapters.prerequisites import check_serving
    from upswing.config import defaults

    named = bool(surroundings.base_model or settings.train.base_model)
    chosen = defaults(settings, surroundings)
    check_serving(settings.serve, chosen, surroundings.serve_key, named=named)


async def _run(loop: Loop, progress: Progress) -> int:
    from upswing.cli.starting import show
    from upswing.together import aside, end

    showing = [aside(show(progress, loop.waiting_for), name="progress")]

    def started(running: Running) -> None:
        showing.append(aside(_open(loop, running, progress), name="first answer"))
        showing[0].cancel()

    try:
        return await loop.run_until_signalled(started)
    finally:
        await end(showing)
        progress.over()


async def _open(loop: Loop, running: Running, progress: Progress) -> None:
    from upswing.cli.starting import first_answer

    where = f"at {running.http_url}, data in {running.data}"
    progress.over()
    if loop.shipping is None:
        print(f"Upswing is ready {where}. No model is served from here.", flush=True)
    else:
        print(f"Upswing has started {where}.", flush=True)
        probed = await first_answer(running, loop.waiting_for, progress)
        progress.over()
        print(
            f"Upswing is ready: {probed.model} answered through the gateway, {progress.seconds:.1f} s after "
            "the start.",
            flush=True,
        )
    if running.gateway_url:
        print(connecting(running), flush=True)
    if loop.shipping is not None and loop.shipping.base == "tiny":
        print(TINY, flush=True)
    print("`upswing info` says how to reach it; Ctrl-C stops it.", flush=True)


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
    for name in (
        "http_url", "gateway_url", "gateway_key", "admin_token", "nats_url", "key", "data", "pid",
    ):  # fmt: skip
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
