"""From which weights does a job start, and which jobs led there?

| the request names               | training starts from                     |
|---------------------------------|------------------------------------------|
| a registered model as its base  | that model's checkpoint                  |
| `metadata.previous_training_job`| the checkpoint that job made             |
| neither                         | the base itself                          |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from upswing.contracts.training import TrainingRequest
from upswing.dataset.filtering import UNRELATED_AGE
from upswing.errors import Misuse
from upswing.infra.sql.models import Models
from upswing.records import ModelRow


@dataclass(frozen=True, slots=True)
class TrainingStart:
    """Where training begins, and which jobs led there."""

    base_model: str
    model_id: str = ""
    """The model whose weights are taken; none means the base's."""
    path: str = ""
    """Where its checkpoint is kept."""
    ancestor_jobs: tuple[str, ...] = ()
    policy_ages: Mapping[str, int] = field(default_factory=dict)
    """Policy → how many versions back it is; this one is 0, models of other lines are far away."""


class ModelRegistry:
    """Resolves where training starts, and registers trained models."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self.register = models.register

    async def resolve_start(self, request: TrainingRequest) -> TrainingStart:
        """Where the requested training starts."""
        name = request.training_config.base_model
        if found := await self._models.get(name):
            return await self._start_from(found)
        metadata = request.metadata if request.metadata is not UNSET else {}
        previous = metadata.get("previous_training_job")
        if not isinstance(previous, str) or not previous:
            return TrainingStart(
                name, policy_ages=policy_ages(*await self._models.policies(None), base=name)
            )
        found = await self._models.by_job(previous)
        if found is None:
            raise Misuse(f"`previous_training_job` is {previous}, which made no model.")
        if found.base_model != name:
            raise Misuse(f"Job {previous} trained {found.base_model}, not {name}.")
        return await self._start_from(found)

    async def checkpoint_paths(self, model_ids: Collection[str]) -> dict[str, str]:
        """Where the checkpoints of these models are kept, of those that are known."""
        rows = [await self._models.get(name) for name in sorted(model_ids)]
        return {row.model_id: row.path for row in rows if row is not None}

    async def _start_from(self, row: ModelRow) -> TrainingStart:
        lineage = await self._models.lineage(row.model_id)
        ages = policy_ages(*await self._models.policies(row.model_id), base=row.base_model)
        return TrainingStart(row.base_model, row.model_id, row.path, tuple(lineage), ages)


def policy_ages(lineage: Sequence[str], others: Sequence[str], *, base: str) -> dict[str, int]:
    """How many versions back each policy is, the base being the oldest of the line.

    >>> policy_ages(["v3", "v1"], ["v2"], base="tiny")
    {'v2': 1000000, 'tiny': 2, 'v3': 0, 'v1': 1}
    """
    versions = {name: age for age, name in enumerate(lineage)}
    return {**dict.fromkeys(others, UNRELATED_AGE), base: len(lineage), **versions}
