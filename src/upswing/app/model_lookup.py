"""What is known of a model: where it answers, with which key, and what did training say of it?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msgspec import UNSET

from upswing.contracts.backend import is_remote
from upswing.contracts.backend_keys import key_for
from upswing.contracts.steps import finite_number_or_none
from upswing.deploy.core.offline import LoggedEstimate
from upswing.errors import Misuse
from upswing.infra.sql.database import Database
from upswing.infra.sql.models import Models
from upswing.records import ModelRow
from upswing.serve.client import ModelServingClient
from upswing.train.core.policy_change import PolicyChange, policy_change
from upswing.train.jobs.repository import JobRepository


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """The keys of model servers; no server gets another one's."""

    serve_url: str | None
    """The server that the base answers at, where it is not ours."""
    serve_key: str
    backend_keys: Mapping[str, str]

    def key_of(self, url: str) -> str:
        """The key of a model's server; empty: it has none."""
        ours = self.serve_key if _same_server(url, self.serve_url) else ""
        return ours or key_for(url, self.backend_keys)


class ModelLookup:
    """The registry, the servers and the training jobs, asked about one model."""

    def __init__(
        self, database: Database, serving: ModelServingClient, keys: ServerKeys, base: str
    ) -> None:
        self._models, self._jobs = Models(database), JobRepository(database)
        self._serving, self._keys, self._base = serving, keys, base

    # ── where it answers ─────────────────────────────────────────────────────────────────────

    async def find(self, model_id: str) -> tuple[str, str]:
        """Where a model can be asked, and its name there; it is loaded if need be."""
        row = await self._models.get(model_id)
        if row is None and model_id != self._base:
            raise Misuse(f"There is no model {model_id}; `upswing models` lists them.")
        served = await self._serving.ensure(row or model_id)
        return served.backend, served.name

    async def is_known(self, model_id: str) -> bool:
        return model_id == self._base or await self._models.get(model_id) is not None

    async def is_remote(self, model_id: str) -> bool:
        """Whether a model answers at somebody else's server."""
        if model_id == self._base:
            return self._keys.serve_url is not None
        row = await self._models.get(model_id)
        return row is not None and is_remote(row.path)

    def unusable_fields(self, url: str, name: str) -> Collection[str]:
        """Fields that a model's server does not take, as far as it was probed."""
        found = self._serving.abilities(url, name)
        return found.unusable if found else ()

    # ── what training said of it ─────────────────────────────────────────────────────────────

    async def training_notes(self, model_id: str) -> tuple[str, ...]:
        """What training says of a model, for the report of its validation."""
        row = await self._models.get(model_id)
        change = PolicyChange() if row is None else await self._policy_change(row)
        return tuple(f"Training, {name}: {text}." for name, text in change.lines())

    async def no_change_advice(self, row: ModelRow) -> str | None:
        """What to try next, where training has not moved a model."""
        change = await self._policy_change(row)
        return change.advice if change.no_change else None

    async def logged_estimate(self, row: ModelRow) -> LoggedEstimate | None:
        """What the job that made a model estimated on held-out tasks, before and after."""
        job = await self._jobs.get(row.job_id)
        metadata = job.status.metadata if job else UNSET
        pair = UNSET if metadata is UNSET else metadata.get("holdout_reward")
        effective = None if metadata is UNSET else metadata.get("holdout_effective_samples")
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        numbers = [
            found
            for each in (*pair, effective)
            if (found := finite_number_or_none(each)) is not None
        ]
        return LoggedEstimate(*numbers) if len(numbers) == 3 else None

    async def _policy_change(self, row: ModelRow) -> PolicyChange:
        """What the job that made a model says of how far it moved."""
        job = await self._jobs.get(row.job_id)
        metadata = job.status.metadata if job else UNSET
        if job is None or metadata is UNSET:
            return PolicyChange()
        return policy_change(job.request.training_config.algorithm, metadata)


def _same_server(url: str, ours: str | None) -> bool:
    """Whether this is our server's address, with or without `/v1`.

    >>> _same_server("http://gpu:8000/v1", "http://gpu:8000")
    True
    >>> _same_server("http://gpu:8000.evil/v1", "http://gpu:8000")
    False
    """
    return ours is not None and url.rstrip("/") in {ours.rstrip("/"), f"{ours.rstrip('/')}/v1"}
