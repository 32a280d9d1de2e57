"""Which worlds are there, and how does somebody else's agent get into one?"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.errors import Misuse
from upswing.infra.cli_options import PORT, SEED, IntegerOption, add_log_options

if TYPE_CHECKING:
    from upswing.worlds.agentgym import WorldInfo


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of `upswing worlds`."""
    about = "List our worlds, or serve one in AgentGym's HTTP form."
    worlds = command("worlds", "worlds:worlds", about)
    worlds.add_argument("action", nargs="?", choices=("list", "serve"), default="list")
    worlds.add_argument(
        "name",
        nargs="?",
        help="the world to serve: one of ours, of [validate.worlds], or package.module:attribute",
    )
    worlds.add_argument(
        "--seed", type=SEED, default=0, metavar="N", help="makes the tasks (default: 0)"
    )
    worlds.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    worlds.add_argument(
        "--port", type=PORT, default=8200, help="0 for any free one (default: 8200)"
    )
    worlds.add_argument(
        "--sessions",
        type=IntegerOption(1, 1_000_000),
        default=1024,
        metavar="N",
        help="at once; one more gets 429 (default: 1024)",
    )
    add_log_options(worlds)


def worlds(arguments: argparse.Namespace) -> int:
    """List them, or serve one until a signal comes."""
    return _serve(arguments) if arguments.action == "serve" else _list(arguments)


def named_world(folder: Path, name: str) -> str:
    """Where a world of `[validate.worlds]` is, or else the name itself."""
    from upswing.config import read_settings

    return read_settings(folder, os.environ).validate.worlds.get(name, name)


def _list(arguments: argparse.Namespace) -> int:
    from upswing.worlds.agentgym_sessions import WorldSessions
    from upswing.worlds.known import known_worlds

    found = [WorldSessions(world).world_info() for world in known_worlds(arguments.seed).values()]
    found += list(_configured_worlds(arguments.data))
    if arguments.json:
        print(
            json.dumps(
                [{name: getattr(one, name) for name in one.__struct_fields__} for one in found]
            )
        )
        return 0
    print(f"{'world':<14}{'turns':>6}{'to learn from':>15}{'held out':>10}{'test':>7}")
    for one in found:
        print(f"{one.world:<14}{one.max_turns:>6}{one.training:>15}{one.held_out:>10}{one.test:>7}")
    return 0


def _configured_worlds(folder: Path) -> Iterator[WorldInfo]:
    """The worlds of `[validate.worlds]` that run in this process."""
    from upswing.config import read_settings
    from upswing.worlds.agentgym import WorldInfo
    from upswing.worlds.own import is_address, load_world

    for name, where in read_settings(folder, os.environ).validate.worlds.items():
        if not is_address(where):
            world = load_world(where)
            yield WorldInfo(name, world.max_turns, len(world.training), len(world.held_out))


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio

    from upswing.api.world_server import WorldServerOptions, serve
    from upswing.collect.worker_pool import make_redactor
    from upswing.config import read_settings
    from upswing.logs import LogOptions, set_up_logging
    from upswing.worlds.agentgym_sessions import SessionLimits
    from upswing.worlds.known import make_world

    if not arguments.name:
        raise Misuse(
            "Say which world: `upswing worlds serve NAME`; `upswing worlds list` has them."
        )
    options = WorldServerOptions(
        arguments.host, arguments.port, SessionLimits(sessions=arguments.sessions)
    )
    where = named_world(arguments.data, arguments.name)
    if where.startswith(("http://", "https://")):
        raise Misuse(f"{arguments.name} is served already: {where}.")
    log_options = LogOptions.chosen(arguments.log_format, arguments.log_file, "world")
    set_up_logging(make_redactor(read_settings(arguments.data, os.environ)), log_options)
    asyncio.run(serve(make_world(where, arguments.seed), options, _announce))
    return 0


def _announce(url: str) -> None:
    print(f"ready {url}", flush=True)
