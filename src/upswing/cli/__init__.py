"""What can a person type? `upswing COMMAND`; every command is one function that prints and returns.

Nothing heavy is imported here: `upswing --help` answers before a stage could be loaded.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import select
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from upswing import __version__
from upswing.cli import (
    agent_zero,
    agents,
    alerts,
    analysis,
    audit,
    demo,
    deployment,
    mcp,
    ops,
    reports,
    serving,
    validation,
    worlds,
)
from upswing.cli.arguments import image_path, parse_since
from upswing.cli.suggesting import Parser, unknown_variables
from upswing.errors import Reason, UpswingError
from upswing.infra.cli_options import PORT, SEED, FloatOption, IntegerOption, add_log_options
from upswing.infra.terminal import PrintableStream

_DATA = "the data directory (default: $UPSWING_DATA, else ./upswing-data; the demo's own: ./upswing-demo)"


_WARNED = ("loop:up", "demo:demo", "serving:serve", "serving:dashboard")
"""Commands that begin something long with what the environment says."""


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    everywhere = Parser(add_help=False)
    everywhere.add_argument("--data", metavar="DIR", default=argparse.SUPPRESS, help=_DATA)
    everywhere.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show tracebacks"
    )
    top = Parser(
        prog="upswing",
        parents=[everywhere],
        description="Makes LLM agents better while they work, and never ships a worse one.",
    )
    top.add_argument("--version", action="version", version=f"upswing {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: str, about: str, *, json: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=about, parents=[everywhere])
        sub.set_defaults(run=run, parser=sub)
        if json:
            sub.add_argument(
                "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON"
            )
        return sub

    for add in (
        _loop_commands,
        _data_commands,
        _reward_commands,
        _training_commands,
        _access_commands,
        _deployment_commands,
    ):
        add(command)
    return top


Command = Callable[..., argparse.ArgumentParser]


def _loop_commands(command: Command) -> None:
    up = command("up", "loop:up", "Run the loop in the foreground.", json=False)
    _add_address_options(up)
    up.add_argument(
        "--no-gateway", action="store_true", help="record and train, but serve no models"
    )
    up.add_argument(
        "--dashboard-port",
        type=PORT,
        help="the web page's port, 0 for any (default: 8101, or any if that is taken)",
    )
    up.add_argument("--no-dashboard", action="store_true", help="run without the web page")
    up.add_argument(
        "--nats-port",
        type=PORT,
        default=0,
        help="port of the embedded bus (default: any free one)",
    )
    add_log_options(up)
    info = command("info", "loop:info", "Say how to reach the running loop.")
    info.add_argument(
        "--show-secrets",
        action="store_true",
        help="print keys too, where this is no terminal or the loop listens on a public address",
    )
    page = command(
        "dashboard",
        "serving:dashboard",
        "Show a loop in the browser, beside it or elsewhere.",
        json=False,
    )
    page.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    page.add_argument("--port", type=PORT, default=8101, help="0 for any free one (default: 8101)")
    page.add_argument(
        "--loop-url", metavar="URL", help="the loop (else $AGENTGYM_RL_URL, else --data's)"
    )
    command("status", "loop:status", "Count what the loop has stored.")
    doctor = command("doctor", "doctor:doctor", "Check a set-up and say what to do.")
    _add_address_options(doctor)
    command("repair", "repair:repair", "Rebuild a damaged store and say what is lost.")
    demo.commands(command)


def _add_address_options(of: argparse.ArgumentParser) -> None:
    of.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    of.add_argument(
        "--port", type=PORT, default=8100, help="HTTP port, 0 for any free one (default: 8100)"
    )
    of.add_argument(
        "--gateway-port",
        type=PORT,
        default=3000,
        help="the model gateway's port, 0 for any (default: 3000)",
    )


def _data_commands(command: Command) -> None:
    importing = command("import", "data:import_files", "Read trajectories from JSON lines files.")
    importing.add_argument("files", nargs="+", metavar="FILE", help="`-` reads standard input")
    export = command(
        "export", "export:export", "Write stored trajectories as JSON lines.", json=False
    )
    export.add_argument(
        "--layout",
        choices=("contract", "table", "sft", "dpo", "openai", "hf"),
        default="contract",
        help="trajectory.v1, rows with stepsJson, or what other trainers read: sft, dpo, openai, hf",
    )
    export.add_argument(
        "--after",
        type=IntegerOption(0),
        default=0,
        metavar="SEQ",
        help="only those stored after this sequence number",
    )
    about = "Filter standard input: private values become placeholders."
    redact = command("redact", "data:redact", about, json=False)
    redact.add_argument(
        "--explain", action="store_true", help="say on standard error what was found"
    )
    dead = command("dead", "data:dead", "List, show and replay messages that could not be taken.")
    dead.add_argument("action", nargs="?", choices=("list", "show", "replay"), default="list")
    dead.add_argument("id", nargs="?", help="the dead letter to show or replay")
    dead.add_argument(
        "--reason",
        choices=[*map(str, Reason)],
        metavar="REASON",
        help="only those with this reason",
    )
    dead.add_argument("--limit", type=IntegerOption(1, 1000), default=100)


def _reward_commands(command: Command) -> None:
    reward = command("reward", "rewards:reward", "Show a trajectory's reward, term by term.")
    reward.add_argument("action", choices=("show",))
    reward.add_argument("trajectory", help="the trajectory's id")
    windows = command("windows", "rewards:windows", "Show which groups can be trained on.")
    windows.add_argument("action", choices=("check",))
    windows.add_argument(
        "--min-agents",
        type=IntegerOption(1, 1000),
        metavar="N",
        help="agents a group needs in a continuous world (default: [train] min_agents)",
    )
    windows.add_argument(
        "--min-attempts",
        type=IntegerOption(2, 1000),
        metavar="N",
        help="attempts at a task a group needs (default: [train] min_attempts)",
    )
    windows.add_argument(
        "--min-windows",
        type=IntegerOption(1),
        metavar="N",
        help="ask only for so many groups (default: what the loop itself needs to train)",
    )
    windows.add_argument("--since", metavar="TIME", help="only from this window or time on")
    windows.add_argument("--rows", action="store_true", help="the most telling groups, too")
    windows.add_argument("--all", action="store_true", help="every group, too")
    judge = command(
        "judge", "rewards:judge", "List the groups that the judge scored, or have it asked again."
    )
    judge.add_argument("action", nargs="?", choices=("list", "retry"), default="list")
    about = "Tell the loop what really happened in its windows."
    outcomes = command("outcomes", "rewards:outcomes", about)
    outcomes.add_argument("action", choices=("sync",))
    outcomes.add_argument(
        "--hours", type=IntegerOption(1), default=24, help="how far back (default: 24)"
    )
    outcomes.add_argument("--file", action="append", default=[], help="outcomes in JSON lines")


def _training_commands(command: Command) -> None:
    train = command("train", "training:train", "Train a model on what is stored.")
    train.add_argument(
        "--algorithm", choices=("ppo", "dpo", "rloo", "grpo", "reinforce", "sft", "rft", "kto")
    )
    train.add_argument(
        "--dry-run", action="store_true", help="say what would be trained on and how, and stop"
    )
    train.add_argument("--base-model", metavar="NAME", help="`tiny`, `smollm2` or a folder")
    train.add_argument(
        "--samples", type=IntegerOption(1), metavar="N", help="trajectories of the data set"
    )
    train.add_argument(
        "--min-agents", type=IntegerOption(1), metavar="N", help="agents that make a group"
    )
    train.add_argument(
        "--iterations", type=IntegerOption(1), metavar="N", help="rounds, each over other groups"
    )
    train.add_argument(
        "--windows-per-iteration",
        type=IntegerOption(1),
        metavar="N",
        help="groups of one iteration",
    )
    train.add_argument("--learning-rate", type=FloatOption(0, above=True), metavar="RATE")
    train.add_argument(
        "--batch-size", type=IntegerOption(1), metavar="N", help="trajectories of one step"
    )
    train.add_argument(
        "--epochs", type=IntegerOption(1), metavar="N", help="passes over an iteration's data"
    )
    train.add_argument("--seed", type=SEED, metavar="N")
    train.add_argument(
        "--recipe",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        help="any other knob; may be repeated",
    )
    train.add_argument(
        "--force",
        action="store_true",
        help="even when there is not enough to train on, or a model is being rolled out",
    )
    train.add_argument("--wait", action="store_true", help="wait until it ends")
    jobs = command("jobs", "training:jobs", "List, show, watch and cancel training jobs.")
    jobs.add_argument(
        "action", nargs="?", choices=("list", "show", "watch", "cancel"), default="list"
    )
    jobs.add_argument("id", nargs="?", help="the job to show, watch or cancel")
    jobs.add_argument("--status", choices=("queued", "running", "completed", "failed", "cancelled"))
    jobs.add_argument(
        "--since",
        type=parse_since,
        metavar="TIME",
        help="made since 36h, yesterday or 2026-01-15, say",
    )
    jobs.add_argument("--limit", type=IntegerOption(1, 1000), default=100)
    models = command(
        "models", "training:models", "List the models that training made or that were registered."
    )
    models.add_argument(
        "--deployed-since",
        type=parse_since,
        metavar="TIME",
        help="deployed since 7d or yesterday, say",
    )
    learned = command(
        "learn-report", "learn_report:learn_report", "What was learned, cycle by cycle."
    )
    learned.add_argument(
        "--chart", type=image_path, metavar="FILE", help="draw it too, as PNG or SVG"
    )
    decisions = command("decisions", "journal:decisions", "List what the loop decided, and why.")
    decisions.add_argument(
        "--stage",
        choices=("trigger", "train", "validate", "deploy", "monitor"),
        help="only this stage's",
    )
    decisions.add_argument(
        "--since", type=parse_since, metavar="TIME", help="made since 36h or yesterday, say"
    )
    decisions.add_argument("--limit", type=IntegerOption(1, 1000), default=100)
    about = "Show a decision with its inputs, and try it again with today's rules."
    command("explain", "journal:explain", about).add_argument("id", help="the decision's id")


def _deployment_commands(command: Command) -> None:
    """These tell their options themselves; none of them imports anything heavy."""
    serving.add(command)
    validation.commands(command)
    deployment.commands(command)
    alerts.commands(command)
    reports.commands(command)
    ops.commands(command)
    analysis.commands(command)
    worlds.commands(command)
    agents.commands(command)
    audit.commands(command)
    agent_zero.commands(command)
    mcp.commands(command)


def _access_commands(command: Command) -> None:
    keys = command("keys", "access:keys", "List, make and revoke API keys.")
    keys.add_argument("action", nargs="?", choices=("list", "add", "revoke"), default="list")
    keys.add_argument("name", nargs="?", help="the name of a new key, or the id of one to revoke")
    keys.add_argument(
        "--scope",
        choices=("agent", "operator", "reader", "gateway", "assistant"),
        default="agent",
    )
    keys.add_argument(
        "--trusted", action="store_true", help="a new key that may speak for many users"
    )
    for name, about in (
        ("optout", "Stop recording a user."),
        ("optin", "Record a user again."),
        ("erase", "Erase everything of a user."),
    ):
        command(name, f"access:{name}", about).add_argument("user")
    about = "Print a nats-server configuration with one user per role."
    nats = command("nats-config", "access:nats_config", about, json=False)
    nats.add_argument("--listen", default="127.0.0.1:4222")
    nats.add_argument("--store-dir", default="/var/lib/nats")


def _is_closed_pipe(descriptor: int) -> bool:
    """Whether this is a pipe whose other end is closed: `| head` has read enough, and wants no sentence."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def _os_error_sentence(error: OSError, data: Path) -> str:
    """What the system refused, and what to do about it.

    >>> _os_error_sentence(FileExistsError(17, "File exists", "/etc/passwd"), Path("d"))
    '/etc/passwd is a file where a directory is needed: name another one with --data.'
    >>> _os_error_sentence(OSError(5, "Input/output error"), Path("d"))
    'd: Input/output error.'
    """
    named = error.filename if isinstance(error.filename, str | bytes) else None
    path = data if named is None else Path(os.fsdecode(named))
    match error:
        case FileExistsError() | NotADirectoryError():
            file = next((each for each in (path, *path.parents) if each.is_file()), path)
            return f"{file} is a file where a directory is needed: name another one with --data."
        case IsADirectoryError():
            return f"{path} is a directory where a file is needed: name a file."
        case PermissionError():
            return f"{path} may not be used by this user ({error.strerror}): change its permissions or name another path."
        case FileNotFoundError():
            return f"{path} does not exist: check the path."
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return f"There is no room left for {path}: free some space, or name another disk with --data."
        case _:
            return f"{path}: {error.strerror or error}."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; what goes wrong becomes one sentence and a non-zero exit."""
    out, errors = PrintableStream(sys.stdout), PrintableStream(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    arguments = parser().parse_args(argv)
    arguments.data = (
        Path(
            getattr(arguments, "data", None)
            or os.environ.get("UPSWING_DATA")
            or str(getattr(arguments, "default_data", "upswing-data"))
        )
        .expanduser()
        .absolute()
    )
    arguments.json = getattr(arguments, "json", False)
    if arguments.run in _WARNED:
        for line in unknown_variables(os.environ):
            print(f"upswing: {line}", file=sys.stderr)
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
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _is_closed_pipe(sys.stdout.fileno()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        if debug:
            raise
        print(f"upswing: {_os_error_sentence(error, arguments.data)}", file=sys.stderr)
        return 1
