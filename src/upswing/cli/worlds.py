"""Which worlds are there, and how does somebody else's agent get into one?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from upswing.errors import Misuse


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of `upswing worlds`."""
    about = "List our worlds, or serve one in AgentGym's HTTP form."
    worlds = command("worlds", "worlds:worlds", about)
    worlds.add_argument("action", nargs="?", choices=("list", "serve"), default="list")
    worlds.add_argument("name", nargs="?", help="the world to serve")
    worlds.add_argument("--seed", type=int, default=0, metavar="N", help="makes the tasks (default: 0)")  # fmt: skip
    worlds.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")  # fmt: skip
    worlds.add_argument("--port", type=int, default=8200, help="0 for any free one (default: 8200)")
    worlds.add_argument("--sessions", type=int, default=1024, metavar="N", help="at once; one more gets 429 (default: 1024)")  # fmt: skip


def worlds(arguments: argparse.Namespace) -> int:
    """List them, or serve one until a signal comes."""
    return _serve(arguments) if arguments.action == "serve" else _list(arguments)


def _list(arguments: argparse.Namespace) -> int:
    from upswing.worlds.agentgym_sessions import Sessions
    from upswing.worlds.known import known_worlds

    found = [Sessions(world).about() for world in known_worlds(arguments.seed).values()]
    if arguments.json:
        print(json.dumps([{name: getattr(one, name) for name in one.__struct_fields__} for one in found]))  # fmt: skip
        return 0
    print(f"{'world':<14}{'turns':>6}{'to learn from':>15}{'held out':>10}{'test':>7}")
    for one in found:
        print(f"{one.world:<14}{one.max_turns:>6}{one.training:>15}{one.held_out:>10}{one.test:>7}")
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    import asyncio

    from upswing.world_server import Options, serve
    from upswing.worlds.agentgym_sessions import Limits
    from upswing.worlds.known import world_of

    if not arguments.name:
        raise Misuse(
            "Say which world: `upswing worlds serve NAME`; `upswing worlds list` has them."
        )
    if not 0 <= arguments.port <= 65535:
        raise Misuse("--port is a number from 0 to 65535.")
    if arguments.sessions < 1:
        raise Misuse("--sessions is a number from 1 on.")
    options = Options(arguments.host, arguments.port, Limits(sessions=arguments.sessions))
    asyncio.run(serve(world_of(arguments.name, arguments.seed), options, _announce))
    return 0


def _announce(url: str) -> None:
    print(f"ready {url}", flush=True)
