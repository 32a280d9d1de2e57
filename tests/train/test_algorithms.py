"""A training job from samples to a model: every algorithm, and what it reports of who acted."""

from dataclasses import replace as changed
from typing import get_args

import msgspec
import pytest
from child_job import policy, run, samples_of

from upswing.contracts.training import Algorithm
from upswing.train.core.report import StepReport, TrainingDone, TrainingFailed, TrainingStarted
from upswing.worlds.triage import Triage

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def world():
    return Triage()


@pytest.fixture(scope="module")
def recorded(bases, world):
    return samples_of(world, world.training[:12], policy(bases), group=4)


@pytest.mark.parametrize("algorithm", get_args(Algorithm))
def test_every_algorithm_makes_a_model(tmp_path, bases, recorded, algorithm):
    found = run(tmp_path / "job", bases, recorded, algorithm, epochs=1)
    assert found[TrainingDone], found[TrainingFailed]
    (began,) = found[TrainingStarted]
    assert began.reference == "start"
    assert began.mismatch_logp < 1e-4  # torch served, and torch trains
    assert began.importance_mean == pytest.approx(1, abs=1e-4)
    assert began.effective_sample == pytest.approx(1, abs=1e-4)


def nudged(samples, by, model):
    """The same, as if another policy had found everything that much less likely."""

    def lower(turn):
        return replace(turn, logprobs=[logp - by for logp in turn.logprobs])

    return [replace(s, turns=[lower(t) for t in s.turns], model=model) for s in samples]


def test_what_another_policy_recorded_is_weighed_and_reported(tmp_path, bases, recorded):
    mixed = [*recorded[:24], *nudged(recorded[24:], 2.0, "older")]
    found = run(tmp_path / "job", bases, mixed, epochs=1, batch_size=64)
    (began,) = found[TrainingStarted]
    assert 0 < began.importance_truncated < 1
    assert 1 < began.importance_mean < 3
    assert 0.2 < began.effective_sample < 1
    assert began.mismatch_logp < 1e-4  # the older policy is none of the engine's doing
    assert found[StepReport][0].kl == pytest.approx(0, abs=1e-6)


def test_an_engine_that_counts_differently_is_reported(tmp_path, bases, recorded):
    found = run(tmp_path / "job", bases, nudged(recorded, 0.05, "tiny"), epochs=1)
    assert found[TrainingStarted][0].mismatch_logp == pytest.approx(0.05, abs=1e-3)
    assert found[TrainingStarted][0].mismatch_kl == pytest.approx(0.05**2 / 2, rel=0.1)


def test_what_was_sampled_at_another_temperature_is_on_policy_there(tmp_path, bases, world):
    player = changed(policy(bases), temperature=0.6)
    cool = samples_of(world, world.training[:12], player, group=4)
    assert {each.temperature for each in cool} == {0.6}
    found = run(tmp_path / "job", bases, cool, "reinforce", epochs=1)
    (began,) = found[TrainingStarted]
    assert began.importance_mean == pytest.approx(1, abs=1e-4)
    assert began.mismatch_logp < 1e-4


def test_too_long_trajectories_are_counted_and_do_not_end_the_job(tmp_path, bases, recorded):
    limit = max(sum(len(turn.token_ids) for turn in each.turns) for each in recorded)
    first, *others = recorded[5].turns
    long = replace(first, token_ids=first.token_ids[:1] * limit + first.token_ids)
    samples = [*recorded[:5], replace(recorded[5], turns=[long, *others]), *recorded[6:]]
    found = run(tmp_path / "job", bases, samples, epochs=1, max_tokens=limit)
    assert found[TrainingDone], found[TrainingFailed]
    assert found[TrainingStarted][0].masked_trajectories == 1
    assert found[TrainingStarted][0].examples == len(recorded)


def test_when_everything_is_too_long_it_says_so(tmp_path, bases, recorded):
    found = run(tmp_path / "job", bases, recorded, max_tokens=16)
    assert (
        f"{len(recorded)} of {len(recorded)} trajectories are longer"
        in found[TrainingFailed][0].message
    )


def test_without_a_success_rft_says_so(tmp_path, bases, recorded):
    failed = [replace(each, reward=0.0) for each in recorded]
    found = run(tmp_path / "job", bases, failed, "rft")
    assert found[TrainingFailed][0].code == "DATA"
    assert "nothing to imitate" in found[TrainingFailed][0].message


def test_what_was_selected_for_its_success_is_no_measure_of_a_model(tmp_path, bases, recorded):
    good = [
        replace(
            each, reward=1.0, held_out=at % 4 == 0, task_id=f"mine-{at}", scenario_id=f"mine-{at}"
        )
        for at, each in enumerate(recorded)
    ]  # of no world that could be played
    (done,) = run(tmp_path / "job", bases, good, "rft", epochs=1)[TrainingDone]
    assert (done.holdout_before, done.holdout_after, done.train_after) == (None, None, None)
