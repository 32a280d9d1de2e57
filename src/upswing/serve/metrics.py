"""What does the model server look like from outside? Its series in `/metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from upswing.infra.metric_labels import OTHER
from upswing.serve.core.engine import EngineStats

Outcome = str
"""`answered`, `cancelled` (the client left), `refused` (its own fault), `full`, `failed`."""


@dataclass(slots=True)
class ServerCounters:
    """What has been counted since the start."""

    requests: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    """By model; "" where the model is not one of ours, so that nobody can make up series."""
    prompt_tokens: Counter[str] = field(default_factory=Counter)
    completion_tokens: Counter[str] = field(default_factory=Counter)


class ModelServerCollector:
    """Series are made when somebody asks."""

    def __init__(
        self,
        counters: ServerCounters,
        in_flight: Callable[[], int],
        models: Callable[[], Collection[str]],
        engine_stats: Callable[[], EngineStats | None],
    ) -> None:
        self._counters, self._in_flight, self._models, self._engine_stats = (
            counters,
            in_flight,
            models,
            engine_stats,
        )

    def collect(self) -> Iterator[Metric]:
        yield from self._counter_families()
        yield _gauge_metric(
            "requests_under_way", "Requests that are not answered yet.", self._in_flight()
        )
        yield _gauge_metric("models", "Models that are served.", len(self._models()))
        if (load := self._engine_stats()) is not None:
            yield from _engine_metrics(load)

    def _counter_families(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "upswing_model_server_requests",
            "Requests by model and outcome.",
            labels=["model", "outcome"],
        )
        served = {"", *self._models()}
        counts: Counter[tuple[str, str]] = Counter()
        for (model, outcome), count in self._counters.requests.items():
            counts[_model_label(model, served), outcome] += count
        for (model, outcome), count in counts.items():
            requests.add_metric([model, outcome], count)
        yield requests
        tokens = CounterMetricFamily(
            "upswing_model_server_tokens", "Tokens read and drawn.", labels=["model", "kind"]
        )
        for kind, counted in (
            ("prompt", self._counters.prompt_tokens),
            ("completion", self._counters.completion_tokens),
        ):
            by_model: Counter[str] = Counter()
            for model, count in counted.items():
                by_model[_model_label(model, served)] += count
            for model, count in by_model.items():
                tokens.add_metric([model, kind], count)
        yield tokens


def _model_label(model: str, served: Collection[str]) -> str:
    """Models that are not served any more are counted together."""
    return model if model in served else OTHER


def _engine_metrics(stats: EngineStats) -> Iterator[Metric]:
    yield _gauge_metric("running", "Requests in the batch.", stats.running)
    yield _gauge_metric("waiting", "Requests that wait for a slot.", stats.waiting)
    mean = stats.generated_tokens / stats.steps if stats.steps else 0.0
    yield _gauge_metric("batch_size", "Requests in a batch, on the mean of all steps.", mean)
    yield _counter_metric("steps", "Passes of a batch.", stats.steps)
    yield _counter_metric(
        "cancelled", "Requests that were left before they had ended.", stats.cancelled
    )


def _gauge_metric(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"upswing_model_server_{name}", help_text, value=value)


def _counter_metric(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"upswing_model_server_{name}", help_text, value=value)
