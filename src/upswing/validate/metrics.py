"""What does validation look like from outside?"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from upswing.contracts.validation import ValidationReport
from upswing.infra.metric_labels import ModelGauge, start_at_zero


class ValidateMetrics:
    """Series of validation."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._scores = ModelGauge(
            Gauge(
                "agent_rl_model_benchmark_score",
                "Mean score of a model in a suite, 0 to 1.",
                ["model_version", "task_type"],
                registry=registry,
            )
        )
        self._ended = Counter(
            "upswing_validations_total",
            "Validations that ended, by verdict.",
            ["verdict"],
            registry=registry,
        )
        start_at_zero(self._ended, ("pass", "fail", "inconclusive", "failed"))

    def record_scores(self, report: ValidationReport) -> None:
        """What both models reached."""
        for suite in report.suites:
            for model, score in (
                (report.current, suite.current),
                (report.candidate, suite.candidate),
            ):
                if score is not None:
                    self._scores.set(score, model, suite.name)

    def count_ended(self, outcome: str) -> None:
        """`pass`, `fail`, `inconclusive`, or `failed` when there is no report."""
        self._ended.labels(outcome).inc()
