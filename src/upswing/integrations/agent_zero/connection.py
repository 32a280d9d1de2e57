"""How does the plugin reach the loop? A file in the plugin's own folder, readable by its owner only."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from upswing.contracts.typed import from_json
from upswing.errors import Misuse
from upswing.infra.http import check_url

FILE = "connection.json"
FORM = 1
"""What the plugin's files and this library have agreed on; a plugin of another form does nothing and says so."""


class PluginConnection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Addresses and keys, as `upswing agent-zero install` writes them."""

    loop_url: str | None = None
    """The loop's address; None: the recorder finds it as it does everywhere."""
    key: str | None = None
    """Of scope `agent`: records, gives feedback, and asks models at the gateway."""
    key_id: str | None = None
    """By what the loop knows the key: who takes the plugin out revokes it."""
    assistant_key: str | None = None
    """Of scope `assistant`, for the rl-trainer's tools: reads, and requests training."""
    assistant_key_id: str | None = None
    """The same of that key."""
    gateway_url: str = "http://127.0.0.1:3000"
    """The gateway's address, without `/v1`."""
    agent_id: Annotated[str, Meta(min_length=1, max_length=100)] = "agent-zero"
    """What the agents of this installation are called; a subordinate's name is added."""
    user_id: str | None = None
    """Who uses it, where that is one person."""
    system_prompt: bool = True
    """Whether the system prompt is recorded with a request: without it a model is trained on a conversation that it
    never reads. About 40 KB a trajectory."""
    follow_ups: bool = True
    """Whether the user's next message is sent as a follow-up on the answer before it."""
    notices_seconds: Annotated[float, Meta(ge=10, le=86_400)] = 60.0
    """Seconds between two questions for new alerts and reports, 10 to 86,400: alerts are of minutes, not seconds."""


def read_connection(folder: Path) -> PluginConnection:
    """What the plugin's folder says; without a file, the loop is looked for as everywhere.

    `Misuse` for a file that others can read: a key in it is no secret any more.
    """
    path = folder / FILE
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return PluginConnection()
    if not stat.S_ISREG(mode):
        raise Misuse(f"{path} is a link or no file, and is not followed: move it away.")
    if mode & 0o077:
        raise Misuse(f"{path} can be read by others: make new keys, and `chmod 600` it.")
    try:
        return checked_connection(from_json(path.read_bytes(), PluginConnection))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(
            f"{path} cannot be read ({error}): run `upswing agent-zero install` again."
        ) from None


def checked_connection(connection: PluginConnection) -> PluginConnection:
    """The same, if its addresses can be asked."""
    for url in filter(None, (connection.loop_url, connection.gateway_url)):
        if set(url) & set("\"'\\ \t\r\n"):
            raise Misuse(f"{url!r} is no address: it has blanks or quotes in it.")
        if not url.startswith(("nats:", "tls:")):
            check_url(url)
    return connection


def write_connection(folder: Path, connection: PluginConnection) -> None:
    """Whole or not at all, mode 600; nothing is followed, and nothing foreign is overwritten."""
    path, fresh = folder / FILE, folder / f"{FILE}.new"
    fresh.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(fresh, flags, 0o600)
    values: Any = msgspec.to_builtins(connection)
    with os.fdopen(descriptor, "w") as file:
        file.write(json.dumps({"form": FORM, **values}, indent=2) + "\n")
    fresh.replace(path)
