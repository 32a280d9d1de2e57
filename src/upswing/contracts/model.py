"""Which model answers now? model.deployed.v1: each step of a rollout, and its way back."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from upswing.contracts.training import JobId
from upswing.contracts.wire import END, Json, Known, Message, Positive, Share, Timestamp, Wire

Percentage = Annotated[float, Meta(ge=0, le=100)]
Endpoint = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+" + END,
        description="A URI.",
        examples=["http://127.0.0.1:3000/v1"],
        extra_json_schema={"format": "uri"},
    ),
]


class ModelInfo(Wire, frozen=True, kw_only=True):
    """Which weights."""

    model_id: str
    base_model: str
    checkpoint_path: str
    training_date: Timestamp | UnsetType = UNSET
    training_samples: Positive | UnsetType = UNSET
    final_reward: float | UnsetType = UNSET


class RampStep(Wire, frozen=True, kw_only=True):
    timestamp: Timestamp | UnsetType = UNSET
    percentage: Percentage | UnsetType = UNSET


class DeploymentConfig(Wire, frozen=True, kw_only=True):
    """Where they serve, and to how much of the traffic."""

    serving_platform: Literal["tensorzero", "vllm", "tgi", "ollama", "upswing"]
    endpoint: Endpoint
    model_name: str
    rollout_strategy: Literal["canary", "blue_green", "immediate"]
    traffic_percentage: Percentage | UnsetType = UNSET
    ramp_schedule: list[RampStep] | UnsetType = UNSET


class ValidationResults(Wire, frozen=True, kw_only=True):
    """Why they may."""

    benchmark_passed: bool
    safety_checks_passed: bool
    performance_regression: bool
    human_eval_score: Share | UnsetType = UNSET
    benchmark_scores: dict[str, float] | UnsetType = UNSET


class DeploymentMetadata(Known, frozen=True, kw_only=True):
    """Who shipped it; open to more keys (`event`: deployed, ramped, promoted, rollback; `reason`)."""

    deployed_by: str | UnsetType = UNSET
    approval_status: Literal["automated", "manual_approved", "emergency_override"] | UnsetType = (
        UNSET
    )
    previous_model: str | UnsetType = UNSET


class ModelDeployed(Message, frozen=True, kw_only=True):
    """A model's traffic changed."""

    OPEN: ClassVar[dict[str, type[Struct]]] = {"metadata": DeploymentMetadata}

    deployment_id: str
    training_job_id: JobId
    timestamp: Timestamp
    model_info: ModelInfo
    deployment_config: DeploymentConfig
    validation_results: ValidationResults
    metadata: Json | UnsetType = UNSET
