"""What do the loop's conditions look like from outside? Their series in `/metrics`, read from the newest look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from upswing.monitor.core.conditions import DiskSpace, LoopConditions, RewardDrift
from upswing.records import ACTIVE_JOBS, JudgeUse


class ConditionCollector(Collector):
    """A part that is not there, or of which nobody says anything, has no series."""

    def __init__(self, newest: Callable[[], LoopConditions]) -> None:
        self._newest = newest

    def collect(self) -> Iterator[Metric]:
        found = self._newest()
        yield _gauge(
            "upswing_bus_connected", "Whether the bus is reached, 1 or 0.", found.bus_connected
        )
        yield _gauge(
            "upswing_bus_sync_always",
            "Whether the bus's server fsyncs before it acknowledges, 1 or 0.",
            found.bus_sync_always,
        )
        yield _gauge(
            "upswing_model_server_answers",
            "Whether the model server answers, 1 or 0.",
            found.model_server_answers,
        )
        yield from _disk_series(found.disks)
        jobs = GaugeMetricFamily(
            "upswing_training_jobs_active", "Training jobs that have not ended.", labels=["state"]
        )
        for state in ACTIVE_JOBS:
            jobs.add_metric([state], found.active_jobs.get(state, 0))
        yield jobs
        yield _gauge(
            "upswing_training_failures_in_a_row",
            "Training jobs that failed since the last success.",
            found.failed_jobs_in_a_row,
        )
        yield from _judge_series(found.judge)
        yield from _drift_series(found.drift)


def _gauge(name: str, help_text: str, value: float | None) -> GaugeMetricFamily:
    """Without a sample where nothing is known."""
    family = GaugeMetricFamily(name, help_text)
    if value is not None:
        family.add_metric([], float(value))
    return family


def _disk_series(disks: Iterable[DiskSpace]) -> Iterator[Metric]:
    free = GaugeMetricFamily(
        "upswing_disk_free_bytes", "Room on the disk of a folder.", labels=["disk"]
    )
    size = GaugeMetricFamily(
        "upswing_disk_size_bytes", "Size of the disk of a folder.", labels=["disk"]
    )
    for disk in disks:
        free.add_metric([disk.name], disk.free_bytes)
        size.add_metric([disk.name], disk.size_bytes)
    yield from (free, size)


def _judge_series(use: JudgeUse | None) -> Iterator[Metric]:
    ratio = GaugeMetricFamily(
        "upswing_judge_budget_used_ratio",
        "Share of the judge's budget of a day that is spent.",
        labels=["kind"],
    )
    if use is not None:
        for kind, spent, most in (
            ("tokens", use.tokens, use.max_tokens),
            ("usd", use.usd, use.max_usd),
        ):
            if most is not None:
                ratio.add_metric([kind], spent / most if most else 1.0)
    yield ratio
    yield _gauge(
        "upswing_judge_budget_spent",
        "Whether the judge's budget allows no further question, 1 or 0.",
        use.spent if use else None,
    )


def _drift_series(drift: RewardDrift | None) -> Iterator[Metric]:
    drop = GaugeMetricFamily(
        "upswing_reward_drop",
        "How much less the baseline earns than at first, in raw reward.",
        labels=["model_version"],
    )
    limit = GaugeMetricFamily(
        "upswing_reward_drop_limit",
        "From here on such a fall is neither small nor chance.",
        labels=["model_version"],
    )
    if drift is not None:
        drop.add_metric([drift.model_id], drift.drop)
        limit.add_metric([drift.model_id], drift.limit)
    yield from (drop, limit)
