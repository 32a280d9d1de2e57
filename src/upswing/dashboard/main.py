"""The page as a process: where it listens, which loop it shows, and how it ends.

`upswing dashboard` runs this, and so does `upswing up`. It holds nothing that would have to be saved: who is logged in
logs in again after a restart.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

from upswing.config import DashboardConfig, read_settings
from upswing.dashboard.core.origin import LOOPBACK, OwnHosts
from upswing.errors import Misuse, UpswingError
from upswing.infra.cli_options import PORT, IntegerOption
from upswing.infra.heartbeat import Beats
from upswing.infra.http import check_url
from upswing.infra.instance import read_instance
from upswing.infra.sockets import bind_port
from upswing.infra.tasks import cancel_all, start_task

READY = "Upswing's page is at"
"""How the line begins that says so, on standard output."""
DEFAULT_PORT = 8101
_CLOSING_SECONDS = 2
"""For answers under way; open pages connect again to the next process."""
_BACKLOG = 512


def build_parser() -> argparse.ArgumentParser:
    """The options of `upswing dashboard`."""
    parser = argparse.ArgumentParser(
        prog="upswing dashboard", description="Show a loop in the browser, and run it from there."
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port",
        type=PORT,
        default=DEFAULT_PORT,
        help=f"0 for any free one (default: {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--loop-url", metavar="URL", help="the loop (else $AGENTGYM_RL_URL, else --data's)"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the data directory of a loop")
    # A socket that our parent listens on.
    parser.add_argument("--fd", type=IntegerOption(0), help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run until a signal comes; what is wrong with the set-up is one sentence and exit 1."""
    arguments = build_parser().parse_args(argv)
    try:
        require_nicegui()
        url = _loop_url(arguments)
        settings = read_settings(arguments.data or Path(os.devnull), os.environ)
        listener = _listen(arguments)
        _set_up_logging()
        asyncio.run(_serve(listener, arguments.host, url, settings.dashboard))
    except UpswingError as error:
        sys.stderr.write(f"upswing: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def is_installed() -> bool:
    return find_spec("nicegui") is not None


def require_nicegui() -> None:
    if not is_installed():
        raise Misuse(
            "The page needs the extra `dashboard`: pip install '.[dashboard]' in Upswing's folder."
        )


def _loop_url(arguments: argparse.Namespace) -> str:
    url = arguments.loop_url or os.environ.get("AGENTGYM_RL_URL")
    if url is None and arguments.data is not None and (running := read_instance(arguments.data)):
        url = running.http_url
    if url is None:
        raise Misuse("Which loop? Give its address with --loop-url, or its directory with --data.")
    check_url(url)
    return str(url).rstrip("/")


def _listen(arguments: argparse.Namespace) -> socket.socket:
    if arguments.fd is not None:
        return socket.socket(fileno=arguments.fd)
    listener = bind_port(arguments.host, arguments.port)
    listener.listen(_BACKLOG)
    return listener


def _set_up_logging() -> None:
    """What is logged names keys by their ids and paths by their templates: nothing of it is private."""
    logging.basicConfig(
        format="%(asctime)s %(levelname)-7s %(name)s %(message)s", level=logging.INFO, force=True
    )
    for chatty in ("httpx", "uvicorn.access", "uvicorn.error", "nicegui"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


async def _serve(listener: socket.socket, host: str, url: str, config: DashboardConfig) -> None:
    import uvicorn  # noqa: PLC0415 - as the next

    from upswing.dashboard.application import make_application  # noqa: PLC0415 - it is heavy

    port = listener.getsockname()[1]
    hosts = OwnHosts("127.0.0.1" if host in LOOPBACK else host, config.hosts)
    app = make_application(url, hosts, port, config, clock=monotonic)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="wsproto",
            timeout_graceful_shutdown=_CLOSING_SECONDS,
        )
    )
    beats = start_task(Beats().beat_from_event_loop(), name="pulse")
    serving = start_task(server.serve(sockets=[listener]), name="page")
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        if server.started:
            shown = f"[{host}]" if ":" in host else host
            sys.stdout.write(f"{READY} http://{shown}:{port}\n")
            sys.stdout.flush()
        await serving
    finally:
        await cancel_all([beats])


if __name__ == "__main__":
    sys.exit(main())
