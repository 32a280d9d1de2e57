"""What a recorder cannot use: counted, left out, and said in the log, once for each kind."""

import logging

import pytest

from upswing.sdk.worker import WARNING_KINDS

ID = "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING, "upswing.sdk")
    return lambda: [each.getMessage() for each in caplog.records if each.name == "upswing.sdk"]


def recorded(recorder, *steps):
    tid = recorder.start_trajectory(agent_id="a")
    for step in steps:
        recorder.record_step(tid, action={"type": "wait"}, **step)
    recorder.end_trajectory(tid)
    assert recorder.flush(60)


WRONG_FEEDBACK = [
    ({"type": "stars"}, "allowed are abandoned, comment, correction, demonstration, rating"),
    ({"type": "like"}, "thumbs_up"),
    ({"type": "rating", "rating": 9}, "<= 5"),
    ({"type": "rating"}, "needs the field `rating`"),
    ({"type": "comment", "comment": 3}, "Expected `str`"),
    ({"type": "thumbs_up", "trajectory_id": "no-id"}, "UUID"),
]


@pytest.mark.parametrize(("given", "expected"), WRONG_FEEDBACK, ids=repr)
def test_feedback_that_cannot_be_taken_is_a_warning(make, loop, warnings, given, expected):
    recorder = make()
    for _ in range(3):
        recorder.feedback(**{"trajectory_id": ID} | given)
    assert recorder.flush(60)
    assert not loop.seen
    assert recorder.stats.errors == 3
    (warning,) = warnings()
    assert expected in warning
    assert expected in recorder.stats.last_error


def test_feedback_within_a_block_is_a_warning_too_and_the_trajectory_is_sent(make, loop, warnings):
    recorder = make()
    with recorder.trajectory(agent_id="a") as t:
        t.turn("in", "out")
        t.feedback("stars")
    assert recorder.flush(60)
    assert loop.ids == [t.id]
    (warning,) = warnings()
    assert "'stars'" in warning


@pytest.mark.parametrize("reward", ["hoch", True, float("nan"), 10**16, [1]], ids=repr)
def test_a_reward_that_is_no_number_is_left_out_with_a_warning(make, loop, warnings, reward):
    recorder = make()
    recorded(recorder, {"reward": 0.5}, {"reward": reward})
    (sent,) = loop.seen
    assert sent["metadata"]["step_rewards"] == [0.5, None]
    assert recorder.stats.errors == 1
    (warning,) = warnings()
    assert "record_step: reward" in warning


def test_a_total_reward_that_is_no_number_is_left_out_with_a_warning(make, loop, warnings):
    recorder = make()
    tid = recorder.start_trajectory(agent_id="a")
    recorder.record_step(tid, action={"type": "wait"})
    recorder.end_trajectory(tid, total_reward="high")
    assert recorder.flush(60)
    (sent,) = loop.seen
    assert "total_reward" not in sent["metadata"]
    (warning,) = warnings()
    assert "end_trajectory: total_reward" in warning


@pytest.mark.parametrize(
    ("numbers", "kept", "wrong"),
    [
        ([1, 1], 1, 1),
        ([1, 1, 1], 1, 2),
        ([0, 1, 2], 3, 0),
        ([None, None, 1], 2, 1),
        ([5, None, 6], 2, 1),
        ([1, -1, "2", 2.5, 2**31, 2], 2, 4),
    ],
    ids=repr,
)
def test_a_step_number_counts_once(make, loop, warnings, numbers, kept, wrong):
    recorder = make()
    recorded(recorder, *({"step_number": number} for number in numbers))
    (sent,) = loop.seen
    assert len(sent["turns"]) == kept
    assert recorder.stats.errors == wrong
    assert len(warnings()) == min(1, wrong)


def test_the_loops_refusals_are_a_warning_once(make, loop, warnings):
    recorder = make()
    for _ in range(2):
        loop.script.append(422)
        with recorder.trajectory(agent_id="a") as t:
            t.turn("in", "out")
        assert recorder.flush(60)
    assert recorder.stats.errors == 2
    (warning,) = warnings()
    assert "422" in warning


def test_kinds_of_warnings_are_bounded(make, warnings):
    recorder = make()
    for number in range(WARNING_KINDS + 20):
        recorder.failed("a" * number)
    assert recorder.stats.errors == WARNING_KINDS + 20
    assert len(warnings()) == WARNING_KINDS
