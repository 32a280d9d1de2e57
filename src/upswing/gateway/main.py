"""A gateway as a process: what configures it, where it listens, and how it ends.

`upswing serve gateway` runs this, and so does `upswing up`. SIGTERM and SIGINT drain: no more
connections are taken, answers under way end, open episodes are recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from upswing.config import Settings, read_settings
from upswing.errors import Misuse, Transient, UpswingError
from upswing.gateway.admin_client import AdminClient
from upswing.gateway.core.episode_redaction import make_redactor
from upswing.gateway.core.routing import RoutingTable
from upswing.gateway.core.serving_policy import check_pin
from upswing.gateway.core.setup import GatewaySetup, SetupSources, check_public_address, read_setup
from upswing.gateway.options import GatewayAuth, GatewayOptions, RoutingOptions
from upswing.gateway.wiring import GatewayProcess
from upswing.infra.cli_options import PORT, FloatOption, IntegerOption, add_log_options
from upswing.infra.clock import SteadyClock
from upswing.infra.heartbeat import Beats
from upswing.infra.http1.port import raise_open_file_limit
from upswing.infra.instance import find_running_instance, read_known_secrets
from upswing.infra.tasks import cancel_all, start_task
from upswing.logs import LogOptions, set_up_logging

log = logging.getLogger(__name__)
READY = "Upswing's gateway answers at"
"""How the line begins that says so, on standard output."""
_DRAIN_SECONDS = 30.0
_PLAN_SECONDS = 5.0
"""For the traffic plan; then requests are answered, if only with an error that there is none."""
_PIN_SECONDS = 30.0
"""For a model that this gateway is pinned to, which a server may have to load first."""
_MODELS_SECONDS, _MODELS_RETRY_SECONDS = 20.0, 0.5
"""For the loop's list of models, and between two questions."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


_clock = SteadyClock()
"""A process of its own has a clock of its own."""


