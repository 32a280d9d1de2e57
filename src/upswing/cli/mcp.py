"""How do assistants get at the loop? `upswing mcp` over standard input, or on a port; and a person confirms."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from upswing.errors import Misuse
from upswing.infra.cli_options import PORT


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of `mcp`."""
    about = "Serve assistants over the Model Context Protocol; confirm what one of them asks for."
    mcp = command("mcp", "mcp:mcp", about, json=False)
    mcp.add_argument(
        "action",
        nargs="?",
        choices=("stdio", "http", "confirm"),
        default="stdio",
        help="stdio: as a child of an assistant's program (default); http: on a port; confirm: make a code",
    )
    mcp.add_argument("operation", nargs="?", help="what to confirm, such as `approve`")
    mcp.add_argument("values", nargs="*", metavar="NAME=VALUE", help="with which arguments")
    mcp.add_argument("--yes", action="store_true", help="confirm without being asked once more")
    mcp.add_argument("--host", default="127.0.0.1", help="http: address to listen on")
    mcp.add_argument("--port", type=PORT, default=8102, help="http: 0 for any free one")
    mcp.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="http: a name by which clients reach it; may be repeated",
    )
    mcp.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="http: a page whose scripts may ask; may be repeated",
    )
    mcp.add_argument(
        "--believe-forms",
        action="store_true",
        help="http: a form in a client's program is a person's word",
    )


def mcp(arguments: argparse.Namespace) -> int:
    """Serve, or confirm."""
    if arguments.action == "confirm":
        return _confirm(arguments)
    if arguments.operation is not None:
        raise Misuse("Only `upswing mcp confirm` takes an operation.")
    _check_package()
    return _serve_http(arguments) if arguments.action == "http" else _serve_stdio(arguments)


def _check_package() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise Misuse(
            "The package mcp is not installed: `pip install '.[mcp]'` in Upswing's folder."
        )


def _serve_stdio(arguments: argparse.Namespace) -> int:
    import anyio

    from upswing.integrations.mcp.running import serve_stdio

    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # the protocol owns the former
    anyio.run(serve_stdio, arguments.data, dict(os.environ))
    return 0


def _serve_http(arguments: argparse.Namespace) -> int:
    import uvicorn

    from upswing.infra.sockets import bind_port
    from upswing.integrations.mcp.running import PATH, HttpOptions, http_app

    listener = bind_port(arguments.host, arguments.port)
    listener.listen()  # whoever reads the line below may ask at once, and waits until it is answered
    port = listener.getsockname()[1]
    options = HttpOptions(
        host=arguments.host,
        port=port,
        hosts=arguments.allow_host,
        origins=arguments.allow_origin,
        believe_forms=arguments.believe_forms,
    )
    app: Any = http_app(arguments.data, dict(os.environ), options)
    listener.listen()  # whoever comes now waits for an answer, and is not refused
    print(f"MCP answers at http://{arguments.host}:{port}{PATH}", flush=True)
    config = uvicorn.Config(app, log_level="warning", lifespan="on", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def _confirm(arguments: argparse.Namespace) -> int:
    """Say what would be done, and print a code for it once a person has agreed."""
    import secrets
    import time

    from upswing.integrations.mcp.access import operator_key
    from upswing.integrations.mcp.confirmation import VALID_SECONDS, make_code
    from upswing.integrations.operations.catalog import operation_named
    from upswing.integrations.operations.quoting import sentence

    if not arguments.operation:
        raise Misuse("Say what: `upswing mcp confirm approve model_id=MODEL`.")
    operation = operation_named(arguments.operation)
    if operation.person is None:
        raise Misuse(f"Nobody has to confirm `{operation.name}`: an assistant may do it.")
    asked = operation.parse(dict(map(_value, arguments.values)))
    key = operator_key(arguments.data, os.environ)
    print(
        f"This lets an assistant do, once: {sentence(operation.person.describe(asked))}",
        file=sys.stderr,
    )
    if not arguments.yes and not _agreed():
        print("Nothing is confirmed.", file=sys.stderr)
        return 1
    code = make_code(key, operation, asked, now=time.time(), word=secrets.token_hex(6))
    print(
        f"The code holds for {VALID_SECONDS // 60} minutes; give it to the assistant:",
        file=sys.stderr,
    )
    print(code)
    return 0


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise Misuse("A person has to agree at a terminal; `--yes` says that one has.")
    return input("Type yes to agree: ").strip().lower() == "yes"


def _value(text: str) -> tuple[str, Any]:
    """`percentage=50` or `model_id=v3`: a number where it is one."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misuse(f"Arguments are NAME=VALUE, not {text!r}.")
    try:
        number = json.loads(value)
    except ValueError:
        return name, value
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return name, number if is_number and name == "percentage" else value
