"""From which weights does a job start, and which jobs led there?

| the request names               | training starts from                     |
|---------------------------------|------------------------------------------|
| a registered model as its base  | that model's checkpoint                  |
| `metadata.previous_training_job`| the checkpoint that job made             |
| neither                         | the base itself                          |
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import UNSET

from upswing.contracts.training import TrainingRequest
from upswing.errors import Misuse
from upswing.ports import ModelRow
from upswing.train.parts import Start


class Models(Protocol):
    """The rows of the models that training made."""

    async def register(
        self, *, job_id: str, base_model: str, parent: str | None, snapshot: str, path: str,
        card: str, samples: int, final_reward: float | None, now: datetime, seal: str = "",
    ) -> str: ...  # fmt: skip

    async def get(self, model_id: str) -> ModelRow | None: ...

    async def by_job(self, job_id: str) -> ModelRow | None: ...

    async def lineage(self, model_id: str) -> list[str]: ...

    async def policies(self, model_id: str | None) -> tuple[list[str], list[str]]: ...


class ModelRegistry:
    """What the worker asks of the registry."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self.register = models.register

    async def start_of(self, request: TrainingRequest) -> Start:
        """Where the training that was asked for begins."""
        name = request.training_config.base_model
        if found := await self._models.get(name):
            return await self._from(found)
        metadata = request.metadata if request.metadata is not UNSET else {}
        previous = metadata.get("previous_training_job")
        if not isinstance(previous, str) or not previous:
            return Start(name, ages=ages_of(*await self._models.policies(None), base=name))
        found = await self._models.by_job(previous)
        if found is None:
            raise Misuse(f"`previous_training_job` is {previous}, which made no model.")
        if found.base_model != name:
            raise Misuse(f"Job {previous} trained {found.base_model}, not {name}.")
        return await self._from(found)

    async def checkpoints(self, names: Collection[str]) -> dict[str, str]:
        """Where the checkpoints of these models are kept, of those that are known."""
        rows = [await self._models.get(name) for name in sorted(names)]
        return {row.model_id: row.path for row in rows if row is not None}

    async def _from(self, row: ModelRow) -> Start:
        lineage = await self._models.lineage(row.model_id)
        ages = ages_of(*await self._models.policies(row.model_id), base=row.base_model)
        return Start(row.base_model, row.model_id, row.path, tuple(lineage), ages)


OTHER_LINE = 1_000_000
"""The age of a model that is no ancestor: what it did says nothing about the policy that is trained."""


def ages_of(line: Sequence[str], others: Sequence[str], *, base: str) -> dict[str, int]:
    """How many versions back each policy is, the base being the oldest of the line.

    >>> ages_of(["v3", "v1"], ["v2"], base="tiny")
    {'v2': 1000000, 'tiny': 2, 'v3': 0, 'v1': 1}
    """
    versions = {name: age for age, name in enumerate(line)}
    return {**dict.fromkeys(others, OTHER_LINE), base: len(line), **versions}
