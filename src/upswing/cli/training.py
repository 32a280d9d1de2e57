"""Train by hand, look at jobs and models, end a job."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from upswing.cli.client import ask
from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.infra.sql.database import Database

T = TypeVar("T")
_MOST_DIGITS = 100_000
"""A span at the loop's port has five digits at most."""
_HYPERPARAMETERS = ("learning_rate", "batch_size", "epochs")
_KNOBS = ("min_agents", "iterations", "windows_per_iteration", "seed")
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in (*_HYPERPARAMETERS, *_KNOBS)} | {
    "algorithm": "--algorithm",
    "base_model": "--base-model",
    "sample_size": "--samples",
}
_ABSURD = {
    "learning_rate": (0.1, "the policy will most likely forget everything; 1e-6 to 1e-2 are usual"),
    "epochs": (1000, "so many passes learn the data by heart; 1 to 30 are usual"),
    "batch_size": (100_000, "that is more than a job has; 8 to 256 are usual"),
}
"""What no job can use well: it is done as asked, with a warning."""


def train(arguments: argparse.Namespace) -> int:
    """Ask the loop for a job; with --wait, see it through."""
    for line in warnings(arguments):
        print(f"upswing: {line}", file=sys.stderr)
    if arguments.dry_run:
        return _dry_run(arguments)
    path = "/training/start" + ("" if arguments.force else "?only_if_ready=true")
    try:
        started = ask(arguments.data, "POST", path, training_request(arguments), _OPTIONS)
    except Misuse as error:
        if str(error).startswith("Not ready"):
            raise Misuse(f"{error} `--force` trains anyway.") from None
        raise
    if arguments.json:
        print(json.dumps(started), flush=True)
    else:
        print(f"{started['training_job_id']}: {started['status']}. {started['detail']}", flush=True)
    if not arguments.wait:
        return 0
    from upswing.cli.watching import watch

    return watch(arguments, started["training_job_id"])


def _dry_run(arguments: argparse.Namespace) -> int:
    """What a job would do, and with what; nothing is trained."""
    from upswing.contracts.typed import from_tree
    from upswing.train.core.plan import TrainingPlan, plan_lines

    found = ask(arguments.data, "POST", "/training/plan", training_request(arguments), _OPTIONS)
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(plan_lines(from_tree(found, TrainingPlan))))
    return 0


def warnings(arguments: argparse.Namespace) -> list[str]:
    """What was asked for and can hardly be meant."""
    return [
        f"{_OPTIONS[name]} {value:g} is taken as asked, but {why}."
        for name, (most, why) in _ABSURD.items()
        if (value := getattr(arguments, name)) is not None and value > most
    ]


def training_request(arguments: argparse.Namespace) -> dict[str, Any]:
    """The request that the options make; what they leave out is the loop's to fill in."""
    config: dict[str, Any] = {
        name: value
        for name in ("algorithm", "base_model")
        if (value := getattr(arguments, name)) is not None
    }
    if arguments.samples is not None:
        config["dataset"] = {"source": "local", "sample_size": arguments.samples}
    config["hyperparameters"] = _given_options(arguments, _HYPERPARAMETERS)
    knobs = _given_options(arguments, _KNOBS) | dict(map(_knob, arguments.recipe))
    if arguments.force:
        knobs.setdefault("min_agents", 1)
    return {
        "training_config": config,
        "priority": "high",
        "requester": "upswing train",
        "metadata": {"recipe": knobs},
    }


