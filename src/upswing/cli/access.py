"""Who may do what: keys, users, and the bus's roles."""

from __future__ import annotations

import argparse
import json
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from upswing.cli.client import ask
from upswing.cli.training import is_remote_loop, read_store
from upswing.errors import Misuse, count_phrase

if TYPE_CHECKING:
    from upswing.infra.sql.database import Database


def keys(arguments: argparse.Namespace) -> int:
    """List, make or revoke API keys."""
    if arguments.action == "list":
        found = (
            ask(arguments.data, "GET", "/v1/keys")["keys"]
            if is_remote_loop()
            else _stored_keys(arguments)
        )
        if arguments.json:
            print(json.dumps(found, indent=2))
        for key in [] if arguments.json else found:
            state = f"revoked {key['revoked']}" if key["revoked"] else "works"
            many = ", trusted" if key["trusted"] and key["scope"] != "operator" else ""
            print(f"{key['key_id']:14} {key['scope']:9} {state:10} {key['name']}{many}")
        return 0
    if not arguments.name:
        raise Misuse(f"Say which: `upswing keys {arguments.action} NAME`.")
    if arguments.action == "revoke":
        ask(arguments.data, "DELETE", f"/v1/keys/{quote(arguments.name, safe='')}")
        print(f"{arguments.name} no longer works.")
        return 0
    key_request = {"name": arguments.name, "scope": arguments.scope}
    trusted = {"trusted": True} if arguments.trusted else {}
    made = ask(arguments.data, "POST", "/v1/keys", {**key_request, **trusted})
    print(
        json.dumps(made)
        if arguments.json
        else f"{made['key']}\nThis is shown once; only its hash is kept."
    )
    return 0


def _stored_keys(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """From the store itself, so that it works when the loop does not run."""
    import msgspec

    from upswing.api.keys import key_info
    from upswing.infra.sql.keys import Keys

    async def list_keys(database: Database) -> list[Any]:
        table = Keys(database)
        await table.load()
        return [msgspec.to_builtins(key_info(key)) for key in table.list()]

    return read_store(arguments.data, list_keys)


def _change_user(arguments: argparse.Namespace, method: str, path: str) -> Any:
    return ask(arguments.data, method, path.format(quote(arguments.user, safe="")))


def optout(arguments: argparse.Namespace) -> int:
    """Stop recording a user."""
    done = _change_user(arguments, "PUT", "/v1/optouts/{}")
    print(json.dumps(done) if arguments.json else f"{done['user']} is no longer recorded.")
    return 0


def optin(arguments: argparse.Namespace) -> int:
    """Record a user again."""
    done = _change_user(arguments, "DELETE", "/v1/optouts/{}")
    print(json.dumps(done) if arguments.json else f"{done['user']} is recorded.")
    return 0


def erase(arguments: argparse.Namespace) -> int:
    """Erase everything of a user."""
    done = _change_user(arguments, "DELETE", "/v1/users/{}/data")
    if arguments.json:
        print(json.dumps(done))
        return 0
    print(
        f"Erased of {done['user']}: {count_phrase(done['trajectories'], 'trajectory', 'trajectories')}, {done['feedback']} feedback, "
        f"{done['dead_letters']} dead letters."
    )
    waiting = done["pending_stream_messages"] + done["pending_archive_copies"]
    if waiting:
        print(f"{waiting} copies elsewhere follow by themselves as soon as they can be reached.")
    if done["models_that_saw"]:
        print(f"Models that were trained on some of it: {', '.join(done['models_that_saw'])}.")
    if done["jobs_that_see"]:
        print(f"Training jobs that have some of it: {', '.join(done['jobs_that_see'])}.")
    return 0


def nats_config(arguments: argparse.Namespace) -> int:
    """A server configuration with this directory's passwords, or with fresh ones."""
    from upswing.contracts.topics import ROLES
    from upswing.infra.instance import read_known_secrets
    from upswing.infra.nats.permissions import OPERATOR, server_config

    known = read_known_secrets(arguments.data)
    passwords = {
        role: known.get(f"nats_{role}") or secrets.token_urlsafe(32) for role in (OPERATOR, *ROLES)
    }
    print(server_config(passwords, listen=arguments.listen, store_dir=arguments.store_dir), end="")
    return 0
