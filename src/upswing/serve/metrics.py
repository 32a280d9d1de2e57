"""What does the model server look like from outside? Its series in `/metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from upswing.labels import OTHER
from upswing.serve.ports import Load

Outcome = str
"""`answered`, `cancelled` (the client left), `refused` (its own fault), `full`, `failed`."""


@dataclass(slots=True)
class Tally:
    """What has been counted since the start."""

    requests: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    """By model; "" where the model is not one of ours, so that nobody can make up series."""
    prompt_tokens: Counter[str] = field(default_factory=Counter)
    completion_tokens: Counter[str] = field(default_factory=Counter)


class Collector:
    """Series are made when somebody asks."""

    def __init__(
        self,
        tally: Tally,
        under_way: Callable[[], int],
        models: Callable[[], Collection[str]],
        load: Callable[[], Load | None],
    ) -> None:
        self._tally, self._under_way, self._models, self._load = tally, under_way, models, load

    def collect(self) -> Iterator[Metric]:
        yield from self._counted()
        yield _gauge("requests_under_way", "Requests that are not answered yet.", self._under_way())
        yield _gauge("models", "Models that are served.", len(self._models()))
        if (load := self._load()) is not None:
            yield from _busy(load)

    def _counted(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "upswing_model_server_requests", "Requests by model and outcome.",
            labels=["model", "outcome"],
        )  # fmt: skip
        served = {"", *self._models()}
        counts: Counter[tuple[str, str]] = Counter()
        for (model, outcome), count in self._tally.requests.items():
            counts[_known(model, served), outcome] += count
        for (model, outcome), count in counts.items():
            requests.add_metric([model, outcome], count)
        yield requests
        tokens = CounterMetricFamily(
            "upswing_model_server_tokens", "Tokens read and drawn.", labels=["model", "kind"]
        )
        for kind, counted in (
            ("prompt", self._tally.prompt_tokens),
            ("completion", self._tally.completion_tokens),
        ):
            by_model: Counter[str] = Counter()
            for model, count in counted.items():
                by_model[_known(model, served)] += count
            for model, count in by_model.items():
                tokens.add_metric([model, kind], count)
        yield tokens


def _known(model: str, served: Collection[str]) -> str:
    """Models that are not served any more are counted together."""
    return model if model in served else OTHER


def _busy(load: Load) -> Iterator[Metric]:
    yield _gauge("running", "Requests in the batch.", load.running)
    yield _gauge("waiting", "Requests that wait for a seat.", load.waiting)
    mean = load.drawn / load.steps if load.steps else 0.0
    yield _gauge("batch_size", "Requests in a batch, on the mean of all steps.", mean)
    yield _counter("steps", "Passes of a batch.", load.steps)
    yield _counter("cancelled", "Requests that were left before they had ended.", load.cancelled)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"upswing_model_server_{name}", about, value=value)


def _counter(name: str, about: str, value: float) -> Metric:
    return CounterMetricFamily(f"upswing_model_server_{name}", about, value=value)
