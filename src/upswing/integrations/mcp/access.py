"""Whose key does an assistant ask with, and who may do what only a person confirms?

| the server was started        | it reads and requests with                            | confirmed requests with    |
|-------------------------------|-------------------------------------------------------|----------------------------|
| beside a loop (`--data`)      | a key of its own, scope `assistant`, in `mcp.json`    | the operator's key         |
| with `AGENTGYM_RL_URL`        | `AGENTGYM_RL_API_KEY`                                 | the same, if it may        |
| over HTTP                     | the key that each client sends                        | the server's own, as above |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from upswing.contracts.typed import from_json
from upswing.errors import Denied, Misuse
from upswing.infra.instance import find_running_instance, no_loop_sentence, write_private
from upswing.integrations.operations.loop_port import LoopPort

KEY_FILE = "mcp.json"


class AssistantKey(msgspec.Struct, frozen=True):
    """The server's own key, as it is kept."""

    key_id: str
    key: str


@dataclass(frozen=True, slots=True)
class LoopAccess:
    """The loop, and the keys to it."""

    url: str
    key: str
    operator_key: str | None = None
    """Where the server has one; it is used for what a person confirmed, and for nothing else."""

    @property
    def client(self) -> LoopPort:
        return LoopPort(self.url, self.key)

    @property
    def operator(self) -> LoopPort:
        if self.operator_key is None:
            raise Denied("This server has no operator's key, so nobody can confirm this here.")
        assistant = self.key if self.key != self.operator_key else None
        return LoopPort(self.url, self.operator_key, assistant_key=assistant)


async def open_access(data: Path, environment: Mapping[str, str]) -> LoopAccess:
    """How the loop is reached from here; `Misuse` with what to do where it is not."""
    if url := environment.get("AGENTGYM_RL_URL"):
        if not (key := environment.get("AGENTGYM_RL_API_KEY")):
            raise Misuse(
                "AGENTGYM_RL_URL is set, but AGENTGYM_RL_API_KEY is not: set it to a key of `upswing keys add mcp "
                "--scope assistant`."
            )
        return LoopAccess(url.rstrip("/"), key, key)
    running = find_running_instance(data)
    if running is None:
        raise Misuse(no_loop_sentence(data))
    own = read_assistant_key(data) or await _make_assistant_key(data, running.http_url, running.key)
    return LoopAccess(running.http_url, own.key, running.key)


def operator_key(data: Path, environment: Mapping[str, str]) -> str:
    """The key that confirms; for `upswing mcp confirm`."""
    if environment.get("AGENTGYM_RL_URL"):
        if key := environment.get("AGENTGYM_RL_API_KEY"):
            return key
        raise Misuse("AGENTGYM_RL_API_KEY is not set: it has to be the operator's key to confirm.")
    running = find_running_instance(data)
    if running is None:
        raise Misuse(no_loop_sentence(data))
    return running.key


def read_assistant_key(data: Path) -> AssistantKey | None:
    """The key that was made for this server; None: none was."""
    path = data / KEY_FILE
    try:
        return from_json(path.read_bytes(), AssistantKey)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Misuse(
            f"{path} cannot be read ({type(error).__name__}): delete it, and another key is made."
        ) from None


async def _make_assistant_key(data: Path, url: str, key: str) -> AssistantKey:
    made = await LoopPort(url, key).post("/v1/keys", {"name": "mcp", "scope": "assistant"})
    own = AssistantKey(made["key_id"], made["key"])
    write_private(data / KEY_FILE, json.dumps(msgspec.to_builtins(own)))
    return own
