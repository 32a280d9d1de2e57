"""A gateway as a process: what it is told, where it listens, and how it ends.

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

from upswing.adapters.clock import SteadyClock
from upswing.adapters.desk import HttpDesk
from upswing.adapters.options import PORT, Number, Whole
from upswing.config import Settings, read_settings
from upswing.errors import Misuse, Transient, UpswingError
from upswing.gateway.allowance import check_pin
from upswing.gateway.route import Table
from upswing.gateway.setup import Setup, Told, check_address, read_setup
from upswing.gateway.worker import redactor_of
from upswing.gateway_runtime import GatewayProcess
from upswing.http1.port import raise_open_files
from upswing.logs import set_up_logging
from upswing.pulse import Beats
from upswing.running import known_secrets, read_running
from upswing.together import begin, end

log = logging.getLogger(__name__)
READY = "Upswing's gateway answers at"
"""How the line begins that says so, on standard output."""
_DRAIN_SECONDS = 30.0
_PLAN_SECONDS = 5.0
"""For the traffic plan; then requests are answered, if only with the word that there is none."""
_PIN_SECONDS = 30.0
"""For a model that this gateway is pinned to, which a server may have to load first."""
_ASK_SECONDS, _AGAIN_SECONDS = 20.0, 0.5
"""For the loop's list of models, and between two questions."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


_now = SteadyClock()
"""A process of its own has a clock of its own."""


