"""How does a job go, while one looks on? A moving picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from upswing.cli.client import ask
from upswing.cli.training import is_remote_loop, printable, read_store
from upswing.errors import Misuse

if TYPE_CHECKING:
    from rich.console import RenderableType

_POLL_SECONDS = 0.5
_ENDED = ("completed", "failed", "cancelled")
Status = dict[str, Any]


def watch(arguments: argparse.Namespace, job_id: str) -> int:
    """Look on until the job ends; 0 when it was completed."""
    if arguments.json:
        status = _watch_as_json(arguments, job_id)
    elif sys.stdout.isatty():
        status = _watch_live(arguments, job_id)
    else:
        status = _watch_as_lines(arguments, job_id)
    if not arguments.json:
        for line in result_lines(status):
            print(line)
    return 0 if status["status"] == "completed" else 1


def poll_status(arguments: argparse.Namespace, job_id: str) -> Iterator[Status]:
    """The newest status, again and again, until it is the last."""
    while True:
        status = _newest_status(arguments, job_id)
        yield status
        if status["status"] in _ENDED:
            return
        _require_running_loop(arguments)
        time.sleep(_POLL_SECONDS)


def _newest_status(arguments: argparse.Namespace, job_id: str) -> Status:
    if is_remote_loop():
        found: Status = ask(arguments.data, "GET", f"/training/{quote(job_id, safe='')}/status")
        return found
    import msgspec

    from upswing.train.jobs.repository import JobRepository

    job = read_store(arguments.data, lambda db: JobRepository(db).get(job_id))
    if job is None:
        raise Misuse(f"There is no job {job_id}; `upswing jobs` lists them.")
    view: Status = msgspec.to_builtins(job.status)
    return view


def _require_running_loop(arguments: argparse.Namespace) -> None:
    """Nothing happens to a job when no loop runs, unless the store is shared."""
    from upswing.infra.instance import find_running_instance

    if is_remote_loop() or os.environ.get("DATABASE_URL") or find_running_instance(arguments.data):
        return
    raise Misuse(
        f"No loop runs in {arguments.data}, so the job waits: start it with `upswing up --data {arguments.data}`."
    )


def _watch_as_json(arguments: argparse.Namespace, job_id: str) -> Status:
    last: Status = {}
    for status in poll_status(arguments, job_id):
        if status != last:
            print(json.dumps(status), flush=True)
            last = status
    return last


def _watch_as_lines(arguments: argparse.Namespace, job_id: str) -> Status:
    last, shown = {}, ""
    for status in poll_status(arguments, job_id):
        line = " ".join(f"{name} {value}".strip() for name, value in status_figures(status).items())
        if line != shown:
            print(f"{status['timestamp'][11:19]} {line}", flush=True)
        last, shown = status, line
    return last


def _watch_live(arguments: argparse.Namespace, job_id: str) -> Status:
    from rich.console import Console
    from rich.live import Live

    from upswing.infra.terminal import printable_tree, unwrapped_stdout

    last: Status = {}
    with Live(console=Console(file=unwrapped_stdout()), refresh_per_second=4) as live:
        for status in poll_status(arguments, job_id):
            live.update(status_panel(printable_tree(status)))
            last = status
    return last


def status_figures(status: Status) -> dict[str, str]:
    """What is known so far, in the order in which one asks for it."""
    progress, metrics = status.get("progress", {}), status.get("metrics", {}).get("current", {})
    known: dict[str, str] = {status["status"]: _activity(status)}
    if "current_step" in progress:
        known["step"] = f"{progress['current_step']}/{progress['total_steps']}"
        known["epoch"] = f"{progress['current_epoch']}/{progress['total_epochs']}"
    for name, key in (
        ("loss", "loss"),
        ("reward", "reward_mean"),
        ("KL", "kl_divergence"),
        ("entropy", "policy_entropy"),
    ):
        if key in metrics:
            known[name] = f"{metrics[key]:.4f}"
    tokens = status.get("metadata", {}).get("trained_tokens")
    if tokens is not None:
        known["tokens"] = f"{tokens:,}"
    if "eta_seconds" in progress and status["status"] == "running":
        known["ETA"] = str(timedelta(seconds=round(progress["eta_seconds"])))
    return known


def _activity(status: Status) -> str:
    about = status.get("metadata", {})
    note = about.get("recovery") or about.get("note") or about.get("doing") or ""
    return (
        f"({printable(str(note)).rstrip('.')})"
        if note and status["status"] in {"queued", "running"}
        else ""
    )


def status_panel(status: Status) -> RenderableType:
    """The job's name, a bar, and its numbers below."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    done = status.get("progress", {}).get("percent_complete", 0.0)
    shown = status_figures(status)
    state = status["status"]
    head = Text.assemble(
        (status["training_job_id"], "bold"), "  ", (state, _COLOURS[state]), f"  {shown.pop(state)}"
    )
    waits = state == "queued" or (state == "running" and "progress" not in status)
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=100, completed=done, width=40, pulse=waits), f"{done:.1f} %")
    numbers = [Text.assemble((name, "dim"), " ", value) for name, value in shown.items()]
    return Group(head, bar, Columns(numbers, padding=(0, 3)))


_COLOURS = {
    "queued": "yellow",
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "cancelled": "magenta",
}


def _policy_change_lines(status: Status) -> list[str]:
    """How far the policy moved and what that brought, once the job is over."""
    if status["status"] != "completed":
        return []
    from upswing.train.core.policy_change import policy_change

    found = policy_change("", status.get("metadata", {}))
    return [f"{name} {printable(figures)}" for name, figures in found.lines() if name != "held out"]


def result_lines(status: Status) -> list[str]:
    """What is left to say at the end."""
    lines = [f"{status['training_job_id']} is {status['status']}."]
    if error := status.get("error"):
        lines.append(f"{error.get('code', '')} {printable(error.get('message', ''))}".strip())
    results = status.get("evaluation_results", {})
    if "holdout_reward" in results:
        gain = results.get("improvement_over_baseline")
        change = f" ({gain:+.3f} over the start)" if gain is not None else ""
        lines.append(f"held-out reward {results['holdout_reward']:.3f}{change}")
    lines += _policy_change_lines(status)
    if model := status.get("metadata", {}).get("model_id"):
        lines.append(f"model {printable(model)}")
    lines += [
        f"{name.replace('_', ' ')} {printable(path)}"
        for name, path in status.get("artifacts", {}).items()
    ]
    return lines
