"""How does an Agent Zero on this machine join the loop? Install the plugin, take it out, see what is wrong."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.errors import Denied, Misuse, Transient, count_phrase

if TYPE_CHECKING:
    from upswing.integrations.agent_zero.connection import PluginConnection
    from upswing.integrations.agent_zero.installing import Installed
    from upswing.integrations.agent_zero.joining import Joined, LeftKeys, OperatedLoop
    from upswing.integrations.agent_zero.layout import Checkout


def commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The options of `agent-zero`."""
    about = "Install the plugin into an Agent Zero, take it out again, or check it."
    parser = command("agent-zero", "agent_zero:agent_zero", about)
    parser.add_argument("action", choices=("install", "uninstall", "doctor"))
    parser.add_argument("checkout", nargs="?", metavar="CHECKOUT", help="Agent Zero's own folder")
    parser.add_argument(
        "--export", metavar="DIR", help="install: write the plugin below DIR instead"
    )
    parser.add_argument(
        "--force", action="store_true", help="install: overwrite files of ours that were changed"
    )
    parser.add_argument(
        "--loop-url", metavar="URL", help="install: the loop, as Agent Zero reaches it"
    )
    parser.add_argument(
        "--gateway-url", metavar="URL", help="install: the gateway, as Agent Zero reaches it"
    )
    parser.add_argument("--agent-id", metavar="NAME", help="install: what its agents are called")
    parser.add_argument(
        "--user", metavar="ID", help="install: who uses it, where that is one person"
    )
    parser.add_argument("--python", metavar="PATH", help="doctor: the Python that runs Agent Zero")


def agent_zero(arguments: argparse.Namespace) -> int:
    """Install, uninstall or check."""
    if arguments.action == "install" and arguments.export:
        return _export(arguments)
    if not arguments.checkout:
        raise Misuse(f"Name Agent Zero's folder: `upswing agent-zero {arguments.action} CHECKOUT`.")
    from upswing.integrations.agent_zero.layout import find_checkout

    checkout = find_checkout(Path(arguments.checkout))
    if arguments.action == "install":
        return _install(arguments, checkout)
    return (
        _uninstall(arguments, checkout)
        if arguments.action == "uninstall"
        else _doctor(arguments, checkout)
    )


def _install(arguments: argparse.Namespace, checkout: Checkout) -> int:
    import msgspec

    from upswing.integrations.agent_zero.connection import PluginConnection, read_connection
    from upswing.integrations.agent_zero.installing import (
        check_installable,
        install,
        read_manifest,
    )

    check_installable(checkout, force=arguments.force)  # before keys are made
    known = PluginConnection()
    if read_manifest(checkout) is not None:
        known = read_connection(checkout.root / checkout.home)
    joined = _join(arguments, known)
    named = {"agent_id": arguments.agent_id, "user_id": arguments.user}
    given = {name: value for name, value in named.items() if value is not None}
    connection = msgspec.structs.replace(joined.connection, **given)
    done = install(checkout, connection, force=arguments.force)
    _print_installed(arguments, checkout, done, joined.note)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from upswing.integrations.agent_zero.installing import export_target

    if arguments.checkout:
        raise Misuse("Name a checkout or --export, not both.")
    return _install(arguments, export_target(Path(arguments.export)))


def _print_installed(
    arguments: argparse.Namespace, checkout: Checkout, done: Installed, note: str
) -> None:
    from upswing.integrations.agent_zero.layout import Layout
    from upswing.integrations.agent_zero.package_source import install_command

    if arguments.json:
        told = {"folder": str(done.folder), "files": done.written, "trouble": note or None}
        print(json.dumps(told))
        return
    print(f"{done.written - done.elsewhere} files are in {done.folder}.")
    if done.elsewhere:
        print(
            f"{done.elsewhere} more are at Agent Zero's extension points and in agents/rl-trainer."
        )
    if note:
        print(note)
    provider = (
        "choose the provider Upswing in its model settings"
        if checkout.layout is Layout.PLUGINS
        else 'choose the provider "Other OpenAI compatible" with the gateway\'s address and a key'
    )
    print(
        f"Agent Zero's own Python needs the package too, from the same folder: `{install_command('PYTHON')}` (in its Docker image "
        f"PYTHON is /opt/venv-a0/bin/python). Then restart Agent Zero, and {provider} to have the gateway answer. "
        "`upswing agent-zero doctor CHECKOUT` checks all of it."
    )


