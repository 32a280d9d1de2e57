"""What does the decision to train depend on? Nothing but this, so that it can be tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from upswing.contracts.training import Algorithm
from upswing.dataset.groups import Learnable
from upswing.trigger.core.readiness import DataMinimums


@dataclass(frozen=True, slots=True)
class TriggerRules:
    """The user's own."""

    threshold: int = 5000
    schedule: str | None = "0 2 * * *"
    drop: float = 0.10
    min_sample: int = 100
    pause: timedelta = timedelta(hours=1)
    minimums: DataMinimums = field(default_factory=DataMinimums)
    algorithm: Algorithm | None = None
    """What the user configured; None: what fits the data."""
    base_model: str | None = "tiny"
    """What the loop trains when it asks by itself; None: nobody has said."""
    elsewhere: bool = False
    """The base answers at somebody else's server, and its weights are not here."""


@dataclass(frozen=True, slots=True)
class DeployedModel:
    """How the model that answers now does."""

    model_id: str
    mean: float | None
    """Of its newest raw rewards."""
    count: int
    baseline: float | None
    """The mean it had when it was promoted."""
    error: float = 0.0
    """The standard error of the difference between the two: how far chance sets them apart."""


@dataclass(frozen=True, slots=True)
class ManualRequest:
    """A person's request to train."""

    requester: str
    force: bool = False
    """Even when there is not enough to train on, or such a job is on its way."""
    sample_size: int | None = None


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """A job that is queued or running."""

    job_id: str
    reason: str
    covers_seq: int


@dataclass(frozen=True, slots=True)
class TriggerInputs:
    """Everything that the decision depends on."""

    now: datetime
    rules: TriggerRules = field(default_factory=TriggerRules)
    deployed: DeployedModel | None = None
    manual: tuple[ManualRequest, ...] = ()
    """Wishes that wait, oldest first."""
    new: int = 0
    """Trajectories since the last training, without what active jobs cover."""
    newest_seq: int = 0
    last_training: datetime | None = None
    last_slot: datetime | None = None
    """The newest time of the schedule that was dealt with."""
    active: tuple[ActiveJob, ...] = ()
    failed: dict[str, datetime] = field(default_factory=dict)
    """Reason → when its newest job failed."""
    pool: Learnable | None = None
    """What there is to learn from; None: not asked for, because nobody needs it now."""
    train_here: bool = True
    pending: str | None = None
    """The model that is being validated, waits for its rollout or is in it: one at a time."""
