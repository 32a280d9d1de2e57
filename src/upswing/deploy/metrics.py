"""What do rollouts look like from outside?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from upswing.deploy.core.announce import TrafficEvent
from upswing.deploy.core.health import CanaryFigures
from upswing.deploy.core.rollout import Rollout
from upswing.infra.metric_labels import ModelGauge, start_at_zero

ABORTED = "aborted"
"""What happened to a model that is not rolled out, after its validation."""
_CANARY = {
    "step": "The step of a canary, from 1.",
    "steps": "The steps that its rollout has.",
    "rewards": "Rewards of a canary that were compared.",
    "reward_difference": "Reward of a canary minus the baseline's.",
    "reward_difference_lower": "The difference is above this, whenever one looks.",
    "reward_difference_upper": "The difference is below this, whenever one looks.",
    "error_ratio": "Share of a canary's requests that failed.",
    "baseline_error_ratio": "Share of the baseline's requests that failed beside it.",
    "complaints": "Complaints about a canary's episodes.",
    "baseline_complaints": "Complaints about the baseline's episodes beside it.",
}


class DeployMetrics:
    """Series of the deploy stage. The mean reward of each model is told by the reward stage."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._deployments = Counter(
            "agent_rl_model_deployments_total",
            "Steps of rollouts, by what happened.",
            ["status"],
            registry=registry,
        )
        self._traffic = ModelGauge(
            Gauge(
                "agent_rl_model_traffic_percentage",
                "Share of new episodes.",
                ["model_version"],
                registry=registry,
            )
        )
        self._errors = ModelGauge(
            Gauge(
                "agent_rl_model_error_rate",
                "Share of a model's requests that failed.",
                ["model_version"],
                registry=registry,
            )
        )
        self._alerts = Counter(
            "upswing_alerts_total",
            "Times that a person was called.",
            ["stage", "reason"],
            registry=registry,
        )
        self._canary = {
            name: ModelGauge(
                Gauge(f"upswing_canary_{name}", about, ["model_version"], registry=registry)
            )
            for name, about in _CANARY.items()
        }
        start_at_zero(self._deployments, (*get_args(TrafficEvent), ABORTED))

    def count_deployment(self, status: str) -> None:
        self._deployments.labels(status).inc()

    def alert(self, reason: str) -> None:
        self._alerts.labels("deploy", reason).inc()

    def traffic(self, shares: Mapping[str, float]) -> None:
        """A model without traffic is told as 0 once it had some."""
        for model in (*(each for each in self._traffic if each not in shares), *shares):
            self._traffic.set(100 * shares.get(model, 0.0), model)

    def error_rate(self, model: str, share: float) -> None:
        self._errors.set(share, model)

    def set_canary(self, rollout: Rollout, figures: CanaryFigures) -> None:
        """How far a canary is, and what is known of it."""
        values: dict[str, float | None] = {
            "step": rollout.canary.step + 1 if rollout.canary else None,
            "steps": len(rollout.steps),
            "rewards": figures.rewards,
            "reward_difference": figures.difference,
            "reward_difference_lower": figures.lower,
            "reward_difference_upper": figures.upper,
            "error_ratio": figures.error_share,
            "baseline_error_ratio": figures.baseline_error_share,
            "complaints": figures.complaints,
            "baseline_complaints": figures.baseline_complaints,
        }
        for name, value in values.items():
            if value is not None and isfinite(value):
                self._canary[name].set(value, rollout.model_id)

    def retain_canaries(self, models: Collection[str]) -> None:
        """Only these are canaries now."""
        for gauge in self._canary.values():
            gauge.retain(models)