def _join(arguments: argparse.Namespace, known: PluginConnection) -> Joined:
    """Addresses and keys of the loop that runs here."""
    import asyncio

    from upswing.integrations.agent_zero.joining import GivenAddresses, join_loop, stay_joined

    given = GivenAddresses(arguments.loop_url, arguments.gateway_url)
    try:
        return asyncio.run(join_loop(_operated_loop(arguments), known, given))
    except (Denied, Transient, _NoLoop) as error:
        return stay_joined(known, given, str(error))


class _NoLoop(Misuse):
    """Nothing says where the loop is."""


def _operated_loop(arguments: argparse.Namespace) -> OperatedLoop:
    from upswing.cli.client import locate_loop
    from upswing.infra.instance import find_running_instance
    from upswing.integrations.agent_zero.joining import OperatedLoop

    running = None if os.environ.get("AGENTGYM_RL_URL") else find_running_instance(arguments.data)
    try:
        url, key = locate_loop(arguments.data)
    except Misuse as error:
        raise _NoLoop(str(error)) from None
    return OperatedLoop(url, key, running.gateway_url if running else None)


def _uninstall(arguments: argparse.Namespace, checkout: Checkout) -> int:
    import asyncio

    from upswing.integrations.agent_zero.connection import PluginConnection, read_connection
    from upswing.integrations.agent_zero.installing import uninstall
    from upswing.integrations.agent_zero.joining import leave_loop

    try:
        connection, unread = read_connection(checkout.root / checkout.home), ""
    except Misuse as error:
        connection, unread = PluginConnection(), str(error)
    done = uninstall(checkout)
    try:
        loop = _operated_loop(arguments)
    except _NoLoop:
        loop = None
    keys = asyncio.run(leave_loop(loop, connection))
    if arguments.json:
        told = {"files": done.files, "left": done.left, "waiting": done.waiting}
        print(json.dumps({**told, "revoked": keys.revoked, "working_keys": keys.working}))
        return 0
    print(f"{count_phrase(done.files, 'file')} removed.")
    for path in done.left:
        print(f"{path} was changed by somebody, and stays.")
    if done.waiting:
        print(
            f"{done.waiting} files with recordings that the loop has not got stay in {checkout.home}/spool."
        )
    _print_keys(keys, connection, unread)
    return 0


def _print_keys(keys: LeftKeys, connection: PluginConnection, unread: str) -> None:
    if keys.revoked:
        print(f"Its keys work no more: {', '.join(keys.revoked)}.")
    if keys.working:
        at = f" of the loop at {connection.loop_url}" if connection.loop_url else ""
        print(
            f"These keys{at} may still work: {', '.join(keys.working)}. `upswing keys revoke ID` there ends one."
        )
    if unread:
        print(
            f"Its keys are not known: {unread} `upswing keys list` shows those called agent-zero."
        )


def _doctor(arguments: argparse.Namespace, checkout: Checkout) -> int:
    from upswing.integrations.agent_zero.doctor import examine

    found = examine(checkout, Path(arguments.python) if arguments.python else None)
    if arguments.json:
        print(
            json.dumps(
                [{"what": each.what, "ok": each.ok, "detail": each.detail} for each in found]
            )
        )
    else:
        for each in found:
            print(f"{'ok  ' if each.ok else 'FAIL'} {each.what}: {each.detail}")
    return 0 if all(each.ok for each in found) else 1
