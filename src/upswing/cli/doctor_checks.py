"""What does the doctor look at? One function a check: a sentence when all is well, an error when not."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from upswing.errors import Misuse, Transient, count_phrase

if TYPE_CHECKING:
    from upswing.config import Settings, Surroundings
    from upswing.infra.instance import InstanceInfo

_LEAST_GB = 1.0
"""Free on the disk: a trajectory takes kilobytes, a checkpoint of `smollm2` half a gigabyte."""
_CHECK_SECONDS = 10.0
"""For SQLite's own check of the store's file."""
_START_SECONDS = 300.0
"""A loop that is younger may still be loading its model: that is no fault."""
_PRIVATE = ("secrets.json", "running.json", "nats/nats.conf")


@dataclass(frozen=True, slots=True)
class DoctorCase:
    """The set-up that is looked at."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8100
    gateway_port: int = 3000

    def running(self) -> InstanceInfo | None:
        from upswing.infra.instance import find_running_instance

        return find_running_instance(self.folder)

    def starting(self) -> bool:
        """Whether a loop has this directory but does not answer yet."""
        from upswing.infra.sql.store import is_locked

        return self.running() is None and is_locked(self.folder)

    def is_young(self) -> bool:
        """Whether a loop starts, or said so lately where it answers that it may still be loading its model."""
        if self.starting():
            return True
        with contextlib.suppress(FileNotFoundError):
            age = time.time() - (self.folder / "running.json").stat().st_mtime
            return self.running() is not None and age <= _START_SECONDS
        return False

    def decided(self) -> tuple[Settings, Surroundings]:
        from upswing.config import read_settings, read_surroundings

        return read_settings(self.folder, os.environ), read_surroundings(os.environ)


class CheckPending(Misuse):
    """Not wrong, but not there yet: a loop starts, or a model server comes back."""


@contextlib.contextmanager
def _pending_while_young(case: DoctorCase, awaited: str) -> Iterator[None]:
    """What a loop that starts does not answer yet is no fault."""
    try:
        yield
    except Transient as error:
        if not case.is_young():
            raise
        raise CheckPending(f"The loop is starting and waits for {awaited}. {error}") from None


