"""How do the parts that ship a model come together? Model server, validation, controller.

model server ◀── loads ── controller ── plan ──▶ gateway
▲                       │
└──── asks ──── validation (candidate beside current)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

from msgspec import UNSET, MsgspecError
from prometheus_client import CollectorRegistry

from upswing.adapters.model_process import ModelProcess
from upswing.adapters.nats.bus import Bus
from upswing.adapters.nats.plans import PlanBoard
from upswing.adapters.objects import Objects
from upswing.adapters.probing import Probes
from upswing.adapters.serving import TOKENS, HttpServing, Server
from upswing.adapters.sql.database import Database
from upswing.adapters.sql.earnings import Earnings
from upswing.adapters.sql.jobs import Jobs
from upswing.adapters.sql.models import Models
from upswing.adapters.sql.production import Production
from upswing.adapters.sql.rollouts import Rollouts
from upswing.adapters.sql.validations import Validations
from upswing.aside import Burial
from upswing.backend_keys import key_for
from upswing.comparing import Comparison, look_up
from upswing.config import ServeConfig, Settings, Surroundings
from upswing.contracts.backend import is_remote
from upswing.contracts.steps import number
from upswing.deploy.ledger_service import World
from upswing.deploy.logged import Logged
from upswing.deploy.metrics import DeployMetrics
from upswing.deploy.policy import policy_of
from upswing.deploy.service import Controller
from upswing.errors import Misuse, Transient, UpswingError
from upswing.ports import ModelRow
from upswing.proving import AsksJudge, Proving
from upswing.redact import Redactor
from upswing.together import together
from upswing.train.movement import Movement, movement_of
from upswing.validate.metrics import ValidateMetrics

log = logging.getLogger(__name__)
_AGAIN_SECONDS, _TAKE_UP_SECONDS = 30.0, 60.0
_MADE_HERE = ("tiny", "smollm2")
"""Bases that do not lie in a folder before they are served for the first time."""


class Shipping:
    """What makes a trained model answer."""

    def __init__(
        self, folder: Path, settings: Settings, surroundings: Surroundings, database: Database,
        bus: Bus, objects: Objects, redactor: Redactor, registry: CollectorRegistry, base: str,
        *, clock: Callable[[], datetime], wall: Callable[[], datetime],
        new_id: Callable[[], UUID], changed: Callable[[], None], judge: AsksJudge | None,
        worlds: Mapping[str, Any] | None = None, burial: Burial | None = None,
    ) -> None:  # fmt: skip
        self.base, self._trouble = base, ""
        self._made = base not in _MADE_HERE or any((folder / "bases").glob(f"{base}-*"))
        self._where = settings.serve.url
        self._models, self._earnings = Models(database), Earnings(database)
        self._validations, self._jobs = Validations(database), Jobs(database)
        self.process = _our_server(folder, settings.serve, base)
        self._up = self.process is None
        self.board = PlanBoard(bus)
        self._serve_url, self._keys = settings.serve.url, surroundings.backend_keys
        self._serve_key = surroundings.serve_key or ""
        self.serving = HttpServing(
            _server(self.process, settings.serve, surroundings), objects, folder / "copies",
            Probes(folder / "backends.json", self._key_of, clock=wall), self._key_of,
        )  # fmt: skip
        self.proving = Proving(
            folder / "validation", settings.validate, self._validations, objects, self.find,
            redactor, clock=clock, wall=wall, new_id=new_id, judge=judge,
            key_of=self._key_of, unusable=self._unusable, remote=self._is_remote, trained=self._trained,
            metrics=ValidateMetrics(registry), worlds=worlds, production=Production(database), base=base,
        )  # fmt: skip
        world = World(
            Rollouts(database), self.board, self.serving, clock, wall, new_id, changed,
            burial or Burial(database.aside),
        )  # fmt: skip
        self.controller = Controller(
            world, self.proving.prove, policy_of(surroundings.deploy, settings.deploy),
            base=base, holder=str(new_id()), metrics=DeployMetrics(registry),
            unchanged=self._unchanged, logged=self._logged,
        )  # fmt: skip

    async def run(self) -> None:
        """Have the base served, then lead; until cancelled."""
        while self.process and not await self._started(self.process):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_AGAIN_SECONDS)
        await self._going_on(self.proving.resume)
        await together(self.controller.run(), self._take_up())

    def waiting_for(self) -> str:
        """What the first answer waits for."""
        if not self._up:
            return self._trouble or self._loading()
        if self._where and not self.controller.leading:
            return f"the server at {self._where} to serve `{self.base}`"
        return "the gateway to hear who answers"

    def _loading(self) -> str:
        first = "" if self._made else ", which is made first: that takes a minute, once"
        return f"the model server to load `{self.base}`{first}"

    async def _started(self, process: ModelProcess) -> bool:
        try:
            await process.start()
        except (Misuse, Transient, OSError) as error:
            self._trouble = (
                f"a model server. {error} It is tried again every {_AGAIN_SECONDS:.0f} s"
            )
            log.error("No model is served: %s", error, extra={"action": "alert"})  # noqa: TRY400 - a clear sentence
            return False
        self._up = True
        return True

    async def _take_up(self) -> None:
        """Another process of the same store may die: what it validated goes on here."""
        while True:
            await asyncio.sleep(_TAKE_UP_SECONDS)
            await self._going_on(self.proving.take_up)

    async def _going_on(self, resume: Callable[[], Awaitable[object]]) -> None:
        """What the last process left unfinished is no reason not to lead."""
        try:
            await resume()
        except (UpswingError, OSError, MsgspecError) as error:
            log.error("A validation does not go on: %s", error, extra={"action": "alert"})  # noqa: TRY400 - a clear sentence
        except Exception:
            log.exception("A validation does not go on", extra={"action": "alert"})

    async def close(self) -> None:
        """Validations stop and go on after the next start; then the server goes."""
        await self.proving.close()
        if self.process:
            await self.process.stop()

    def _key_of(self, url: str) -> str:
        """The key of a model's server; no server gets another one's."""
        ours = self._serve_key if _same(url, self._serve_url) else ""
        return ours or key_for(url, self._keys)

    def _unusable(self, url: str, name: str) -> Collection[str]:
        """Fields that a model's server does not take, as far as it was probed."""
        found = self.serving.abilities(url, name)
        return found.unusable if found else ()

    async def _is_remote(self, model_id: str) -> bool:
        """Whether a model answers at somebody else's server."""
        if model_id == self.base:
            return self._serve_url is not None
        row = await self._models.get(model_id)
        return row is not None and is_remote(row.path)

    async def find(self, model_id: str) -> tuple[str, str]:
        """Where a model can be asked, and its name there; it is loaded if need be."""
        row = await self._models.get(model_id)
        if row is None and model_id != self.base:
            raise Misuse(f"There is no model {model_id}; `upswing models` lists them.")
        served = await self.serving.ensure(row or model_id)
        return served.backend, served.name

    async def _movement(self, row: ModelRow) -> Movement:
        """What the job that made a model says of how far it moved."""
        job = await self._jobs.get(row.job_id)
        told = job.status.metadata if job else UNSET
        if job is None or told is UNSET:
            return Movement()
        return movement_of(job.request.training_config.algorithm, told)

    async def _trained(self, model_id: str) -> tuple[str, ...]:
        """What training says of a model, for the report of its validation."""
        row = await self._models.get(model_id)
        moved = Movement() if row is None else await self._movement(row)
        return tuple(f"Training, {name}: {told}." for name, told in moved.lines())

    async def _unchanged(self, row: ModelRow) -> str | None:
        """What to try next, where training has not moved a model."""
        moved = await self._movement(row)
        return moved.advice if moved.no_change else None

    async def _logged(self, row: ModelRow) -> Logged | None:
        """What the job that made a model estimated on held-out tasks, before and after."""
        job = await self._jobs.get(row.job_id)
        told = job.status.metadata if job else UNSET
        pair = UNSET if told is UNSET else told.get("holdout_reward")
        effective = None if told is UNSET else told.get("holdout_effective_samples")
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        numbers = [found for each in (*pair, effective) if (found := number(each)) is not None]
        return Logged(*numbers) if len(numbers) == 3 else None

    async def compare(self, a: str, b: str) -> Comparison:
        return await look_up(a, b, self._earnings, self._validations)

    async def current(self) -> str:
        """The model that answers now."""
        return str((await self.controller.traffic())["baseline"])

    async def known(self, model_id: str) -> bool:
        return model_id == self.base or await self._models.get(model_id) is not None


def _same(url: str, ours: str | None) -> bool:
    """Whether this is our server's address, with or without `/v1`.

    >>> _same("http://gpu:8000/v1", "http://gpu:8000"), _same("http://gpu:8000.evil/v1", "http://gpu:8000")
    (True, False)
    """
    return ours is not None and url.rstrip("/") in {ours.rstrip("/"), f"{ours.rstrip('/')}/v1"}


def can_serve() -> bool:
    """Whether this installation has what a model server of ours needs."""
    return find_spec("torch") is not None


def _our_server(folder: Path, config: ServeConfig, base: str) -> ModelProcess | None:
    if config.url:
        return None
    return ModelProcess(
        base, folder / "bases", folder / "serve", engine=config.engine, threads=config.threads
    )


def _server(process: ModelProcess | None, config: ServeConfig, surroundings: Surroundings) -> Server:  # fmt: skip
    if process:
        return Server(lambda: process.url, process.key, TOKENS, config.timeout_seconds)
    url = config.url or ""
    return Server(
        lambda: url, surroundings.serve_key, config.extra, config.timeout_seconds, config.platform,
        foreign=True,
    )  # fmt: skip
