"""How do the parts that make a trained model answer come together? Model server, validation, controller.

model server ◀── loads ── controller ── plan ──▶ gateway
▲                       │
└──── asks ──── validation (candidate beside current)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import MsgspecError

from upswing.api.comparison import Comparison, load_comparison
from upswing.app.context import LoopContext
from upswing.app.model_lookup import ModelLookup, ServerKeys
from upswing.config import ServeConfig, Settings, Surroundings
from upswing.deploy.candidates import CandidateChecks
from upswing.deploy.core.policy import deploy_policy_of
from upswing.deploy.core.record import total_counts
from upswing.deploy.wiring import DeployRuntime, wire_controller
from upswing.errors import Misuse, Rejected, Transient, UpswingError
from upswing.infra.http import exchange
from upswing.infra.sql.earnings import Earnings
from upswing.infra.tasks import run_all
from upswing.serve.client import TOKEN_FIELDS, ModelServingClient, ServerConnection
from upswing.serve.probing import ServerProbes
from upswing.serve.process import ModelProcess, ModelServerSettings
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.validate.core.task_facts import AnalyseTasks
from upswing.validate.judge import JudgeModel
from upswing.validate.metrics import ValidateMetrics
from upswing.validate.production import ProductionReader
from upswing.validate.repository import Validations
from upswing.validate.runner import (
    ModelAccess,
    RunClocks,
    TaskSources,
    ValidationRunner,
    ValidationStorage,
)

log = logging.getLogger(__name__)
_RETRY_SECONDS, _ORPHAN_SECONDS = 30.0, 60.0
_ANSWER_SECONDS = 5.0
_MADE_HERE = ("tiny", "smollm2")
"""Bases that do not lie in a folder before they are served for the first time."""


@dataclass(frozen=True, slots=True)
class ValidationHelp:
    """What validation asks besides the models: the judge, and the worlds whose held-out tasks it knows."""

    judge: JudgeModel | None = None
    worlds: Mapping[str, Any] | None = None
    """None: our own."""
    analyse: AnalyseTasks | None = None
    """Looks into what failed."""


class ModelDelivery:
    """What makes a trained model answer."""

    def __init__(
        self,
        context: LoopContext,
        checkpoints: CheckpointStore,
        base: str,
        *,
        help_with: ValidationHelp,
        on_commit: Callable[[], None],
    ) -> None:
        installation, database = context.installation, context.store.database
        folder, settings = installation.folder, installation.settings
        self.base, self._trouble, self._serve_url = base, "", settings.serve.url
        self._is_made = base not in _MADE_HERE or any((folder / "bases").glob(f"{base}-*"))
        self._earnings = Earnings(database)
        self._validations = Validations(database)
        self.process = _our_server(folder, settings.serve, base)
        self._server_is_up = self.process is None
        serving, keys = _serving_client(context, checkpoints, self.process)
        self.lookup = ModelLookup(database, serving, keys, base)
        self.validation = ValidationRunner(
            settings.validate,
            ValidationStorage(
                folder=folder / "validation",
                rows=self._validations,
                attach_files=checkpoints.attach,
                redactor=context.redactor,
                metrics=ValidateMetrics(context.registry),
            ),
            ModelAccess(
                find=self.lookup.find,
                key_of=keys.key_of,
                unusable_fields=self.lookup.unusable_fields,
                is_remote=self.lookup.is_remote,
                training_notes=self.lookup.training_notes,
            ),
            RunClocks(clock=context.clock, wall=context.wall_clock, new_id=context.new_id),
            tasks=TaskSources(
                worlds=help_with.worlds, production=ProductionReader(database), base=base
            ),
            judge=help_with.judge,
            analyse=help_with.analyse,
        )
        self.controller = wire_controller(
            database,
            context.bus,
            serving,
            CandidateChecks(
                self.validation.validate,
                self.lookup.no_change_advice,
                self.lookup.logged_estimate,
            ),
            deploy_policy_of(installation.surroundings.deploy, settings.deploy),
            DeployRuntime(
                context.clock, context.wall_clock, context.new_id, on_commit, context.dead_letters
            ),
            context.registry,
            base=base,
        )

    async def run(self) -> None:
        """Have the base served, then lead; until cancelled."""
        while self.process and not await self._started(self.process):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_RETRY_SECONDS)
        await self._resume_validations(self.validation.resume)
        await run_all(self.controller.run(), self._resume_orphaned())

    def waiting_for(self) -> str:
        """What the first answer waits for."""
        if not self._server_is_up:
            return self._trouble or self._loading()
        if self._serve_url and not self.controller.leading:
            return f"the server at {self._serve_url} to serve `{self.base}`"
        return "the gateway to hear who answers"

    def _loading(self) -> str:
        first = "" if self._is_made else ", which is made first: that takes a minute, once"
        return f"the model server to load `{self.base}`{first}"

    async def _started(self, process: ModelProcess) -> bool:
        self._trouble = ""  # that was the attempt before
        try:
            await process.start()
        except (Misuse, Transient, OSError) as error:
            self._trouble = (
                f"a model server. {error} It is tried again every {_RETRY_SECONDS:.0f} s"
            )
            log.error(  # noqa: TRY400 - a clear sentence
                "No model is served: %s",
                error,
                extra={"action": "alert", "reason": "no_model_served"},
            )
            return False
        self._server_is_up = True
        return True

    async def _resume_orphaned(self) -> None:
        """Another process of the same store may die: what it validated goes on here."""
        while True:
            await asyncio.sleep(_ORPHAN_SECONDS)
            await self._resume_validations(self.validation.resume_orphaned)

    async def _resume_validations(self, resume: Callable[[], Awaitable[object]]) -> None:
        """What the last process left unfinished is no reason not to lead."""
        try:
            await resume()
        except (UpswingError, OSError, MsgspecError) as error:
            log.error(  # noqa: TRY400 - a clear sentence
                "A validation does not go on: %s",
                error,
                extra={"action": "alert", "reason": "validation_stuck"},
            )
        except Exception:
            log.exception(
                "A validation does not go on",
                extra={"action": "alert", "reason": "validation_stuck"},
            )

    async def close(self) -> None:
        """Validations stop and go on after the next start; then the server goes."""
        await self.validation.close()
        if self.process:
            await self.process.stop()

    async def server_answers(self) -> bool | None:
        """Whether the model server is there; one of the user's own may answer whatever it likes.

        None while ours starts for the first time: making a base takes a minute, and whoever cannot start says so.
        """
        if not self._server_is_up and not self._trouble:
            return None
        url = self.process.url if self.process else self._serve_url or ""
        if self.process and not self.process.port:
            return False
        return await answers_health(url)

    async def request_counts(self) -> dict[str, tuple[int, int]]:
        """Model → requests at gateways since these started, and how many failed."""
        tallies = await self.controller.executor.gateways.tallies()
        models = {model for tally in tallies.values() for each in tally.values() for model in each}
        counts = {model: total_counts(tallies, model) for model in models}
        return {model: (each.requests, each.errors) for model, each in counts.items()}

    async def compare(self, a: str, b: str) -> Comparison:
        return await load_comparison(a, b, self._earnings, self._validations)

    async def current(self) -> str:
        """The model that answers now."""
        return str((await self.controller.traffic())["baseline"])


async def answers_health(url: str) -> bool:
    """Whether a server is there, whatever it says."""
    try:
        await exchange("GET", f"{url}/health", seconds=_ANSWER_SECONDS)
    except (Transient, Rejected):
        return False
    return True


def make_delivery(
    context: LoopContext,
    checkpoints: CheckpointStore,
    base: str | None,
    *,
    help_with: ValidationHelp,
    on_commit: Callable[[], None],
) -> ModelDelivery | None:
    """None, with a warning, where no model can be served."""
    why = why_not_served(context.installation.settings, base)
    if why or base is None:
        log.warning("%s, so no model is served here", why, extra={"action": "no_serving"})
        return None
    return ModelDelivery(context, checkpoints, base, help_with=help_with, on_commit=on_commit)


def why_not_served(settings: Settings, base: str | None) -> str:
    """Why no model is served here; empty if one can be."""
    if base is None:
        return "no base model is named"
    if not settings.serve.url and find_spec("torch") is None:
        return "the `train` extra is not installed"
    return ""


def _our_server(folder: Path, config: ServeConfig, base: str) -> ModelProcess | None:
    if config.url:
        return None
    settings = ModelServerSettings(
        base=base, cache=folder / "bases", engine=config.engine, threads=config.threads
    )
    return ModelProcess(settings, folder / "serve")


def _serving_client(
    context: LoopContext, checkpoints: CheckpointStore, process: ModelProcess | None
) -> tuple[ModelServingClient, ServerKeys]:
    """The client of the model server, and the keys that it and others are asked with."""
    folder, config = context.installation.folder, context.installation.settings.serve
    surroundings = context.installation.surroundings
    keys = ServerKeys(config.url, surroundings.serve_key or "", surroundings.backend_keys)
    client = ModelServingClient(
        _server_connection(process, config, surroundings),
        checkpoints,
        folder / "copies",
        ServerProbes(folder / "backends.json", keys.key_of, clock=context.wall_clock),
        keys.key_of,
    )
    return client, keys


def _server_connection(
    process: ModelProcess | None, config: ServeConfig, surroundings: Surroundings
) -> ServerConnection:
    if process:
        return ServerConnection(
            lambda: process.url, process.key, TOKEN_FIELDS, config.timeout_seconds
        )
    url = config.url or ""
    return ServerConnection(
        lambda: url,
        surroundings.serve_key,
        config.extra,
        config.timeout_seconds,
        config.platform,
        foreign=True,
    )