def build_parser() -> argparse.ArgumentParser:
    """The options of `upswing serve gateway`."""
    parser = argparse.ArgumentParser(
        prog="upswing serve gateway", description="Answer agents on one OpenAI-shaped port."
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=PORT, default=3000, help="0 for any free one (default: 3000)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the data directory of a loop: its bus, keys, redaction rules and spool",
    )
    parser.add_argument("--nats-url", metavar="URL", help="the bus (else $NATS_URL, else --data's)")
    parser.add_argument(
        "--loop-url", metavar="URL", help="the loop (else $AGENTGYM_RL_URL, else --data's)"
    )
    parser.add_argument(
        "--spool",
        type=Path,
        metavar="DIR",
        help="where episodes wait while the bus is away (default: in --data; without, in memory)",
    )
    parser.add_argument(
        "--drain",
        type=FloatOption(0, 3600),
        default=_DRAIN_SECONDS,
        metavar="SECONDS",
        help=f"for answers under way when it is asked to stop (default: {_DRAIN_SECONDS:g})",
    )
    add_log_options(parser)
    # A socket that our parent listens on.
    parser.add_argument("--fd", type=IntegerOption(0), help=argparse.SUPPRESS)
    # It ran before, so its pin was there.
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal comes; what is wrong with the set-up is one sentence and exit 1."""
    arguments = build_parser().parse_args(argv)
    try:
        return _main(arguments)
    except UpswingError as error:
        sys.stderr.write(f"upswing: {error}\n")
        return 1
    except KeyboardInterrupt:  # a second time: whoever asks twice does not wait
        return 130


def _main(arguments: argparse.Namespace) -> int:
    folder = arguments.data.expanduser().absolute() if arguments.data else None
    setup = read_setup(_setup_sources(arguments, folder), os.environ)
    check_public_address(arguments.host, setup)
    nowhere = Path(os.devnull)  # without a data directory only UPSWING_CONFIG names a file
    settings = read_settings(folder or nowhere, os.environ)
    try:
        options = LogOptions.chosen(arguments.log_format, arguments.log_file, "gateway")
        set_up_logging(make_redactor(settings), options)
    except ValueError as error:
        raise Misuse(f"A redaction rule of the config cannot be used: {error}") from None
    raise_open_file_limit()
    work = _serve(arguments, setup, settings, _spool_folder(arguments, folder))
    try:
        import uvloop  # noqa: PLC0415 - the faster event loop, where there is one
    except ImportError:
        return asyncio.run(work)
    return int(uvloop.run(work))


def _setup_sources(arguments: argparse.Namespace, folder: Path | None) -> SetupSources:
    if folder is None:
        return SetupSources(arguments.nats_url, arguments.loop_url)
    running = _read_json(folder / "running.json") if find_running_instance(folder) else {}
    return SetupSources(arguments.nats_url, arguments.loop_url, running, read_known_secrets(folder))


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        tree = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _spool_folder(arguments: argparse.Namespace, folder: Path | None) -> Path | None:
    """Where episodes wait, made so that only we can look into it; what is in it is redacted."""
    spool: Path | None = arguments.spool or (folder / "gateway-spool" if folder else None)
    if spool is None:
        log.warning(
            "no --spool and no --data: while the bus is away, episodes wait in memory",
            extra={"action": "no_spool"},
        )
        return None
    try:
        spool.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Misuse(f"{spool} cannot be used as a spool ({error.strerror}).") from None
    return spool


async def _serve(
    arguments: argparse.Namespace, setup: GatewaySetup, settings: Settings, spool: Path | None
) -> int:
    if setup.accepts_anyone:
        log.warning(
            "no key is set: everybody on this machine may send requests",
            extra={"action": "no_keys"},
        )
    admin_client = (
        AdminClient(setup.loop_url, setup.loop_key) if setup.loop_url and setup.loop_key else None
    )
    pinned_version = setup.policy.pinned_version if setup.policy.enabled else None
    if pinned_version is not None and admin_client is not None and not arguments.again:
        await _check_pin(pinned_version, admin_client)
    process = GatewayProcess(
        # Counts only rise, so that each life of a gateway has a name of its own.
        nats_url=setup.nats_url,
        instance=f"gateway-{uuid4().hex}",
        clock=_clock,
        new_id=uuid4,
        settings=settings,
        spool=spool,
        options=GatewayOptions(
            auth=GatewayAuth(
                client_keys=setup.keys,
                keys_from_loop=admin_client is not None,
                admin_token=setup.admin_token,
                backend_keys=setup.backend_keys,
            ),
            routing=RoutingOptions(
                policy=setup.policy,
                by_user=settings.gateway.sticky == "user",
                explore=settings.gateway.explore,
                fallback=settings.gateway.fallback,
            ),
            admin_client=admin_client,
            training_url=setup.loop_url,
        ),
    )
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    heartbeat = start_task(Beats().beat_from_event_loop(), name="pulse")
    for name in _SIGNALS:
        loop.add_signal_handler(name, stop.set)
    listener = None if arguments.fd is None else socket.socket(fileno=arguments.fd)
    plan_seconds = _PLAN_SECONDS if pinned_version is None or arguments.again else _PIN_SECONDS
    try:
        url = await process.start(
            arguments.host, arguments.port, listener=listener, plan_seconds=plan_seconds
        )
        if pinned_version is not None and admin_client is None and not arguments.again:
            _check_pin_in_plan(process.gateway.traffic.table, pinned_version)
        sys.stdout.write(f"{READY} {url}\n")
        sys.stdout.flush()
        failed = await _wait_for_end(stop, process.failed)
        log.info("draining", extra={"action": "draining"})
    finally:
        for name in _SIGNALS:
            loop.remove_signal_handler(name)
        await process.stop(arguments.drain)
        await cancel_all([heartbeat])
    return 1 if failed else 0


async def _check_pin(pinned_version: str, admin_client: AdminClient) -> None:
    """`Misuse` when the loop says that no such model may answer; a loop that is away is waited for a while."""
    try:
        async with asyncio.timeout(_MODELS_SECONDS):
            rows = await _wait_for_models(admin_client)
    except TimeoutError:
        log.warning(
            "the loop does not say whether there is a model %s",
            pinned_version,
            extra={"action": "pin"},
        )
        return
    check_pin(pinned_version, {str(row.get("model_id")): str(row.get("state")) for row in rows})


async def _wait_for_models(admin_client: AdminClient) -> Sequence[Mapping[str, Any]]:
    while True:
        try:
            return await admin_client.models()
        except Transient as error:
            log.info("%s", error, extra={"action": "pin"})
        await asyncio.sleep(_MODELS_RETRY_SECONDS)


def _check_pin_in_plan(table: RoutingTable | None, pinned_version: str) -> None:
    """Without a loop to ask, the plan says which models there are."""
    if table is not None and table.alert:
        names = dict.fromkeys(table.plan.withdrawn, "withdrawn")
        check_pin(
            pinned_version, names | {each.model_id: "deployed" for each in table.plan.models()}
        )


async def _wait_for_end(stop: asyncio.Event, failed: asyncio.Event) -> bool:
    """Wait for a signal, or until a part of it is dead; whether a part is dead."""
    waits = [start_task(stop.wait()), start_task(failed.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_all(waits)
    return failed.is_set()


if __name__ == "__main__":
    sys.exit(main())
