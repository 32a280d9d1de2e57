"""Is an installation as it should be? Each check with its remedy."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from upswing import __version__
from upswing.errors import Denied, UpswingError
from upswing.infra.backoff import Backoff
from upswing.infra.http import exchange
from upswing.integrations.agent_zero.connection import FORM, PluginConnection, read_connection
from upswing.integrations.agent_zero.installing import PluginManifest, changed_files, read_manifest
from upswing.integrations.agent_zero.layout import Checkout
from upswing.integrations.agent_zero.package_source import install_command
from upswing.integrations.agent_zero.plugin import SPOOL
from upswing.integrations.operations.loop_port import LoopPort

_PYTHONS = ("venv/bin/python", ".venv/bin/python", "/opt/venv-a0/bin/python")
"""Where Agent Zero's own Python is, from its folder."""
_SECONDS = 60.0
_RECORDING_SCOPES = ("agent", "operator")
_KEY_PAUSES, _KEY_TRIES = Backoff(0.5, 2.0), 6
"""A gateway asks for new keys every five seconds."""
_ASK = (
    "import json, sys, upswing; from upswing.integrations.agent_zero.connection import FORM; "
    "print(json.dumps([upswing.__version__, FORM, list(sys.version_info[:2])]))"
)


@dataclass(frozen=True, slots=True)
class PluginCheck:
    """One check."""

    what: str
    ok: bool
    detail: str


def examine(checkout: Checkout, python: Path | None = None) -> list[PluginCheck]:
    """All checks; one that needs an earlier one is left out where that failed."""
    layout = f"{checkout.layout.value} layout{f', {checkout.version}' if checkout.version else ''}"
    found = [PluginCheck("Agent Zero", ok=True, detail=layout)]
    try:
        manifest = read_manifest(checkout)
    except UpswingError as error:
        return [*found, PluginCheck("plugin", ok=False, detail=str(error))]
    if manifest is None:
        remedy = "It is not installed: `upswing agent-zero install CHECKOUT`."
        return [*found, PluginCheck("plugin", ok=False, detail=remedy)]
    found += _check_files(checkout, manifest)
    found.append(_check_python(checkout, python))
    try:
        connection = read_connection(checkout.root / checkout.home)
    except UpswingError as error:
        return [*found, PluginCheck("connection", ok=False, detail=str(error))]
    return [*found, *asyncio.run(_check_connection(connection)), _check_spool(checkout)]


def _check_files(checkout: Checkout, manifest: PluginManifest) -> Iterator[PluginCheck]:
    odd = changed_files(checkout, manifest)
    listed = ", ".join(f"{path} is {how}" for path, how in sorted(odd.items()))
    remedy = f"{listed}: install it again (`--force` overwrites changes)."
    yield PluginCheck("files", not odd, remedy if odd else f"all {len(manifest.files)} as written")
    fits = manifest.form == FORM
    same = f"upswing {manifest.version}, form {manifest.form}"
    detail = same if fits else f"{same}; this upswing has form {FORM}: install it again."
    yield PluginCheck("version", fits, detail)


def _check_python(checkout: Checkout, python: Path | None) -> PluginCheck:
    places = [python] if python else [checkout.root / each for each in _PYTHONS]
    found = next((each for each in places if each.is_file()), None)
    if found is None:
        looked = ", ".join(map(str, places))
        remedy = f"There is none at {looked}: name it with --python."
        if python is not None:
            remedy = (
                f"{python}, which --python names, is no file: name the Python that runs Agent Zero."
            )
        return PluginCheck("Python", ok=False, detail=remedy)
    try:
        ran = subprocess.run(  # noqa: S603 - the user's own interpreter, in no foreign folder
            [str(found), "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            cwd="/",
        )
        version, form, python_version = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        remedy = f"{found} has no upswing: `{install_command(found)}`."
        return PluginCheck("Python", ok=False, detail=remedy)
    if (version, form) != (__version__, FORM):
        remedy = f"{found} has upswing {version} (form {form}), this is {__version__} (form {FORM}): install the same."
        return PluginCheck("Python", form == FORM, remedy)
    number = ".".join(map(str, python_version))
    return PluginCheck("Python", ok=True, detail=f"{found} ({number}) has upswing {version}")


async def _check_connection(connection: PluginConnection) -> list[PluginCheck]:
    recording = await _check_key(connection)
    return [
        recording,
        await _check_assistant(connection),
        await _check_gateway(connection, fresh=recording.ok),
    ]


async def _check_key(connection: PluginConnection) -> PluginCheck:
    """Asked for nothing but whose key it is, which leaves no trace."""
    if connection.key is None or connection.loop_url is None:
        remedy = "There is no key: install it again while the loop runs."
        return PluginCheck("recording", ok=False, detail=remedy)
    try:
        who = await LoopPort(connection.loop_url, connection.key, seconds=10).get("/v1/whoami")
    except Denied:
        remedy = f"The loop at {connection.loop_url} refuses the key: install it again while the loop runs."
        return PluginCheck("recording", ok=False, detail=remedy)
    except UpswingError as error:
        return PluginCheck("recording", ok=False, detail=f"{error} Is the loop running?")
    scope = who.get("scope") if isinstance(who, Mapping) else None
    if scope not in _RECORDING_SCOPES:
        remedy = f"What answers at {connection.loop_url} is not a loop that the key may record at: install it again."
        return PluginCheck("recording", ok=False, detail=remedy)
    return PluginCheck("recording", ok=True, detail=f"{connection.loop_url} takes the key")


async def _check_assistant(connection: PluginConnection) -> PluginCheck:
    if connection.assistant_key is None or connection.loop_url is None:
        remedy = "The rl-trainer has no key: install it again while the loop runs."
        return PluginCheck("rl-trainer", ok=False, detail=remedy)
    try:
        await LoopPort(connection.loop_url, connection.assistant_key, seconds=10).get("/v1/status")
    except UpswingError as error:
        return PluginCheck("rl-trainer", ok=False, detail=str(error))
    return PluginCheck("rl-trainer", ok=True, detail="its key reads")


async def _check_gateway(connection: PluginConnection, *, fresh: bool) -> PluginCheck:
    """Asked for its models with the plugin's key; `fresh`: the loop takes the key, so the gateway will hear of it."""
    url, failures = f"{connection.gateway_url.rstrip('/')}/v1/models", 0
    while True:
        try:
            reply = await exchange("GET", url, key=connection.key, seconds=10)
        except UpswingError as error:
            remedy = f"{error} Only models of the provider Upswing need it."
            return PluginCheck("gateway", ok=False, detail=remedy)
        failures += 1
        if reply.status != 401 or not fresh or failures == _KEY_TRIES:
            break
        await asyncio.sleep(_KEY_PAUSES.seconds(failures))
    told = {
        200: f"{connection.gateway_url} takes the key",
        401: f"{connection.gateway_url} refuses the key: it is another loop's gateway, or the key is revoked. Install it again "
        "while the loop runs.",
    }
    other = f"{connection.gateway_url} answers {reply.status} to GET /v1/models: is it a gateway?"
    return PluginCheck("gateway", reply.status == 200, told.get(reply.status, other))


def _check_spool(checkout: Checkout) -> PluginCheck:
    folder = checkout.root / checkout.home / SPOOL
    size = (
        sum(each.stat().st_size for each in folder.glob("*") if each.is_file())
        if folder.is_dir()
        else 0
    )
    waits = (
        f"{size} bytes of recordings wait for the loop" if size else "nothing waits for the loop"
    )
    return PluginCheck("spool", ok=True, detail=waits)
