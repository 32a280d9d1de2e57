"""What does the gateway look like from outside? Its series in `/metrics`, read from the tally."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from upswing.gateway.tally import BOUNDS_MS, Tally


@dataclass(frozen=True, slots=True)
class Reading:
    """What is not in the tally."""

    shares: dict[str, float]
    under_way: int
    clients: int
    episodes: int
    recording_bytes: int
    recorded: int
    not_recorded: dict[str, int]
    lease_seconds: float | None
    """None: the plan does not run out."""


class GatewayCollector:
    """Counting costs the hot path plain additions; series are made when somebody asks."""

    def __init__(self, tally: Tally, read: Callable[[], Reading]) -> None:
        self._tally, self._read = tally, read

    def collect(self) -> Iterator[Metric]:
        yield from self._models()
        yield from self._requests()
        yield from self._state(self._read())

    def _models(self) -> Iterator[Metric]:
        errors = CounterMetricFamily(
            "agent_rl_model_errors", "Requests that a model failed.", labels=["model_version"]
        )
        rate = GaugeMetricFamily(
            "agent_rl_model_error_rate", "Share of a model's requests that failed.",
            labels=["model_version"],
        )  # fmt: skip
        fallbacks = CounterMetricFamily(
            "upswing_gateway_fallbacks", "Failed requests that the baseline answered.",
            labels=["model_version"],
        )  # fmt: skip
        latency = HistogramMetricFamily(
            "upswing_gateway_latency_seconds", "From the request to the whole answer.",
            labels=["model_version"],
        )  # fmt: skip
        for name, counts in self._tally.models.items():
            errors.add_metric([name], counts.errors)
            rate.add_metric([name], counts.errors / counts.requests if counts.requests else 0.0)
            fallbacks.add_metric([name], counts.fallbacks)
        for name, histogram in self._tally.latencies.items():
            latency.add_metric([name], _cumulative(histogram.buckets), histogram.total / 1000)
        yield from (errors, rate, fallbacks, latency)

    def _requests(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "upswing_gateway_requests", "Requests by what became of them.", labels=["outcome"]
        )
        for word, count in self._tally.outcomes.items():
            requests.add_metric([word], count)
        refused = CounterMetricFamily(
            "upswing_gateway_refused", "Requests that were not passed on.", labels=["reason"]
        )
        for word, count in self._tally.refused.items():
            refused.add_metric([word], count)
        faults = CounterMetricFamily(
            "upswing_gateway_faults", "What went wrong with a model's server.",
            labels=["model_version", "fault"],
        )  # fmt: skip
        for (name, word), count in self._tally.faults.items():
            faults.add_metric([name, word], count)
        yield from (requests, refused, faults)

    def _state(self, reading: Reading) -> Iterator[Metric]:
        traffic = GaugeMetricFamily(
            "agent_rl_model_traffic_percentage", "Share of new episodes.", labels=["model_version"]
        )
        for name, share in reading.shares.items():
            traffic.add_metric([name], 100 * share)
        yield traffic
        lost = CounterMetricFamily(
            "upswing_gateway_episodes_not_recorded", "Ended episodes without a trajectory.",
            labels=["reason"],
        )  # fmt: skip
        for word, count in reading.not_recorded.items():
            lost.add_metric([word], count)
        yield lost
        yield CounterMetricFamily(
            "upswing_gateway_episodes_recorded", "Episodes that are durable.", reading.recorded
        )
        for name, about, value in (
            ("under_way", "Requests under way.", reading.under_way),
            ("clients", "Connections of clients.", reading.clients),
            ("episodes", "Open episodes.", reading.episodes),
            ("recording_bytes", "Heard and not yet durable.", reading.recording_bytes),
        ):
            yield GaugeMetricFamily(f"upswing_gateway_{name}", about, value)
        if reading.lease_seconds is not None:
            yield GaugeMetricFamily(
                "upswing_gateway_lease_seconds", "Until the baseline answers alone.",
                reading.lease_seconds,
            )  # fmt: skip


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    total = 0
    series: list[tuple[str, float]] = []
    for bound, count in zip((*(b / 1000 for b in BOUNDS_MS), "+Inf"), buckets, strict=True):
        total += count
        series.append((str(bound), total))
    return series
