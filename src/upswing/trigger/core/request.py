"""What exactly is asked for when the loop decides to train?"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import UNSET

from upswing.contracts import TrainingRequest
from upswing.contracts.training import (
    DATASET_SIZE,
    NEW,
    Dataset,
    DatasetFilter,
    DateRange,
    Hyperparameters,
    TrainingConfig,
)
from upswing.contracts.wire import Json
from upswing.trigger.core.decide import TrainNow
from upswing.trigger.core.policy import TriggerPolicy

_LEAST = 512
"""Trajectories that a job may take at least, however little is new."""


def training_request_of(
    choice: TrainNow,
    policy: TriggerPolicy,
    *,
    job_id: str,
    now: datetime,
    previous: str | None,
    new: int,
) -> TrainingRequest:
    """The request for this choice. `previous` is the job of the model that answers now.

    The size follows from what is `new`, twice, so that what a failed job had can be used again.

    Hyperparameters are left to the algorithm's defaults and to the config's recipe. There is no
    `min_reward`: algorithms that compare need the bad ones too.
    """
    usual = policy.defaults
    metadata: Json = {"notes": choice.sentence, "previous_training_job": previous}
    if choice.sample_size is None:
        metadata[DATASET_SIZE] = NEW
    if choice.force:
        metadata["recipe"] = {"min_agents": 1, "min_attempts": 2}
    return TrainingRequest(
        training_job_id=job_id,
        timestamp=now,
        requester=choice.requester,
        trigger_reason=choice.reason,
        priority=choice.priority,
        training_config=TrainingConfig(
            algorithm=choice.algorithm or usual.algorithm,
            base_model=usual.base_model or "",
            dataset=Dataset(
                source="local",
                sample_size=choice.sample_size or min(usual.sample_size, max(_LEAST, 2 * new)),
                filter=UNSET if choice.force else _recent_filter(policy, now),
            ),
            hyperparameters=Hyperparameters(),
        ),
        metadata=metadata,
    )


def _recent_filter(policy: TriggerPolicy, now: datetime) -> DatasetFilter:
    start = (now - timedelta(days=policy.days)).replace(microsecond=0)
    return DatasetFilter(
        max_trajectory_length=policy.max_turns, date_range=DateRange(start=start, end=now)
    )
