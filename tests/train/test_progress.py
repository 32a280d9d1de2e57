"""What the child tells becomes a status that everybody can read."""

from datetime import UTC, datetime

import msgspec
import pytest

from upswing.contracts import decode, encode
from upswing.contracts.training import TrainingStatus
from upswing.train.core.exit_verdict import ProcessExit, failure_cause
from upswing.train.core.progress import JobProgress, apply_report, training_status
from upswing.train.core.report import (
    DECODER,
    ENCODER,
    CheckpointSaved,
    Heartbeat,
    StepReport,
    TrainingDone,
    TrainingFailed,
    TrainingStarted,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
BEGAN = TrainingStarted(
    total_steps=10,
    total_epochs=2,
    first_step=0,
    examples=64,
    groups=8,
    flat_groups=3,
    trained_tokens=200,
    off_policy_tokens=50,
    masked_trajectories=1,
    dropped={"too long": 2},
    versions={"torch": "2.13.0"},
)
STEPPED = StepReport(
    step=4,
    epoch=1,
    loss=0.5,
    reward_mean=0.6,
    reward_std=0.1,
    entropy=1.2,
    kl=-1e-9,
    clipped=0.1,
    grad_norm=1.0,
    learning_rate=1e-5,
    tokens=80,
    seconds=2.0,
)
DONE = TrainingDone(
    step=10,
    final="f",
    curves="c",
    tensorboard="t",
    card="m",
    holdout_before=0.4,
    holdout_after=0.7,
    peak_rss_bytes=10**9,
    seconds=20.0,
    samples=64,
    reward_mean=0.6,
)


def told(*reports):
    state = JobProgress()
    for report in reports:
        state = apply_report(state, DECODER.decode(ENCODER.encode(report)))
    return state


def test_a_status_in_the_middle_tells_how_far_and_how_well():
    status = training_status(
        "j", "running", told(BEGAN, STEPPED, Heartbeat(5, "training")), now=NOW, seconds=8
    )
    again = decode(TrainingStatus, encode(status))
    assert again.progress.percent_complete == 40
    assert again.progress.eta_seconds == 12
    assert again.metrics.current.kl_divergence == 0
    assert again.metadata["groups_without_variance"] == 3
    assert again.metadata["off_policy_share"] == 0.25


def test_the_end_tells_what_was_gained_and_what_it_cost():
    status = training_status(
        "j",
        "completed",
        told(BEGAN, STEPPED, CheckpointSaved(4, "p", 0.6, best=True), DONE),
        now=NOW,
        seconds=1800,
        cost_per_hour=4.0,
    )
    assert status.evaluation_results.improvement_over_baseline == pytest.approx(0.3)
    assert status.resource_usage.cost_usd == 2.0
    assert status.metrics.best.step == 4
    assert status.artifacts.model_card == "m"


def test_a_status_before_the_first_word_is_valid_too():
    status = training_status("j", "queued", JobProgress(), now=NOW, seconds=0)
    assert decode(TrainingStatus, encode(status)).progress is msgspec.UNSET


def test_the_childs_own_word_counts_most():
    failed = TrainingFailed("CONVERGENCE", "nan", "…", 3)
    assert failure_cause(told(failed), ProcessExit(1), None)[0] == "CONVERGENCE"


@pytest.mark.parametrize(
    ("end", "cause"),
    [
        (ProcessExit(0, "timeout"), "TIMEOUT"),
        (ProcessExit(0, "silence"), "TIMEOUT"),
        (ProcessExit(0, "frozen"), "LOST"),
        (ProcessExit(-6, log_tail="terminate called after throwing 'std::bad_alloc'"), "OOM"),
        (ProcessExit(-9), "LOST"),
        (ProcessExit(-15), "LOST"),
        (ProcessExit(3), "UNKNOWN"),
    ],
)
def test_without_a_word_the_way_it_ended_tells_why(end, cause):
    assert failure_cause(JobProgress(), end, 10**9)[0] == cause


def test_a_kill_near_the_limit_counts_as_out_of_memory():
    assert failure_cause(told(Heartbeat(950, "training")), ProcessExit(-9), 1000)[0] == "OOM"
    assert failure_cause(told(Heartbeat(100, "training")), ProcessExit(-9), 1000)[0] == "LOST"
