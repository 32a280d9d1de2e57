"""Whose loop does an installation belong to? Its addresses and its keys are of one loop, and of no two.

| the loop that installs                       | addresses                                | keys                       |
|----------------------------------------------|------------------------------------------|----------------------------|
| knows the installation's keys                | as they were, or as given; this machine's own as they are now | those that work are kept, others made anew |
| does not know them                           | its own, or as given                     | made anew; the old ones are named |
| none answers, and there are keys             | as they were; another loop is refused    | kept                       |
| none answers, and there are no keys          | as given                                 | none yet                   |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from upswing.errors import Denied, Misuse, UpswingError
from upswing.integrations.agent_zero.connection import PluginConnection, checked_connection
from upswing.integrations.operations.loop_port import LoopPort, path_of

_SECONDS = 60.0
"""For one answer: a machine may be busy, and another loop is not to be mistaken for a silent one."""


@dataclass(frozen=True, slots=True)
class _PluginKey:
    """One of the installation's keys."""

    field: str
    id_field: str
    name: str
    scope: str


_KEYS = (
    _PluginKey("key", "key_id", "agent-zero", "agent"),
    _PluginKey("assistant_key", "assistant_key_id", "agent-zero rl-trainer", "assistant"),
)


@dataclass(frozen=True, slots=True)
class OperatedLoop:
    """A loop that whoever installs is the operator of."""

    url: str
    key: str = field(repr=False)
    gateway_url: str | None = None


@dataclass(frozen=True, slots=True)
class GivenAddresses:
    """What the person who installs has named."""

    loop_url: str | None = None
    gateway_url: str | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """A connection to write, and what a person should know about it."""

    connection: PluginConnection
    note: str = ""


@dataclass(frozen=True, slots=True)
class LeftKeys:
    """What became of the keys of an installation that is no more."""

    revoked: tuple[str, ...] = ()
    working: tuple[str, ...] = ()
    """Nobody could revoke them."""


async def join_loop(loop: OperatedLoop, known: PluginConnection, given: GivenAddresses) -> Joined:
    """The connection with this loop; `UpswingError` where it does not answer or refuses."""
    port = LoopPort(loop.url, loop.key, seconds=_SECONDS)
    listed = {key["key_id"] for key in (await port.get("/v1/keys"))["keys"]}
    working = {each: await _key_id(loop.url, getattr(known, each.field)) for each in _KEYS}
    strange = _has_keys(known) and not any(working.values()) and not _key_ids(known) & listed
    before = PluginConnection() if strange else known
    values: dict[str, str | None] = {
        "loop_url": given.loop_url or _address_now(before.loop_url, loop.url),
        "gateway_url": given.gateway_url or _address_now(before.gateway_url, loop.gateway_url),
    }
    checked_connection(msgspec.structs.replace(known, **values))  # before keys are made
    for each, key_id in working.items():
        if key_id is not None:
            values[each.id_field] = key_id
            continue
        made = await port.post("/v1/keys", {"name": each.name, "scope": each.scope})
        values[each.field], values[each.id_field] = made["key"], made["key_id"]
    note = _strange_note(known, loop) if strange else ""
    return Joined(checked_connection(msgspec.structs.replace(known, **values)), note)


def stay_joined(known: PluginConnection, given: GivenAddresses, why: str) -> Joined:
    """The connection where no loop answers; `Misuse` for an address of another loop than the keys are of."""
    if not _has_keys(known):
        note = f"It has no keys yet ({why}) Install it again while the loop runs."
    elif given.loop_url not in (None, known.loop_url):
        raise Misuse(
            f"Its keys are of the loop at {known.loop_url}, and {given.loop_url} is another address: install it while that loop "
            f"runs, so that keys and addresses change together. ({why})"
        )
    else:
        note = f"Its keys are as they were, and nobody looked whether they work ({why})"
    found = {"loop_url": given.loop_url, "gateway_url": given.gateway_url}
    values = {name: value for name, value in found.items() if value is not None}
    return Joined(checked_connection(msgspec.structs.replace(known, **values)), note)


async def leave_loop(loop: OperatedLoop | None, connection: PluginConnection) -> LeftKeys:
    """Revoke the installation's keys, where this loop is theirs."""
    revoked, working = [], []
    for each in _KEYS:
        if getattr(connection, each.field) is None:
            continue
        told = getattr(connection, each.id_field) or f"called {each.name!r}"
        found = await _revoke(loop, connection, each) if loop is not None else None
        if found is None:
            working.append(told)
        else:
            revoked.append(found)
    return LeftKeys(tuple(revoked), tuple(working))


async def _revoke(loop: OperatedLoop, connection: PluginConnection, each: _PluginKey) -> str | None:
    """The id of the key that works no more; None where this loop does not know it, or does not answer."""
    port = LoopPort(loop.url, loop.key, seconds=_SECONDS)
    try:
        key_id = await _key_id(loop.url, getattr(connection, each.field))
        if key_id is not None:
            await port.ask("DELETE", path_of("/v1/keys/{key}", key=key_id))
            return key_id
        listed = {key["key_id"] for key in (await port.get("/v1/keys"))["keys"]}
    except UpswingError:
        return None
    known: str | None = getattr(connection, each.id_field)
    return known if known in listed else None


async def _key_id(url: str, key: str | None) -> str | None:
    """By what the loop knows a key; None for a key that it refuses."""
    if key is None:
        return None
    try:
        return str((await LoopPort(url, key, seconds=_SECONDS).get("/v1/whoami"))["key_id"])
    except Denied:
        return None


def _has_keys(connection: PluginConnection) -> bool:
    return any(getattr(connection, each.field) is not None for each in _KEYS)


def _key_ids(connection: PluginConnection) -> set[str]:
    return {found for each in _KEYS if (found := getattr(connection, each.id_field)) is not None}


def _address_now(known: str | None, found: str | None) -> str | None:
    """A machine's own address is where the loop is found now; one that somebody gave for a container stays.

    >>> _address_now("http://127.0.0.1:8100", "http://127.0.0.1:9000"), _address_now("http://host:8100", "http://127.0.0.1:9000")
    ('http://127.0.0.1:9000', 'http://host:8100')
    """
    if known is not None and (found is None or not _is_own_machine(known)):
        return known
    return found


def _is_own_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _strange_note(known: PluginConnection, loop: OperatedLoop) -> str:
    ids = " and ".join(sorted(_key_ids(known)))
    keys = f"Its keys there ({ids})" if ids else "Its keys there, called `agent-zero…`,"
    return (
        f"It belongs to the loop at {loop.url} now, and to the one at {known.loop_url} no more. {keys} may still work: "
        "`upswing keys revoke ID` there ends one."
    )
