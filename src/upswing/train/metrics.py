"""What does training look like from outside?"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Histogram

from upswing.infra.metric_labels import start_at_zero
from upswing.train.child_metrics import TrainingChildCollector
from upswing.train.core.job_states import ENDED
from upswing.train.core.progress import JobState


class TrainMetrics:
    """Series of the training service.

    Only jobs that ended count, so that the share of `completed` is the share of successes.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        on_finished: Callable[[JobState, float, int], None] = lambda _state, _seconds, _samples: (
            None
        ),
    ) -> None:
        """`on_finished` hears of each job that ended, too."""
        self._on_finished = on_finished
        self._jobs = Counter(
            "agent_rl_training_jobs_total",
            "Training jobs that ended, by how.",
            ["status"],
            registry=registry,
        )
        self._duration = Histogram(
            "agent_rl_training_duration_seconds",
            "Training time of a job, all its attempts.",
            buckets=(300, 600, 1800, 3600, 7200, 14400),
            registry=registry,
        )
        self._samples = Histogram(
            "agent_rl_training_samples",
            "Trajectories that a job was trained on.",
            buckets=(1000, 5000, 10000, 50000, 100000),
            registry=registry,
        )

        start_at_zero(self._jobs, ENDED)
        self.children = TrainingChildCollector()
        registry.register(self.children)

    def finished(self, state: JobState, seconds: float, samples: int) -> None:
        """A job ended, after so long and on so many trajectories; 0 when it never ran."""
        self._jobs.labels(state).inc()
        if seconds > 0:
            self._duration.observe(seconds)
        if samples > 0:
            self._samples.observe(samples)
        self._on_finished(state, seconds, samples)
