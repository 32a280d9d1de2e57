"""How good was it, which windows can be trained on, what really happened?"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from upswing.cli.client import ask
from upswing.errors import Misuse

if TYPE_CHECKING:
    from upswing.adapters.sql.rewards import Rewards

T = TypeVar("T")


def reward(arguments: argparse.Namespace) -> int:
    """The newest reward of a trajectory, term by term."""
    from upswing.contracts import encode
    from upswing.reward.total import explain

    found = _read(arguments.data, lambda rewards: rewards.newest(arguments.trajectory))
    if found is None:
        raise Misuse(
            f"There is no reward for {arguments.trajectory}: is the id right, and did the loop run since?"
        )
    if arguments.json:
        print(encode(found).decode())
        return 0
    print(f"trajectory {found.trajectory_id}, revision {found.metadata['revision']}")
    for line in explain(found):
        print(f"  {line}")
    return 0


def windows(arguments: argparse.Namespace) -> int:
    """Each window with its agents; the exit code says whether one is ready for training."""
    from upswing.reward.windows import readiness, render, report, to_json

    members = _read(arguments.data, lambda rewards: rewards.members(arguments.since))
    reports = report(members, arguments.min_agents, arguments.min_attempts)
    if arguments.json:
        print(json.dumps(to_json(reports, arguments.min_windows), indent=2))
    else:
        print("\n".join(render(reports, arguments.min_windows)))
    return 0 if readiness(reports, arguments.min_windows).ready else 1


def outcomes(arguments: argparse.Namespace) -> int:
    """Ask every source what happened in the last hours, and tell the loop."""
    from upswing.config import read_settings
    from upswing.reward.outcomes import LinesSource, discover, windows_back
    from upswing.runtime import now

    files = [LinesSource(Path(name).read_bytes, name) for name in arguments.file]
    sources = [*files, *discover()]
    if not sources:
        raise Misuse(
            "No source of outcomes: give --file OUTCOMES.jsonl, or install a package that offers one."
        )
    hours = read_settings(arguments.data, os.environ).collect.window_hours
    wanted = windows_back(now(), arguments.hours, hours)
    counts: dict[str, int] = {}
    for source in sources:
        for outcome in asyncio.run(source.fetch(wanted)):
            import msgspec

            done = ask(arguments.data, "POST", "/v1/outcomes", msgspec.to_builtins(outcome))
            counts[done["result"]] = counts.get(done["result"], 0) + 1
    if arguments.json:
        print(json.dumps({"windows": len(wanted), **counts}))
    else:
        told = (
            ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) or "nothing new"
        )
        print(f"{told} for the {len(wanted)} windows of the last {arguments.hours} hours.")
    return 0


def _read(folder: Path, what: Callable[[Rewards], Awaitable[T]]) -> T:
    """Ask the store itself, so that it works when the loop does not run."""
    from upswing.adapters.sql.rewards import Rewards
    from upswing.adapters.sql.store import read_only
    from upswing.config import read_surroundings

    async def run() -> Any:
        store = read_only(folder, read_surroundings(os.environ).database_url)
        try:
            return await what(Rewards(store.database))
        finally:
            store.close()

    found: T = asyncio.run(run())
    return found