def _given_options(arguments: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def _knob(text: str) -> tuple[str, Any]:
    """`clip_high=0.28` or `lora={"rank": 8}`: JSON where it is JSON, else text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misuse(f"--recipe takes NAME=VALUE, not {text!r}.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def jobs(arguments: argparse.Namespace) -> int:
    """List, show, watch or cancel jobs."""
    if arguments.action == "list":
        return _print_jobs(arguments)
    if not arguments.id:
        raise Misuse(f"Say which: `upswing jobs {arguments.action} ID`; `upswing jobs` lists them.")
    if arguments.action == "watch":
        from upswing.cli.watching import watch

        return watch(arguments, arguments.id)
    if arguments.action == "show":
        return _show_job(arguments)
    done = ask(arguments.data, "POST", f"/training/{quote(arguments.id, safe='')}/cancel")
    status = "is to end; its worker ends it" if done["cancelling"] else f"is {done['status']}"
    print(json.dumps(done) if arguments.json else f"{arguments.id} {status}.")
    return 0


def _print_jobs(arguments: argparse.Namespace) -> int:
    found = list_jobs(arguments)
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for job in found:
        done = job["latest"].get("progress", {}).get("percent_complete")
        far = f"{done:5.1f} %" if done is not None else "       "
        print(
            f"{job['training_job_id']:<44} {job['status']:<10}{far}  {job['created'][:19]}  "
            f"{job['algorithm']:<9} {printable(job['base_model']):<12} {job['trigger_reason']}"
        )
    if not found:
        print("No jobs.")
    return 0


def list_jobs(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Jobs as the loop shows them: from its port when AGENTGYM_RL_URL names one, else the store."""
    from upswing.api.training_types import job_info

    since = arguments.since
    if is_remote_loop():
        query = {"status": arguments.status, "since": _span_text(since), "limit": arguments.limit}
        text = urlencode({name: value for name, value in query.items() if value is not None})
        found: list[dict[str, Any]] = ask(arguments.data, "GET", f"/jobs?{text}")["jobs"]
        return found
    import msgspec

    from upswing.train.jobs.repository import JobRepository

    rows = read_store(
        arguments.data, lambda db: JobRepository(db).list(arguments.status, since, arguments.limit)
    )
    return [msgspec.to_builtins(job_info(job)) for job in rows]


def _show_job(arguments: argparse.Namespace) -> int:
    """Everything about one job: what was asked, with what recipe, what failed, how it stands."""
    if is_remote_loop():
        status = ask(arguments.data, "GET", f"/training/{quote(arguments.id, safe='')}/status")
        print(json.dumps(status, indent=2))
        return 0
    import msgspec

    from upswing.api.training_types import job_info
    from upswing.train.jobs.repository import JobRepository

    job = read_store(arguments.data, lambda db: JobRepository(db).get(arguments.id))
    if job is None:
        raise Misuse(f"There is no job {arguments.id}; `upswing jobs` lists them.")
    view = msgspec.to_builtins(job_info(job)) | {
        "snapshot": job.snapshot,
        "covers_seq": job.covers_seq,
        "request": msgspec.to_builtins(job.request),
        "recipe": json.loads(job.recipe),
        "failures": json.loads(job.failures),
    }
    if arguments.json:
        print(json.dumps(view, indent=2))
        return 0
    for name, value in view.items():
        text = json.dumps(value, indent=2) if isinstance(value, dict | list) else str(value)
        print(f"{name:16}{text.replace(chr(10), chr(10) + ' ' * 16)}")
    return 0


def models(arguments: argparse.Namespace) -> int:
    """The models that training made, and those that were registered."""
    import msgspec

    from upswing.deploy.core.next_step import next_step
    from upswing.deploy.core.states import ModelState
    from upswing.infra.sql.models import Models

    since = arguments.deployed_since
    if is_remote_loop():
        query = f"?{urlencode({'deployed_since': _span_text(since)})}" if since else ""
        found = ask(arguments.data, "GET", f"/models{query}")["models"]
    else:
        rows = read_store(arguments.data, lambda db: Models(db).list(since))
        found = [msgspec.to_builtins(row) for row in rows]
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for model in found:
        reward = "–" if model["final_reward"] is None else f"{model['final_reward']:.3f}"
        print(
            f"{model['model_id']:<22} {model['state']:<10} held-out reward {reward:<5}  {model['samples']:>6} samples  "
            f"{model['created'][:19]}  {printable(model['base_model'])}  {model['job_id']}"
        )
        if model["state"] == ModelState.UNDECIDED:
            print(f"    {printable(next_step(model['model_id'], ModelState.UNDECIDED))}")
    if not found:
        print("No models.")
    return 0


def is_remote_loop() -> bool:
    """Whether the environment names a loop that may be on another machine."""
    return bool(os.environ.get("AGENTGYM_RL_URL"))


def read_store(folder: Path, what: Callable[[Database], Awaitable[T]]) -> T:
    """Ask the store itself, so that it works when the loop does not run."""
    from upswing.config import read_surroundings
    from upswing.infra.sql.store import open_store_read_only

    async def run() -> Any:
        store = open_store_read_only(folder, read_surroundings(os.environ).database_url)
        try:
            return await what(store.database)
        finally:
            store.close()

    import asyncio

    found: T = asyncio.run(run())
    return found


def _span_text(since: datetime | None) -> str | None:
    """How far back that is, as the loop's port takes it."""
    if since is None:
        return None
    minutes = math.ceil((time_ago(timedelta()) - since) / timedelta(minutes=1))
    return f"{minutes}m" if minutes < _MOST_DIGITS else f"{math.ceil(minutes / 1440)}d"


def time_ago(back: timedelta) -> datetime:
    """So long before now."""
    return datetime.now(UTC) - back  # noqa: TID251 - a person's "since 7d" means their now


def printable(text: str) -> str:
    """Without what would make a terminal do something."""
    return "".join(char if char.isprintable() else " " for char in text)
