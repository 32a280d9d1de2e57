"""What do the training children look like from outside? As their last reports say.

A child lives as long as its job and listens on no port. It reports to the loop through its pipe, every second and
after every step, and the loop's `/metrics` shows that, by worker: of the jobs there are ever more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from upswing.train.core.progress import JobProgress

ReadProgress = Callable[[JobProgress], float | None]


def _of_step(name: str) -> ReadProgress:
    return lambda progress: getattr(progress.stepped, name) if progress.stepped else None


_GAUGES: dict[str, tuple[str, ReadProgress]] = {
    "step": ("Optimizer steps so far.", _of_step("step")),
    "steps": (
        "Optimizer steps that are planned.",
        lambda progress: progress.began.total_steps if progress.began else None,
    ),
    "loss": ("Loss of the last step.", _of_step("loss")),
    "reward_mean": ("Mean reward of the last step's batch.", _of_step("reward_mean")),
    "entropy": ("Policy entropy of the last step.", _of_step("entropy")),
    "kl": ("KL divergence of the last step.", _of_step("kl")),
    "learning_rate": ("Learning rate of the last step.", _of_step("learning_rate")),
    "resident_bytes": ("Memory of the child.", lambda progress: progress.rss_bytes),
}


class TrainingChildCollector(Collector):
    """The children of this process's workers."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        """Worker → its number: a name is new at every start."""
        self._running: dict[str, JobProgress] = {}

    def expect(self, workers: Iterable[str]) -> None:
        """These are all workers that there are."""
        self._labels = {name: str(number) for number, name in enumerate(workers)}

    def report(self, worker: str, progress: JobProgress | None) -> None:
        """What a worker's child reports; None: it has ended."""
        if progress is None:
            self._running.pop(worker, None)
        elif worker in self._labels:
            self._running[worker] = progress

    def collect(self) -> Iterator[Metric]:
        running = GaugeMetricFamily(
            "upswing_training_child_running", "Whether a worker trains, 1 or 0.", labels=["worker"]
        )
        for worker, label in self._labels.items():
            running.add_metric([label], float(worker in self._running))
        yield running
        for name, (about, read) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"upswing_training_child_{name}", about, labels=["worker"])
            for worker, progress in self._running.items():
                if (value := read(progress)) is not None:
                    gauge.add_metric([self._labels[worker]], value)
            yield gauge
        seconds = CounterMetricFamily(
            "upswing_training_child_cpu_seconds", "Processor time of the child.", labels=["worker"]
        )
        for worker, progress in self._running.items():
            seconds.add_metric([self._labels[worker]], progress.cpu_seconds)
        yield seconds
