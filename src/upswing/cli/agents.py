"""Who works here while no real agent does? `upswing agents spawn`: test agents, round after round.

| what           | is                                                                           |
|----------------|------------------------------------------------------------------------------|
| a round        | some tasks of the world, in order, each done by every agent; without a pause |
|                | the next one begins while the last agents end theirs, so nobody waits        |
| its window     | the hour on the world's clock, which runs `--speed` times faster than ours;  |
|                | a world with windows of its own, such as the market, has its tasks in those  |
| after a round  | worlds that know what really happened in a window send it to the loop        |
| who records    | the gateway; or, where agents ask a model's own server, the SDK in them      |
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from upswing.cli.worlds import named_world
from upswing.errors import Misuse
from upswing.infra.cli_options import SEED, FloatOption, IntegerOption, add_log_options

if TYPE_CHECKING:
    from upswing.cli.agents_rounds import SpawnPlan, SpawnTarget

_OPTIONS = (
    ("--agents", IntegerOption(1, 10_000), 5, "N", "how many (default: 5)"),
    (
        "--duration",
        FloatOption(0, 1_000_000, above=True),
        5.0,
        "MINUTES",
        "how long, in real time (default: 5)",
    ),
    (
        "--rounds",
        IntegerOption(1),
        None,
        "N",
        "end after so many rounds, even if there is time left",
    ),
    ("--tasks", IntegerOption(1), 8, "N", "tasks of a round (default: 8)"),
    (
        "--pause",
        FloatOption(0, 3600),
        0.0,
        "SECONDS",
        "between rounds (default: 0, the next one begins before the last ends)",
    ),
    (
        "--speed",
        FloatOption(0, 1_000_000, above=True),
        60.0,
        "TIMES",
        "how fast the world's clock runs (default: 60)",
    ),
    (
        "--feedback",
        FloatOption(0, 1),
        0.25,
        "SHARE",
        "of episodes that a user says something of (default: 0.25)",
    ),
    ("--temperature", FloatOption(0, 2), 1.0, "T", "of the model's replies (default: 1)"),
    ("--model", str, "upswing", "NAME", "to ask for; a gateway takes any name (default: upswing)"),
    ("--max-tokens", IntegerOption(1), 8, "N", "of one reply (default: 8)"),
    ("--at-once", IntegerOption(1), 8, "N", "episodes at the same time (default: 8)"),
    ("--seed", SEED, 0, "N", "makes the tasks, and who says something (default: 0)"),
)


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of `upswing agents`."""
    about = "Let test agents work through the gateway of the running loop."
    agents = command("agents", "agents:agents", about)
    agents.add_argument("action", choices=("spawn",))
    agents.add_argument(
        "--world",
        default="desk",
        metavar="NAME|URL",
        help="one of ours (`upswing worlds list`), or an AgentGym server's address (default: desk)",
    )
    for name, kind, usual, unit, help_ in _OPTIONS:
        agents.add_argument(name, type=kind, default=usual, metavar=unit, help=help_)
    agents.add_argument(
        "--curriculum",
        action="store_true",
        help="half of the tasks are those that the loop wants to be tried next; they are no evidence",
    )
    agents.add_argument(
        "--record",
        choices=("gateway", "sdk"),
        default="gateway",
        help="who records: the gateway (default), or the SDK in the agents",
    )
    agents.add_argument(
        "--base-url",
        metavar="URL",
        help="ask this server, with $OPENAI_API_KEY, and not the loop's gateway; `--record sdk` needs it",
    )
    add_log_options(agents)


def agents(arguments: argparse.Namespace) -> int:
    """Let them work; Ctrl-C ends it after the episodes under way, a second one at once."""
    from upswing.cli.loop import run_async

    _check_options(arguments)
    _set_up_log(arguments)
    target, plan = _target(arguments), _plan(arguments)

    async def run() -> int:
        from upswing.cli.agents_rounds import spawn

        summary = await spawn(plan, target, _silent if arguments.json else _print_line)
        if arguments.json:
            print(json.dumps(summary.to_json(), indent=2))
        else:
            print("\n".join(summary.lines()))
        return 0 if summary.answered or not summary.counts.episodes else 1

    return run_async(run())


def _set_up_log(arguments: argparse.Namespace) -> None:
    from upswing.collect.worker_pool import make_redactor
    from upswing.config import read_settings
    from upswing.logs import LogOptions, set_up_logging

    options = LogOptions.chosen(arguments.log_format, arguments.log_file, "agents")
    set_up_logging(make_redactor(read_settings(arguments.data, os.environ)), options)


def _plan(arguments: argparse.Namespace) -> SpawnPlan:
    from upswing.cli.agents_rounds import RoundSchedule, SpawnPlan
    from upswing.worlds.agent_pool import AgentSettings

    return SpawnPlan(
        world=named_world(arguments.data, arguments.world),
        model=arguments.model,
        temperature=arguments.temperature,
        agents=AgentSettings(
            agents=arguments.agents,
            at_once=arguments.at_once,
            max_tokens=arguments.max_tokens,
            feedback=arguments.feedback,
            seed=arguments.seed,
        ),
        schedule=RoundSchedule(
            tasks=arguments.tasks,
            minutes=arguments.duration,
            rounds=arguments.rounds,
            pause=arguments.pause,
            speed=arguments.speed,
            curriculum=arguments.curriculum,
        ),
    )


def _print_line(line: str) -> None:
    print(line, flush=True)


def _silent(_: str) -> None: ...


def _check_options(arguments: argparse.Namespace) -> None:
    if arguments.record == "sdk" and not arguments.base_url:
        raise Misuse(
            "The gateway records what it answers, and twice is once too often: with --record sdk "
            "name a model's own server, --base-url http://HOST:PORT/v1."
        )


def _target(arguments: argparse.Namespace) -> SpawnTarget:
    """Whom the agents ask: the server that is named, else the gateway of the running loop."""
    from upswing.cli.agents_rounds import SpawnTarget
    from upswing.infra.instance import find_running_instance, no_loop_sentence

    folder, sdk = arguments.data, arguments.record == "sdk"
    running = find_running_instance(folder)
    if running is None and (sdk or not arguments.base_url):
        raise Misuse(no_loop_sentence(folder))
    if arguments.base_url:
        key = os.environ.get("OPENAI_API_KEY") or "none"
        return SpawnTarget(arguments.base_url, key, folder, sdk=sdk, foreign=True)
    if running is None or not running.gateway_url or not running.gateway_key:
        raise Misuse(
            f"The loop in {folder} has no gateway for agents: start it again without --no-gateway."
        )
    return SpawnTarget(running.gateway_url, running.gateway_key, folder)
