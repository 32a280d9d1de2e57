"""What do rollouts look like from outside?"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from upswing.labels import ModelGauge


class DeployMetrics:
    """Series of the deploy stage. The mean reward of each model is told by the reward stage."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._deployments = Counter(
            "agent_rl_model_deployments_total", "Steps of rollouts, by what happened.", ["status"],
            registry=registry,
        )  # fmt: skip
        self._traffic = ModelGauge(Gauge(
            "agent_rl_model_traffic_percentage", "Share of new episodes.", ["model_version"],
            registry=registry,
        ))  # fmt: skip
        self._errors = ModelGauge(Gauge(
            "agent_rl_model_error_rate", "Share of a model's requests that failed.",
            ["model_version"], registry=registry,
        ))  # fmt: skip
        self._alerts = Counter(
            "upswing_alerts_total", "Times that a person was called.", ["stage", "reason"],
            registry=registry,
        )  # fmt: skip

    def happened(self, status: str) -> None:
        self._deployments.labels(status).inc()

    def alert(self, reason: str) -> None:
        self._alerts.labels("deploy", reason).inc()

    def traffic(self, shares: Mapping[str, float]) -> None:
        """A model without traffic is told as 0 once it had some."""
        for model in (*(each for each in self._traffic if each not in shares), *shares):
            self._traffic.set(100 * shares.get(model, 0.0), model)

    def error_rate(self, model: str, share: float) -> None:
        self._errors.set(share, model)
