"""What does the gateway look like from outside? Its series in `/metrics`, read from the counters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from upswing.gateway.counters import BOUNDS_MS, GatewayCounters, ModelCounts


@dataclass(frozen=True, slots=True)
class GatewayGauges:
    """What is not in the counters."""

    shares: dict[str, float]
    in_flight: int
    clients: int
    episodes: int
    recording_bytes: int
    recorded: int
    not_recorded: dict[str, int]
    lease_seconds: float | None
    """None: the plan does not run out."""


class GatewayCollector:
    """Counting costs the hot path plain additions; series are made when somebody asks."""

    def __init__(self, counters: GatewayCounters, read_gauges: Callable[[], GatewayGauges]) -> None:
        self._counters, self._read_gauges = counters, read_gauges

    def collect(self) -> Iterator[Metric]:
        gauges = self._read_gauges()
        yield from self._model_series(gauges.shares)
        yield from self._request_series()
        yield from self._gauge_series(gauges)

    def _model_series(self, shares: Collection[str]) -> Iterator[Metric]:
        """Of every model that has answered, and of those that are about to."""
        errors = CounterMetricFamily(
            "agent_rl_model_errors", "Requests that a model failed.", labels=["model_version"]
        )
        rate = GaugeMetricFamily(
            "agent_rl_model_error_rate",
            "Share of a model's requests that failed.",
            labels=["model_version"],
        )
        fallbacks = CounterMetricFamily(
            "upswing_gateway_fallbacks",
            "Failed requests that the baseline answered.",
            labels=["model_version"],
        )
        latency = HistogramMetricFamily(
            "upswing_gateway_latency_seconds",
            "From the request to the whole answer.",
            labels=["model_version"],
        )
        unasked = {name: ModelCounts() for name in shares if name not in self._counters.models}
        for name, counts in {**self._counters.models, **unasked}.items():
            errors.add_metric([name], counts.errors)
            rate.add_metric([name], counts.errors / counts.requests if counts.requests else 0.0)
            fallbacks.add_metric([name], counts.fallbacks)
        for name, histogram in self._counters.latencies.items():
            latency.add_metric(
                [name], _cumulative_buckets(histogram.buckets), histogram.total / 1000
            )
        yield from (errors, rate, fallbacks, latency)

    def _request_series(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "upswing_gateway_requests", "Requests by what became of them.", labels=["outcome"]
        )
        for label, count in self._counters.outcomes.items():
            requests.add_metric([label], count)
        refused = CounterMetricFamily(
            "upswing_gateway_refused", "Requests that were not passed on.", labels=["reason"]
        )
        for label, count in self._counters.refused.items():
            refused.add_metric([label], count)
        faults = CounterMetricFamily(
            "upswing_gateway_faults",
            "What went wrong with a model's server.",
            labels=["model_version", "fault"],
        )
        for (name, label), count in self._counters.faults.items():
            faults.add_metric([name, label], count)
        yield from (requests, refused, faults)

    def _gauge_series(self, gauges: GatewayGauges) -> Iterator[Metric]:
        traffic = GaugeMetricFamily(
            "agent_rl_model_traffic_percentage", "Share of new episodes.", labels=["model_version"]
        )
        for name, share in gauges.shares.items():
            traffic.add_metric([name], 100 * share)
        yield traffic
        lost = CounterMetricFamily(
            "upswing_gateway_episodes_not_recorded",
            "Ended episodes without a trajectory.",
            labels=["reason"],
        )
        for label, count in gauges.not_recorded.items():
            lost.add_metric([label], count)
        yield lost
        yield CounterMetricFamily(
            "upswing_gateway_episodes_recorded", "Episodes that are durable.", gauges.recorded
        )
        for name, help_text, value in (
            ("under_way", "Requests under way.", gauges.in_flight),
            ("clients", "Connections of clients.", gauges.clients),
            ("episodes", "Open episodes.", gauges.episodes),
            (
                "recording_bytes",
                "Held of episodes: open, not yet durable, or remembered.",
                gauges.recording_bytes,
            ),
        ):
            yield GaugeMetricFamily(f"upswing_gateway_{name}", help_text, value)
        if gauges.lease_seconds is not None:
            yield GaugeMetricFamily(
                "upswing_gateway_lease_seconds",
                "Until the baseline answers alone.",
                gauges.lease_seconds,
            )


def _cumulative_buckets(buckets: list[int]) -> list[tuple[str, float]]:
    total = 0
    series: list[tuple[str, float]] = []
    for bound, count in zip((*(b / 1000 for b in BOUNDS_MS), "+Inf"), buckets, strict=True):
        total += count
        series.append((str(bound), total))
    return series
