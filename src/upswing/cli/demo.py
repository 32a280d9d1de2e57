"""See it work: the whole loop in one command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.errors import Misuse
from upswing.infra.cli_options import SEED, IntegerOption, add_log_options

if TYPE_CHECKING:
    from upswing.demo.summary import Summary
    from upswing.infra.instance import InstanceInfo

FOLDER = "upswing-demo"
Command = Callable[..., argparse.ArgumentParser]


def commands(command: Command) -> None:
    """The options."""
    about = "Run the whole loop with test agents and show it: they get better, and a bad model is rolled back."
    demo = command("demo", "demo:demo", about, json=False)
    demo.set_defaults(default_data=FOLDER)
    demo.add_argument("--model", choices=("tiny", "smollm2"), help="who learns (default: tiny)")
    demo.add_argument("--seed", type=SEED, metavar="N", help="of tasks and chance (default: 0)")
    demo.add_argument(
        "--cycles",
        type=IntegerOption(1, 100),
        default=2,
        metavar="N",
        help="how often it trains before the sabotage (default: 2)",
    )
    demo.add_argument("--summary", type=Path, metavar="FILE", help="write the result as JSON")
    demo.add_argument(
        "--strict",
        action="store_true",
        help="end non-zero when training did not help or the bad model was not rolled back",
    )
    add_log_options(demo, "demo/log.txt in the data directory")
    demo.add_argument("--keep", action="store_true", help="leave the loop running at the end")


def demo(arguments: argparse.Namespace) -> int:
    """0 when it was seen through, 130 when it was stopped."""
    from upswing.cli.loop import run_async

    _require_extras()
    from upswing.demo.plan import load_plan
    from upswing.demo.runner import Demo
    from upswing.demo.screen import make_output
    from upswing.infra.terminal import unwrapped_stdout
    from upswing.logs import LogOptions

    plan = load_plan(arguments.data, arguments.model, arguments.seed)
    _check_writable(arguments.summary)
    log_options = LogOptions.chosen(arguments.log_format, arguments.log_file, "main")
    story = Demo(arguments.data, plan, arguments.cycles, log_options)
    with make_output(unwrapped_stdout()) as shows:

        def ended(running: InstanceInfo, summary: Summary) -> None:
            shows.close()
            _print_result(arguments, summary)
            if arguments.keep:
                _print_staying(running)

        summary = run_async(story.run(shows.show, ended, stay=arguments.keep))
    if summary is None:
        print(f"Stopped. `upswing demo --data {arguments.data}` goes on.")
        return 130
    good = summary.improved and summary.taken_back_seconds is not None
    return 0 if good or not arguments.strict else 1


def _print_result(arguments: argparse.Namespace, summary: Summary) -> None:
    from upswing.demo.lines import result_lines
    from upswing.demo.report import write_report

    write_report(arguments.data / "demo", summary)
    print(
        "",
        *result_lines(summary),
        "",
        f"Go on with `upswing up --data {arguments.data}`.",
        sep="\n",
    )
    if arguments.summary:
        text = (arguments.data / "demo" / "summary.json").read_bytes()
        arguments.summary.write_bytes(text)


def _print_staying(running: InstanceInfo) -> None:
    from upswing.cli.loop import connection_help

    print(f"\nThe loop stays up at {running.http_url}; Ctrl-C stops it.")
    if running.dashboard_url:
        print(
            f"See it at {running.dashboard_url}; log in with the key of `upswing info --show-secrets`."
        )
    print(connection_help(running), flush=True)


def _require_extras() -> None:
    """The demo trains and serves, and its agents speak through a client."""
    from importlib.util import find_spec

    missing = [name for name in ("torch", "openai") if find_spec(name) is None]
    if missing:
        raise Misuse(f"The demo needs {' and '.join(missing)}: pip install '.[train,agents]'.")


def _check_writable(path: Path | None) -> None:
    """Found out before some minutes have passed."""
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise Misuse(f"The summary cannot be written to {path}.")
