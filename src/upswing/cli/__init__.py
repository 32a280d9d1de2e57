"""What can a person type? `upswing COMMAND`; every command is one function that prints and returns.

Nothing heavy is imported here: `upswing --help` answers before a stage could be loaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from upswing import __version__
from upswing.errors import UpswingError

_DATA = "the data directory (default: $UPSWING_DATA, else ./upswing-data)"


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--data", metavar="DIR", default=argparse.SUPPRESS, help=_DATA)
    everywhere.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks"
    )
    listing = argparse.ArgumentParser(add_help=False)
    listing.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON"
    )

    top = argparse.ArgumentParser(
        prog="upswing", parents=[everywhere],
        description="Makes LLM agents better while they work, and never ships a worse one.",
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"upswing {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(
        name: str, run: str, about: str, *parents: argparse.ArgumentParser
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=about, description=about, parents=[everywhere, *parents]
        )
        sub.set_defaults(run=run)
        return sub

    up = command("up", "loop:up", "Run the loop in the foreground.")
    up.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    up.add_argument(
        "--port", type=_port, default=8100, help="HTTP port, 0 for any free one (default: 8100)"
    )
    up.add_argument(
        "--gateway-port",
        type=_port,
        default=3000,
        help="the model gateway's port, 0 for any (default: 3000); this version has no gateway yet",
    )
    up.add_argument(
        "--nats-port",
        type=_port,
        default=0,
        help="port of the embedded bus (default: any free one)",
    )
    command("info", "loop:info", "Say how to reach the running loop.", listing)
    command("status", "loop:status", "Count what the loop has.", listing)
    command("doctor", "doctor:doctor", "Check a set-up and say what to do.", listing)
    command(
        "demo",
        "loop:demo",
        "Record 200 trajectories through all three doors and show what was stored.",
    )

    importing = command(
        "import", "data:import_files", "Read trajectories from JSON lines files.", listing
    )
    importing.add_argument("files", nargs="+", metavar="FILE", help="`-` reads standard input")
    export = command("export", "data:export", "Write stored trajectories as JSON lines.")
    export.add_argument(
        "--layout",
        choices=("contract", "table"),
        default="contract",
        help="trajectory.v1, or rows with stepsJson",
    )
    export.add_argument(
        "--after",
        type=int,
        default=0,
        metavar="SEQ",
        help="only those stored after this sequence number",
    )
    redact = command(
        "redact", "data:redact", "Filter standard input: private values become placeholders."
    )
    redact.add_argument(
        "--explain", action="store_true", help="say on standard error what was found"
    )

    dead = command(
        "dead", "data:dead", "List, show and replay messages that could not be taken.", listing
    )
    dead.add_argument("action", nargs="?", choices=("list", "show", "replay"), default="list")
    dead.add_argument("id", nargs="?", help="the dead letter to show or replay")
    dead.add_argument("--reason", help="only those with this reason")
    dead.add_argument("--limit", type=int, default=100)

    keys = command("keys", "access:keys", "List, make and revoke API keys.", listing)
    keys.add_argument("action", nargs="?", choices=("list", "add", "revoke"), default="list")
    keys.add_argument("name", nargs="?", help="the name of a new key, or the id of one to revoke")
    keys.add_argument("--scope", choices=("agent", "operator", "reader"), default="agent")
    for name, about in (
        ("optout", "Stop recording a user."),
        ("optin", "Record a user again."),
        ("erase", "Erase everything of a user."),
    ):
        command(name, f"access:{name}", about, listing).add_argument("user")
    nats = command(
        "nats-config",
        "access:nats_config",
        "Print a nats-server configuration with one user per role.",
    )
    nats.add_argument("--listen", default="127.0.0.1:4222")
    nats.add_argument("--store-dir", default="/var/lib/nats")
    return top


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError
    return port


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; what goes wrong becomes one sentence and a non-zero exit."""
    arguments = parser().parse_args(argv)
    arguments.data = (
        Path(getattr(arguments, "data", None) or os.environ.get("UPSWING_DATA") or "upswing-data")
        .expanduser()
        .absolute()
    )
    arguments.json = getattr(arguments, "json", False)
    debug = getattr(arguments, "debug", False)
    module, _, name = arguments.run.partition(":")
    try:
        run: Callable[[argparse.Namespace], int] = getattr(
            import_module(f"upswing.cli.{module}"), name
        )
        return run(arguments)
    except UpswingError as error:
        if debug:
            raise
        print(f"upswing: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if debug:
            raise
        print(
            f"upswing: {error.strerror or error}: {error.filename or arguments.data}. Mend that and try again.",
            file=sys.stderr,
        )
        return 1
