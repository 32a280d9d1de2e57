"""One part of the loop in a process of its own: a gateway, or a model server.

Each part reads its own options, so that a process manager and `upswing up` start the same program.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

PARTS = {"gateway": "upswing.gateway_server", "model": "upswing.model_server"}


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The command's place among the others."""
    about = "Run one part of the loop in a process of its own."
    serve = command("serve", "serving:serve", about, json=False)
    serve.add_argument("part", choices=tuple(PARTS), help="which")
    serve.add_argument(
        "options", nargs=argparse.REMAINDER, help="its own; `upswing serve PART --help` lists them"
    )


def serve(arguments: argparse.Namespace) -> int:
    """Run it until a signal comes; a gateway beside a loop is told where the loop's data lie."""
    main: Callable[[Sequence[str]], int] = import_module(PARTS[arguments.part]).main
    beside = arguments.part == "gateway" and arguments.data.is_dir()
    return main([*(("--data", str(arguments.data)) if beside else ()), *arguments.options])