class CheckFailed(Misuse):
    """Something is wrong that has a remedy of its own."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.remedy = remedy


def check_python(_: DoctorCase) -> str:
    return f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}."


def check_environment(_: DoctorCase) -> str:
    from upswing.cli.suggesting import VARIABLES, unknown_variables
    from upswing.contracts.backend_keys import PREFIX

    if odd := unknown_variables(os.environ):
        raise Misuse(" ".join(odd))
    present = {name for name, value in os.environ.items() if value}
    ours = sorted((VARIABLES & present) | {name for name in present if name.startswith(PREFIX)})
    return (
        f"Of our variables, {', '.join(ours)} are set." if ours else "None of our variables is set."
    )


def check_configuration(case: DoctorCase) -> str:
    from upswing.collect.worker_pool import make_redactor

    settings, surroundings = case.decided()
    check_config(settings, surroundings)
    make_redactor(settings)
    return f"The config is valid; {count_phrase(len(settings.redact.rules), 'redaction rule')} of your own."


def check_config(settings: Settings, surroundings: Surroundings) -> None:
    """`Misuse` when a setting, or a variable that stands for one, cannot be meant so."""
    from upswing.config import registered_worlds
    from upswing.deploy.core.policy import deploy_policy_of as deploy_policy
    from upswing.gateway.core.serving_policy import read_serving_policy
    from upswing.infra.objects import check_storage
    from upswing.reward.wiring import build_reward_rules
    from upswing.train.core.request import check_recipe_settings
    from upswing.trigger.core.policy import trigger_policy_of
    from upswing.worlds.known import locate_world

    trigger_policy_of(settings, surroundings)
    deploy_policy(surroundings.deploy, settings.deploy)
    check_recipe_settings(
        settings.train.recipe, partial(locate_world, registered=registered_worlds(settings))
    )
    read_serving_policy(os.environ)
    for path, variable in (
        (surroundings.storage_path, "TRAJECTORY_STORAGE_PATH"),
        (surroundings.model_storage_path, "MODEL_STORAGE_PATH"),
    ):
        if path:
            check_storage(path, variable)
    build_reward_rules(settings.reward, surroundings)


def check_extras(case: DoctorCase) -> str:
    from upswing.serve.prerequisites import EXTRAS, missing_packages

    settings, surroundings = case.decided()
    needed = {
        "train": not settings.serve.url,
        "llama": settings.serve.engine == "llama",
        "postgres": bool(surroundings.database_url),
        "inspect": any(each.startswith("inspect:") for each in settings.validate.suites or ()),
    }
    lacking = {name: gone for name in EXTRAS if (gone := missing_packages(name))}
    for name, packages in lacking.items():
        if needed.get(name):
            raise CheckFailed(
                f"This set-up needs the extra `{name}`, which {EXTRAS[name][1]}; {', '.join(packages)} "
                f"{'is' if len(packages) == 1 else 'are'} not installed.",
                f"pip install '.[{name}]' in Upswing's folder",
            )
    there = ", ".join(name for name in EXTRAS if name not in lacking) or "none"
    return f"Installed: {there}. Not installed: {', '.join(lacking) or 'none'}."


def check_base_model(case: DoctorCase) -> str:
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


def check_validation(case: DoctorCase) -> str:
    from upswing.validate.core.task import ValidationTask
    from upswing.validate.sample_score_store import MemoryPinStore
    from upswing.validate.suite_selection import SuiteCatalog

    chosen = case.decided()[0].validate
    SuiteCatalog(chosen, MemoryPinStore(ValidationTask))
    own = (
        f"{count_phrase(len(chosen.files), 'file')} and {count_phrase(len(chosen.worlds), 'world')}"
    )
    return f"The suites to validate with are there, with {own} of your own."


def check_redactor(_: DoctorCase) -> str:
    try:
        version = importlib.metadata.version("hyperscan")
    except importlib.metadata.PackageNotFoundError:
        return "hyperscan is not installed; the pure-Python engine finds the same, more slowly."
    return f"hyperscan {version} speeds up redaction."


def check_data(case: DoctorCase) -> str:
    there = _require_data_directory(case.folder)
    if not there.is_dir():
        raise CheckFailed(f"{there} is no directory.", "Choose another directory with --data.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CheckFailed(
            f"{there} cannot be written.", "Choose another directory with --data, or own this one."
        )
    return (
        f"{case.folder} can be written." if there == case.folder else f"{case.folder} can be made."
    )


def check_disk(case: DoctorCase) -> str:
    there = _require_data_directory(case.folder)
    free = shutil.disk_usage(there).free / 1e9
    if free < _LEAST_GB:
        raise CheckFailed(
            f"Only {free:.1f} GB are free at {there}.",
            f"Make room for {_LEAST_GB:g} GB at least, or choose another directory with --data.",
        )
    return f"{free:.0f} GB are free at {there}."


def check_bus(case: DoctorCase) -> str:
    _, surroundings = case.decided()
    if url := surroundings.nats_url:
        from upswing.infra.nats.bus import Bus, redacted_url

        async def probe() -> None:
            found = await Bus.connect(url)
            try:
                await found.js.account_info()
            finally:
                await found.close()

        asyncio.run(asyncio.wait_for(probe(), 10))
        return f"The bus at {redacted_url(url)} answers and has JetStream."
    from upswing.infra.nats.server import find_server_binary

    version = subprocess.run(  # noqa: S603
        [find_server_binary(), "--version"], capture_output=True, text=True, check=True
    )
    return f"{version.stdout.strip()} is there for the embedded bus."


def check_store(case: DoctorCase) -> str:
    from upswing.infra.sql import store_mark
    from upswing.infra.sql.inspection import check_file
    from upswing.infra.sql.store import open_store_read_only

    url = case.decided()[1].database_url
    if not url and not case.running() and not case.starting():
        store_mark.check_file(case.folder)  # what `upswing up` would refuse
    if not url and not (case.folder / "upswing.db").exists():
        return "No store yet; `upswing up` makes it."
    deadline = time.monotonic() + _CHECK_SECONDS
    whole = url or check_file(case.folder, lambda: time.monotonic() > deadline)

    async def count() -> int:
        found = open_store_read_only(case.folder, url)
        try:
            return (await found.counts())["trajectories"]
        finally:
            found.close()

    note = "" if whole else f" Its file is larger than what is checked in {_CHECK_SECONDS:g} s."
    return (
        f"The store has {count_phrase(asyncio.run(count()), 'trajectory', 'trajectories')}.{note}"
    )


def check_port(case: DoctorCase) -> str:
    if running := case.running():
        from upswing.cli.client import ask

        with _pending_while_young(case, "its port"):
            ask(case.folder, "GET", "/health")
        return f"The loop answers at {running.http_url} (process {running.pid})."
    if case.starting():
        return "A loop is starting in this directory."
    return _require_free_port(case.host, case.port, "--port")


def check_gateway_port(case: DoctorCase) -> str:
    running = case.running()
    if case.starting():
        return "A loop is starting in this directory."
    if running is None:
        return _require_free_port(case.host, case.gateway_port, "--gateway-port")
    if running.gateway_url is None:
        return "The loop was started with --no-gateway."
    from upswing.serve.readiness import gateway_status

    with _pending_while_young(case, "its gateway"):
        status = gateway_status(running.gateway_url)
    return f"The gateway answers at {running.gateway_url}: {status}."


def check_keys(case: DoctorCase) -> str:
    """The files that hold them are ours alone, and what the environment says can be understood."""
    from upswing.gateway.core.setup import SetupSources, check_public_address, read_setup
    from upswing.infra.instance import read_known_secrets

    for name in _PRIVATE:
        path = case.folder / name
        if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise CheckFailed(f"{path} can be read by others.", f"chmod 600 {path}")
    known = read_known_secrets(case.folder)
    check_public_address(case.host, read_setup(SetupSources("nats://-", secrets=known), os.environ))
    if (running := case.running()) and running.gateway_url:
        from upswing.cli.client import ask
        from upswing.serve.readiness import list_models

        with _pending_while_young(case, "its gateway"):
            ask(case.folder, "GET", "/v1/keys")
            list_models(f"{running.gateway_url}/v1", running.gateway_key)
        return "The operator's and the agents' key are taken."
    return "The keys are there." if known else "Keys are made at the first start."


def check_backend(case: DoctorCase) -> str:
    """One token, through the gateway of the running loop or from the server that is named."""
    from upswing.config import defaults
    from upswing.serve.http_client import with_v1
    from upswing.serve.readiness import probe_one_token

    settings, surroundings = case.decided()
    if case.starting():
        part = "its bus and its workers" if (case.folder / "upswing.db").exists() else "its store"
        raise CheckPending(f"A loop is starting in this directory and waits for {part}.")
    if (running := case.running()) and running.gateway_url:
        with _pending_while_young(case, "a model to answer"):
            probed = probe_one_token(
                f"{running.gateway_url}/v1", running.gateway_key, is_gateway=True
            )
        return f"{probed.model} answered through the gateway in {probed.seconds:.1f} s."
    base = defaults(settings, surroundings).base_model
    if settings.serve.url and base:
        url = with_v1(settings.serve.url)
        probed = probe_one_token(url, surroundings.model_server_key(settings.serve.url), base)
        return f"{base} answered at {settings.serve.url} in {probed.seconds:.1f} s."
    return "No model is served now: `upswing up` says that it is ready when one has answered."


def _require_data_directory(folder: Path) -> Path:
    """The directory itself, or the nearest one above it that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def _require_free_port(host: str, number: int, option: str) -> str:
    from upswing.infra.sockets import bind_port

    if number == 0:
        return "Any free port is taken."
    bind_port(host, number, option).close()
    return f"Port {number} on {host} is free."
