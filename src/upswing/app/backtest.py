"""Which policy is tried on the journal, and who replays what? The policy file, and the stages' replays put together.

A policy file is an `upswing.toml` of which only the knobs count that it names: each takes the place of its value at the
time of a decision, and everything else stays as it was then.

| knob                                                        | is                                             |
|-------------------------------------------------------------|------------------------------------------------|
| in a stage's `REPLAYED`                                      | replayed                                       |
| about what is read, played or measured before a decision    | not replayed: the journal has what was read    |
| any other                                                   | not replayed: no journalled decision needs it  |
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from upswing.config import Settings
from upswing.contracts.backtest import BacktestReport, PolicyKnob
from upswing.contracts.field_errors import locate_mistake, setting_name
from upswing.contracts.typed import from_tree
from upswing.deploy.core import what_if as deploy_replay
from upswing.deploy.core.policy import deploy_policy_of
from upswing.errors import Misuse
from upswing.infra.sql.decisions import Decisions
from upswing.monitor.core.backtest import BacktestRun, BacktestSpan, StageReplays
from upswing.trigger.core import what_if as trigger_replay
from upswing.trigger.core.policy import parse_schedule
from upswing.validate.core import what_if as validation_replay

_MOST_DOTS = 40
"""In a line of a policy. A parser's time grows with the square of a dotted key's parts, and more: 64 KB of `a.a.a…` take
minutes; a config's keys have five parts at most."""
MOST_DECISIONS = 20_000
"""Journal entries that one backtest takes, the newest: about 5 s of one core."""
_STAGES = ("trigger", "validate", "deploy")
_REPLAYED = trigger_replay.REPLAYED | validation_replay.REPLAYED | deploy_replay.REPLAYED
_NESTED = frozenset({"deploy.boldness", "deploy.limits"})
"""Tables whose entries are knobs of their own."""
_READ_BEFORE = {
    "trigger.recent": "it changes which rewards are read, and the journal has those that were",
    "trigger.days": "it changes which trajectories a job gets, not when it is asked for",
    "trigger.max_turns": "it changes which trajectories a job gets, not when it is asked for",
    "train.min_agents": "it changes what counts as a group, and the journal has the groups that were counted",
    "train.min_attempts": "it changes what counts as a group, and the journal has the groups that were counted",
    "deploy.holdback": "it changes what is measured after a promotion, which nobody did",
    "deploy.watch_days": "it changes what is measured after a promotion, which nobody did",
}
_PLAYED_BEFORE = "it changes what is played in a validation: only another validation tells"
_UNUSED = "no journalled decision depends on it"


@dataclass(frozen=True, slots=True)
class BacktestPolicy:
    """The knobs that a policy file names, by their full names."""

    knobs: Mapping[str, Any]

    @property
    def replayed(self) -> dict[str, Any]:
        return {name: value for name, value in self.knobs.items() if name in _REPLAYED}

    def listed(self) -> tuple[PolicyKnob, ...]:
        """For the report; those that are not replayed with the reason."""
        return tuple(
            PolicyKnob(name, _text(value), "" if name in _REPLAYED else _why_not(name))
            for name, value in sorted(self.knobs.items())
        )


def parse_policy(text: str, name: str = "The policy") -> BacktestPolicy:
    """The knobs in a TOML text, or `Misuse` with the place that is wrong."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS:
            raise Misuse(f"{name}: line {number} has more than {_MOST_DOTS} points.")
    try:
        tree: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Misuse(f"{name}: {error}.") from None
    except RecursionError:
        raise Misuse(f"{name}: it is nested too deeply.") from None
    return policy_of_tree(tree, name)


def policy_of_tree(tree: Mapping[str, Any], name: str = "The policy") -> BacktestPolicy:
    """The same, as plain dicts."""
    try:
        settings = from_tree(dict(tree), Settings)
    except msgspec.ValidationError as error:
        place, what = locate_mistake(error, Settings)
        raise Misuse(f"{name}: {setting_name(place)}: {what}.") from None
    try:
        deploy_policy_of({}, settings.deploy)
        parse_schedule(None, settings.trigger.schedule)
    except Misuse as error:
        raise Misuse(f"{name}: {error}") from None
    return BacktestPolicy(dict(_flatten(tree)))


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and (not prefix or name in _NESTED):
            yield from _flatten(value, f"{name}.")
        else:
            yield name, value


def _why_not(name: str) -> str:
    if name in _READ_BEFORE:
        return _READ_BEFORE[name]
    return _PLAYED_BEFORE if name.startswith("validate.") else _UNUSED


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()[:200]


def stage_replays(change: BacktestPolicy, cycles: Sequence[timedelta] = ()) -> StageReplays:
    """Each stage's replay under this change; `cycles`: how long jobs and their rollouts took."""
    knobs = change.replayed
    trigger = trigger_replay.TriggerBacktest(knobs, cycles)
    validation = validation_replay.ValidationBacktest(knobs)
    deploy = deploy_replay.DeployBacktest(knobs, validation.changed)
    return StageReplays(
        {"trigger": trigger.replay, "validate": validation.replay, "deploy": deploy.replay},
        trigger.effect,
        deploy.effects,
    )


async def replay_journal(
    journal: Decisions,
    change: BacktestPolicy,
    since: datetime,
    until: datetime,
    most: int = MOST_DECISIONS,
) -> BacktestReport:
    """Replay the journal page by page, in a thread: whoever else waits for this process goes on in between."""
    run = BacktestRun(stage_replays(change, await journal.training_cycles(since, until)))
    window = await journal.window(_STAGES, since, until, most)
    after = 0
    while True:
        decisions, bad, end = await journal.window_page(window, after)
        if end is None:
            break
        after = end
        run.add_bad_rows(bad)
        await asyncio.to_thread(run.add_all, decisions)
    span = BacktestSpan(since, until, window.truncated)
    return await asyncio.to_thread(run.report, span, change.listed())


def _read_policy(policy: Mapping[str, Any] | str) -> BacktestPolicy:
    return parse_policy(policy) if isinstance(policy, str) else policy_of_tree(policy)


async def run_backtest(
    journal: Decisions, policy: Mapping[str, Any] | str, since: datetime, until: datetime
) -> BacktestReport:
    """The same for a policy as somebody sends it; `Misuse` when it is none."""
    change = await asyncio.to_thread(_read_policy, policy)
    return await replay_journal(journal, change, since, until)
