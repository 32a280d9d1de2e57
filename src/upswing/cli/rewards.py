"""How good was it, which windows can be trained on, what really happened?"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from upswing.cli.arguments import parse_since
from upswing.cli.client import ask
from upswing.cli.training import is_remote_loop, read_store
from upswing.errors import Misuse, count_phrase

if TYPE_CHECKING:
    from upswing.infra.sql.rewards import Rewards
    from upswing.records import ScoredMember
    from upswing.reward.core.windows import Readiness
    from upswing.trigger.core.policy import TriggerPolicy
    from upswing.trigger.core.readiness import DataMinimums

T = TypeVar("T")
_WINDOW = re.compile(r"\d{4}-\d\d-\d\d(T\d\d(:\d\d){0,2}Z?)?\Z")


def reward(arguments: argparse.Namespace) -> int:
    """The newest reward of a trajectory, term by term."""
    from upswing.contracts import encode
    from upswing.reward.core.total import explain_reward

    found = _read_rewards(arguments.data, lambda rewards: rewards.newest(arguments.trajectory))
    if found is None:
        raise Misuse(
            f"There is no reward for {arguments.trajectory}: is the id right, and did the loop run since?"
        )
    if arguments.json:
        print(encode(found).decode())
        return 0
    print(f"trajectory {found.trajectory_id}, revision {found.metadata['revision']}")
    for line in explain_reward(found):
        print(f"  {line}")
    return 0


def windows(arguments: argparse.Namespace) -> int:
    """A summary, and the groups on request; the exit code says whether there is enough to train on."""
    from upswing.config import read_settings, read_surroundings
    from upswing.reward.core.windows import (
        MOST,
        render_windows,
        report_windows,
        window_readiness,
        windows_json,
    )
    from upswing.trigger.core.policy import trigger_policy_of

    policy = trigger_policy_of(
        read_settings(arguments.data, os.environ), read_surroundings(os.environ)
    )
    usual = policy.rules.minimums
    agents, attempts = (
        arguments.min_agents or usual.agents,
        arguments.min_attempts or usual.attempts,
    )
    recorded = _read_rewards(arguments.data, lambda rewards: rewards.members())
    try:
        since = _first_window(arguments.since, recorded)
    except argparse.ArgumentTypeError as error:
        print(
            f"upswing: --since takes a window such as 2026-01-15T10:00, or a time; {error}. No window of "
            "this name is recorded.",
            file=sys.stderr,
        )
        return 2
    trainable = _trainable_groups(arguments.data, policy)
    reports = report_windows(
        [
            each
            for each in recorded
            if each.window_id >= since and (each.infra_error or each.trajectory_id in trainable)
        ],
        agents,
        attempts,
    )
    if arguments.min_windows is not None:
        state = window_readiness(reports, arguments.min_windows)
    else:
        least = replace(usual, agents=agents, attempts=attempts)
        state = _readiness(arguments.data, policy, least)
    if arguments.json:
        print(json.dumps(windows_json(reports, state), indent=2))
    else:
        most = None if arguments.all else MOST if arguments.rows else 0
        print("\n".join(render_windows(reports, state, limit=most)))
    return 0 if state.ready else 1


def _first_window(since: str | None, recorded: Sequence[ScoredMember]) -> str:
    """The name of the window to begin with: as it is written, or the one of a moment."""
    if not since or _WINDOW.match(since) or any(each.window_id == since for each in recorded):
        return since or ""
    return f"{parse_since(since):%Y-%m-%dT%H:%M}"


def _trainable_groups(folder: Path, policy: TriggerPolicy) -> set[str]:
    """The trajectories that a job of the trigger's would train on."""
    from upswing.cli.training import read_store, time_ago
    from upswing.trigger.signals import SignalReader

    since = time_ago(timedelta(days=policy.days))
    members, _ = read_store(
        folder,
        lambda database: SignalReader(database).pool(
            policy.rules.base_model, max_turns=policy.max_turns, since=since
        ),
    )
    return {each.trajectory_id for each in members}


