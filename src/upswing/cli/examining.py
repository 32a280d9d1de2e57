"""What does the doctor look at? One function a check: a sentence when all is well, an error when not."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.errors import Misuse
from upswing.wording import counted

if TYPE_CHECKING:
    from upswing.config import Settings, Surroundings
    from upswing.running import Running

_LEAST_GB = 1.0
"""Free on the disk: a trajectory takes kilobytes, a checkpoint of `smollm2` half a gigabyte."""
_CHECK_SECONDS = 10.0
"""For SQLite's own check of the store's file."""
_PRIVATE = ("secrets.json", "running.json", "nats/nats.conf")


@dataclass(frozen=True, slots=True)
class Case:
    """The set-up that is looked at."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8100
    gateway_port: int = 3000

    def running(self) -> Running | None:
        from upswing.running import read_running

        return read_running(self.folder)

    def decided(self) -> tuple[Settings, Surroundings]:
        from upswing.config import read_settings, read_surroundings

        return read_settings(self.folder, os.environ), read_surroundings(os.environ)


class Wrong(Misuse):
    """Something is wrong that has a remedy of its own."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.remedy = remedy


def python(_: Case) -> str:
    return f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}."


def environment(_: Case) -> str:
    from upswing.cli.suggesting import VARIABLES, odd_variables

    if odd := odd_variables(os.environ):
        raise Misuse(" ".join(odd))
    ours = sorted(VARIABLES & {name for name, value in os.environ.items() if value})
    return f"Of our variables, {', '.join(ours)} are set." if ours else "None of our variables is set."  # fmt: skip


def config(case: Case) -> str:
    from upswing.looking import make_redactor

    settings, surroundings = case.decided()
    check_config(settings, surroundings)
    make_redactor(settings)
    return f"The config is valid; {counted(len(settings.redact.rules), 'redaction rule')} of your own."  # fmt: skip


def check_config(settings: Settings, surroundings: Surroundings) -> None:
    """`Misuse` when a setting, or a variable that stands for one, cannot be meant so."""
    from upswing.config import registered_worlds
    from upswing.deploy.policy import policy_of as deploy_policy
    from upswing.gateway.allowance import read_allowance
    from upswing.scoring import rules_of
    from upswing.train.wish import check_knobs
    from upswing.trigger.policy import policy_of
    from upswing.worlds.known import place_of

    policy_of(settings, surroundings)
    deploy_policy(surroundings.deploy, settings.deploy)
    check_knobs(settings.train.recipe, partial(place_of, registered=registered_worlds(settings)))
    read_allowance(os.environ)
    rules_of(settings.reward, surroundings)


def extras(case: Case) -> str:
    from upswing.adapters.prerequisites import EXTRAS, missing

    settings, surroundings = case.decided()
    needed = {
        "train": not settings.serve.url,
        "llama": settings.serve.engine == "llama",
        "postgres": bool(surroundings.database_url),
        "inspect": any(each.startswith("inspect:") for each in settings.validate.suites or ()),
    }
    lacking = {name: gone for name in EXTRAS if (gone := missing(name))}
    for name, packages in lacking.items():
        if needed.get(name):
            raise Wrong(
                f"This set-up needs the extra `{name}`, which {EXTRAS[name][1]}; {', '.join(packages)} "
                f"{'is' if len(packages) == 1 else 'are'} not installed.",
                f"pip install 'upswing[{name}]'",
            )
    there = ", ".join(name for name in EXTRAS if name not in lacking) or "none"
    return f"Installed: {there}. Not installed: {', '.join(lacking) or 'none'}."


def base_model(case: Case) -> str:
    from upswing.cli.loop import check_can_serve
    from upswing.config import defaults

    settings, surroundings = case.decided()
    check_can_serve(settings, surroundings)
    base = defaults(settings, surroundings).base_model
    if base is None:
        return "No base model is named, so nothing is served or trained by itself here."
    if settings.serve.url:
        return f"{base}, at {settings.serve.url}."
    made = base not in {"tiny", "smollm2"} or any((case.folder / "bases").glob(f"{base}-*"))
    return f"{base} is on this machine." if made else f"{base} is made at the first start."


def validation(case: Case) -> str:
    from upswing.adapters.validation import MemoryPins
    from upswing.proving_suites import Repertoire
    from upswing.validate.task import Task

    chosen = case.decided()[0].validate
    Repertoire(chosen, MemoryPins(Task))
    own = f"{counted(len(chosen.files), 'file')} and {counted(len(chosen.worlds), 'world')}"
    return f"The suites to validate with are there, with {own} of your own."


def redactor(_: Case) -> str:
    try:
        version = importlib.metadata.version("hyperscan")
    except importlib.metadata.PackageNotFoundError:
        return "hyperscan is not installed; the pure-Python engine finds the same, more slowly."
    return f"hyperscan {version} speeds up redaction."


def data(case: Case) -> str:
    there = _there(case.folder)
    if not there.is_dir():
        raise Wrong(f"{there} is no directory.", "Choose another directory with --data.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Wrong(
            f"{there} cannot be written.", "Choose another directory with --data, or own this one."
        )
    return f"{case.folder} can be written." if there == case.folder else f"{case.folder} can be made."  # fmt: skip


def disk(case: Case) -> str:
    there = _there(case.folder)
    free = shutil.disk_usage(there).free / 1e9
    if free < _LEAST_GB:
        raise Wrong(
            f"Only {free:.1f} GB are free at {there}.",
            f"Make room for {_LEAST_GB:g} GB at least, or choose another directory with --data.",
        )
    return f"{free:.0f} GB are free at {there}."


def bus(case: Case) -> str:
    _, surroundings = case.decided()
    if url := surroundings.nats_url:
        from upswing.adapters.nats.bus import Bus, redacted_url

        async def probe() -> None:
            found = await Bus.connect(url)
            try:
                await found.js.account_info()
            finally:
                await found.close()

        asyncio.run(asyncio.wait_for(probe(), 10))
        return f"The bus at {redacted_url(url)} answers and has JetStream."
    from upswing.adapters.nats.server import binary

    version = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    return f"{version.stdout.strip()} is there for the embedded bus."


def store(case: Case) -> str:
    from upswing.adapters.sql.inspection import check_file
    from upswing.adapters.sql.store import read_only

    url = case.decided()[1].database_url
    if not url and not (case.folder / "upswing.db").exists():
        return "No store yet; `upswing up` makes it."
    deadline = time.monotonic() + _CHECK_SECONDS
    whole = url or check_file(case.folder, lambda: time.monotonic() > deadline)

    async def count() -> int:
        found = read_only(case.folder, url)
        try:
            return (await found.counts())["trajectories"]
        finally:
            found.close()

    looked = "" if whole else f" Its file is larger than what is checked in {_CHECK_SECONDS:g} s."
    return f"The store has {counted(asyncio.run(count()), 'trajectory', 'trajectories')}.{looked}"


def port(case: Case) -> str:
    if running := case.running():
        from upswing.cli.client import ask

        ask(case.folder, "GET", "/health")
        return f"The loop answers at {running.http_url} (process {running.pid})."
    return _free(case.host, case.port, "--port")


def gateway_port(case: Case) -> str:
    running = case.running()
    if running is None:
        return _free(case.host, case.gateway_port, "--gateway-port")
    if running.gateway_url is None:
        return "The loop was started with --no-gateway."
    from upswing.adapters.one_token import health

    return f"The gateway answers at {running.gateway_url}: {health(running.gateway_url)}."


def keys(case: Case) -> str:
    """The files that hold them are ours alone, and what the environment says can be understood."""
    from upswing.gateway.setup import Told, check_address, read_setup
    from upswing.running import known_secrets

    for name in _PRIVATE:
        path = case.folder / name
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Wrong(f"{path} can be read by others.", f"chmod 600 {path}")
    known = known_secrets(case.folder)
    check_address(case.host, read_setup(Told("nats://-", secrets=known), os.environ))
    if (running := case.running()) and running.gateway_url:
        from upswing.adapters.one_token import listed
        from upswing.cli.client import ask

        ask(case.folder, "GET", "/v1/keys")
        listed(f"{running.gateway_url}/v1", running.gateway_key)
        return "The operator's and the agents' key are taken."
    return "The keys are there." if known else "Keys are made at the first start."


def backend(case: Case) -> str:
    """One token, through the gateway of the running loop or from the server that is named."""
    from upswing.adapters.exchange import v1
    from upswing.adapters.one_token import one_token
    from upswing.config import defaults

    settings, surroundings = case.decided()
    if (running := case.running()) and running.gateway_url:
        probed = one_token(f"{running.gateway_url}/v1", running.gateway_key, probe=True)
        return f"{probed.model} answered through the gateway in {probed.seconds:.1f} s."
    base = defaults(settings, surroundings).base_model
    if settings.serve.url and base:
        probed = one_token(v1(settings.serve.url), surroundings.serve_key, base)
        return f"{base} answered at {settings.serve.url} in {probed.seconds:.1f} s."
    return "No model is served now: `upswing up` says that it is ready when one has answered."


def _there(folder: Path) -> Path:
    """The directory itself, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _free(host: str, number: int, option: str) -> str:
    from upswing.adapters.listening import bound

    if number == 0:
        return "Any free port is taken."
    bound(host, number, option).close()
    return f"Port {number} on {host} is free."
