"""What is to be trained, and how far is it? training.request.v1 and training.status.v1."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from upswing.contracts.trajectory import Domain
from upswing.contracts.wire import (
    END,
    Count,
    Json,
    Known,
    Message,
    NonNegative,
    Positive,
    Share,
    Timestamp,
    Wire,
)

JobId = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._-]{1,128}" + END,
        description="A UUID, `manual-<uuid>`, or any name of letters, digits, `.`, `_` and `-`.",
        examples=["manual-0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"],
    ),
]
Algorithm = Literal["ppo", "dpo", "rloo", "grpo", "reinforce", "sft", "rft", "kto"]

DATASET_SIZE, NEW = "dataset_size", "new"
"""In a request's metadata: the data's size follows from what is new, and `sample_size` is the most."""


class DateRange(Wire, frozen=True, kw_only=True):
    start: Timestamp | UnsetType = UNSET
    end: Timestamp | UnsetType = UNSET


class DatasetFilter(Wire, frozen=True, kw_only=True):
    """Which trajectories take part."""

    min_reward: (
        Annotated[float, Meta(description="For imitation data; relative algorithms ignore it.")]
        | UnsetType
    ) = UNSET
    max_trajectory_length: Positive | UnsetType = UNSET
    date_range: DateRange | UnsetType = UNSET
    task_domains: list[Domain] | UnsetType = UNSET
    exclude_subordinate_profiles: list[str] | UnsetType = UNSET


class Dataset(Wire, frozen=True, kw_only=True):
    """Where the trajectories come from, and how many."""

    source: Literal["nats_stream", "clickhouse", "s3", "local"]
    stream_name: str | UnsetType = UNSET
    sample_size: Positive
    filter: DatasetFilter | UnsetType = UNSET


class Hyperparameters(Wire, frozen=True, kw_only=True):
    """How the algorithm steps."""

    learning_rate: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    batch_size: Positive | UnsetType = UNSET
    epochs: Positive | UnsetType = UNSET
    clip_epsilon: NonNegative | UnsetType = UNSET
    gamma: Share | UnsetType = UNSET
    gae_lambda: Share | UnsetType = UNSET


class Compute(Wire, frozen=True, kw_only=True):
    """On what it runs."""

    gpu_count: Count | UnsetType = UNSET
    gpu_type: str | UnsetType = UNSET
    distributed: bool | UnsetType = UNSET
    mixed_precision: Literal["fp32", "fp16", "bf16"] | UnsetType = UNSET


class Checkpointing(Wire, frozen=True, kw_only=True):
    """How often it saves, and where."""

    save_interval: Positive | UnsetType = UNSET
    max_checkpoints: Positive | UnsetType = UNSET
    storage_path: str | UnsetType = UNSET


class TrainingConfig(Wire, frozen=True, kw_only=True):
    """The whole recipe of a job."""

    algorithm: Algorithm
    base_model: str
    dataset: Dataset
    hyperparameters: Hyperparameters
    compute: Compute | UnsetType = UNSET
    checkpointing: Checkpointing | UnsetType = UNSET


class Evaluation(Wire, frozen=True, kw_only=True):
    """How the result is measured."""

    enabled: bool | UnsetType = UNSET
    holdout_size: Share | UnsetType = UNSET
    metrics: (
        list[Literal["reward", "task_completion", "efficiency", "loss", "kl_divergence"]]
        | UnsetType
    ) = UNSET
    benchmark_tasks: list[str] | UnsetType = UNSET


class RequestMetadata(Known, frozen=True, kw_only=True):
    """Who asked, after which job; open to more keys."""

    requested_by: str | UnsetType = UNSET
    previous_training_job: str | UnsetType | None = UNSET
    notes: str | UnsetType = UNSET


class TrainingRequest(Message, frozen=True, kw_only=True):
    """A request to train, from the trigger, a person or an agent."""

    OPEN: ClassVar[dict[str, type[Struct]]] = {"metadata": RequestMetadata}

    training_job_id: JobId
    timestamp: Timestamp
    requester: str
    trigger_reason: Literal["scheduled", "threshold_reached", "manual", "performance_degradation"]
    priority: Literal["low", "normal", "high", "urgent"] = "normal"
    training_config: TrainingConfig
    evaluation: Evaluation | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class Progress(Wire, frozen=True, kw_only=True):
    """How far the job is."""

    current_epoch: Count | UnsetType = UNSET
    total_epochs: Positive | UnsetType = UNSET
    current_step: Count | UnsetType = UNSET
    total_steps: Positive | UnsetType = UNSET
    percent_complete: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    eta_seconds: NonNegative | UnsetType = UNSET


class CurrentMetrics(Wire, frozen=True, kw_only=True):
    loss: float | UnsetType = UNSET
    reward_mean: float | UnsetType = UNSET
    reward_std: NonNegative | UnsetType = UNSET
    policy_entropy: float | UnsetType = UNSET
    kl_divergence: NonNegative | UnsetType = UNSET
    learning_rate: NonNegative | UnsetType = UNSET


class BestMetrics(Wire, frozen=True, kw_only=True):
    epoch: int | UnsetType = UNSET
    step: int | UnsetType = UNSET
    reward_mean: float | UnsetType = UNSET
    checkpoint_path: str | UnsetType = UNSET


class Metrics(Wire, frozen=True, kw_only=True):
    """How it learns now, and at its best."""

    current: CurrentMetrics | UnsetType = UNSET
    best: BestMetrics | UnsetType = UNSET


class EvaluationResults(Wire, frozen=True, kw_only=True):
    """What the held-out data and the benchmarks say."""

    holdout_reward: float | UnsetType = UNSET
    benchmark_scores: dict[str, float] | UnsetType = UNSET
    improvement_over_baseline: float | UnsetType = UNSET


class Artifacts(Wire, frozen=True, kw_only=True):
    """Paths of what the job left behind."""

    final_checkpoint: str | UnsetType = UNSET
    tensorboard_logs: str | UnsetType = UNSET
    training_curves: str | UnsetType = UNSET
    model_card: str | UnsetType = UNSET


class ResourceUsage(Wire, frozen=True, kw_only=True):
    """What it cost."""

    gpu_hours: NonNegative | UnsetType = UNSET
    cost_usd: NonNegative | UnsetType = UNSET
    peak_memory_gb: NonNegative | UnsetType = UNSET
    total_training_time_seconds: NonNegative | UnsetType = UNSET


class JobError(Wire, frozen=True, kw_only=True):
    """Why it failed."""

    code: Literal["OOM", "CONVERGENCE", "DATA", "INFRA", "TIMEOUT", "UNKNOWN"] | UnsetType = UNSET
    message: str | UnsetType = UNSET
    traceback: str | UnsetType = UNSET


class StatusMetadata(Known, frozen=True, kw_only=True):
    """On what platform it ran; open to more keys."""

    training_platform: str | UnsetType = UNSET
    cuda_version: str | UnsetType = UNSET
    pytorch_version: str | UnsetType = UNSET


class TrainingStatus(Message, frozen=True, kw_only=True):
    """Where a training job stands."""

    OPEN: ClassVar[dict[str, type[Struct]]] = {"metadata": StatusMetadata}

    training_job_id: JobId
    timestamp: Timestamp
    status: Literal["queued", "running", "completed", "failed", "cancelled"]
    progress: Progress | UnsetType = UNSET
    metrics: Metrics | UnsetType = UNSET
    evaluation_results: EvaluationResults | UnsetType = UNSET
    artifacts: Artifacts | UnsetType = UNSET
    resource_usage: ResourceUsage | UnsetType = UNSET
    error: JobError | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