def _readiness(folder: Path, policy: TriggerPolicy, least: DataMinimums) -> Readiness:
    """What the loop itself says: the rule of its trigger."""
    from upswing.cli.training import read_store, time_ago
    from upswing.reward.core.windows import Readiness
    from upswing.trigger.core.readiness import training_readiness
    from upswing.trigger.signals import SignalReader

    since = time_ago(timedelta(days=policy.days))
    there = read_store(
        folder,
        lambda database: SignalReader(database).learnable(
            policy.rules.base_model,
            min_agents=least.agents,
            min_attempts=least.attempts,
            max_turns=policy.max_turns,
            since=since,
            self_reported=policy.self_reported,
        ),
    )
    state = training_readiness(there, least, policy.rules.algorithm)
    why = f"{state.algorithm}, because {state.why}." if state.ready else state.reason
    return Readiness(state.ready, f"{why} {there.tasks.sentence}".strip())


def judge(arguments: argparse.Namespace) -> int:
    """The newest groups that a judge was asked about; or have it asked again about those it could not judge."""
    if arguments.action == "retry":
        done = ask(arguments.data, "POST", "/v1/judgements/retry")
        sentence = f"{count_phrase(done['groups'], 'group')} will be asked about again within half a minute."
        print(json.dumps(done) if arguments.json else sentence)
        return 0
    done = (
        ask(arguments.data, "GET", "/v1/judgements")
        if is_remote_loop()
        else _judge_verdicts(arguments)
    )
    if arguments.json:
        print(json.dumps(done))
        return 0
    for each in done["groups"]:
        again = f", again at {each['again']}" if each.get("again") else ""
        tries = count_phrase(each["tries"], "try", "tries")
        state = "judged" if each["judged"] else f"not judged, {tries}{again}"
        print(f"{each['window_id']} {each['scenario_id']}: {state}. {each['reason']}")
    if not done["groups"]:
        print("No group was judged yet.")
    return 0


def _judge_verdicts(arguments: argparse.Namespace) -> dict[str, Any]:
    """From the store itself, so that it works when the loop does not run."""
    import msgspec

    from upswing.reward.outcome_repository import OutcomeRepository

    groups = read_store(arguments.data, lambda db: OutcomeRepository(db).verdicts())
    return {"groups": [msgspec.to_builtins(each) for each in groups]}


def outcomes(arguments: argparse.Namespace) -> int:
    """Ask every source what happened in the last hours, and tell the loop."""
    from upswing.app.loop import now
    from upswing.config import read_settings
    from upswing.reward.outcomes import OutcomeFileSource, discover_sources, windows_of_last_hours

    files = [OutcomeFileSource(Path(name).read_bytes, name) for name in arguments.file]
    sources = [*files, *discover_sources()]
    if not sources:
        raise Misuse(
            "No source of outcomes: give --file OUTCOMES.jsonl, or install a package that offers one."
        )
    hours = read_settings(arguments.data, os.environ).collect.window_hours
    wanted = windows_of_last_hours(now(), arguments.hours, hours)
    counts: dict[str, int] = {}
    for source in sources:
        for outcome in asyncio.run(source.fetch(wanted)):
            import msgspec

            done = ask(arguments.data, "POST", "/v1/outcomes", msgspec.to_builtins(outcome))
            counts[done["result"]] = counts.get(done["result"], 0) + 1
    if arguments.json:
        print(json.dumps({"windows": len(wanted), **counts}))
    else:
        summary = (
            ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
            or "nothing new"
        )
        windows_, hours_ = (
            count_phrase(len(wanted), "window"),
            count_phrase(arguments.hours, "hour"),
        )
        print(f"{summary} for {windows_} of the last {hours_}.")
    return 0


def _read_rewards(folder: Path, what: Callable[[Rewards], Awaitable[T]]) -> T:
    """Ask the store itself, so that it works when the loop does not run."""
    from upswing.config import read_surroundings
    from upswing.infra.sql.rewards import Rewards
    from upswing.infra.sql.store import open_store_read_only

    async def run() -> Any:
        store = open_store_read_only(folder, read_surroundings(os.environ).database_url)
        try:
            return await what(Rewards(store.database))
        finally:
            store.close()

    found: T = asyncio.run(run())
    return found
