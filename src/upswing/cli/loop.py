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
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.app.loop import Loop
    from upswing.cli.starting import StartProgress
    from upswing.config import Settings, Surroundings
    from upswing.infra.instance import InstanceInfo

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


def may_show_secrets(running: InstanceInfo) -> bool:
    """Keys are for a person at this machine: a log or a pipe may be read by others."""
    from upswing.gateway.core.setup import is_loopback

    urls = filter(None, (running.http_url, running.gateway_url))
    return sys.stdout.isatty() and all(is_loopback(urlsplit(url).hostname or "") for url in urls)


def connection_help(running: InstanceInfo) -> str:
    """How an agent asks the gateway."""
    key = running.gateway_key if may_show_secrets(running) else "…"
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
    from upswing.cli.starting import StartProgress
    from upswing.infra.terminal import unwrapped_stdout

    progress = StartProgress(unwrapped_stdout())
    progress.show_waiting("the program to load")
    from upswing.app.loop import ListenAddress, Loop
    from upswing.cli.doctor_checks import check_config
    from upswing.config import read_settings, read_surroundings
    from upswing.infra.http1.port import raise_open_file_limit
    from upswing.infra.instance import find_running_instance
    from upswing.logs import LogOptions, set_up_logging

    settings, surroundings = (
        read_settings(arguments.data, os.environ),
        read_surroundings(os.environ),
    )
    check_config(settings, surroundings)
    if not arguments.no_gateway:
        check_can_serve(settings, surroundings)
    if find_running_instance(arguments.data) is None:
        check_ports(arguments)
    loop = Loop(
        arguments.data,
        settings,
        surroundings,
        ListenAddress(
            arguments.host,
            arguments.port,
            None if arguments.no_gateway else arguments.gateway_port,
            arguments.nats_port,
            choose_dashboard_port(arguments),
        ),
    )
    log_options = LogOptions.chosen(arguments.log_format, arguments.log_file, "main")
    set_up_logging(loop.redactor, log_options)
    raise_open_file_limit()
    progress.keep_clear_of_logs()
    faulthandler.enable()  # a fault in native code says where it was
    return run_async(_run(loop, progress))


def check_ports(arguments: argparse.Namespace) -> None:
    """A port that cannot be had is refused before anything is made."""
    from upswing.infra.sockets import bind_port

    wanted = {"--port": arguments.port}
    if not arguments.no_gateway:
        wanted["--gateway-port"] = arguments.gateway_port
    if not arguments.no_dashboard:
        wanted["--dashboard-port"] = arguments.dashboard_port
    chosen = {option: port for option, port in wanted.items() if port}
    for first, second in combinations(chosen, 2):
        if chosen[first] == chosen[second]:
            raise Misuse(f"{first} and {second} are both {chosen[first]}: give them two.")
    for option, port in chosen.items():
        bind_port(arguments.host, port, option).close()


def choose_dashboard_port(arguments: argparse.Namespace) -> int | None:
    """Where the page is to be; None: nowhere. Unless somebody names a port, a taken one keeps no loop from starting."""
    from upswing.dashboard.main import DEFAULT_PORT, is_installed
    from upswing.infra.sockets import bind_port

    if arguments.no_dashboard:
        return None
    named: int | None = arguments.dashboard_port
    if not is_installed():
        if named is not None:
            raise Misuse(
                "The page needs the extra `dashboard`: pip install '.[dashboard]' in Upswing's folder."
            )
        return None
    if named is not None or arguments.port == 0:
        return named or 0
    try:
        bind_port(arguments.host, DEFAULT_PORT).close()
    except Misuse:
        return 0
    return DEFAULT_PORT


def check_can_serve(settings: Settings, surroundings: Surroundings) -> None:
    """A base model that can never be served here is refused before anything starts."""
    from upswing.config import defaults
    from upswing.serve.prerequisites import check_serving

    named = bool(surroundings.base_model or settings.train.base_model)
    chosen = defaults(settings, surroundings)
    url = settings.serve.url
    key = surroundings.model_server_key(url) if url else None
    check_serving(settings.serve, chosen, key, base_named=named)


async def _run(loop: Loop, progress: StartProgress) -> int:
    from upswing.cli.starting import show_progress
    from upswing.infra.tasks import cancel_all, run_in_background

    showing = [run_in_background(show_progress(progress, loop.waiting_for), name="progress")]

    def started(running: InstanceInfo) -> None:
        showing.append(
            run_in_background(_announce_when_ready(loop, running, progress), name="first answer")
        )
        showing[0].cancel()

    try:
        return await loop.run_until_signalled(started)
    finally:
        await cancel_all(showing)
        progress.finish()


async def _announce_when_ready(loop: Loop, running: InstanceInfo, progress: StartProgress) -> None:
    from upswing.cli.starting import wait_for_first_answer

    where = f"at {running.http_url}, data in {running.data}"
    progress.finish()
    if loop.delivery is None:
        print(f"Upswing is ready {where}. No model is served from here.", flush=True)
    else:
        print(f"Upswing has started {where}.", flush=True)
        probed = await wait_for_first_answer(running, loop.waiting_for, progress)
        progress.finish()
        print(
            f"Upswing is ready: {probed.model} answered through the gateway, {progress.seconds:.1f} s after "
            "the start.",
            flush=True,
        )
    if running.gateway_url:
        print(connection_help(running), flush=True)
    if running.dashboard_url:
        print(
            f"See it at {running.dashboard_url}; log in with the key of `upswing info --show-secrets`.",
            flush=True,
        )
    if loop.delivery is not None and loop.delivery.base == "tiny":
        print(TINY, flush=True)
    print("`upswing info` says how to reach it; Ctrl-C stops it.", flush=True)


def info(arguments: argparse.Namespace) -> int:
    """How to reach the running loop."""
    from upswing.infra.instance import find_running_instance, no_loop_sentence

    running = find_running_instance(arguments.data)
    if running is None:
        raise Misuse(no_loop_sentence(arguments.data))
    view = asdict(running)
    if not arguments.show_secrets and not may_show_secrets(running):
        view |= {name: HIDDEN for name in _SECRETS if view[name]}
    if arguments.json:
        print(json.dumps(view, indent=2))
        return 0
    for name in (
        "http_url",
        "gateway_url",
        "gateway_key",
        "admin_token",
        "dashboard_url",
        "nats_url",
        "key",
        "data",
        "pid",
    ):
        none = "none" if name == "dashboard_url" else "none: started with --no-gateway"
        print(f"{name:13} {view[name] or none}")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Counts, read from the store, whether the loop runs or not."""
    from upswing.config import read_surroundings
    from upswing.infra.instance import find_running_instance
    from upswing.infra.sql.store import open_store_read_only

    async def run() -> dict[str, int]:
        store = open_store_read_only(arguments.data, read_surroundings(os.environ).database_url)
        try:
            return await store.counts()
        finally:
            store.close()

    counts: dict[str, Any] = asyncio.run(run())
    running = find_running_instance(arguments.data) is not None
    if arguments.json:
        print(json.dumps({**counts, "running": running}))
        return 0
    print(f"{'running' if running else 'stopped'}: {arguments.data}")
    for name, count in counts.items():
        print(f"{name:14}{count:>10}")
    return 0
