"""One part of the loop in a process of its own: a gateway, a model server, or the web page.

Each part reads its own options, so that a process manager and `upswing up` start the same program.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

PARTS = {"gateway": "upswing.gateway.main", "model": "upswing.serve.main"}


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The command's place among the others."""
    about = "Run one part of the loop in a process of its own."
    serve = command("serve", "serving:serve", about, json=False)
    serve.add_argument("part", choices=tuple(PARTS), help="which")
    serve.add_argument(
        "options", nargs=argparse.REMAINDER, help="its own; `upswing serve PART --help` lists them"
    )


def serve(arguments: argparse.Namespace, load: Callable[[str], Any] = import_module) -> int:
    """Run it until a signal comes; a gateway beside a loop is told where the loop's data lie."""
    main: Callable[[Sequence[str]], int] = load(PARTS[arguments.part]).main
    beside = arguments.part == "gateway" and arguments.data.is_dir()
    return main([*(("--data", str(arguments.data)) if beside else ()), *arguments.options])


def dashboard(arguments: argparse.Namespace, load: Callable[[str], Any] = import_module) -> int:
    """Run the web page until a signal comes; whoever opens it logs in with a key of the loop."""
    main: Callable[[Sequence[str]], int] = load("upswing.dashboard.main").main
    options = ["--host", arguments.host, "--port", str(arguments.port)]
    if arguments.loop_url:
        options += ["--loop-url", arguments.loop_url]
    if arguments.data.is_dir():
        options += ["--data", str(arguments.data)]
    return main(options)