def parser() -> argparse.ArgumentParser:
    """The options of `upswing serve gateway`."""
    made = argparse.ArgumentParser(
        prog="upswing serve gateway", description="Answer agents on one OpenAI-shaped port."
    )
    made.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")  # fmt: skip
    made.add_argument("--port", type=PORT, default=3000, help="0 for any free one (default: 3000)")
    made.add_argument(
        "--data", type=Path, metavar="DIR",
        help="the data directory of a loop: its bus, keys, redaction rules and spool",
    )  # fmt: skip
    made.add_argument("--nats-url", metavar="URL", help="the bus (else $NATS_URL, else --data's)")
    made.add_argument(
        "--loop-url", metavar="URL", help="the loop (else $AGENTGYM_RL_URL, else --data's)"
    )
    made.add_argument(
        "--spool", type=Path, metavar="DIR",
        help="where episodes wait while the bus is away (default: in --data; without, in memory)",
    )  # fmt: skip
    made.add_argument(
        "--drain", type=Number(0, 3600), default=_DRAIN_SECONDS, metavar="SECONDS",
        help=f"for answers under way when it is told to end (default: {_DRAIN_SECONDS:g})",
    )  # fmt: skip
    made.add_argument(
        "--fd", type=Whole(0), help=argparse.SUPPRESS
    )  # a socket that our parent listens on
    made.add_argument(
        "--again", action="store_true", help=argparse.SUPPRESS
    )  # it ran before, so its pin was there
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal comes; what is wrong with the set-up is one sentence and exit 1."""
    arguments = parser().parse_args(argv)
    try:
        return _main(arguments)
    except UpswingError as error:
        sys.stderr.write(f"upswing: {error}\n")
        return 1
    except KeyboardInterrupt:  # a second time: whoever asks twice does not wait
        return 130


def _main(arguments: argparse.Namespace) -> int:
    folder = arguments.data.expanduser().absolute() if arguments.data else None
    setup = read_setup(_told(arguments, folder), os.environ)
    check_address(arguments.host, setup)
    nowhere = Path(os.devnull)  # without a data directory only UPSWING_CONFIG names a file
    settings = read_settings(folder or nowhere, os.environ)
    try:
        set_up_logging(redactor_of(settings))
    except ValueError as error:
        raise Misuse(f"A redaction rule of the config cannot be used: {error}") from None
    raise_open_files()
    work = _serve(arguments, setup, settings, _spool(arguments, folder))
    try:
        import uvloop  # noqa: PLC0415 - the faster event loop, where there is one
    except ImportError:
        return asyncio.run(work)
    return int(uvloop.run(work))


def _told(arguments: argparse.Namespace, folder: Path | None) -> Told:
    if folder is None:
        return Told(arguments.nats_url, arguments.loop_url)
    running = _read(folder / "running.json") if read_running(folder) else {}
    return Told(arguments.nats_url, arguments.loop_url, running, known_secrets(folder))


def _read(path: Path) -> Mapping[str, Any]:
    try:
        tree = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _spool(arguments: argparse.Namespace, folder: Path | None) -> Path | None:
    """Where episodes wait, made so that only we can look into it; what is in it is redacted."""
    place: Path | None = arguments.spool or (folder / "gateway-spool" if folder else None)
    if place is None:
        log.warning(
            "no --spool and no --data: while the bus is away, episodes wait in memory",
            extra={"action": "no_spool"},
        )
        return None
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Misuse(f"{place} cannot be used as a spool ({error.strerror}).") from None
    return place


async def _serve(
    arguments: argparse.Namespace, setup: Setup, settings: Settings, spool: Path | None
) -> int:
    if setup.is_open:
        log.warning("no key is set: everybody on this machine may ask", extra={"action": "no_keys"})
    desk = HttpDesk(setup.loop_url, setup.loop_key) if setup.loop_url and setup.loop_key else None
    version = setup.allowance.version if setup.allowance.enabled else None
    if version is not None and desk is not None and not arguments.again:
        await _check_pin(version, desk)
    process = GatewayProcess(
        # Counts only rise, so that each life of a gateway has a name of its own.
        nats_url=setup.nats_url, instance=f"gateway-{uuid4().hex}", clock=_now, new_id=uuid4,
        settings=settings, spool=spool, allowance=setup.allowance,
        keys=setup.keys, admin_token=setup.admin_token, backend_keys=setup.backend_keys,
        desk=desk, key_ring=desk, training_url=setup.loop_url, explore=settings.gateway.explore,
        by_user=settings.gateway.sticky == "user",
        fallback=settings.gateway.fallback,
    )  # fmt: skip
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    beating = begin(Beats().from_loop(), name="pulse")
    for name in _SIGNALS:
        loop.add_signal_handler(name, stop.set)
    listener = None if arguments.fd is None else socket.socket(fileno=arguments.fd)
    try:
        url = await process.start(
            arguments.host, arguments.port, listener=listener,
            plan_seconds=_PLAN_SECONDS if version is None or arguments.again else _PIN_SECONDS,
        )  # fmt: skip
        if version is not None and desk is None and not arguments.again:
            _check_plan(process.gateway.traffic.table, version)
        sys.stdout.write(f"{READY} {url}\n")
        sys.stdout.flush()
        broken = await _ended(stop, process.failed)
        log.info("draining", extra={"action": "draining"})
    finally:
        for name in _SIGNALS:
            loop.remove_signal_handler(name)
        await process.stop(arguments.drain)
        await end([beating])
    return 1 if broken else 0


async def _check_pin(version: str, desk: HttpDesk) -> None:
    """`Misuse` when the loop says that no such model may answer; a loop that is away is waited for a while."""
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            rows = await _models(desk)
    except TimeoutError:
        log.warning("nobody says whether there is a model %s", version, extra={"action": "pin"})
        return
    check_pin(version, {str(row.get("model_id")): str(row.get("state")) for row in rows})


async def _models(desk: HttpDesk) -> Sequence[Mapping[str, Any]]:
    while True:
        try:
            return await desk.models()
        except Transient as error:
            log.info("%s", error, extra={"action": "pin"})
        await asyncio.sleep(_AGAIN_SECONDS)


def _check_plan(table: Table | None, version: str) -> None:
    """Without a loop to ask, the plan says which models there are."""
    if table is not None and table.missing:
        names = dict.fromkeys(table.plan.withdrawn, "withdrawn")
        check_pin(version, names | {each.model_id: "deployed" for each in table.plan.models()})


async def _ended(stop: asyncio.Event, failed: asyncio.Event) -> bool:
    """Wait until it is told to end, or a part of it is dead; which of them."""
    waits = [begin(stop.wait()), begin(failed.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(waits)
    return failed.is_set()


if __name__ == "__main__":
    sys.exit(main())
