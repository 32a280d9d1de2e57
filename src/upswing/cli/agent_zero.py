"""How does an Agent Zero on this machine join the loop? Install the plugin, take it out, see what is wrong."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from upswing.contracts.field_errors import count_phrase
from upswing.errors import Misuse, UpswingError

if TYPE_CHECKING:
    from upswing.integrations.agent_zero.connection import PluginConnection
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
    from upswing.integrations.agent_zero.connection import PluginConnection, read_connection
    from upswing.integrations.agent_zero.installing import install, read_manifest

    known = PluginConnection()
    if read_manifest(checkout) is not None:
        known = read_connection(checkout.root / checkout.home)
    connection, trouble = _connection(arguments, known)
    done = install(checkout, connection, force=arguments.force)
    return _print_installed(arguments, done.folder, done.written, trouble)


def _export(arguments: argparse.Namespace) -> int:
    from upswing.integrations.agent_zero.connection import PluginConnection
    from upswing.integrations.agent_zero.installing import export

    if arguments.checkout:
        raise Misuse("Name a checkout or --export, not both.")
    connection, trouble = _connection(arguments, PluginConnection())
    done = export(Path(arguments.export), connection)
    return _print_installed(arguments, done.folder, done.written, trouble)


def _print_installed(
    arguments: argparse.Namespace, folder: Path, written: int, trouble: str
) -> int:
    if arguments.json:
        print(json.dumps({"folder": str(folder), "files": written, "trouble": trouble or None}))
        return 0
    print(f"{count_phrase(written, 'file')} in {folder}.")
    if trouble:
        print(trouble)
    print(
        "Agent Zero's own Python needs the package too: `pip install upswing` there (in its Docker image: "
        "/opt/venv-a0/bin/pip). Then restart Agent Zero, and choose the provider Upswing in its model settings to have the "
        "gateway answer. `upswing agent-zero doctor CHECKOUT` checks all of it."
    )
    return 0


def _connection(
    arguments: argparse.Namespace, known: PluginConnection
) -> tuple[PluginConnection, str]:
    """Addresses and keys, and what is missing of them; keys that are there are kept."""
    import msgspec

    from upswing.cli.client import ask, locate_loop
    from upswing.infra.instance import find_running_instance
    from upswing.integrations.agent_zero.connection import checked_connection

    running = None if os.environ.get("AGENTGYM_RL_URL") else find_running_instance(arguments.data)
    found: dict[str, Any] = {
        "loop_url": arguments.loop_url or known.loop_url,
        "gateway_url": arguments.gateway_url,
        "agent_id": arguments.agent_id,
        "user_id": arguments.user,
    }
    if running is not None and running.gateway_url:
        found["gateway_url"] = found["gateway_url"] or running.gateway_url
    trouble = ""
    try:
        url, _ = locate_loop(arguments.data)
        found["loop_url"] = found["loop_url"] or url
        for field, name, scope in (
            ("key", "agent-zero", "agent"),
            ("assistant_key", "agent-zero rl-trainer", "assistant"),
        ):
            if getattr(known, field) is None:
                made = ask(arguments.data, "POST", "/v1/keys", {"name": name, "scope": scope})
                found[field] = made["key"]
    except UpswingError as error:
        trouble = f"It has no keys yet ({error}) Install it again while the loop runs."
    given = {name: value for name, value in found.items() if value is not None}
    return checked_connection(msgspec.structs.replace(known, **given)), trouble


def _uninstall(arguments: argparse.Namespace, checkout: Checkout) -> int:
    from upswing.integrations.agent_zero.installing import uninstall

    done = uninstall(checkout)
    if arguments.json:
        print(json.dumps({"files": done.files, "left": done.left, "waiting": done.waiting}))
        return 0
    print(f"{count_phrase(done.files, 'file')} removed.")
    for path in done.left:
        print(f"{path} was changed by somebody, and stays.")
    if done.waiting:
        print(
            f"{done.waiting} files with recordings that the loop has not got stay in {checkout.home}/spool."
        )
    print("Its keys still work: `upswing keys` lists them, `upswing keys revoke ID` ends one.")
    return 0


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
