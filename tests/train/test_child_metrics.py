"""The training children in `/metrics`: as their reports say, by worker, and gone when they end."""

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from tests.support import samples

from upswing.train.core.progress import JobProgress, apply_report
from upswing.train.core.report import Heartbeat, StepReport, TrainingStarted
from upswing.train.metrics import TrainMetrics

STARTED = TrainingStarted(40, 2, 0, 100, 10, 0, 1000, 0, 0, {}, {})
STEP = StepReport(7, 1, 0.25, 0.5, 0.1, 1.5, 0.01, 0.0, 1.0, 3e-4, 500, 0.2)


def shown(registry):
    found = samples(generate_latest(registry).decode())
    prefix = "upswing_training_child_"
    return {
        (name.removeprefix(prefix), dict(labels)["worker"]): value
        for (name, labels), value in found.items()
        if name.startswith(prefix)
    }


def test_a_child_has_series_while_it_trains_under_its_workers_number():
    registry = CollectorRegistry()
    children = TrainMetrics(registry).children
    children.expect(["uuid-a", "uuid-b"])
    assert shown(registry) == {("running", "0"): 0, ("running", "1"): 0}
    progress = JobProgress()
    for report in (Heartbeat(1_000, "reading", 2.5), STARTED, STEP):
        progress = apply_report(progress, report)
        children.report("uuid-b", progress)
    assert shown(registry) == {
        ("running", "0"): 0,
        ("running", "1"): 1,
        ("step", "1"): 7,
        ("steps", "1"): 40,
        ("loss", "1"): 0.25,
        ("reward_mean", "1"): 0.5,
        ("entropy", "1"): 1.5,
        ("kl", "1"): 0.01,
        ("learning_rate", "1"): 3e-4,
        ("resident_bytes", "1"): 1_000,
        ("cpu_seconds_total", "1"): 2.5,
    }
    children.report("uuid-b", None)
    assert shown(registry) == {("running", "0"): 0, ("running", "1"): 0}


def test_a_child_that_has_not_begun_shows_what_is_known_and_a_strangers_nothing():
    registry = CollectorRegistry()
    children = TrainMetrics(registry).children
    children.expect(["mine"])
    children.report("mine", JobProgress(rss_bytes=5))
    children.report("another process's", JobProgress())
    assert shown(registry) == {
        ("running", "0"): 1,
        ("resident_bytes", "0"): 5,
        ("cpu_seconds_total", "0"): 0,
    }
